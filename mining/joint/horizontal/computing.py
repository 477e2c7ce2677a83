"""Whether a third party computes beside the two, where a job leaves it open: what deciding on candidates then costs.

The choice is part of what every party agrees to before anything is known of the data, so it follows from the job alone,
with sizes of a usual job and the speed of a usual machine. All parties compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from crypto.protocols.comparison.costs import agreement_traffic
from link.files.quantities import size
from link.traffic import Traffic
from mining.joint.horizontal.strategy import PER_COMPARISON, PER_COMPARISON_OF_THREE, PER_MULTIPLICATION
from mining.joint.tally import SumRange
from mining.joint.tally_costs import compared_traffic
from mining.joint.usual_network import LATENCY_S
from mining.pairs import n_pairs
from mining.thresholds import minimum_count

ITEMS: Final = 100  # frequent ones
ROWS: Final = 100_000
_AGREEMENT: Final = 1500  # scalar multiplications, about, of two parties that agree on transfers


@dataclass(frozen=True)
class ComputingCost:
    """What deciding on all items and on all pairs of items comes to.

    Attributes:
        bytes_sent: Of all parties.
        seconds: With the network's.
    """

    bytes_sent: int
    seconds: float

    def __str__(self) -> str:
        return f"{size(self.bytes_sent)} and {self.seconds:.2f} s"


@dataclass(frozen=True)
class ComputingChoice:
    """What `auto` comes to where a third party may compute.

    Attributes:
        helper: Who could be the third.
        two: What two computing parties come to.
        three: What three come to.
        bytes_per_s: That the network carries.
    """

    helper: str
    two: ComputingCost
    three: ComputingCost
    bytes_per_s: float

    @property
    def takes_three(self) -> bool:
        """Whether the third computes: three are quicker, or as quick with fewer bytes."""
        return (self.three.seconds, self.three.bytes_sent) < (self.two.seconds, self.two.bytes_sent)

    @property
    def reason(self) -> str:
        """The choice in a sentence."""
        sizes = f"{n_pairs(ITEMS):,} pairs of {ITEMS} items over {8e-6 * self.bytes_per_s:g} Mbit/s"
        three, two = f"three computing parties take about {self.three}", f"two {self.two}"
        if self.takes_three:
            return f'helper = "auto" takes {self.helper}: for {sizes}, {three}, and {two}.'
        return f'helper = "auto" takes nobody: for {sizes}, {three}, and {two}.'


@lru_cache(maxsize=256)
def choose_computing(
    parties: Sequence[str],
    compute: tuple[str, str],
    min_support: int | Decimal,
    bytes_per_s: float,
    *,
    agrees_anyway: bool,
) -> ComputingChoice:
    """Whether two computing parties or three come cheaper.

    Args:
        parties: Of the job, three or more.
        compute: The two computing parties.
        min_support: A fraction of all transactions, or a count.
        bytes_per_s: That the network carries.
        agrees_anyway: Whether all parties agree on transfers whoever computes, as unions need it.
    """
    helper = next(party for party in parties if party not in compute)
    rows = max(ROWS, min_support if isinstance(min_support, int) else 0)
    sums = SumRange.capped(minimum_count(min_support, rows), len(parties), rows)
    two, three = Traffic(parties), Traffic(parties)
    work = [0.0 if agrees_anyway else _AGREEMENT * PER_MULTIPLICATION, 0.0]
    if not agrees_anyway:
        agreement_traffic(two, compute)
    for number in (ITEMS, n_pairs(ITEMS)):
        compared_traffic(two, compute, number, sums)
        compared_traffic(three, (*compute, helper), number, sums)
        work = [work[0] + number * PER_COMPARISON, work[1] + number * PER_COMPARISON_OF_THREE]

    def cost(traffic: Traffic, work_s: float) -> ComputingCost:
        sent = sum(map(traffic.bytes_sent, parties))
        return ComputingCost(sent, work_s + sent / bytes_per_s + traffic.rounds * LATENCY_S)

    return ComputingChoice(helper, cost(two, work[0]), cost(three, work[1]), bytes_per_s)

"""How many candidates users' sets contain: reports, the length to which sets are padded, and what it cuts off.

The length L is the smallest that is not exceeded by nine in ten of the sets that contain a candidate at all. Larger
sets lose (|v| − L) of their |v| members; their part of all members, u, is added to the estimates again:

    u = Σ_{s > L} σ(s)·(s − L) / Σ_x θ(x)

The estimated shares σ are weighted with s − L, up to the number of candidates. Negative ones must stay, or be taken
away from the others as Norm-Sub does: cut at 0, noise alone adds up to a large u. What stays is noisy still, often more
than u itself. So there are three treatments:

    shrunken   L from Norm-Sub; u from the raw shares, times 1 − 4/z² where it is z > 2 standard deviations, else 0
    raw        L and u from the raw shares: u has no bias, and much noise
    norm-sub   L and u from Norm-Sub: less noise, and a u that is too large

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 4; the first
treatment, after James and Stein (1961), is ours.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.mechanism import Channel, Tally
from ldp.oracle import Floats, PureOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import OptimisedLocalHashing
from ldp.reports import Field, Reports
from ldp.sets.itemset_candidates import Candidates
from ldp.sets.padding import SetMechanism, direct_is_better
from link.errors import ConfigurationError

TREATMENTS: Final = ("shrunken", "raw", "norm-sub")

PERCENTILE: Final = 0.9

_TOLD_FROM_NOISE: Final = 2.0  # standard deviations


class SetSizes(SetMechanism):
    """Estimates how many users' sets contain 0, 1, 2 … of the candidates.

    A size is a value out of c + 1, reported by direct encoding or by local hashing, whichever has less variance.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε.
        candidates: Itemsets that are counted; without them, all single items.

    Attributes:
        single: How a size is reported.
    """

    name: ClassVar[str] = "set-sizes"

    single: PureOracle

    def __init__(self, domain: DomainLike, epsilon: float, candidates: Candidates | None = None) -> None:
        super().__init__(domain, epsilon, candidates)
        kind = DirectEncoding if direct_is_better(self.width, 1, epsilon) else OptimisedLocalHashing
        self.single = kind(self.width + 1, epsilon)

    @property
    def exact_epsilon(self) -> float:
        """That of the oracle."""
        return self.single.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """That of the oracle."""
        return self.single.layout

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self.single.privatise(self.held(values).sizes, rng).fields

    def _valid(self, reports: Reports) -> bool:
        return self.single._valid(reports)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a size."""
        return self.single.tally_shape

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each size."""
        return self.single.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """How many sets have each size, from 0 to c; raw, with variances."""
        return self.single.estimate(tally, n)

    def blanket(self) -> Blanket:
        """That of the oracle."""
        return self.single.blanket()

    def channel(self) -> Channel:
        """From every set of `all_sets` to the oracle's outputs."""
        rows = self.single.channel()
        return [rows[size] for size in self.held(self.all_sets()).sizes.tolist()]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The oracle's."""
        return self.single.outcomes(reports)


def check_treatment(treatment: str) -> str:
    """The treatment, if there is one of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if treatment not in TREATMENTS:
        raise ConfigurationError(f"estimated sizes are taken as one of {', '.join(TREATMENTS)}, not as '{treatment}'")
    return treatment


def padding_length(sizes: Estimate, treatment: str) -> int:
    """L, from the estimated sizes.

    Args:
        sizes: Of a `SetSizes`.
        treatment: One of `TREATMENTS`.
    """
    return percentile_length(sizes.frequencies if treatment == "raw" else _projected(sizes))


def percentile_length(shares: Floats, percentile: float = PERCENTILE) -> int:
    """The smallest length that more than `percentile` of the sets with a candidate do not exceed; at least 1.

    Args:
        shares: σ, from size 0 on.
        percentile: Of the sets that contain a candidate.
    """
    reached = np.cumsum(shares[1:])
    enough = np.flatnonzero(reached > percentile * reached[-1])
    return int(enough[0]) + 1 if enough.size else 1


def lost_share(sizes: Estimate, length: int, total: float, treatment: str) -> float:
    """u: the members that sets beyond the length lose, by those that were found.

    Args:
        sizes: Of a `SetSizes`.
        length: L.
        total: Σ θ(x), the sum of the estimated frequencies.
        treatment: One of `TREATMENTS`.

    Returns:
        0 where noise makes either of them no positive number: nothing is known of what was lost.
    """
    shares = _projected(sizes) if treatment == "norm-sub" else sizes.frequencies
    beyond = np.arange(1, len(shares) - length)
    lost = float(beyond @ shares[length + 1 :])
    if lost <= 0 or total <= 0:
        return 0.0
    if treatment == "shrunken":
        noise = float(beyond**2 @ sizes.frequency_variances[length + 1 :])
        lost *= max(0.0, 1 - _TOLD_FROM_NOISE**2 * noise / lost**2)
    return lost / total


def _projected(sizes: Estimate) -> Floats:
    from ldp.consistency import norm_sub  # with all of scipy: clients, which need `SetSizes` only, do without

    return norm_sub(sizes.frequencies)

"""What engines have in common that work pair by pair: products of shares for itemsets of three or more parties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from crypto.primitives.columns import Columns
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.costs import spanning_products_traffic, spanning_products_work
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.products.shared_products import spanning_products, word_for
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, EngineCosts, EngineSpeed
from mining.joint.vertical.engines.products import Addends, Naming, by_pair, numbers_of, of_several
from mining.joint.vertical.parameters import VerticalMining, in_job_order

SEVERAL: Final = "several"  # the lane of itemsets of three or more parties


async def add_several(
    total: Addends,
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    compute: tuple[str, str] | None,
    columns: Columns,
    rows: int,
    itemsets: Sequence[Itemset],
) -> None:
    """Puts into `total` this party's addends of the itemsets of three or more parties; all parties call this."""
    more = of_several(itemsets)
    if not len(more):
        return
    many, holders = [itemsets[place] for place in more], in_job_order(session.parties, compute)
    shares = await spanning_products(session.lane(SEVERAL), secrets, pairs, columns, rows, many, holders)
    if shares is not None:
        total[more] = shares.values


class PairwiseCosts(EngineCosts):
    """Costs of an engine that works pair by pair, and by `add_several` for itemsets of three or more parties."""

    def __init__(self, task: VerticalMining, parties: Sequence[str]) -> None:
        """As of `Engine.costs`."""
        self._task, self._parties = task, parties

    @abstractmethod
    def pair_traffic(
        self, traffic: Traffic, pair: tuple[str, str], rows: int, pairs: Pairs, names: Naming | None
    ) -> None:
        """Enters what one pair of parties sends; pairs of conjunctions as in `ot_matrix`."""

    @abstractmethod
    def pair_seconds(
        self,
        pair: tuple[str, str],
        rows: int,
        pairs: Pairs,
        speed: EngineSpeed,
        density: float,
        names: Naming | None,
    ) -> float:
        """Processor time of one pair of parties."""

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        """See `EngineCosts`."""
        begun, ends = traffic.rounds, [traffic.rounds]
        for pair, chosen in by_pair(itemsets, self._parties).items():
            traffic.rounds = begun  # pairs work in parallel
            self.pair_traffic(traffic, pair, rows, numbers_of([itemsets[place] for place in chosen], pair), names)
            ends.append(traffic.rounds)
        traffic.rounds = max(ends)
        if many := [itemsets[place] for place in of_several(itemsets)]:
            holders = in_job_order(self._parties, self._task.compute)
            spanning_products_traffic(traffic, holders, rows=rows, itemsets=many)

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        """See `EngineCosts`."""
        total = 0.0
        for pair, chosen in by_pair(itemsets, self._parties).items():
            pairs = numbers_of([itemsets[place] for place in chosen], pair)
            total += self.pair_seconds(pair, rows, pairs, speed, density, names)
        many = [itemsets[place] for place in of_several(itemsets)]
        word_bytes = word_for(rows)().itemsize if many else 0
        for several in spanning_products_work(rows, many, self._parties).values():
            total += several.transfers * speed.transfer_s + several.words * word_bytes * speed.correction_s
        return total

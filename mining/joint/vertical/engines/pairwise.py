"""What engines have in common that work pair by pair: products of shares for itemsets of three or more parties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from crypto.primitives.columns import Columns
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.costs import spanning_products_traffic, spanning_products_work
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.products.shared_products import spanning_products, word_for
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from link.tasks import together
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, EngineCosts, EngineSpeed
from mining.joint.vertical.engines.products import Addends, Naming, by_pair, numbers_of, of_several
from mining.joint.vertical.parameters import in_job_order

SEVERAL: Final = "several"  # the lane of itemsets of three or more parties


class PairwiseProducts(ABC):
    """A running engine that works pair by pair, and by products of shares for itemsets of three or more parties.

    Private against all other parties together; needs nobody's trust.
    """

    def __init__(
        self, secrets: PairwiseSecrets, pairs: Mapping[str, TwoParty], compute: tuple[str, str] | None = None
    ) -> None:
        """Agrees upon nothing yet.

        Args:
            secrets: From `pairwise.agree` in this session.
            pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
            compute: Who gets the shares of supports over three or more parties; the first two of the job by default.
        """
        self._secrets, self._pairs, self._compute = secrets, pairs, compute

    @abstractmethod
    async def pair_addends(
        self, session: Session, pair: tuple[str, str], columns: Columns, rows: int, numbers: Pairs, names: Naming | None
    ) -> Addends:
        """This party's addends of pairs of conjunctions, at one of the two; arguments as in `ot_matrix`."""

    async def prepare(self, rows: int) -> None:
        """Agrees upon the seeds of all transfers."""
        await together(pair.prepare() for pair in self._pairs.values())

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        total = np.zeros(len(itemsets), np.uint64)
        mine = {pair: places for pair, places in by_pair(itemsets, session.parties).items() if session.me in pair}
        work = [
            self.pair_addends(
                session.lane(f"{pair[0]} and {pair[1]}"),
                pair,
                columns,
                rows,
                numbers_of([itemsets[place] for place in places], pair),
                names,
            )
            for pair, places in mine.items()
        ]
        for places, addends in zip(mine.values(), await together(work), strict=True):
            total[places] = addends
        more = of_several(itemsets)
        if len(more):
            many, holders = [itemsets[place] for place in more], in_job_order(session.parties, self._compute)
            lane = session.lane(SEVERAL)
            shares = await spanning_products(lane, self._secrets, self._pairs, columns, rows, many, holders)
            if shares is not None:
                total[more] = shares.values
        return total

    def close(self) -> None:
        """Nothing runs in the background."""


class PairwiseCosts(EngineCosts):
    """Costs of `PairwiseProducts`."""

    def __init__(self, parties: Sequence[str], compute: tuple[str, str] | None = None) -> None:
        """Nothing has been computed yet.

        Args:
            parties: Of the job, or those of them that multiply.
            compute: As of `PairwiseProducts`.
        """
        self._parties, self._compute = parties, compute

    @abstractmethod
    def pair_traffic(
        self, traffic: Traffic, pair: tuple[str, str], rows: int, pairs: Pairs, names: Naming | None
    ) -> None:
        """Enters what one pair of parties sends; pairs of conjunctions as in `ot_matrix`."""

    @abstractmethod
    def pair_seconds(
        self, pair: tuple[str, str], rows: int, pairs: Pairs, speed: EngineSpeed, density: float, names: Naming | None
    ) -> float:
        """Processor time of one pair of parties."""

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        begun, ends = traffic.rounds, [traffic.rounds]
        for pair, chosen in by_pair(itemsets, self._parties).items():
            traffic.rounds = begun  # pairs work in parallel
            self.pair_traffic(traffic, pair, rows, numbers_of([itemsets[place] for place in chosen], pair), names)
            ends.append(traffic.rounds)
        traffic.rounds = max(ends)
        if many := [itemsets[place] for place in of_several(itemsets)]:
            holders = in_job_order(self._parties, self._compute)
            spanning_products_traffic(traffic, holders, rows=rows, itemsets=many)

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        total = 0.0
        for pair, chosen in by_pair(itemsets, self._parties).items():
            pairs = numbers_of([itemsets[place] for place in chosen], pair)
            total += self.pair_seconds(pair, rows, pairs, speed, density, names)
        many = [itemsets[place] for place in of_several(itemsets)]
        word_bytes = word_for(rows)().itemsize if many else 0
        for several in spanning_products_work(rows, many, self._parties).values():
            total += several.transfers * speed.transfer_s + several.words * word_bytes * speed.correction_s
        return total

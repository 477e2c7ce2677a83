"""Supports by replicated sharing among three parties, and by dealt randomness between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crypto.primitives.columns import Columns
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.outside_dealer import Dealings
from crypto.protocols.products.outside_products import OutsideProducts
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from mining.joint.vertical.engines.products import Addends, Naming, numbers_of


class ReplicatedProducts:
    """Three parties hold shares of all columns (`replicated_counts`). Any two of the three together read everything."""

    def __init__(self, secrets: PairwiseSecrets, pairs: Mapping[str, TwoParty], holders: Holders3) -> None:
        """Agrees upon nothing yet.

        Args:
            secrets: From `pairwise.agree` in this session.
            pairs: By peer this party's half of an agreement with it.
            holders: Three parties of the job, in its order; the first two get the shares of the supports.
        """
        self._secrets, self._pairs, self._holders = secrets, pairs, holders

    async def prepare(self, rows: int) -> None:
        """The two who get the result agree upon the seeds of their transfers."""
        for peer in self._peer():
            await self._pairs[peer].prepare()

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        two = next((self._pairs[peer] for peer in self._peer()), None)
        share = await spanning_counts(session, self._secrets, self._holders, two, columns, rows, list(itemsets))
        return np.zeros(len(itemsets), np.uint64) if share is None else share.values

    def close(self) -> None:
        """Nothing runs in the background."""

    def _peer(self) -> Sequence[str]:
        """At one of the two who get the result, the other."""
        two = self._holders[:2]
        return [peer for peer in two if peer in self._pairs] if set(two) - set(self._pairs) else ()


class DealtProducts:
    """Two parties with randomness that somebody else deals (`outside_dealer`).

    The dealer and either party together read the other's columns.
    """

    def __init__(self, parties: TwoParty, dealings: Dealings) -> None:
        """`parties` is this party's half of the agreement with the other, `dealings` what it has of the dealer."""
        self._parties, self._products = parties, OutsideProducts(dealings)

    async def prepare(self, rows: int) -> None:
        """Agrees upon the seeds with which counts are lifted."""
        await self._parties.prepare()

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        pairs = numbers_of(itemsets, self._parties.holders)
        share = await self._products.pair_products(session, self._parties, columns, rows, pairs)
        return share.values

    def close(self) -> None:
        """Nothing runs in the background."""

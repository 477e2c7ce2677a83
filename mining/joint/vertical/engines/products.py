"""What a running engine does: it multiplies the parties' conjunctions row by row, and leaves the supports shared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.ot_matrix import Pairs
from link.session import Session

Addends = NDArray[np.uint64]

Naming = Mapping[str, Sequence[Hashable]]
"""By party the names of its conjunctions of a call, by number: those of one name have the same bits in all calls."""


class Products(Protocol):
    """A running engine: computes supports of itemsets that span two or more parties, and leaves them shared."""

    async def prepare(self, rows: int) -> None:
        """Does what needs no columns, in parallel with other work; else it is done when it is first needed.

        All parties call this, or none does.

        Args:
            rows: This party's own; about as many will be computed on.
        """
        ...

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        """This party's addends of the supports.

        Args:
            session: A lane of its own, equal at all parties.
            columns: This party's conjunctions, packed.
            rows: Their length.
            itemsets: Public: by party the number of its conjunction, of two or more parties each.
            names: Public: of the conjunctions, for calls that follow each other; None: this call is the only one that
                has them.

        Returns:
            Shape (itemsets,): all parties' add up to the supports, modulo 2^64.
        """
        ...

    def close(self) -> None:
        """Deletes keys and ends background work."""
        ...


def by_pair(itemsets: Sequence[Itemset], parties: Sequence[str]) -> dict[tuple[str, str], NDArray[np.int64]]:
    """The places of the itemsets of exactly two parties, by these parties in the order of the job."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, itemset in enumerate(itemsets):
        if len(itemset) == 2:
            first, second = (party for party in parties if party in itemset)
            found.setdefault((first, second), []).append(place)
    return {pair: np.array(places, np.int64) for pair, places in sorted(found.items())}


def of_several(itemsets: Sequence[Itemset]) -> NDArray[np.int64]:
    """The places of the itemsets of three or more parties."""
    return np.array([place for place, itemset in enumerate(itemsets) if len(itemset) > 2], np.int64)


def numbers_of(itemsets: Sequence[Itemset], pair: tuple[str, str]) -> Pairs:
    """The numbers of the conjunctions of two parties that have all these itemsets."""
    first, second = pair
    numbers = [(itemset[first], itemset[second]) for itemset in itemsets]
    return np.array(numbers, np.int64).reshape(-1, 2)

"""What an engine is: it computes supports of itemsets that span parties, and leaves them shared."""

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
"""By party what its conjunctions of a call are called, by number: those of one name have the same bits in all calls."""


class Engine(Protocol):
    """Computes supports of itemsets that span two parties or more, and leaves them shared."""

    name: str

    async def prepare(self, rows: int) -> None:
        """What needs no columns, done beside other work; without it, it is done when it is first needed.

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
            itemsets: Public: by party the number of its conjunction, of two parties or more each.
            names: Public: of the conjunctions, with calls one after the other; None: this call has them alone.

        Returns:
            Shape (itemsets,): all parties' add up to the supports, modulo 2^64.
        """
        ...

    def close(self) -> None:
        """Forgets keys and ends what works in the background."""
        ...


def by_pair(itemsets: Sequence[Itemset], parties: Sequence[str]) -> dict[tuple[str, str], NDArray[np.int64]]:
    """The itemsets of exactly two parties, by these in the order of the job."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, itemset in enumerate(itemsets):
        if len(itemset) == 2:
            first, second = (party for party in parties if party in itemset)
            found.setdefault((first, second), []).append(place)
    return {pair: np.array(places, np.int64) for pair, places in sorted(found.items())}


def of_several(itemsets: Sequence[Itemset]) -> NDArray[np.int64]:
    """The itemsets of three parties and more."""
    return np.array([place for place, itemset in enumerate(itemsets) if len(itemset) > 2], np.int64)


def numbers_of(itemsets: Sequence[Itemset], pair: tuple[str, str]) -> Pairs:
    """The numbers of the conjunctions of two parties that have all these itemsets."""
    first, second = pair
    numbers = [(itemset[first], itemset[second]) for itemset in itemsets]
    return np.array(numbers, np.int64).reshape(-1, 2)

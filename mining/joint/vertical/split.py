"""Candidates split by who holds their items: what each party brings to a product, and whose products there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.products.chains import Itemset
from mining.joint.vertical.engines.products import Naming
from mining.lattice import Sets

Members = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """A batch of candidates, as all parties see it alike.

    Attributes:
        members: By party its conjunctions, each once: shape (m, k), items of the public dictionary, −1 for none.
        used: By party, for every candidate the number of its conjunction there; −1 where it takes no part.
        owner: Shape (c,): the only party that takes part, by number; −1 where several do.
    """

    members: dict[str, Members]
    used: dict[str, NDArray[np.int64]]
    owner: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sets, holder: NDArray[np.int64], parties: Sequence[str], *, everywhere: bool) -> Split:
        """Splits candidates.

        Args:
            sets: Shape (c, k), positions in the public dictionary.
            holder: By item of the dictionary, the number of the party that holds it.
            parties: The parties by number.
            everywhere: Whether a party without an item of a candidate takes no part; otherwise its rows must be there.
        """
        holders = holder[sets]
        members, used = {}, {}
        parts = np.zeros(len(sets), np.int64)
        owner = np.full(len(sets), -1, np.int64)
        for number, party in enumerate(parties):
            own = np.sort(np.where(holders == number, sets, -1).astype(np.int64), axis=1)[:, ::-1]
            distinct, place = np.unique(own, axis=0, return_inverse=True)
            place = place.reshape(-1)
            takes_part = np.ones(len(sets), bool) if not everywhere else own[:, 0] >= 0
            members[party] = np.ascontiguousarray(distinct)
            used[party] = np.where(takes_part, place, -1)
            parts += takes_part
            owner[takes_part] = number
        owner[parts > 1] = -1
        return cls(members, used, owner)

    @property
    def spanning(self) -> NDArray[np.int64]:
        """Candidates in which several parties take part."""
        return np.flatnonzero(self.owner < 0)

    def names(self) -> Naming:
        """By party its conjunctions by their items, in order; each is in all batches what it is in this one."""
        return {
            party: [tuple(item for item in items if item >= 0) for items in members.tolist()]
            for party, members in self.members.items()
        }

    def itemsets(self) -> list[Itemset]:
        """Of each spanning candidate, by party the number of its conjunction."""
        chosen = self.spanning
        places = {party: used[chosen].tolist() for party, used in self.used.items()}
        return [
            {party: numbers[index] for party, numbers in places.items() if numbers[index] >= 0}
            for index in range(len(chosen))
        ]

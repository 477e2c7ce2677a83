"""Contingency tables of the parties' local classes, left as shares, and rolled up to coarser levels.

A party generalises its own columns alone; of each of its local classes it has a column of bits, which rows lie in it.
The number of rows in a class of a node is a product of such bits, one of each party, summed over the common rows. A
column group has the sum of its members' columns, which lie at different rows: a product of groups is the sum of the
products of their members, one of each group. So positions at which some group has no row do not count.

    1. a table at fine levels is computed once and left shared: between two parties by `class_counts`, among more by
       products of bits (`shared_products`) for each combination of local classes; one shared sum brings the counts to
       the computing parties. Between two groups every member of the one counts with every member of the other, and
       where it has no row it is in a class that is left out
    2. tables of all coarser levels are local additions on shares

Which levels a table is computed at follows from what is public (`table_choice`).

Rounds:     those of the counts and of a shared sum, once for each table that is computed; none to roll up.
Bytes:      between two parties a row costs some 40 for each bit of one's local class and a word for each of the other's
            local classes; among more, transfers for each row and cell.
            Groups cost as much for each way to take a member of every group.
Adversary:  semi-honest; between two parties nobody learns anything of a table, among more see `shared_products`.
Leakage:    sizes, which are public: of the positions, and of the hierarchies.
Source:     Jiang and Clifton, "A secure distributed framework for achieving k-anonymity", VLDB Journal 15(4), 2006 (the
            setting); Vaidya and Clifton, KDD 2002, section 3 (counts as scalar products).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.class_counts import class_counts
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.session import Session
from link.tasks import together
from mining.joint.anonymisation.vertical.columns import Axis, row_keys
from mining.joint.anonymisation.vertical.table_choice import MOST_CELLS, Levels, TableChoice
from mining.joint.vertical.engines.grouped import GroupedProducts
from mining.joint.vertical.engines.products import Products
from mining.joint.vertical.engines.transfers.products import TransferProducts
from mining.joint.vertical.grouped.groups import Groups, column_holder, column_holders, holder_members


class ContingencyTables:
    """Shared counts of the common rows by their classes at any levels.

    Args:
        session: The lane of its messages.
        secrets: Pairwise secrets of this session.
        pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
        compute: The two computing parties.
        axes: The quasi-identifiers, then sensitive columns.
        quasi: How many of the axes are quasi-identifiers.
        n_positions: Number of positions.
        most_cells: The largest table.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.
        presence: With groups, at which positions this party has a row, shape (positions,).
    """

    def __init__(
        self,
        session: Session,
        secrets: PairwiseSecrets,
        pairs: Mapping[str, TwoParty],
        compute: tuple[str, str],
        axes: tuple[Axis, ...],
        quasi: int,
        n_positions: int,
        most_cells: int = MOST_CELLS,
        groups: Groups = (),
        presence: NDArray[np.bool_] | None = None,
    ) -> None:
        self._session, self._secrets, self._pairs, self._compute = session, secrets, pairs, compute
        of_parties = TransferProducts(secrets, pairs, compute)
        self._engine: Products = GroupedProducts(of_parties, groups) if groups else of_parties
        self._groups, self._presence = groups, presence
        self._holders, self._me = column_holders(groups, session.parties), column_holder(groups, session.me)
        self.axes, self.n_positions = axes, n_positions
        self.choice = TableChoice([[len(each) for each in axis.hierarchy.labels] for axis in axes], quasi, most_cells)
        self._made: dict[int, Words | None] = {}  # in this attempt of the job, by place

    @property
    def number(self) -> int:
        """How many tables have been chosen."""
        return len(self.choice.chosen)

    def levels_from(self, place: int) -> NDArray[np.int64]:
        """At which levels tables have been computed, those before a place apart, shape (tables, axes)."""
        levels = self.choice.chosen[place:]
        return np.array(levels, np.int64).reshape(len(levels), len(self.axes))

    def note(self, place: int, levels: NDArray[np.int64]) -> None:
        """Notes tables of an earlier attempt from a place on; they are computed again where they are asked for."""
        self.choice.chosen += [tuple(each) for each in levels.tolist()][self.number - place :]

    async def shares(self, levels: Levels) -> AdditiveShare | None:
        """Shares of how many common rows lie in each class, modulo 2^64; every party calls this alike.

        Args:
            levels: Of all axes; the largest level of one of them says nothing of it.

        Returns:
            Shape (cells,), in mixed radix of the labels; None to a party that computes nothing.

        Raises:
            MalformedMessage: A peer's messages have another size: its rows differ.
        """
        place = self.choice.place_of(levels)
        fine = self.choice.chosen[place]
        if place not in self._made:
            self._made[place] = await self._compute_table(place, fine)
        counts = self._made[place]
        if counts is None:
            return None
        rolled = await self._session.compute(self._rolled_up, counts, fine, levels)
        return AdditiveShare(rolled.reshape(-1), self._session.me, self._compute)

    async def along(self, place: int) -> AdditiveShare | None:
        """Shares of how many common rows have each leaf of one axis; as `shares`."""
        levels = tuple(0 if number == place else axis.hierarchy.height for number, axis in enumerate(self.axes))
        return await self.shares(levels)

    async def _compute_table(self, place: int, levels: Levels) -> Words | None:
        """This party's share of each cell, an axis for each axis; None at a party that computes nothing."""
        lane, me = self._session.lane(f"table {place}"), self._me
        parts = {holder: self._part(levels, holder) for holder in self._holders}
        # A group has no row at some positions, which its single class does not say.
        counted = {holder: cells for holder, cells in parts.items() if cells > 1 or self._groups}
        own = await self._session.compute(self._own_keys, levels)
        total, names = np.zeros(math.prod(parts.values()), np.uint64), list(counted)
        if len(counted) == 2 and me in names:
            total = await self._between(lane.lane("pair"), own, counted)
        elif len(counted) > 2:
            ranges = map(range, counted.values())
            products: list[Itemset] = [dict(zip(names, each, strict=True)) for each in itertools.product(*ranges)]
            columns = await self._session.compute(_indicators, own, parts[me])
            total = await self._engine.addends(lane.lane("products"), columns, self.n_positions, products)
        elif len(counted) < 2 and self._session.me == (names[0] if names else self._compute[0]):
            total = np.bincount(own, minlength=len(total)).astype(np.uint64)
        shared = await shared_sum(lane.lane("sum"), self._secrets, total, self._compute)
        return None if shared is None else self._in_order(levels, shared.values)

    async def _between(self, session: Session, own: NDArray[np.int64], counted: Mapping[str, int]) -> Words:
        """This party's addends of a table of two holders.

        Args:
            session: A lane of its own.
            own: This party's class at each position.
            counted: By holder how many classes it has, in the order of the table.
        """
        mine, (other,) = counted[self._me], [holder for holder in counted if holder != self._me]
        theirs, absent = counted[other], 1 if self._groups else 0

        async def with_member(peer: str) -> Words:
            pair = self._pairs[peer]
            lane = session.lane(" and ".join(pair.holders)) if self._groups else session
            both = (mine + absent, theirs + absent)
            sizes = both if pair.is_first else both[::-1]
            counts = (await class_counts(lane, pair, own, sizes)).values.reshape(sizes)
            return (counts if pair.is_first else counts.T)[:mine, :theirs]

        total: Words = np.zeros((mine, theirs), np.uint64)
        for counts in await together(map(with_member, holder_members(self._groups, other))):
            total += counts
        return (total if next(iter(counted)) == self._me else total.T).reshape(-1)

    def _held(self, holder: str) -> list[int]:
        return [place for place, axis in enumerate(self.axes) if axis.holder == holder]

    def _part(self, levels: Levels, holder: str) -> int:
        """How many local classes a holder of columns may have."""
        return math.prod(self.axes[place].labels(levels[place]) for place in self._held(holder))

    def _own_keys(self, levels: Levels) -> NDArray[np.int64]:
        """This party's class at each position; where it has no row, one beyond all."""
        held = self._held(self._me)
        keys = row_keys([self.axes[place] for place in held], tuple(levels[place] for place in held), self.n_positions)
        return keys if self._presence is None else np.where(self._presence, keys, self._part(levels, self._me))

    def _in_order(self, levels: Levels, counts: Words) -> Words:
        """From cells in the order of the holders to an array with the axes in their order."""
        order = [place for holder in self._holders for place in self._held(holder)]
        shape = self.choice.shape(levels)
        return counts.reshape([shape[place] for place in order]).transpose(np.argsort(order))

    def _rolled_up(self, counts: Words, levels: Levels, above: Levels) -> Words:
        """A table's counts at coarser levels."""
        for place, (axis, fine, coarse) in enumerate(zip(self.axes, levels, above, strict=True)):
            if fine == coarse:
                continue
            summed = np.zeros((axis.labels(coarse), *np.moveaxis(counts, place, 0).shape[1:]), counts.dtype)
            np.add.at(summed, axis.coarser(fine, coarse), np.moveaxis(counts, place, 0))
            counts = np.moveaxis(summed, 0, place)
        return counts


def _indicators(keys: NDArray[np.int64], cells: int) -> NDArray[np.uint8]:
    """Of each of so many local classes which rows lie in it, packed, shape (cells, ⌈rows / 8⌉)."""
    rows = np.flatnonzero(keys < cells)
    columns = np.zeros((cells, -(-len(keys) // 8)), np.uint8)
    np.bitwise_or.at(columns, (keys[rows], rows >> 3), np.uint8(1) << (rows & 7).astype(np.uint8))
    return columns

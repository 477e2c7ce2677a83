"""Supports of given itemsets over one party's rows: level by level with parents kept, or any family at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mining.candidates import Candidates
from mining.data.items.bitmaps import Bitmaps, intersect, pack, packed_bytes
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.lattice import Sets, lexicographic_order
from mining.pairs import count_along_columns, count_along_rows, pairs_at, prefer_rows
from mining.prefix_tree import PrefixTree, chains

SETS_AT_ONCE: Final = 1 << 21
"""Itemsets that are counted in one pass over the rows: so many that a pass is worth it, and fit into memory."""

_MEMORY_BUDGET = 128 << 20
_PACKED_BLOCK_BYTES = 256 << 20


class LevelCounter(Protocol):
    """Counts a public sequence of candidate levels over one party's rows, wherever they lie."""

    @property
    def at_once(self) -> int:
        """Candidates that are best counted in one call."""

    def count_pairs(self) -> NDArray[np.int64]:
        """Supports of all pairs (i, j), i < j, in lexicographic order (that of `np.triu_indices(K, 1)`)."""

    def count(self, candidates: Candidates) -> NDArray[np.int64]:
        """Supports of candidates, joined from the sets kept last."""

    def keep(self, mask: NDArray[np.bool_]) -> Sets:
        """Keeps those of the sets counted last that are frequent; gives these, in the order of the counts."""

    def advance(self, frequent: Sets, left: NDArray[np.int64] | None = None) -> None:
        """Name the frequent sets of one length from which the next candidates are joined."""


class SupportCounter:
    """Counts a public sequence of candidate levels over one party's rows.

    After each `count_pairs` or `count`, `keep` says which of the counted sets go on; the bitmaps of those become the
    parents of the next level, so that a candidate costs one AND. Where they would exceed the memory budget, the next
    level is counted from the items' columns through a prefix tree instead.

    Args:
        transactions: This party's rows, encoded on the public dictionary of frequent items.
        memory_budget: Bytes that the bitmaps of one level's parents may take.
    """

    at_once = 1 << 17

    def __init__(self, transactions: Transactions, memory_budget: int = _MEMORY_BUDGET) -> None:
        self._transactions = transactions
        self._memory_budget = memory_budget
        self._columns: Bitmaps | None = None
        self._counted: Candidates | None = None  # None: all pairs
        self._frequent: Sets = np.empty((0, 0), np.int32)
        self._left: NDArray[np.int64] | None = None
        self._bitmaps: Bitmaps | None = None  # of the frequent sets, made when they are first needed
        self._parents: Bitmaps | None = None  # of the frequent sets' own parents, until then

    def count_pairs(self) -> NDArray[np.int64]:
        """Supports of all pairs (i, j), i < j, in lexicographic order (that of `np.triu_indices(K, 1)`)."""
        self._counted = None
        if prefer_rows(self._transactions):
            return count_along_rows(self._transactions)
        return count_along_columns(self._packed())

    def count(self, candidates: Candidates) -> NDArray[np.int64]:
        """Supports of candidates.

        Args:
            candidates: `left` must refer to the sets kept last; when those have another length, only `sets` is used.
        """
        self._counted = candidates
        columns = self._packed()
        bitmaps = self._bitmaps_for(candidates.sets.shape[1])
        if bitmaps is None:
            return PrefixTree([candidates.sets]).counts(columns)[0]
        return intersect(bitmaps, candidates.left, columns, _last_items(candidates.sets))

    def keep(self, mask: NDArray[np.bool_]) -> Sets:
        """Keeps those of the sets counted last that are frequent.

        Args:
            mask: One entry for each pair or candidate counted last.

        Returns:
            The kept sets, in the order in which they were counted.
        """
        if self._counted is None:
            self.advance(pairs_at(np.flatnonzero(mask), self._transactions.n_items))
        else:
            kept = self._counted if mask.all() else self._counted.select(mask)
            self._counted = None  # nobody holds what was dropped while the next candidates are made
            self.advance(kept.sets, kept.left)
        return self._frequent

    def advance(self, frequent: Sets, left: NDArray[np.int64] | None = None) -> None:
        """Name the frequent sets from which the next candidates are joined.

        Args:
            frequent: All frequent sets of one length.
            left: Where each of them, without its last item, stands among the sets named before, if it is known.
        """
        extends = left is not None and self._frequent.shape[1] == frequent.shape[1] - 1
        self._parents = self._bitmaps if extends else None
        self._left = left if extends else None
        self._frequent = frequent
        self._bitmaps = None

    def _packed(self) -> Bitmaps:
        if self._columns is None:
            self._columns = pack(self._transactions)
        return self._columns

    def _bitmaps_for(self, width: int) -> Bitmaps | None:
        """Bitmaps of the frequent sets, or None where they do not serve such candidates or take too much memory."""
        frequent = self._frequent
        if frequent.shape[1] != width - 1:
            return None
        if self._bitmaps is None:
            if packed_bytes(len(frequent), self._transactions.n_rows) > self._memory_budget:
                return None
            columns = self._packed()
            bitmaps = np.empty((len(frequent), columns.shape[1]), np.uint64)
            if self._parents is not None and self._left is not None:
                intersect(self._parents, self._left, columns, _last_items(frequent), bitmaps)
            else:
                chains(columns, frequent, bitmaps)
            self._bitmaps = bitmaps
            self._parents = None
        return self._bitmaps


class ItemsetCounts:
    """Supports of any itemsets, each prefix that several of them share being intersected once: a kernel of rows.

    Args:
        sets_by_level: Arrays of shape (m, k), k >= 1, of positions in the rows' dictionary, items ascending in a row;
            one array a length, rows in any order, none twice.
    """

    def __init__(self, sets_by_level: Sequence[Sets]) -> None:
        self._levels = sets_by_level

    def __call__(self, rows: Transactions) -> NDArray[np.int64]:
        """The counts of all sets, one array after the other."""
        used, orders, tree = self._prepared
        target = np.full(rows.n_items, -1, np.int32)
        target[used] = np.arange(len(used), dtype=np.int32)
        narrowed = rows.renumbered(target, ("",) * len(used))
        totals = [np.zeros(len(sets), np.int64) for sets in self._levels]
        rows_at_once = max(64, _PACKED_BLOCK_BYTES * 8 // max(len(used), 1))
        for start in range(0, rows.n_rows, rows_at_once):
            block = narrowed.between(start, min(start + rows_at_once, rows.n_rows))
            for total, order, counts in zip(totals, orders, tree.counts(pack(block)), strict=True):
                total[order] += counts
        return np.concatenate([np.empty(0, np.int64), *totals])

    def split(self, counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """What a call gives, or the sum of several, by level."""
        return np.split(counts, np.cumsum([len(sets) for sets in self._levels])[:-1]) if self._levels else []

    @cached_property
    def _prepared(self) -> tuple[NDArray[np.int64], list[NDArray[np.int64]], PrefixTree]:
        """The items that occur, the order of the sets of each level in the tree, and the tree."""
        held = np.zeros(max((int(sets.max(initial=-1)) for sets in self._levels), default=-1) + 1, bool)
        for sets in self._levels:
            held[sets.ravel()] = True
        number = (np.cumsum(held) - 1).astype(np.int32)
        orders = [lexicographic_order(sets) for sets in self._levels]
        tree = PrefixTree([number[sets[order]] for sets, order in zip(self._levels, orders, strict=True)])
        return np.flatnonzero(held), orders, tree


def count_itemsets(rows: Rows, sets_by_level: Sequence[Sets]) -> list[NDArray[np.int64]]:
    """Supports of any itemsets.

    Args:
        rows: The rows.
        sets_by_level: As of `ItemsetCounts`.

    Returns:
        For each array the counts, in the order of its rows.
    """
    counts = [np.zeros(len(sets), np.int64) for sets in sets_by_level]
    for part in _parts([len(sets) for sets in sets_by_level]):
        kernel = ItemsetCounts([sets_by_level[level][some] for level, some in part])
        for (level, some), found in zip(part, kernel.split(rows.total(kernel)), strict=True):
            counts[level][some] = found
    return counts


def _parts(lengths: Sequence[int]) -> Iterator[list[tuple[int, slice]]]:
    """Cuts levels into parts of at most `SETS_AT_ONCE` sets: of each, some of the sets of one level or of several."""
    part: list[tuple[int, slice]] = []
    room = SETS_AT_ONCE
    for level, length in enumerate(lengths):
        start = 0
        while start < length:
            stop = min(start + room, length)
            part.append((level, slice(start, stop)))
            room, start = room - (stop - start), stop
            if not room:
                yield part
                part, room = [], SETS_AT_ONCE
    if part:
        yield part


def _last_items(sets: Sets) -> NDArray[np.int64]:
    return sets[:, -1].astype(np.int64)

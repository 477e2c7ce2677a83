"""Candidates counted over rows in blocks: where the blocks lie nothing is kept from one level to the next."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mining.candidates import Candidates
from mining.counting import SETS_AT_ONCE, ItemsetCounts
from mining.data.rows import Rows
from mining.lattice import Sets
from mining.pairs import pair_ranges, pairs_at
from mining.partitioned.kernels import PairCounts


class PartitionedCounter:
    """A `mining.counting.LevelCounter` over rows in blocks.

    Args:
        rows: The rows, on the public dictionary of frequent items.
    """

    at_once = SETS_AT_ONCE

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._counted: Candidates | None = None  # None: all pairs
        self._frequent: Sets = np.empty((0, 0), np.int32)

    def count_pairs(self) -> NDArray[np.int64]:
        """Supports of all pairs; see `LevelCounter`."""
        self._counted = None
        found = [counts for _, counts in pair_counts(self._rows)]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int64), *found])

    def count(self, candidates: Candidates) -> NDArray[np.int64]:
        """Supports of candidates; see `LevelCounter`."""
        self._counted = candidates
        counts = np.empty(len(candidates), np.int64)
        for start in range(0, len(candidates), self.at_once):
            part = slice(start, start + self.at_once)
            counts[part] = self._rows.total(ItemsetCounts([candidates.sets[part]]))
        return counts

    def keep(self, mask: NDArray[np.bool_]) -> Sets:
        """Keeps those of the sets counted last that are frequent; see `LevelCounter`."""
        if self._counted is None:
            self._frequent = pairs_at(np.flatnonzero(mask), self._rows.n_items)
        else:
            self._frequent = self._counted.sets[mask]
            self._counted = None
        return self._frequent

    def advance(self, frequent: Sets, left: NDArray[np.int64] | None = None) -> None:
        """Name the frequent sets of one length; nothing needs to be kept of them."""


def pair_counts(rows: Rows) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Supports of all pairs, by ranges of their first item: the first of these, and the counts in lexicographic order.

    A range is a pass over the blocks, with no more counts than memory is sure to have room for.
    """
    for start, stop in pair_ranges(rows.n_items):
        yield start, rows.total(PairCounts(start, stop))

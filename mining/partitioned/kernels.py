"""What is counted in a block: picklable callables over its rows, whose results add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mining.data.items.bitmaps import pack
from mining.data.transactions import Transactions
from mining.pairs import count_along_columns, count_along_rows, prefer_rows

OCCURRENCES: Final = 1 << 19  # of rows whose pairs are met at once, in arrays of eight bytes for each


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Supports of the pairs (i, j), start <= i < stop, i < j, in lexicographic order.

    Attributes:
        start: First item i to count.
        stop: One past the last such item.
    """

    start: int
    stop: int

    def __call__(self, rows: Transactions) -> NDArray[np.int64]:
        """The counts of a block."""
        if self.start == 0 and self.stop >= rows.n_items - 1 and not prefer_rows(rows):
            return count_along_columns(pack(rows))
        counts: NDArray[np.int64] | None = None
        for piece in _pieces(rows):
            counts = count_along_rows(piece, self.start, self.stop, counts)
        return np.zeros(0, np.int64) if counts is None else counts


def longest_row(rows: Transactions, _first: int) -> int:
    """The most items of a row of a block."""
    return int(rows.lengths.max(initial=0))


def rows_of_block(rows: Transactions, _first: int) -> int:
    """How many rows a block has."""
    return rows.n_rows


def _pieces(rows: Transactions) -> Iterator[Transactions]:
    """The rows in pieces of a bounded number of occurrences, or of one row; at least one piece."""
    start = 0
    while True:
        stop = int(np.searchsorted(rows.offsets, rows.offsets[start] + OCCURRENCES, side="right")) - 1
        stop = min(max(stop, start + 1), rows.n_rows)
        yield rows.between(start, stop)
        start = stop
        if start >= rows.n_rows:
            return

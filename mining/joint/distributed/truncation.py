"""Truncation: to how many candidates a record counts, and to which, by what is public and that record alone.

A record that held every candidate would move every sum, so the noise would have to hide as many changes as there are
candidates. It counts to at most M of each length instead: Δ∞ = 1, Δ₁ = M, Δ₂ = √M.

Of single items, of which nothing is known beforehand, a record keeps the first M on a circle of all items: they are
placed by hashes of their names, and it begins at a hash of the record. So no item loses more than others do. Of longer
candidates, which stand in a public order of preference, it keeps the first M that it holds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mining.data.items.bitmaps import Bitmaps, pack, popcounts
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.tally import Counts
from mining.lattice import Sets
from mining.partitioned.kernels import longest_row
from mining.prefix_tree import chains

Order = NDArray[np.int64]

AT_ONCE: Final = 255  # candidates: how many of them a row holds fits a byte
MOST_ROWS: Final = 1 << 18
_PACKED_BYTES: Final = 128 << 20
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


def truncated_item_counts(data: Rows, most: int) -> Counts:
    """In how many rows each item of the dictionary is kept, where a row keeps at most `most`.

    Args:
        data: The rows.
        most: M, from 1 on.

    Returns:
        Shape (n_items,). Without any one of the rows, at most M of them are smaller, by 1 each.
    """
    counts = data.item_counts()
    if max(data.parts(longest_row)) <= most:
        return counts
    return counts - data.total(DroppedItems(_hashes(data.items), most))


@dataclass(frozen=True, eq=False, slots=True)
class DroppedItems:
    """By item, how many rows do not keep it: a kernel of rows.

    Attributes:
        places: Of the dictionary's items on the circle.
        most: M.
    """

    places: NDArray[np.uint64]
    most: int

    def __call__(self, rows: Transactions) -> Counts:
        """Shape (n_items,)."""
        long = rows.chosen(rows.lengths > self.most)
        if not long.n_rows:
            return np.zeros(rows.n_items, np.int64)
        places = self.places[long.indices]
        # The sum over a row's items, mixed: equal rows begin at the same place at all parties.
        starts = np.add.reduceat(places * _ODD, long.offsets[:-1])
        owner = long.row_numbers()
        along = places - starts[owner]  # modulo 2^64: how far behind the row's own beginning
        order = np.lexsort((along, owner))
        rank = np.arange(len(order)) - long.offsets[owner]  # entries stay with their rows
        dropped = long.indices[order[rank >= self.most]]
        return np.bincount(dropped, minlength=rows.n_items)


@dataclass(frozen=True, eq=False, slots=True)
class Excess:
    """By candidate, to how many rows it is lost, where a row counts to at most `most` of them: a kernel of rows.

    It is what is to be taken off each candidate's support. Without any one of the rows, at most M of the differences
    are smaller, by 1 each.

    Attributes:
        candidates: Shape (m, k), k >= 1, positions in the rows' dictionary, items ascending in a row.
        preference: Shape (m,), the public order: numbers of candidates, the one that is kept first in front.
        most: M, from 1 on.
    """

    candidates: Sets
    preference: Order
    most: int

    def __call__(self, rows: Transactions) -> Counts:
        """Shape (m,)."""
        lost = np.zeros(len(self.candidates), np.int64)
        long = _may_exceed(rows, self.candidates, self.most)
        for piece in _pieces(long):
            self._add(piece, lost)
        return lost

    def _add(self, long: Transactions, lost: Counts) -> None:
        columns, left = pack(long), np.full(long.n_rows, self.most, np.int64)
        for start in range(0, len(self.candidates), AT_ONCE):
            numbers = self.preference[start : start + AT_ONCE]
            held = np.empty((len(numbers), columns.shape[1]), np.uint64)
            chains(columns, self.candidates[numbers], held)
            sums = _column_sums(held, long.n_rows)
            lost[numbers] += popcounts(held & _mask(left == 0, held.shape[1]))
            crossing = np.flatnonzero((left > 0) & (sums > left))  # once for each row
            bits = held[:, crossing >> 6] >> (crossing & 63).astype(np.uint64) & np.uint64(1)
            beyond = np.cumsum(bits, axis=0, dtype=np.int64) > left[crossing]
            lost[numbers] += np.count_nonzero((bits > 0) & beyond, axis=1)
            left -= np.minimum(left, sums)


def candidates_held(data: Transactions, candidates: Sets, chosen: Order) -> NDArray[np.int64]:
    """How many of the chosen candidates each row holds, shape (n_rows,).

    Args:
        data: The rows.
        candidates: As of `Excess`.
        chosen: Numbers of candidates.
    """
    found = np.zeros(data.n_rows, np.int64)
    if not len(chosen):
        return found
    done = 0
    for piece in _pieces(data):
        columns, of_piece = pack(piece), found[done : done + piece.n_rows]
        for start in range(0, len(chosen), AT_ONCE):
            numbers = chosen[start : start + AT_ONCE]
            held = np.empty((len(numbers), columns.shape[1]), np.uint64)
            chains(columns, candidates[numbers], held)
            of_piece += _column_sums(held, piece.n_rows)
        done += piece.n_rows
    return found


def _pieces(rows: Transactions) -> Iterator[Transactions]:
    """The rows in pieces whose columns of bits, and 255 bytes of each row, fit bounded memory; none of no rows."""
    step = min(MOST_ROWS, max(64, 8 * _PACKED_BYTES // max(rows.n_items, 1)))
    for start in range(0, rows.n_rows, step):
        yield rows.between(start, min(start + step, rows.n_rows))


def _column_sums(bitmaps: Bitmaps, n_rows: int) -> NDArray[np.uint8]:
    """How many of at most 255 bitmaps have each bit set."""
    bits = np.unpackbits(bitmaps.view(np.uint8), axis=1, count=n_rows, bitorder="little")
    sums: NDArray[np.uint8] = bits.sum(axis=0, dtype=np.uint8)
    return sums


def _mask(chosen: NDArray[np.bool_], width: int) -> Bitmaps:
    """The chosen rows as one bitmap of so many words."""
    packed = np.zeros(8 * width, np.uint8)
    bits = np.packbits(chosen, bitorder="little")
    packed[: len(bits)] = bits
    return packed.view(np.uint64)


def _may_exceed(data: Transactions, candidates: Sets, most: int) -> Transactions:
    """The rows with so many items of candidates that more than `most` could be held."""
    if len(candidates) <= most:
        return data.chosen(np.zeros(data.n_rows, bool))
    used = np.zeros(data.n_items, bool)
    used[candidates.ravel()] = True
    known = np.concatenate([[0], np.cumsum(used[data.indices])])
    lengths = known[data.offsets[1:]] - known[data.offsets[:-1]]
    width = candidates.shape[1]
    least = width
    while math.comb(least, width) <= most:
        least += 1
    return data.chosen(lengths >= least)


def _hashes(items: Sequence[str]) -> NDArray[np.uint64]:
    """The first 64 bits of SHA-256 of each name."""
    digests = b"".join(hashlib.sha256(item.encode()).digest()[:8] for item in items)
    return np.frombuffer(digests, "<u8").astype(np.uint64)

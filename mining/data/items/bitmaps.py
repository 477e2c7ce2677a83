"""Packed bitmaps: one bit a row, 64 rows a word; an itemset's support is the popcount of the AND of its columns."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions

Bitmaps = NDArray[np.uint64]

# A block of this size stays in the second-level cache while it is gathered, ANDed and counted.
_BLOCK_BYTES = 1 << 19
_NARROW = 100
_kept = threading.local()


def words(n_rows: int) -> int:
    """Number of 64-bit words that hold one bit a row."""
    return (n_rows + 63) // 64


def packed_bytes(n_items: int, n_rows: int) -> int:
    """Bytes of the packed columns of so many items."""
    return n_items * words(n_rows) * 8


def pack(transactions: Transactions) -> Bitmaps:
    """Pack the transactions' columns.

    Returns:
        Shape (n_items, words(n_rows)); bit r of an item's row says whether transaction r holds the item.
    """
    columns = np.zeros((transactions.n_items, words(transactions.n_rows)), np.uint64)
    mark(columns, transactions.indices, transactions.row_numbers())
    return columns


def mark(bitmaps: Bitmaps, items: NDArray[np.integer], rows: NDArray[np.integer]) -> None:
    """Set bits in place.

    Args:
        bitmaps: Packed columns.
        items: Of each bit, the column.
        rows: Of each bit, the row.
    """
    place = items.astype(np.int64)
    place *= bitmaps.shape[1] * 8
    place += rows >> 3
    bits = np.left_shift(np.uint8(1), (rows & 7).astype(np.uint8))
    np.bitwise_or.at(bitmaps.view(np.uint8).reshape(-1), place, bits)


def popcounts(bitmaps: Bitmaps) -> NDArray[np.int64]:
    """Number of one bits of each row of bitmaps."""
    counts = np.empty(len(bitmaps), np.int64)
    step = _rows_per_block(bitmaps.shape[1])
    for start in range(0, len(bitmaps), step):
        counts[start : start + step] = _row_sums(np.bitwise_count(bitmaps[start : start + step]))
    return counts


def intersect(
    left: Bitmaps,
    left_rows: NDArray[np.int64],
    right: Bitmaps,
    right_rows: NDArray[np.int64],
    out: Bitmaps | None = None,
) -> NDArray[np.int64]:
    """AND pairs of bitmaps and count the result, block by block.

    Args:
        left: Bitmaps.
        left_rows: Position in `left` of each of the c pairs' first members.
        right: Bitmaps of the same width.
        right_rows: Position in `right` of the second members.
        out: Where to keep the c intersections; by default only the counts are kept.

    Returns:
        The c popcounts.
    """
    width = left.shape[1]
    n_pairs = len(left_rows)
    counts = np.empty(n_pairs, np.int64)
    step = min(_rows_per_block(width), max(n_pairs, 1))
    a, b, ones = _buffers(step, width)
    for start in range(0, n_pairs, step):
        stop = min(n_pairs, start + step)
        size = stop - start
        # mode="clip" lets numpy write straight into the buffer; all positions are valid anyway.
        np.take(left, left_rows[start:stop], axis=0, out=a[:size], mode="clip")
        np.take(right, right_rows[start:stop], axis=0, out=b[:size], mode="clip")
        both = a[:size] if out is None else out[start:stop]
        np.bitwise_and(a[:size], b[:size], out=both)
        np.bitwise_count(both, out=ones[:size])
        counts[start:stop] = _row_sums(ones[:size])
    return counts


def _buffers(rows: int, width: int) -> tuple[Bitmaps, Bitmaps, NDArray[np.uint8]]:
    """Room for two blocks of bitmaps and the popcounts of their words, the same for all calls of a thread.

    New memory would be given by the system page by page, for as long as the work itself takes.
    """
    n_words = rows * width
    if n_words * 8 > _BLOCK_BYTES:  # a bitmap that is longer than a block
        return np.empty((rows, width), np.uint64), np.empty((rows, width), np.uint64), np.empty((rows, width), np.uint8)
    if not hasattr(_kept, "words"):
        _kept.words = np.empty((2, _BLOCK_BYTES // 8), np.uint64)
        _kept.ones = np.empty(_BLOCK_BYTES // 8, np.uint8)
    a, b = (kept[:n_words].reshape(rows, width) for kept in _kept.words)
    return a, b, _kept.ones[:n_words].reshape(rows, width)


def _rows_per_block(width: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * max(width, 1)))


def _row_sums(ones: NDArray[np.uint8]) -> NDArray[np.uint32]:
    # einsum has the smaller cost per row, the reduction the smaller cost per word.
    if ones.shape[1] < _NARROW:
        narrow: NDArray[np.uint32] = np.einsum("ij->i", ones, dtype=np.uint32)
        return narrow
    wide: NDArray[np.uint32] = ones.sum(axis=1, dtype=np.uint32)
    return wide

"""Supports of all pairs of items, counted along rows where data are sparse and along columns where they are dense."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mining.data.items.bitmaps import Bitmaps, intersect, words
from mining.data.transactions import Transactions

# Measured on a two-core x86 machine: a pair met in a row costs about six 64-bit words ANDed and counted.
_WORDS_PER_ROW_PAIR = 6
_CHUNK = 1 << 20
MOST_COUNTS = 1 << 23  # at once: 64 MiB
_ROW_PAIRS_AT_ONCE = 1 << 15  # their positions stay in the cache, and no large array is made and freed


def n_pairs(n_items: int) -> int:
    """Number of pairs of distinct items."""
    return n_items * (n_items - 1) // 2


def row_pairs(transactions: Transactions) -> int:
    """Number of pairs that occur in the rows, each as often as it occurs."""
    lengths = transactions.lengths
    return int(lengths @ (lengths - 1)) // 2


def prefer_rows(transactions: Transactions) -> bool:
    """Whether counting pairs along rows is expected to be cheaper than along packed columns."""
    along_columns = n_pairs(transactions.n_items) * words(transactions.n_rows)
    return row_pairs(transactions) * _WORDS_PER_ROW_PAIR < along_columns


def pair_offsets(n_items: int) -> NDArray[np.int64]:
    """For each item i the number that, added to j > i, gives the position of (i, j) in lexicographic order."""
    first = np.arange(n_items, dtype=np.int64)
    return first * (n_items - 1) - first * (first - 1) // 2 - first - 1


def count_along_rows(
    transactions: Transactions, start: int = 0, stop: int | None = None, out: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Count the pairs (i, j), start <= i < stop, i < j, by meeting every pair of every row.

    Each row's pairs become positions in the lexicographic list of pairs, and those are counted in bulk.

    Args:
        transactions: The rows.
        start: First item i to count.
        stop: One past the last such item; by default all.
        out: Counts so far, to which these are added in place; by default none.

    Returns:
        Counts in lexicographic order of (i, j), beginning with (start, start + 1).
    """
    n_items = transactions.n_items
    stop = n_items if stop is None else stop
    offsets = pair_offsets(n_items)
    first_pair = int(offsets[start]) + start + 1 if start < n_items else n_pairs(n_items)
    last_pair = int(offsets[stop]) + stop + 1 if stop < n_items else n_pairs(n_items)
    total = last_pair - first_pair
    counts = np.zeros(total, np.int64) if out is None else out
    if not total or not transactions.n_occurrences:
        return counts
    indices = transactions.indices.astype(np.int64)
    # Each entry meets the entries to its right in the same row.
    ends = np.repeat(transactions.offsets[1:], transactions.lengths)
    entries = np.arange(len(indices))
    if start > 0 or stop < n_items:
        entries = entries[(indices >= start) & (indices < stop)]
        ends = ends[entries]
    partners = ends - entries - 1
    base = offsets[indices[entries]] - first_pair
    done = np.cumsum(partners)
    begin = 0
    while begin < len(entries):
        before = int(done[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(done, before + _ROW_PAIRS_AT_ONCE, side="right")))
        repeats = partners[begin:end]
        shift = entries[begin:end] + 1 - (done[begin:end] - repeats - before)
        position = np.repeat(shift, repeats)
        position += np.arange(len(position))
        keys = indices[position]
        keys += np.repeat(base[begin:end], repeats)
        np.add.at(counts, keys, 1)
        begin = end
    return counts


def count_along_columns(columns: Bitmaps) -> NDArray[np.int64]:
    """Count all pairs (i, j), i < j, by ANDing packed columns.

    Args:
        columns: One packed column an item.

    Returns:
        n(n - 1) / 2 counts in lexicographic order of (i, j).
    """
    n_items = len(columns)
    counts = np.empty(n_pairs(n_items), np.int64)
    filled = 0
    block = max(1, _CHUNK // max(n_items, 1))
    for start in range(0, n_items - 1, block):
        stop = min(start + block, n_items - 1)
        partners = n_items - 1 - np.arange(start, stop)
        left = np.repeat(np.arange(start, stop), partners)
        done = np.cumsum(partners)
        right = np.arange(len(left)) - np.repeat(done - partners, partners) + left + 1
        counts[filled : filled + len(left)] = intersect(columns, left, columns, right)
        filled += len(left)
    return counts


def frequent_pairs(transactions: Transactions, min_count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The pairs that occur in at least `min_count` rows, in bounded memory however many items there are.

    Returns:
        The pairs, shape (m, 2), lexicographically sorted, and their counts.
    """
    n_items = transactions.n_items
    found: list[NDArray[np.int32]] = []
    supports: list[NDArray[np.int64]] = []
    for start, stop in pair_ranges(n_items):
        counts = count_along_rows(transactions, start, stop)
        kept = np.flatnonzero(counts >= min_count)
        found.append(pairs_at(kept, n_items, start))
        supports.append(counts[kept])
    if not found:
        return np.empty((0, 2), np.int32), np.empty(0, np.int64)
    return np.concatenate(found), np.concatenate(supports)


def pair_ranges(n_items: int) -> Iterator[tuple[int, int]]:
    """Ranges [start, stop) of first items whose pairs can be counted together in bounded memory."""
    start = 0
    while start < n_items - 1:
        stop, size = start + 1, n_items - 1 - start
        while stop < n_items - 1 and size + n_items - 1 - stop <= MOST_COUNTS:
            size += n_items - 1 - stop
            stop += 1
        yield start, stop
        start = stop


def pairs_at(positions: NDArray[np.int64], n_items: int, start: int = 0) -> NDArray[np.int32]:
    """The pairs at these positions of the lexicographic list that begins with (start, start + 1)."""
    offsets = pair_offsets(n_items)
    first_of = offsets + np.arange(n_items) + 1
    absolute = positions + (first_of[start] if n_items else 0)
    first = np.searchsorted(first_of, absolute, side="right") - 1
    # The last item begins no pair but has the same position as the end of the list.
    first = np.minimum(first, max(n_items - 2, 0))
    return np.stack([first, absolute - offsets[first]], axis=1).astype(np.int32)

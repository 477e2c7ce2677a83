"""Depth-first enumeration by prefix classes (Zaki 2000, "Scalable algorithms for association mining") on bitmaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mining.data.items.bitmaps import Bitmaps, intersect
from mining.lattice import Sets, prefix_bounds
from mining.limits import EnumerationLimit

# Candidates joined at a time.
_JOIN = 1 << 20

Level = tuple[Sets, NDArray[np.int64]]


@dataclass(slots=True)
class _Search:
    """What one enumeration carries along."""

    min_count: int
    max_length: int
    limit: int
    block_rows: int
    pair_frequent: NDArray[np.bool_]
    n_found: int = 0
    levels: list[list[Level]] = field(default_factory=list)

    def report(self, sets: Sets, counts: NDArray[np.int64]) -> None:
        self.n_found += len(sets)
        if self.n_found > self.limit:
            raise EnumerationLimit(self.limit)
        depth = sets.shape[1] - 3
        if depth == len(self.levels):
            self.levels.append([])
        self.levels[depth].append((sets, counts))


def extend_pairs(
    pairs: Sets, columns: Bitmaps, min_count: int, *, max_length: int, limit: int, block_bytes: int = 1 << 22
) -> list[Level]:
    """Find the frequent itemsets of three or more items.

    Whole prefix classes are extended together, as many as keep a block of bitmaps in the cache, and each block is
    followed to its end before the next is begun, so memory stays within one block a length. Of the candidates that
    share a prefix, those whose two last items are not frequent together are never counted.

    Args:
        pairs: All frequent pairs, lexicographically sorted.
        columns: Packed columns of the items.
        min_count: The least count of a frequent itemset.
        max_length: The longest itemset wanted.
        limit: The most itemsets wanted.
        block_bytes: Bitmaps kept per length (or those of one prefix class, if that is more).

    Returns:
        For lengths 3, 4, ... the itemsets, lexicographically sorted, and their counts.

    Raises:
        EnumerationLimit: More than `limit` itemsets were found.
    """
    n_items = len(columns)
    pair_frequent = np.zeros((n_items, n_items), bool)
    pair_frequent[pairs[:, 0], pairs[:, 1]] = True
    search = _Search(min_count, max_length, limit, block_bytes // max(1, 8 * columns.shape[1]), pair_frequent)
    if max_length > 2:
        bounds = prefix_bounds(pairs, 1)
        for start, stop in _blocks(bounds, search.block_rows):
            block = pairs[start:stop].astype(np.int64)
            bitmaps = np.empty((len(block), columns.shape[1]), np.uint64)
            intersect(columns, block[:, 0], columns, block[:, 1], bitmaps)
            _extend(search, pairs[start:stop], bitmaps)
    return [
        (np.concatenate([sets for sets, _ in level]), np.concatenate([counts for _, counts in level]))
        for level in search.levels
    ]


def _extend(search: _Search, sets: Sets, bitmaps: Bitmaps) -> None:
    """Extend whole prefix classes by one item, and what is found by more."""
    bounds = prefix_bounds(sets, sets.shape[1] - 1)
    ends = np.repeat(bounds[1:], np.diff(bounds))
    # Candidates with the same left parent are one prefix class of the next length; so every cut is between classes.
    candidates = np.append(0, np.cumsum(ends - np.arange(len(sets)) - 1))
    for first, last in _cuts(candidates, _JOIN):
        partners = np.diff(candidates[first : last + 1])
        left = np.repeat(np.arange(first, last), partners)
        right = np.arange(len(left)) - np.repeat(candidates[first:last] - candidates[first], partners) + left + 1
        alive = np.flatnonzero(search.pair_frequent[sets[left, -1], sets[right, -1]])
        left, right = left[alive], right[alive]
        classes = np.append(np.flatnonzero(np.diff(left, prepend=-1)), len(left))
        for start, stop in _blocks(classes, search.block_rows):
            _count_block(search, sets, bitmaps, left[start:stop], right[start:stop])


def _count_block(
    search: _Search, sets: Sets, bitmaps: Bitmaps, left: NDArray[np.int64], right: NDArray[np.int64]
) -> None:
    joined = np.empty((len(left), bitmaps.shape[1]), np.uint64)
    counts = intersect(bitmaps, left, bitmaps, right, joined)
    kept = np.flatnonzero(counts >= search.min_count)
    if not len(kept):
        return
    found = np.empty((len(kept), sets.shape[1] + 1), np.int32)
    found[:, :-1] = sets[left[kept]]
    found[:, -1] = sets[right[kept], -1]
    search.report(found, counts[kept])
    if found.shape[1] < search.max_length and len(kept) > 1:
        _extend(search, found, joined if len(kept) == len(joined) else joined[kept])


def _cuts(totals: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Cut running totals into ranges that add up to at most `size`, or hold one step; empty ranges are left out."""
    first = 0
    while first < len(totals) - 1:
        last = max(first + 1, int(np.searchsorted(totals, totals[first] + size, side="right")) - 1)
        if totals[last] > totals[first]:
            yield first, last
        first = last


def _blocks(bounds: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Join neighbouring classes, given by their bounds, into blocks of at most `size` members, or of one class."""
    for first, last in _cuts(bounds, size):
        yield int(bounds[first]), int(bounds[last])

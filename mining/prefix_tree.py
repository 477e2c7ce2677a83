"""A tree of itemset prefixes, walked depth first so that each prefix is intersected once in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mining.data.items.bitmaps import Bitmaps, intersect, popcounts
from mining.lattice import SetKeys, Sets, find, prefix_bounds, unique_sets

# Bitmaps kept per depth of the walk; larger blocks leave the cache, smaller ones cost more calls.
_BLOCK_BYTES = 1 << 22
_CHAIN_BYTES = 1 << 19  # of columns that are gathered at once: they stay in the second-level cache


class PrefixTree:
    """All prefixes of a family of itemsets; the nodes of depth k are its distinct prefixes of k items.

    Args:
        levels: Arrays of shape (m, k), one for each length that occurs, rows distinct and lexicographically sorted.
    """

    def __init__(self, levels: Sequence[Sets]) -> None:
        by_width = {sets.shape[1]: sets for sets in levels if len(sets)}
        self._given = list(levels)
        depth = max(by_width, default=0)
        self._nodes: list[Sets] = []
        self._parents: list[NDArray[np.int64]] = []
        below = np.empty((0, depth + 1), np.int32)
        for width in range(depth, 0, -1):
            nodes, parents = _with_prefixes(by_width.get(width, np.empty((0, width), np.int32)), below)
            self._nodes.insert(0, nodes)
            self._parents.insert(0, parents)
            below = nodes
        # _parents[d] belongs to the nodes of _nodes[d + 1]; children of a node are consecutive.
        self._children = [
            np.searchsorted(parents, np.arange(len(nodes) + 1))
            for nodes, parents in zip(self._nodes, self._parents, strict=True)
        ]

    def counts(self, columns: Bitmaps) -> list[NDArray[np.int64]]:
        """Supports of the given sets.

        Args:
            columns: Packed columns of the items.

        Returns:
            Counts per given array, in its order.
        """
        counted = [np.zeros(len(nodes), np.int64) for nodes in self._nodes]
        if self._nodes:
            items = self._nodes[0][:, 0].astype(np.int64)
            counted[0][:] = popcounts(columns)[items]
            self._walk(0, 0, len(items), columns, items, columns, counted)
        found = []
        for sets in self._given:
            width = sets.shape[1]
            if not len(sets):
                found.append(np.zeros(0, np.int64))
            elif len(self._nodes[width - 1]) == len(sets):
                found.append(counted[width - 1])
            else:
                keys = SetKeys(self._nodes[width - 1])
                found.append(counted[width - 1][find(keys.of(self._nodes[width - 1]), keys.of(sets))])
        return found

    def _walk(
        self,
        depth: int,
        first: int,
        last: int,
        bitmaps: Bitmaps,
        place: NDArray[np.int64],
        columns: Bitmaps,
        counted: list[NDArray[np.int64]],
    ) -> None:
        """Count all descendants of the nodes [first, last) of one depth, whose bitmaps are bitmaps[place]."""
        children = self._children[depth]
        stop = int(children[last])
        step = max(1, _BLOCK_BYTES // max(1, 8 * columns.shape[1]))
        for begin in range(int(children[first]), stop, step):
            end = min(stop, begin + step)
            grandchildren = self._children[depth + 1]
            inner = grandchildren[end] > grandchildren[begin]
            joined = np.empty((end - begin, columns.shape[1]), np.uint64) if inner else None
            left = place[self._parents[depth][begin:end] - first]
            right = self._nodes[depth + 1][begin:end, -1].astype(np.int64)
            counted[depth + 1][begin:end] = intersect(bitmaps, left, columns, right, joined)
            if joined is not None:
                self._walk(depth + 1, begin, end, joined, np.arange(end - begin), columns, counted)


def chains(columns: Bitmaps, sets: Sets, out: Bitmaps) -> None:
    """Intersect the columns of each row of sets, item by item, into `out`."""
    rows_at_once = max(1, _CHAIN_BYTES // max(1, 8 * columns.shape[1]))
    next_column = np.empty((min(rows_at_once, len(sets)), columns.shape[1]), np.uint64)
    for start in range(0, len(sets), rows_at_once):
        block = sets[start : start + rows_at_once]
        target, column = out[start : start + rows_at_once], next_column[: len(block)]
        # mode="clip" lets numpy write straight into the buffer; all positions are valid anyway.
        np.take(columns, block[:, 0], axis=0, out=target, mode="clip")
        for j in range(1, sets.shape[1]):
            np.take(columns, block[:, j], axis=0, out=column, mode="clip")
            target &= column


def _with_prefixes(sets: Sets, below: Sets) -> tuple[Sets, NDArray[np.int64]]:
    """Nodes of one depth: the given sets and the prefixes of the nodes below, with the parent of each of those."""
    width = below.shape[1] - 1
    bounds = prefix_bounds(below, width)
    prefixes = below[bounds[:-1], :-1]
    nodes = sets
    if not len(sets):
        nodes, position = prefixes, np.arange(len(prefixes))
    else:
        keys = SetKeys(nodes)
        position = find(keys.of(nodes), keys.of(prefixes))
        if np.any(position < 0):
            nodes = unique_sets(np.concatenate([sets, prefixes]))
            keys = SetKeys(nodes)
            position = find(keys.of(nodes), keys.of(prefixes))
    return nodes, np.repeat(position, np.diff(bounds))

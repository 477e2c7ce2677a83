"""Itemsets of one length as rows of item numbers: order, look-up and subsets, without a Python loop over sets.

A family of k-itemsets is an int32 array of shape (m, k), item numbers ascending in a row. To compare whole rows at
once each row becomes one scalar key whose order is the lexicographic order of rows: a bit mask while at most 56
items are in play, a number in base (items) while that fits 62 bits, and otherwise the row's big-endian bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sets = NDArray[np.int32]
Keys = NDArray[Any]

_KEY_BITS = 62
_SPARE_BITS = 6


class SetKeys:
    """Keys of itemsets, comparable among rows of one length.

    Args:
        family: The rows to which others will be compared, shape (m, k).
    """

    def __init__(self, family: Sets) -> None:
        self._width: int = family.shape[1]
        self._n_known: int = int(family.max()) + 1 if family.size else 0
        self._used: Sets | None = None
        if not (self._masks or self._fits_base):
            # Few items take part in long itemsets, so numbering only those makes most keys scalar again.
            self._used = np.unique(family)
            self._n_known = len(self._used)
        # One number beyond the known ones means every item that the family does not hold. In a mask each such
        # item adds 1 below the bits of the known ones, so that no number of them can look like a known item.
        if self._masks:
            self._bits = np.ones(self._n_known + 1, np.int64)
            # Low items take high bits; among rows of one length the smaller row then has the larger mask.
            self._bits[:-1] <<= _SPARE_BITS + np.arange(self._n_known - 1, -1, -1)

    @property
    def _masks(self) -> bool:
        return self._n_known <= _KEY_BITS - _SPARE_BITS

    @property
    def _fits_base(self) -> bool:
        return self._width * math.log2(self._n_known + 1) < _KEY_BITS

    def of(self, sets: Sets) -> Keys:
        """Keys of rows of the family's length; ascending keys mean lexicographically ascending rows.

        A row with an item that the family does not hold gets a key that no row of the family has.
        """
        return self._combine(self._columns(sets))

    def of_subsets(self, sets: Sets) -> Iterator[Keys]:
        """Keys of rows one item longer than the family's, with position 0, 1, ... left out in turn."""
        columns = self._columns(sets)
        if self._masks:
            whole = self._combine(columns)
            for column in columns:
                yield whole + self._bits[column]
        elif self._fits_base:
            # The subset keeps the items left of d, each of a weight one power lower, and those right of d. The whole
            # row's key may wrap around 2^64; the subset's cannot.
            base = self._n_known + 1
            before = np.zeros(len(sets), np.int64)
            after = self._combine(columns)
            weight = base**self._width
            for column in columns:
                after -= column * np.int64(weight)
                yield before + after
                weight //= base
                before += column * np.int64(weight)
        else:
            for d in range(len(columns)):
                yield self._combine(columns[:d] + columns[d + 1 :])

    def _columns(self, sets: Sets) -> list[NDArray[np.int64]]:
        columns = []
        for j in range(sets.shape[1]):
            column = sets[:, j]
            if self._used is not None:
                position = find(self._used, column)
                position[position < 0] = self._n_known
                columns.append(position)
            else:
                columns.append(np.minimum(column.astype(np.int64), self._n_known))
        return columns

    def _combine(self, columns: list[NDArray[np.int64]]) -> Keys:
        if not (self._masks or self._fits_base):
            rows = np.stack(columns, axis=1).astype(">u4")
            return rows.view(f"S{4 * len(columns)}")[:, 0]
        keys = np.zeros(len(columns[0]), np.int64)
        if self._masks:
            for column in columns:
                keys -= self._bits[column]
            return keys
        for column in columns:
            keys *= self._n_known + 1
            keys += column
        return keys


def find(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Position of each wanted key among ascending keys, -1 where absent."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    position = np.searchsorted(keys, wanted)
    position[position == len(keys)] = 0
    return np.where(keys[position] == wanted, position, -1)


def lexicographic_order(sets: Sets) -> NDArray[np.int64]:
    """The permutation that sorts rows lexicographically."""
    return np.argsort(SetKeys(sets).of(sets), kind="stable")


def is_ascending(sets: Sets) -> bool:
    """Whether rows are distinct and in lexicographic order, and the items ascend inside each."""
    if not (np.diff(sets, axis=1) > 0).all():
        return False
    differs = sets[1:] != sets[:-1]
    first = differs.argmax(axis=1)[:, None]
    rises = np.take_along_axis(sets[1:], first, 1) > np.take_along_axis(sets[:-1], first, 1)
    return bool(rises.all())


def unique_sets(sets: Sets) -> Sets:
    """Distinct rows, lexicographically sorted."""
    _, first = np.unique(SetKeys(sets).of(sets), return_index=True)
    return sets[first]


def subset_positions(sets: Sets, shorter: Sets) -> NDArray[np.int64]:
    """Where each row's subsets with one item less stand in the family one level down.

    Args:
        sets: Shape (m, k), k >= 2.
        shorter: Shape (p, k - 1), lexicographically sorted.

    Returns:
        Shape (m, k): entry (i, d) is the position in `shorter` of row i without its d-th item, -1 where absent.
    """
    keys = SetKeys(shorter)
    known = keys.of(shorter)
    found = np.empty(sets.shape, np.int64)
    for d, subset in enumerate(keys.of_subsets(sets)):
        found[:, d] = find(known, subset)
    return found


def prefix_bounds(sets: Sets, width: int) -> NDArray[np.int64]:
    """Bounds of the runs of lexicographically sorted rows that share their first `width` items.

    Returns:
        The first row of each run, ascending, and the number of rows at the end; just [0] without rows.
    """
    if not len(sets):
        return np.zeros(1, np.int64)
    differs = np.zeros(len(sets) - 1, bool)
    for j in range(width):
        differs |= sets[1:, j] != sets[:-1, j]
    return np.concatenate([[0], np.flatnonzero(differs) + 1, [len(sets)]])


def levels_by_length(levels: Sequence[Sets]) -> list[Sets]:
    """Sort families into one lexicographically sorted family per length 1, 2, ..., missing lengths empty."""
    longest = max((sets.shape[1] for sets in levels if len(sets)), default=0)
    ordered = []
    for width in range(1, longest + 1):
        same = [sets for sets in levels if sets.shape[1] == width]
        ordered.append(unique_sets(np.concatenate(same)) if same else np.empty((0, width), np.int32))
    return ordered

"""Mondrian's recursive partitioning, one level of the recursion at a time.

All open regions are cut together: their rows are sorted by region and value, and each cut is a position in that order.
So the work is a few array operations a level, however many regions there are.

Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anonymize.multidimensional.axes import Axis
from anonymize.multidimensional.cuts import NO_CUT, Judge, Sorted, halving_cuts, median_cuts

Mode = Literal["strict", "relaxed", "hierarchical"]

WORD_BITS = 63


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows split into regions.

    Attributes:
        labels: Region of each row, shape (n,).
        low: First place of each region on each axis, shape (regions, d).
        high: Last place of each region on each axis, shape (regions, d).
        tried: Cuts that were looked for.
        levels: Depth of the recursion.
    """

    labels: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    tried: int
    levels: int


def partition(axes: Sequence[Axis], judge: Judge, mode: Mode) -> Partition:
    """Cuts regions until none can be cut.

    A region tries its axes from the widest to the narrowest, of equal widths in their order, and takes the first on
    which an allowed cut exists.

    Args:
        axes: The quasi-identifiers, at least one.
        judge: What both sides of a cut must meet.
        mode: "strict" and "relaxed" cut at values in the order of the axis. "hierarchical" divides a tree's values
            into the children of their lowest common ancestor, and cuts other axes as strict does.

    Returns:
        The regions that remain.
    """
    work = _Regions(axes, judge, mode)
    while work.cut_all():
        pass
    return work.finished()


class _Regions:
    """The regions of one level of the recursion that may still be cut."""

    def __init__(self, axes: Sequence[Axis], judge: Judge, mode: Mode) -> None:
        self.axes, self.judge, self.mode = axes, judge, mode
        places = max(len(axis.coordinates) for axis in axes)
        self.codes = np.stack(
            [axis.codes for axis in axes], axis=1, dtype=np.min_scalar_type(-places), casting="unsafe"
        )
        self.rows = np.arange(len(self.codes))
        self.starts = np.array([0, len(self.codes)])
        self.leaves: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # rows and sizes of finished regions
        self.tried = self.levels = 0
        tables = [axis.labels for axis in axes]
        self.values = 1 + max(int(table.max()) for table in tables)  # of the keys by which rows are sorted
        # All axes' labels at all levels in one line: a row's value is one gather, whatever its region's axis and level.
        self.line = np.concatenate([table.ravel() for table in tables])
        sizes = [table.size for table in tables]
        self.offsets = np.cumsum([0, *sizes[:-1]])
        self.places = np.array([table.shape[1] for table in tables])

    def cut_all(self) -> bool:
        """Cuts what can be cut; whether there are regions left to look at."""
        self._finish_small()
        if not len(self.rows):
            return False
        self.levels += 1
        codes = self.codes.take(self.rows, axis=0)
        low = np.minimum.reduceat(codes, self.starts[:-1], axis=0)
        high = np.maximum.reduceat(codes, self.starts[:-1], axis=0)
        widths, levels = self._measured(low, high)
        order = np.argsort(-widths, axis=1, kind="stable")
        open_ = np.arange(len(order))
        children: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for choice in range(order.shape[1]):
            axis = order[open_, choice]
            flat = widths[open_, axis] <= 0
            if flat.any():  # this axis and all further ones of the region have no width
                self._finish(open_[flat])
                open_, axis = open_[~flat], axis[~flat]
            if not len(open_):
                break
            self.tried += len(open_)
            regions = self._sorted(open_, axis, levels[open_, axis], codes)
            done = self._cut(regions, levels[open_, axis] > 0, children)
            open_ = open_[~done]
        self._finish(open_)
        self.rows = np.concatenate([rows for rows, _ in children]) if children else np.zeros(0, np.int64)
        sizes = np.concatenate([sizes for _, sizes in children]) if children else np.zeros(0, np.int64)
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        return True

    def finished(self) -> Partition:
        """The finished regions, in the order in which they were finished."""
        rows = np.concatenate([rows for rows, _ in self.leaves])
        sizes = np.concatenate([sizes for _, sizes in self.leaves])
        starts = np.cumsum(sizes) - sizes
        labels = np.empty(len(rows), np.int64)
        labels[rows] = np.repeat(np.arange(len(sizes)), sizes)
        codes = self.codes.take(rows, axis=0)
        low = np.minimum.reduceat(codes, starts, axis=0)
        return Partition(labels, low, np.maximum.reduceat(codes, starts, axis=0), self.tried, self.levels)

    def _measured(
        self, low: NDArray[np.int32], high: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Widths of regions on each axis, and the level below which an axis is divided; 0 means by single values."""
        widths, levels = np.empty(low.shape), np.zeros(low.shape, np.int64)
        for position, axis in enumerate(self.axes):
            ends = low[:, position], high[:, position]
            if self.mode == "hierarchical" and axis.tree is not None:
                widths[:, position] = axis.penalties(*ends)
                levels[:, position] = axis.common_levels(*ends)
            else:
                widths[:, position] = axis.widths(*ends)
        return widths, levels

    def _sorted(
        self, chosen: NDArray[np.int64], axis: NDArray[np.int64], level: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> Sorted:
        """Rows of some regions by region, value on the region's axis, and row number."""
        sizes = np.diff(self.starts)[chosen]
        if len(chosen) == len(self.starts) - 1:
            positions = np.arange(len(self.rows))
        else:
            mask = np.zeros(len(self.starts) - 1, bool)
            mask[chosen] = True
            positions = np.flatnonzero(np.repeat(mask, np.diff(self.starts)))
        rows = self.rows[positions]
        code = codes.ravel()[positions * codes.shape[1] + np.repeat(axis, sizes)]
        below = np.maximum(level - 1, 0)  # a tree is divided by the labels under the common one
        value = self.line[np.repeat(self.offsets[axis] + below * self.places[axis], sizes) + code]
        keys = np.repeat(np.arange(len(chosen)) * self.values, sizes) + value
        rows, keys = _by_key(rows, keys, len(chosen) * self.values, len(self.codes))
        return Sorted(rows, keys, np.concatenate([[0], np.cumsum(sizes)]))

    def _cut(
        self, regions: Sorted, trees: NDArray[np.bool_], children: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    ) -> NDArray[np.bool_]:
        """Cuts regions that can be cut and adds their children; which they are, shape (r,)."""
        done = np.zeros(len(trees), bool)
        for tree in (False, True):
            chosen = np.flatnonzero(trees == tree)
            if not len(chosen):
                continue
            some = regions.among(trees == tree) if len(chosen) < len(trees) else regions
            if tree:
                bounds, cut = _between_children(some, self.judge)
            else:
                cuts = (halving_cuts if self.mode == "relaxed" else median_cuts)(some, self.judge)
                cut = cuts != NO_CUT
                bounds = cuts[cut]
            done[chosen] = cut
            if cut.any():
                edges = np.sort(np.concatenate([some.starts, bounds]))
                sizes = np.diff(edges)
                kept = cut[np.searchsorted(some.starts, edges[:-1], "right") - 1]
                children.append((some.rows[np.repeat(kept, sizes)], sizes[kept]))
        return done

    def _finish_small(self) -> None:
        """Takes out regions that are too small to be cut."""
        self._take_out(np.diff(self.starts) < 2 * self.judge.least)

    def _finish(self, chosen: NDArray[np.int64]) -> None:
        """Adds regions to the finished ones; their rows stay in the level's arrays, which end with the level."""
        mask = np.zeros(len(self.starts) - 1, bool)
        mask[chosen] = True
        sizes = np.diff(self.starts)
        if mask.any():
            self.leaves.append((self.rows[np.repeat(mask, sizes)], sizes[mask]))

    def _take_out(self, mask: NDArray[np.bool_]) -> None:
        if mask.any():
            self._finish(np.flatnonzero(mask))
            sizes = np.diff(self.starts)
            self.rows = self.rows[np.repeat(~mask, sizes)]
            self.starts = np.concatenate([[0], np.cumsum(sizes[~mask])])


def _between_children(regions: Sorted, judge: Judge) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Divides regions into the groups of equal keys, if all groups are large enough and meet the models.

    Returns:
        Positions of the cuts, and which regions are cut, shape (r,).
    """
    first = np.flatnonzero(np.diff(regions.keys, prepend=-1))
    sizes = np.diff(np.append(first, len(regions.keys)))
    region = np.searchsorted(regions.starts, first, "right") - 1
    head = np.searchsorted(first, regions.starts[:-1])
    cut = np.minimum.reduceat(sizes, head) >= judge.least
    if cut.any():
        asked = cut[region]
        rows = regions.rows[np.repeat(asked, sizes)]
        met = judge.parts(rows, np.repeat(np.arange(int(asked.sum())), sizes[asked]), int(asked.sum()))
        bad = region[asked][~met]
        cut[bad] = False
    inner = np.ones(len(first), bool)
    inner[head] = False
    return first[inner & cut[region]], cut


def _by_key(
    rows: NDArray[np.int64], keys: NDArray[np.int64], n_keys: int, n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and keys sorted by key, then row: both packed into words, which sort far faster than an index of them."""
    bits = max(n_rows - 1, 1).bit_length()
    if n_keys.bit_length() + bits > WORD_BITS:
        order = np.lexsort((rows, keys))
        return rows[order], keys[order]
    packed = (keys << bits) | rows
    packed.sort()
    return packed & ((1 << bits) - 1), packed >> bits

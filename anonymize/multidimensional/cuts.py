"""Where regions may be cut: all regions of one level at a time, on arrays.

Rows are sorted by region and value. A cut is then a position in that order: what is before it in the region goes to
the left child.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column
from anonymize.grouping import Histograms, histogram
from anonymize.models.requirements import Requirements

MOST_CELLS = 4_000_000  # of prefix histograms that are held at once
NO_CUT = -1


@dataclass(frozen=True, eq=False)
class Sorted:
    """Rows of regions in the order of their values on one axis each.

    Attributes:
        rows: Input rows, shape (n,).
        keys: Ascending; equal for rows of one region and one value, shape (n,).
        starts: Position at which each region starts, and n at the end, shape (r + 1,).
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each region, shape (r,)."""
        return np.diff(self.starts)

    @property
    def regions(self) -> NDArray[np.int64]:
        """Region of each row, shape (n,)."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)

    def among(self, chosen: NDArray[np.bool_]) -> Sorted:
        """Some of the regions."""
        positions = np.repeat(chosen, self.sizes)
        starts = np.concatenate([[0], np.cumsum(self.sizes[chosen])])
        return Sorted(self.rows[positions], self.keys[positions], starts)


class Judge:
    """Asks whether parts of regions meet the requirements.

    Args:
        requirements: Fitted to the table.
        columns: The sensitive columns that they look at.
    """

    def __init__(self, requirements: Requirements, columns: list[Column]) -> None:
        self.requirements, self.columns = requirements, columns
        self.least = requirements.k

    def parts(self, rows: NDArray[np.int64], labels: NDArray[np.int64], parts: int) -> NDArray[np.bool_]:
        """Which parts meet all models, shape (parts,); none is smaller than `least`.

        Args:
            rows: Input rows, shape (n,).
            labels: Part of each row, shape (n,).
            parts: How many there are.
        """
        if not self.columns:
            return np.ones(parts, bool)
        columns = [replace(column, codes=column.codes[rows]) for column in self.columns]
        return self.requirements.check(labels, parts, columns)

    def halves(self, regions: Sorted, cuts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For which regions both sides of a cut are large enough and meet all models, shape (r,)."""
        allowed = (cuts - regions.starts[:-1] >= self.least) & (regions.starts[1:] - cuts >= self.least)
        if not self.columns or not allowed.any():
            return allowed
        some, cut = regions.among(allowed), (cuts - regions.starts[:-1])[allowed]
        labels = some.regions
        right = np.arange(len(some.rows)) >= (some.starts[:-1] + cut)[labels]
        met = self.parts(some.rows, 2 * labels + right, 2 * len(cut))
        allowed[allowed] = met[::2] & met[1::2]
        return allowed


def median_cuts(regions: Sorted, judge: Judge) -> NDArray[np.int64]:
    """Strict cuts: equal values stay together.

    With m the lower median, the more balanced of the cuts v ≤ m and v < m is tried first, of two as balanced the
    smaller. Where k alone forbids it, only the other may be allowed. Another model may allow any: then the most
    balanced allowed cut of all is taken.

    Returns:
        Position of each region's cut, `NO_CUT` where there is none, shape (r,).
    """
    sizes, starts = regions.sizes, regions.starts[:-1]
    median = regions.keys[starts + (sizes - 1) // 2]
    below = np.searchsorted(regions.keys, median, "left")
    upto = np.searchsorted(regions.keys, median, "right")
    below_first = np.abs(2 * (below - starts) - sizes) <= np.abs(2 * (upto - starts) - sizes)
    first, second = np.where(below_first, below, upto), np.where(below_first, upto, below)
    cuts = np.where(judge.halves(regions, first), first, NO_CUT)
    if judge.columns:
        _try_all(regions, judge, cuts)
        return cuts
    return np.where((cuts == NO_CUT) & judge.halves(regions, second), second, cuts)


def halving_cuts(regions: Sorted, judge: Judge) -> NDArray[np.int64]:
    """Relaxed cuts: the first ⌊n/2⌋ rows by value and row number go left, equal values perhaps to both sides.

    Where a model forbids that, strict cuts are tried, since these are relaxed ones too.

    Returns:
        Position of each region's cut, `NO_CUT` where there is none, shape (r,).
    """
    middle = regions.starts[:-1] + regions.sizes // 2
    cuts = np.where(judge.halves(regions, middle), middle, NO_CUT)
    if judge.columns:
        _try_all(regions, judge, cuts)
    return cuts


def _try_all(regions: Sorted, judge: Judge, cuts: NDArray[np.int64]) -> None:
    """Fills in the most balanced allowed cut between values, of two the smaller, for regions without a cut."""
    failing = (cuts == NO_CUT) & (regions.sizes >= 2 * judge.least)
    values = sum(column.size for column in judge.columns)
    cells = np.cumsum(np.where(failing, regions.sizes, 0)) * values
    for block in np.unique(cells[failing] // MOST_CELLS):
        chosen = failing & (cells // MOST_CELLS == block)
        found = _best_cuts(regions.among(chosen), judge)
        cuts[chosen] = np.where(found == NO_CUT, NO_CUT, found + regions.starts[:-1][chosen])


def _best_cuts(regions: Sorted, judge: Judge) -> NDArray[np.int64]:
    """Rows left of the most balanced allowed cut of each region, `NO_CUT` where there is none, shape (r,)."""
    sizes = regions.sizes
    ends = np.flatnonzero(np.diff(regions.keys, append=-1)) + 1  # where runs of equal values end
    region = np.searchsorted(regions.starts, ends - 1, "right") - 1
    left = ends - regions.starts[region]
    allowed = (left >= judge.least) & (sizes[region] - left >= judge.least)
    met = np.zeros(len(ends), bool)
    prefixes = [_PrefixCounts(column, regions) for column in judge.columns]
    step = max(MOST_CELLS // sum(column.size for column in judge.columns), 1)
    for start in range(0, len(ends), step):
        asked = allowed[start : start + step]
        of, size = region[start : start + step][asked], left[start : start + step][asked]
        sides = [each.sides(ends[start : start + step], of, asked) for each in prefixes]
        names = [each.column.name for each in prefixes]
        lefts = Histograms(size, dict(zip(names, (side[0] for side in sides), strict=True)))
        rights = Histograms(sizes[of] - size, dict(zip(names, (side[1] for side in sides), strict=True)))
        met[start : start + step][asked] = judge.requirements.satisfied(lefts) & judge.requirements.satisfied(rights)
    region, left = region[met], left[met]
    best = np.lexsort((left, np.abs(2 * left - sizes[region]), region))
    region, left = region[best], left[best]
    head = np.diff(region, prepend=-1) != 0
    found = np.full(len(sizes), NO_CUT, np.int64)
    found[region[head]] = left[head]
    return found


class _PrefixCounts:
    """Counts of one sensitive column left and right of cuts, for blocks of cuts from the first to the last."""

    def __init__(self, column: Column, regions: Sorted) -> None:
        self.column = column
        self.codes = column.codes[regions.rows]
        self.totals = histogram(regions.regions, len(regions.sizes), self.codes, column.size)
        self.before = np.cumsum(self.totals, axis=0) - self.totals  # in all regions before each
        self.position = 0
        self.counted = np.zeros(column.size, np.int64)  # in the rows before the position

    def sides(
        self, ends: NDArray[np.int64], region: NDArray[np.int64], asked: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts on both sides of the cuts that are asked, each of shape (asked, values).

        Args:
            ends: Positions of all cuts of the block, shape (b,).
            region: Region of each cut that is asked.
            asked: Which cuts are, shape (b,).
        """
        run = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=self.position))
        counts = histogram(run, len(ends), self.codes[self.position : ends[-1]], self.column.size)
        sums = self.counted + np.cumsum(counts, axis=0)
        self.position, self.counted = int(ends[-1]), sums[-1]
        left = sums[asked] - self.before[region]
        return left, self.totals[region] - left

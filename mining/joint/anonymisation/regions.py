"""A party's own rows in the regions of a partition: how many lie on either side of each cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.frequency import SensitiveCounts
from mining.joint.anonymisation.axes import Places, PublicAxis
from mining.joint.anonymisation.rows import Cells, Counter

_DONE = -1


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts of regions on one axis each, region by region, behind each place of the box but the last.

    Attributes:
        sizes: Cuts of each region, at least one, shape (r,).
        left: This party's rows up to each cut, shape (cuts,).
        right: Its rows behind it, shape (cuts,).
        region: Region of each entry, shape (r,).
        axis: Its axis, shape (r,).
        first: First place of the box, shape (r,).
    """

    sizes: Places
    left: Cells
    right: Cells
    region: Places
    axis: Places
    first: Places

    @property
    def starts(self) -> Places:
        """Where the cuts of each region start."""
        return np.cumsum(self.sizes) - self.sizes


class OwnRegions:
    """Which region each of a party's distinct tuples lies in.

    Args:
        places: Place of each tuple on each axis, shape (d, u).
        weights: Rows of each tuple, shape (u,).
        values: By sensitive column with public values, how often each value occurs with each tuple.
    """

    def __init__(self, places: Places, weights: Cells, values: Mapping[str, SensitiveCounts]) -> None:
        self._places, self.weights, self._values = places, weights, values
        self._region = np.zeros(len(weights), np.int64)  # of the level; _DONE of those that remain
        self._class = np.full(len(weights), -1, np.int64)

    @classmethod
    def of(cls, counter: Counter, axes: Sequence[PublicAxis]) -> OwnRegions:
        """All rows in one region."""
        places = [axis.places[leaves] for axis, leaves in zip(axes, counter.tuples, strict=True)]
        return cls(np.stack(places), counter.weights, counter.values)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.weights.sum())

    @property
    def classes(self) -> Places:
        """Of each tuple the region that remains, shape (u,)."""
        return self._class

    def cuts(self, region: Places, axis: Places, low: Places, high: Places) -> Cuts:
        """Counts on both sides of all cuts.

        Args:
            region: Regions, perhaps several times with different axes, shape (r,).
            axis: An axis of each, on which its box is no single place, shape (r,).
            low: First place of all regions on each axis, shape (regions, d).
            high: Last place.
        """
        first = low[region, axis]
        sizes = high[region, axis] - first
        counts = self._histogram(region, axis, first, sizes, self._region, self._places, self.weights)
        left, right = _sides(counts[:, None], sizes)
        return Cuts(sizes, left[:, 0], right[:, 0], region, axis, first)

    def histogram(self, column: str) -> NDArray[np.int64]:
        """All rows with each value of a column as one class, shape (1, values)."""
        counts = self._values[column]
        return counts.of_classes(np.zeros(len(self.weights), np.int64), 1)

    def union_histograms(self, unions: Places, column: str) -> NDArray[np.int64]:
        """Rows with each value of a column in unions of the regions that remain, shape (unions, values).

        Args:
            unions: Of each region the union that it belongs to, numbered from 0, shape (regions,).
            column: A sensitive one with public values.
        """
        return self._values[column].of_classes(unions[self.classes], int(unions.max()) + 1)

    def side_histograms(self, cuts: Cuts, column: str) -> NDArray[np.int64]:
        """Rows with each value of a column left of each cut, then right of each, shape (2 · cuts, values)."""
        held = self._values[column]
        values = held.domain
        counts = self._histogram(
            cuts.region,
            cuts.axis,
            cuts.first,
            cuts.sizes,
            self._region[held.owner],
            self._places[:, held.owner],
            held.count,
            held.value,
            values,
        )
        return np.concatenate(_sides(counts.reshape(-1, values), cuts.sizes))

    def divide(self, axis: Places, place: Places, done: int) -> None:
        """Follows the cuts of a level.

        Args:
            axis: Of the cut of each region, −1 where it remains, shape (regions,).
            place: The last place of the left side.
            done: How many regions remained before.
        """
        open_ = np.flatnonzero(self._region >= 0)
        region = self._region[open_]
        remains = axis[region] < 0
        number = np.cumsum(axis < 0) - 1 + done
        self._class[open_[remains]] = number[region[remains]]
        self._region[open_[remains]] = _DONE
        moved, region = open_[~remains], region[~remains]
        right = self._places[axis[region], moved] > place[region]
        self._region[moved] = 2 * (np.cumsum(axis >= 0) - 1)[region] + right

    @staticmethod
    def _histogram(
        region: Places,
        axis: Places,
        first: Places,
        sizes: Places,
        of: Places,
        places: Places,
        weights: Cells,
        codes: NDArray[np.int64] | None = None,
        values: int = 1,
    ) -> Cells:
        """Rows at each place of each box, of each value where there are several; flat."""
        starts = np.cumsum(sizes + 1) - (sizes + 1)
        total = int((sizes + 1).sum()) * values
        counts = np.zeros(total, np.int64)
        for each in np.unique(axis).tolist():
            asked = np.flatnonzero(axis == each)
            entry = np.full(int(max(region.max(), of.max(initial=0))) + 1, -1)
            entry[region[asked]] = asked
            inside = np.flatnonzero(of >= 0)
            inside = inside[entry[of[inside]] >= 0]
            number = entry[of[inside]]
            cells = starts[number] + places[each, inside] - first[number]
            if codes is not None:
                cells = cells * values + codes[inside]
            counts += np.bincount(cells, weights[inside], total).astype(np.int64)
        return counts


def _sides(counts: NDArray[np.int64], sizes: Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What lies left and right of each cut, from what lies at each place, shape (cuts, values) each."""
    ends = np.cumsum(sizes + 1)
    sums = np.cumsum(counts, axis=0)
    before = sums[ends - 1 - sizes] - counts[ends - 1 - sizes]
    totals = sums[ends - 1] - before
    cut = np.ones(len(counts), bool)
    cut[ends - 1] = False
    left = sums[cut] - np.repeat(before, sizes, axis=0)
    return left, np.repeat(totals, sizes, axis=0) - left

"""Points that no group has taken yet, and which of them are nearest to, or farthest from, a place.

The points are kept in the order of their distance ("reach") from a centre. By the triangle inequality a point within δ
of a place has a reach within δ of the place's own, and a point's distance from a place is at most its reach plus the
place's. So the nearest points lie in a slice and the farthest at the end; the others are never looked at. The answers
are those of a search through all points.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

_COMPACT_BELOW: Final = 0.9  # taken points are dropped when less than this share of the stored ones remains
_FIRST_LOOK: Final = 2048  # points looked at first; then four times as many, and so on
_WIDEN: Final = 2
_SLACK: Final = 1e-9  # relative; bounds are widened by it, since distances are rounded


class Remaining:
    """The points that remain, as columns that shrink while groups take points away.

    Distances are sums of squared differences, coordinate by coordinate: equal points have equal distances to the last
    bit, so that ties go to the lowest row wherever a point is stored.

    Attributes:
        count: How many remain.
    """

    def __init__(self, points: Floats) -> None:
        """All of `points`, shape (n, d)."""
        self.count = len(points)
        self._store(np.ascontiguousarray(points.T), np.arange(len(points)))

    def mean(self) -> Floats:
        """Of the points that remain; shape (d,)."""
        mean: Floats = self._total / self.count
        return mean

    def rows(self) -> Positions:
        """The rows that remain, ascending; shape (count,)."""
        return np.sort(self._rows[self._taken == 0])

    def nth(self, number: int) -> Floats:
        """The coordinates of one of the remaining points, `number` from 0 to count − 1; shape (d,)."""
        self._compact()
        return self._columns[:, np.flatnonzero(self._taken == 0)[number]].copy()

    def farthest(self, place: Floats) -> Floats:
        """The coordinates of the point farthest from a place, of several the one of the lowest row; shape (d,)."""
        self._compact()
        away = self._away(place)
        best, found = -1.0, -1
        stop, width = len(self._rows), _FIRST_LOOK
        while stop > 0:
            start = max(stop - width, 0)
            squares = self._squares(place, start, stop) - self._taken[start:stop]
            farthest = float(squares.max())
            if farthest >= best:
                tied = start + np.flatnonzero(squares == farthest)
                if farthest == best:
                    tied = np.append(tied, found)
                best, found = farthest, int(tied[self._rows[tied].argmin()])
            if start == 0 or (self._reaches[start - 1] + away) * (1 + _SLACK) < np.sqrt(max(best, 0.0)):
                break
            stop, width = start, _WIDEN * width
        return self._columns[:, found].copy()

    def take_nearest(self, place: Floats, k: int) -> Positions:
        """Takes the k ≤ count points nearest to a place, ties by row; shape (d,) in, rows (k,) out, nearest first."""
        self._compact()
        away = self._away(place)
        middle = int(np.searchsorted(self._reaches, away))
        width = max(_FIRST_LOOK, _WIDEN * k)
        while True:
            start, stop = max(middle - width, 0), min(middle + width, len(self._rows))
            squares = self._squares(place, start, stop) + self._taken[start:stop]
            limit = self._kth(squares, k)
            if limit < np.inf:
                break
            width *= _WIDEN
        radius = np.sqrt(limit)
        margin = _SLACK * (away + radius)
        low, high = np.searchsorted(self._reaches, (away - radius - margin, away + radius + margin))
        if low < start or high > stop:
            start, stop = int(low), int(high)
            squares = self._squares(place, start, stop) + self._taken[start:stop]
            limit = self._kth(squares, k)
        near = np.flatnonzero(squares <= limit)
        order = np.lexsort((self._rows[start + near], squares[near]))[:k]
        return self._take(start + near[order])

    def _take(self, positions: Positions) -> Positions:
        self._taken[positions] = np.inf
        self._total -= self._columns[:, positions].sum(axis=1)
        self.count -= len(positions)
        return self._rows[positions]

    def _away(self, place: Floats) -> float:
        return float(np.sqrt(np.square(place - self._centre).sum()))

    def _squares(self, place: Floats, start: int, stop: int) -> Floats:
        """Squared distances of the points stored from `start` to before `stop`; shape (stop − start,)."""
        squares: Floats = np.square(self._columns[0, start:stop] - place[0])
        for column, coordinate in zip(self._columns[1:], place[1:], strict=True):
            squares += np.square(column[start:stop] - coordinate)
        return squares

    @staticmethod
    def _kth(squares: Floats, k: int) -> float:
        return float(np.partition(squares, k - 1)[k - 1]) if k <= len(squares) else np.inf

    def _compact(self) -> None:
        if self.count < _COMPACT_BELOW * len(self._rows):
            keep = np.flatnonzero(self._taken == 0)
            self._store(self._columns[:, keep], self._rows[keep])

    def _store(self, columns: Floats, rows: Positions) -> None:
        self._columns, self._rows, self._taken = columns, rows, np.zeros(len(rows))
        self._total = columns.sum(axis=1)  # anew: rounding errors of the subtractions do not pile up
        self._centre = self.mean()
        reaches = np.sqrt(self._squares(self._centre, 0, len(rows)))
        order = np.argsort(reaches, kind="stable")
        self._reaches, self._rows, self._columns = reaches[order], rows[order], np.ascontiguousarray(columns[:, order])

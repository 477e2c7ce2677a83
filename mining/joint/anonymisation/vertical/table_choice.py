"""At which levels contingency tables are computed: all parties choose alike, by what is public.

Of the levels whose table is not too large, those are taken under which most nodes lie that may still be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Lattice

Levels = tuple[int, ...]
"""A level of each axis."""

MOST_CELLS: Final = 1 << 14
"""The largest table: each of its cells costs some nanoseconds of work for every row."""

_LEAST_CELLS: Final = 1 << 10  # a table so small is not worth making smaller
_GROWTH: Final = 4  # a larger table than is asked for spares later ones; it may cost what all before it did


class TableChoice:
    """The tables that have been chosen so far.

    Args:
        labels: By axis, how many labels there are at each level: of the quasi-identifiers, then of sensitive columns.
        quasi: How many of the axes are quasi-identifiers.
        most_cells: The largest table.

    Attributes:
        dead: Nodes that will not be looked at, in the lattice's shape.
        chosen: The levels of all tables, in turn.
    """

    def __init__(self, labels: Sequence[Sequence[int]], quasi: int, most_cells: int = MOST_CELLS) -> None:
        self.labels, self.most_cells, self._quasi = labels, most_cells, quasi
        self._lattice = Lattice([len(each) - 1 for each in labels[:quasi]])
        self.dead: NDArray[np.bool_] = self._lattice.zeros(np.bool_)
        self._sizes = np.ones((), np.float64)
        for each in labels[:quasi]:
            self._sizes = self._sizes[..., None] * np.array(each)
        self.chosen: list[Levels] = []

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(self.shape(levels)) for levels in self.chosen)

    def shape(self, levels: Levels) -> Levels:
        """Labels of each axis at some levels."""
        return tuple(each[level] for each, level in zip(self.labels, levels, strict=True))

    def place_of(self, levels: Levels) -> int:
        """The place of the smallest table from which one at these levels follows; it is chosen where there is none."""
        covering = [place for place, fine in enumerate(self.chosen) if _below(fine, levels)]
        if not covering:
            covering = [len(self.chosen)]
            self.chosen.append(self._choose(levels))
        return min(covering, key=lambda each: math.prod(self.shape(self.chosen[each])))

    def _choose(self, levels: Levels) -> Levels:
        """At which levels a table is computed that covers some levels."""
        quasi, rest = levels[: self._quasi], levels[self._quasi :]
        sizes = self._sizes * math.prod(self.shape(levels)[self._quasi :])
        most = min(self.most_cells, max(_LEAST_CELLS, _GROWTH * int(sizes[quasi]), self.cells))
        pending = ~self.dead & (sizes <= self.most_cells)
        for fine in self.chosen:
            if _below(fine[self._quasi :], rest):
                pending[self._lattice.above(fine[: self._quasi])] = False
        above = pending.astype(np.int64)
        for axis in range(self._quasi):
            above = np.flip(np.cumsum(np.flip(above, axis), axis), axis)
        below = self._lattice.below(quasi)
        fits = (sizes[below] <= most) | (sizes[below] == sizes[quasi])
        gain = np.where(fits, above[below], -1)
        best = np.flatnonzero(gain.ravel() == gain.max())
        chosen = best[np.argmin(sizes[below].ravel()[best])]
        return (*map(int, np.unravel_index(chosen, gain.shape)), *rest)


def _below(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    """Whether levels are as fine in all axes."""
    return all(a <= b for a, b in zip(fine, coarse, strict=True))

"""Leaves that are intervals: continuous numbers are represented by the bin that they lie in, never more exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.cells import Interval, format_interval, parse
from anonymize.columns import number_of
from link.errors import ConfigurationError

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bins:
    """Disjoint intervals of numbers, in the order of a hierarchy's leaves.

    Attributes:
        low: Lower end of each bin, which belongs to it, shape (bins,).
        high: Upper end, shape (bins,).
        closed: Whether the upper end belongs to it, shape (bins,).
    """

    low: Numbers
    high: Numbers
    closed: NDArray[np.bool_]

    @classmethod
    def of(cls, leaves: Sequence[str], name: str) -> Self | None:
        """The bins that leaves write as `[0, 0.5)`, `[0.5, 1]` or `7`; None where none of them is an interval.

        Args:
            leaves: Of a hierarchy.
            name: Of its column.

        Raises:
            ConfigurationError: Some are intervals and others neither that nor numbers, or two of them overlap.
        """
        cells = [parse(leaf) for leaf in leaves]
        if not any(isinstance(cell, Interval) for cell in cells):
            return None
        low, high, closed = np.empty(len(leaves)), np.empty(len(leaves)), np.ones(len(leaves), np.bool_)
        for place, (leaf, cell) in enumerate(zip(leaves, cells, strict=True)):
            try:
                ends = (cell.low, cell.high) if isinstance(cell, Interval) else (leaf, leaf)
                low[place], high[place] = map(number_of, ends)
            except ValueError:
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" has the leaf "{leaf}" beside intervals; write each leaf as an '
                    "interval of numbers such as [0, 0.5), or as a number."
                ) from None
            closed[place] = not (isinstance(cell, Interval) and cell.half_open)
        bins = cls(low, high, closed)
        bins._check(leaves, name)
        return bins

    def _check(self, leaves: Sequence[str], name: str) -> None:
        for place, (low, high, closed) in enumerate(zip(self.low, self.high, self.closed, strict=True)):
            if low > high or (low == high and not closed):
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" has the leaf "{leaves[place]}", which holds no number.'
                )
        order = np.argsort(self.low, kind="stable")
        before, after = order[:-1], order[1:]
        overlaps = (self.high[before] > self.low[after]) | (
            (self.high[before] == self.low[after]) & self.closed[before]
        )
        if overlaps.any():
            first = int(np.argmax(overlaps))
            raise ConfigurationError(
                f'The hierarchy of column "{name}" has the leaves "{leaves[before[first]]}" and '
                f'"{leaves[after[first]]}", which overlap.'
            )

    @property
    def middles(self) -> Numbers:
        """The middle of each bin, shape (bins,)."""
        return (self.low + self.high) / 2

    def find(self, numbers: ArrayLike) -> NDArray[np.int32]:
        """The bin that each number lies in, −1 where there is none, shape as given."""
        values = np.asarray(numbers, np.float64)
        order = np.argsort(self.low, kind="stable")
        found = order[np.maximum(np.searchsorted(self.low[order], values, side="right") - 1, 0)]
        inside = (values >= self.low[found]) & (
            (values < self.high[found]) | (self.closed[found] & (values == self.high[found]))
        )
        return np.where(inside, found, -1).astype(np.int32)

    def text(self, first: int, last: int) -> str:
        """The interval from one bin to another."""
        low, high = float(self.low[first]), float(self.high[last])
        return format_interval(low, high, half_open=not self.closed[last])

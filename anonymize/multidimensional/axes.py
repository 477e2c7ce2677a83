"""Quasi-identifiers as axes along which regions are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.tables import Table


@dataclass(frozen=True, eq=False)
class Axis:
    """One quasi-identifier with its values in a row.

    Values of a tree are in the order of its leaves from left to right, so that every subtree is one interval.

    Attributes:
        column: The quasi-identifier.
        codes: Place of each row's value on the axis, shape (n,).
        coordinates: Position of each place, ascending, shape (m,): numbers of ordered columns, else 0, 1, 2, …
        tree: Hierarchy of a column of a tree; None where there is none.
        leaves: Leaf of each place in the hierarchy, shape (m,); empty without one.
    """

    column: Column
    codes: NDArray[np.int32]
    coordinates: NDArray[np.float64]
    tree: Hierarchy | None
    leaves: NDArray[np.int64]

    @classmethod
    def of(cls, column: Column, hierarchy: Hierarchy | None) -> Axis:
        """The axis of a column.

        Args:
            column: Of any kind.
            hierarchy: Of a column of kind tree or code. Ordered columns are cut by value and need none.

        Raises:
            InputDataError: The hierarchy lacks values.
        """
        if column.is_ordered:
            return cls(column, column.codes, column.numbers, None, np.zeros(0, np.int64))
        if hierarchy is None:
            return cls(column, column.codes, np.arange(column.size, dtype=float), None, np.zeros(0, np.int64))
        order = np.lexsort(hierarchy.maps)  # the last key, the top, decides first
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        codes = place[hierarchy.align(column)][column.codes]
        return cls(column, codes, np.arange(len(order), dtype=float), hierarchy, order)

    @cached_property
    def span(self) -> float:
        """From the first to the last position that occurs; 1 where one alone does, so that widths are 0."""
        return float(self.coordinates[self.codes.max()] - self.coordinates[self.codes.min()]) or 1.0

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """Label of each place at each level of the tree, numbered from left to right, shape (height + 1, m)."""
        if self.tree is None:
            return np.arange(len(self.coordinates), dtype=np.int32)[None]
        rows = [labels[self.leaves] for labels in self.tree.maps]
        return np.stack([np.cumsum(np.diff(row, prepend=row[:1]) != 0, dtype=np.int32) for row in rows])

    def widths(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.float64]:
        """Span of regions over the span of the table.

        Args:
            low: First place of each region, shape (r,).
            high: Last place of each region, shape (r,).

        Returns:
            Shape (r,), each in [0, 1].
        """
        return (self.coordinates[high] - self.coordinates[low]) / self.span

    def common_levels(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.int32]:
        """Level of the lowest common ancestor of all values from `low` to `high`, shape (r,)."""
        levels = np.zeros(len(low), np.int32)
        for labels in self.labels[:-1]:
            levels += labels[low] != labels[high]
        return levels

    def penalties(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.float64]:
        """Normalised certainty penalty of regions, shape (r,).

        Of a tree it is that of the lowest common ancestor, else the span over that of all values, of an ordinal column
        also of those that do not occur.
        """
        if self.tree is None:
            whole = float(self.coordinates[-1] - self.coordinates[0])
            return (self.coordinates[high] - self.coordinates[low]) / (whole or 1.0)
        penalties = np.zeros(len(low))
        levels = self.common_levels(low, high)
        for level in range(self.tree.height + 1):
            at = levels == level
            penalties[at] = self.tree.loss(level)[self.tree.maps[level][self.leaves[low[at]]]]
        return penalties


def axes_of(table: Table, hierarchies: Mapping[str, Hierarchy]) -> Sequence[Axis]:
    """The axes of a table's quasi-identifiers.

    Raises:
        InputDataError: A hierarchy lacks values.
    """
    return [Axis.of(column, hierarchies.get(column.name)) for column in table.quasi_identifiers]

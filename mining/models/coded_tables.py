"""Rows for models that are coded where they lie: in memory at once, or a block at a time whenever they are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.models.attributes import (
    Attribute,
    Categorical,
    LabelledRows,
    check_column,
    check_outside,
    coded_columns,
    column_of,
)
from mining.models.kmeans import Points, stacked

N = TypeVar("N", bound=np.generic)


class Labelled(Protocol):
    """Rows of known classes, wherever they lie: `LabelledRows` in memory, `LabelledTable`."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def total(self, kernel: Callable[[LabelledRows], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows, which is the sum of what it gives for any blocks of them.

        Args:
            kernel: Picklable; gives arrays of one shape and type.
        """


class LabelledTable:
    """Rows of known classes that lie in blocks.

    Args:
        table: The rows.
        target: The class.
        attributes: The other columns of the model.

    Raises:
        InputDataError: A column is missing, or a cell is not what its attribute allows.
    """

    def __init__(self, table: TableRows, target: Categorical, attributes: tuple[Attribute, ...]) -> None:
        self._target, self._attributes = target, attributes
        self._table = checked(table, (target, *attributes))
        self.n_rows = table.n_rows

    def total(self, kernel: Callable[[LabelledRows], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `Labelled`."""
        return self._table.total(_OfLabelled(self._target, self._attributes, kernel))


class PointsTable:
    """Points that lie in blocks.

    Args:
        table: The rows.
        attributes: The coordinates.

    Raises:
        InputDataError: A column is missing, or a cell is not what its attribute allows.
    """

    def __init__(self, table: TableRows, attributes: tuple[Attribute, ...]) -> None:
        self._attributes, self._table = attributes, checked(table, attributes)

    def __len__(self) -> int:
        """Number of points."""
        return self._table.n_rows

    def total(self, kernel: Callable[[Points], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all points, as of `Labelled`."""
        return self._table.total(_OfPoints(self._attributes, kernel))


def checked(table: TableRows, attributes: tuple[Attribute, ...]) -> TableRows:
    """The columns of some attributes, whose cells were all looked at.

    Raises:
        InputDataError: A column is missing, or a cell is not what its attribute allows: what is told of the same rows
            in memory.
    """
    held = tuple(each for each in attributes if each.name in table.column_names)
    seen = table.only([each.name for each in held])
    outside = iter(seen.total(_Outside(held)).tolist())
    for attribute in attributes:
        check_column(table.column_names, attribute)
        check_outside(attribute, next(outside))
    return seen


@dataclass(frozen=True, slots=True)
class _Outside:
    """In how many rows each attribute has a cell that it does not allow."""

    attributes: tuple[Attribute, ...]

    def __call__(self, table: Table) -> NDArray[np.int64]:
        found = [np.count_nonzero(each.places(column_of(table, each)) < 0) for each in self.attributes]
        return np.array(found, np.int64)


@dataclass(frozen=True, slots=True)
class _OfLabelled(Generic[N]):
    """A kernel over the rows of a block, coded."""

    target: Categorical
    attributes: tuple[Attribute, ...]
    kernel: Callable[[LabelledRows], NDArray[N]]

    def __call__(self, table: Table) -> NDArray[N]:
        return self.kernel(LabelledRows.of(table, self.target, self.attributes))


@dataclass(frozen=True, slots=True)
class _OfPoints(Generic[N]):
    """A kernel over the points of a block."""

    attributes: tuple[Attribute, ...]
    kernel: Callable[[Points], NDArray[N]]

    def __call__(self, table: Table) -> NDArray[N]:
        return self.kernel(stacked(coded_columns(table, self.attributes)))

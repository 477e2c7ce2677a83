"""Columns as the axes of a space in which Euclidean distances mean something."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import Column
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Scaling = Literal["deviation", "range", "none"]

KINDS: Final = ("numeric", "date", "ordinal")
"""Kinds of columns that are axes; ordinal ones by rank."""


@dataclass(frozen=True, eq=False)
class Space:
    """Axes: of each column the number minus its mean, by a unit.

    Attributes:
        columns: One for each axis, with n rows.
        origins: Shape (d,): the mean of each column's numbers.
        units: Shape (d,): what is 1 on each axis.
        points: Shape (n, d): the rows. A constant column is 0 in all of them.
    """

    columns: tuple[Column, ...]
    origins: Floats
    units: Floats
    points: Floats

    @classmethod
    def of(cls, columns: Sequence[Column], scaling: Scaling = "deviation") -> Space:
        """The space of some columns.

        Args:
            columns: At least one.
            scaling: The unit of an axis is the column's standard deviation, its range, or 1.

        Raises:
            ConfigurationError: The scaling is unknown, or the values of a column are no places on an axis.
        """
        if scaling not in get_args(Scaling):
            raise ConfigurationError(f'scaling is "{scaling}"; it must be one of {", ".join(get_args(Scaling))}.')
        for column in columns:
            if column.kind not in KINDS:
                raise ConfigurationError(
                    f'Column "{column.name}" is of kind {column.kind}, but distances in space need numbers, dates or '
                    "ordinal values; declare it ordinal, leave it out, or use mondrian, gpkc or maa-slie."
                )
        numbers = np.stack([column.numbers[column.codes] for column in columns], axis=1)
        origins = numbers.mean(axis=0)
        units = {"deviation": numbers.std(axis=0), "range": np.ptp(numbers, axis=0), "none": np.ones(len(columns))}[
            scaling
        ]
        constant = (np.ptp(numbers, axis=0) == 0) | (units == 0)  # the square of a difference may be none
        points = np.where(constant, 0.0, (numbers - origins) / np.where(constant, 1.0, units))
        return cls(tuple(columns), origins, np.where(constant, 1.0, units), points)

    def numbers(self, points: Floats) -> Floats:
        """Points as numbers of the columns; shape (m, d) both."""
        return points * self.units + self.origins

    def cells(self, points: Floats) -> dict[str, pa.Array]:
        """Points as cells of the columns, shape (m, d) in.

        Numbers are floating-point numbers; dates and ordinal values the nearest there is.
        """
        found = {}
        for column, numbers in zip(self.columns, self.numbers(points).T, strict=True):
            nearest = np.floor(numbers + 0.5)
            if column.kind == "date":
                days = nearest.clip(datetime.date.min.toordinal(), datetime.date.max.toordinal())
                found[column.name] = pa.array([datetime.date.fromordinal(int(day)) for day in days], pa.date32())
            elif column.kind == "ordinal":
                ranks = nearest.clip(0, column.size - 1).astype(np.int64)
                found[column.name] = pa.array(column.texts).take(pa.array(ranks))
            else:
                found[column.name] = pa.array(numbers)
        return found

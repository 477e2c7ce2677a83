"""Virtual values of one attribute: near the original ones, by the attribute's kind."""

from __future__ import annotations

import datetime
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.clustering.attributes import NominalAttribute, attribute_of
from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.replacement.similarity import attribute_similarity
from anonymize.sampling import symmetric, uniform
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Replaced(Protocol):
    """An attribute whose values are replaced. Virtual values are numbers, or codes of the domain, as floats."""

    def draw(self, rows: Rows, rng: Randomness) -> Floats:
        """Shape (rows,): a virtual value for each row."""
        ...

    def similarity(self, rows: Rows, virtual: Floats) -> Floats:
        """Shape (rows,): λ of each row's virtual value."""
        ...

    def cells(self, virtual: Floats) -> pa.Array:
        """The cells that are published."""
        ...


class Numbers:
    """x + U[−T, T]: whole numbers stay whole."""

    def __init__(self, column: Column, reach: float, scale: float) -> None:
        """`reach`: T; `scale`: what an x of 0 is compared with."""
        self.given = column.numbers[column.codes]
        self._whole = all(isinstance(value, int) for value in column.domain)
        if self._whole and reach != int(reach):
            raise ConfigurationError(
                f'Column "{column.name}" holds whole numbers, so its range must be one, not {reach:g}; round it.'
            )
        self._reach, self._scale = reach, scale

    def draw(self, rows: Rows, rng: Randomness) -> Floats:
        """A virtual value for each row; shape (rows,)."""
        return self.given[rows] + noise(len(rows), self._reach, self._whole, rng)

    def similarity(self, rows: Rows, virtual: Floats) -> Floats:
        """How like the original ones virtual values of rows are; shape (rows,)."""
        return attribute_similarity(self.given[rows], virtual, self._scale)

    def cells(self, virtual: Floats) -> pa.Array:
        """The cells that are published."""
        return pa.array(virtual.astype(np.int64) if self._whole else virtual)


class Dates:
    """Days x + U{−T, …, T}; λ = 1 − days between / days of the column's range, since day numbers have no zero."""

    def __init__(self, column: Column, reach: float) -> None:
        self._given = column.numbers[column.codes]
        self._span = float(np.ptp(column.numbers)) or 1.0
        if reach != int(reach):
            raise ConfigurationError(
                f'Column "{column.name}" holds dates, so its range is in whole days, not {reach:g}.'
            )
        self._reach = reach

    def draw(self, rows: Rows, rng: Randomness) -> Floats:
        """A virtual value for each row; shape (rows,)."""
        first, last = datetime.date.min.toordinal(), datetime.date.max.toordinal()
        drawn: Floats = np.clip(self._given[rows] + noise(len(rows), self._reach, True, rng), first, last)
        return drawn

    def similarity(self, rows: Rows, virtual: Floats) -> Floats:
        """How like the original ones virtual values of rows are; shape (rows,)."""
        similarity: Floats = np.clip(1 - np.abs(virtual - self._given[rows]) / self._span, 0, 1)
        return similarity

    def cells(self, virtual: Floats) -> pa.Array:
        """The cells that are published."""
        return pa.array([datetime.date.fromordinal(int(day)) for day in virtual], pa.date32())


class Ranks:
    """A uniform one of the ordinal values within T ranks; λ = 1 − ranks between / highest rank."""

    def __init__(self, column: Column, reach: float) -> None:
        """`reach`: T, in ranks."""
        self._column = column
        self._low = np.maximum(np.arange(column.size) - int(reach), 0)
        self._high = np.minimum(np.arange(column.size) + int(reach), column.size - 1)

    def draw(self, rows: Rows, rng: Randomness) -> Floats:
        """A virtual value for each row; shape (rows,)."""
        own = self._column.codes[rows]
        low, high = self._low[own], self._high[own]
        drawn: Floats = low + np.floor(uniform(len(rows), rng) * (high - low + 1))
        return drawn

    def similarity(self, rows: Rows, virtual: Floats) -> Floats:
        """How like the original ones virtual values of rows are; shape (rows,)."""
        similarity: Floats = 1 - np.abs(virtual - self._column.codes[rows]) / max(self._column.size - 1, 1)
        return similarity

    def cells(self, virtual: Floats) -> pa.Array:
        """The cells that are published."""
        return _cells(self._column, virtual)


class Values:
    """A uniform one of the values within a distance of their tree, or 0 or 1 where there is none; λ = 1 − distance."""

    def __init__(self, column: Column, reach: float, hierarchy: Hierarchy | None) -> None:
        """`reach`: T, a distance of at most 1."""
        if reach > 1:
            raise ConfigurationError(
                f'Column "{column.name}" is of kind {column.kind}, whose distances are at most 1, and its range of '
                f"{reach:g} is too large."
            )
        attribute = attribute_of(column, hierarchy)
        assert isinstance(attribute, NominalAttribute)
        self._column, self._attribute = column, attribute
        self._labels = attribute.neighbourhoods(reach)
        self._near = np.argsort(self._labels, kind="stable")
        self._counts = np.bincount(self._labels)
        self._starts = np.cumsum(self._counts) - self._counts

    def draw(self, rows: Rows, rng: Randomness) -> Floats:
        """A virtual value for each row; shape (rows,)."""
        labels = self._labels[self._column.codes[rows]]
        chosen = (uniform(len(rows), rng) * self._counts[labels]).astype(np.int64)
        codes: Floats = self._near[self._starts[labels] + chosen].astype(np.float64)
        return codes

    def similarity(self, rows: Rows, virtual: Floats) -> Floats:
        """How like the original ones virtual values of rows are; shape (rows,)."""
        return 1 - self._attribute.between(self._column.codes[rows], virtual.astype(np.int32))

    def cells(self, virtual: Floats) -> pa.Array:
        """The cells that are published."""
        return _cells(self._column, virtual)


def noise(size: int, reach: float, whole: bool, rng: Randomness) -> Floats:
    """Uniform noise within ±reach, whole numbers or real ones; shape (size,)."""
    if whole:
        return rng.integers(2 * int(reach) + 1, size).astype(np.float64) - int(reach)
    return reach * symmetric(size, rng)


def _cells(column: Column, codes: Floats) -> pa.Array:
    return pa.array(column.domain).take(pa.array(codes.astype(np.int64)))

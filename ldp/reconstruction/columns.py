"""Numeric columns of a table whose values were perturbed, as classifiers see them: by intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.reconstruction.density import Density, check_edges
from ldp.reconstruction.distribution import reconstruct
from ldp.reconstruction.noise import AdditiveNoise, check_numbers
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column: the intervals of its true values, and the noise that was added to them.

    Attributes:
        edges: Ends of the k intervals, shape (k + 1,).
        noise: None for values as they are.
    """

    edges: Floats
    noise: AdditiveNoise | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", check_edges(self.edges))

    @property
    def intervals(self) -> int:
        """How many."""
        return len(self.edges) - 1

    def codes(self, values: ArrayLike) -> Codes:
        """The intervals of values as they are, shape (n,); those outside are in the first or the last one."""
        return np.searchsorted(self.edges[1:-1], check_numbers(values), side="right")

    def density(self, perturbed: ArrayLike) -> Density:
        """The distribution of the true values behind perturbed ones.

        The iteration ends at the first small change: classes of few records suffer more from accidental peaks than from
        smooth ones.
        """
        if self.noise is None:
            return Density.of_values(perturbed, self.edges)
        return reconstruct(perturbed, self.noise, self.edges, rule="change").density

    def assigned(self, perturbed: ArrayLike) -> Codes:
        """An interval for each perturbed value, so that the intervals have their reconstructed shares.

        The least values go to the first interval, the next to the second, and so on (Agrawal and Srikant, SIGMOD
        2000). No value's interval is known to be the true one; their counts are about right.

        Returns:
            Shape (n,).
        """
        values = check_numbers(perturbed)
        if self.noise is None:
            return self.codes(values)
        last = np.rint(np.cumsum(self.density(values).probabilities) * len(values))
        found = np.empty(len(values), dtype=np.int64)
        places = np.searchsorted(last[:-1], np.arange(len(values)), side="right")
        found[np.argsort(values, kind="stable")] = places
        return found


def check_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a table, at least one.

    Raises:
        ConfigurationError: There is none.
    """
    if not columns:
        raise ConfigurationError("a classifier needs one column at least")
    return tuple(columns)


def check_table(table: ArrayLike, columns: Sequence[Column]) -> Floats:
    """Records as doubles, shape (n, columns).

    Raises:
        InputDataError: There is none, their width is another one, or a value is no finite number.
    """
    found = np.asarray(table)
    if found.ndim != 2 or found.shape[1] != len(columns) or not len(found):
        raise InputDataError(f"records are a table of {len(columns)} columns with one row at least")
    return np.stack([check_numbers(column) for column in found.T], axis=1)


def check_labels(labels: ArrayLike, records: int) -> tuple[NDArray[np.generic], Codes]:
    """The classes in their order, and the number of each record's class, shape (n,).

    Raises:
        InputDataError: There is not one label for each record, or all are the same.
    """
    given = np.asarray(labels)
    if given.shape != (records,):
        raise InputDataError(f"there must be one label for each of the {records} records")
    classes, codes = np.unique(given, return_inverse=True)
    if len(classes) < 2:
        raise InputDataError("all records are of one class; there is nothing to learn")
    return classes, codes.astype(np.int64)

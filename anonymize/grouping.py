"""Equivalence classes: rows with equal keys, numbered, and what a privacy model looks at in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column

LARGEST_KEY: Final = 1 << 62
_DENSE: Final = 4  # keys a row up to which classes are found by a table of all keys

Codes = NDArray[np.int32] | NDArray[np.int64]


def group(keys: Codes | Sequence[tuple[Codes, int]], n_rows: int | None = None) -> tuple[NDArray[np.int64], int]:
    """Numbers the distinct keys.

    Keys are read as numbers in mixed radix as long as these fit 62 bits; else the columns so far are numbered first.

    Args:
        keys: Shape (n, d), at least 0; or for each column its codes, shape (n,), and how many codes there are.
        n_rows: n, needed only where there are no columns: then all rows are one class.

    Returns:
        Labels, shape (n,), and how many classes there are. Classes are numbered by ascending key.
    """
    if isinstance(keys, np.ndarray):
        n_rows = len(keys)
        columns = [(codes, int(codes.max(initial=0)) + 1) for codes in keys.T]
    else:
        columns = list(keys)
        n_rows = len(columns[0][0]) if columns else n_rows or 0
    combined, size = np.zeros(n_rows, np.int64), 1
    for codes, count in columns:
        if size * count > LARGEST_KEY:
            combined, size = _numbered(combined, size)
        combined = combined * count + codes
        size *= count
    return _numbered(combined, size)


def _numbered(keys: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    """Distinct numbers below `size`, numbered in ascending order."""
    if size <= _DENSE * len(keys):
        present = np.zeros(size, bool)
        present[keys] = True
        places = np.cumsum(present) - 1
        return places[keys], int(places[-1]) + 1
    distinct, labels = np.unique(keys, return_inverse=True)
    return labels.reshape(-1).astype(np.int64, copy=False), len(distinct)


def histogram(
    labels: NDArray[np.int64], classes: int, codes: Codes, values: int, weights: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """How often each value occurs in each class.

    Args:
        labels: Shape (n,), the class of each row.
        classes: How many there are.
        codes: Shape (n,), the value of each row.
        values: How many there are.
        weights: Shape (n,), how many records a row represents; 1 if not given. Their sum must be below 2^53.

    Returns:
        Shape (classes, values).
    """
    cells = np.bincount(labels * values + codes, weights, classes * values)
    return cells.astype(np.int64, copy=False).reshape(classes, values)


@dataclass(frozen=True, eq=False)
class Histograms:
    """What a privacy model looks at in each class: its size, and how often each sensitive value occurs in it.

    Attributes:
        sizes: Shape (c,): records in each class.
        sensitive: By sensitive column, shape (c, m): records of each class with each value of the column's domain.

    Example:
        >>> classes = Histograms(numpy.array([4, 2]), {"illness": numpy.array([[2, 2], [2, 0]])})
        >>> KAnonymity(3).satisfied(classes)
        array([ True, False])
    """

    sizes: NDArray[np.int64]
    sensitive: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        labels: NDArray[np.int64],
        classes: int,
        columns: Sequence[Column] = (),
        weights: NDArray[np.int64] | None = None,
    ) -> Histograms:
        """Counts rows.

        Args:
            labels: Shape (n,), the class of each row.
            classes: How many there are.
            columns: The sensitive columns that are looked at, with the same n rows.
            weights: Shape (n,), how many records a row represents; 1 if not given.
        """
        sizes = np.bincount(labels, weights, classes).astype(np.int64, copy=False)
        return cls(sizes, {c.name: histogram(labels, classes, c.codes, c.size, weights) for c in columns})

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def rolled_up(self, labels: NDArray[np.int64], classes: int) -> Histograms:
        """The histograms of coarser classes, without a look at the rows (Incognito's roll-up).

        Args:
            labels: Shape (c,): the coarser class of each class.
            classes: How many coarser classes there are.
        """
        sizes = np.bincount(labels, self.sizes, classes).astype(np.int64)
        return Histograms(sizes, {name: _row_sums(counts, labels, classes) for name, counts in self.sensitive.items()})


def _row_sums(counts: NDArray[np.int64], labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    values = counts.shape[1]
    cells = (labels[:, None] * values + np.arange(values)).reshape(-1)
    return np.bincount(cells, counts.reshape(-1), classes * values).astype(np.int64).reshape(classes, values)

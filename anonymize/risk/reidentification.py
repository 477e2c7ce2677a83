"""Prosecutor, journalist and marketer risk (El Emam and Dankar 2008): chances to find a person behind a row.

All three attackers know a target's quasi-identifiers and look at the published table. The *prosecutor* knows that the
target is in it; the *journalist* only that the target is in a population from which it was taken; the *marketer* wants
as many right links as possible. f is the size of a class in the table, F its size in the population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError


@dataclass(frozen=True)
class Prosecutor:
    """Risk of rows whose owner is known to be in the table.

    Attributes:
        highest: 1/f of the smallest class.
        average: Mean of 1/f over rows: classes by rows. It is the marketer's share of right links as well, as long as
            nobody but the people of the table is linked.
        above: Share of rows whose risk 1/f is above `threshold`.
        threshold: The threshold that was asked for.
        unique: Share of rows that are alone in their class.
    """

    highest: float
    average: float
    above: float
    threshold: float
    unique: float


@dataclass(frozen=True)
class Journalist:
    """Risk of rows whose owner is known to be in a population.

    Attributes:
        highest: 1/F of the class that is smallest in the population.
        average: Mean of 1/F over rows.
        above: Share of rows whose risk 1/F is above `threshold`.
        threshold: The threshold that was asked for.
    """

    highest: float
    average: float
    above: float
    threshold: float


def _sizes(sizes: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(sizes, dtype=np.int64).reshape(-1)
    if counts.size == 0 or (counts < 1).any():
        raise ConfigurationError(
            "Risk is a share of published rows: every class has one at least, and there is a class."
        )
    return counts


def _population(f: NDArray[np.int64], population: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(population, dtype=np.int64).reshape(-1)
    if counts.shape != f.shape:
        raise ConfigurationError(f"{f.size} classes of the table and {counts.size} of the population do not match.")
    if (counts < f).any():
        raise ConfigurationError("A class has more rows in the table than in the population it was taken from.")
    return counts


def prosecutor(sizes: ArrayLike, threshold: float = 0.2) -> Prosecutor:
    """Prosecutor risk of a table's classes.

    Args:
        sizes: Published rows f of each class.
        threshold: Risk from which on rows count as exposed (strictly above).

    Raises:
        ConfigurationError: There is no class, or an empty one.
    """
    f = _sizes(sizes)
    n = int(f.sum())
    return Prosecutor(
        highest=1 / int(f.min()),
        average=f.size / n,
        above=int(f[1 / f > threshold].sum()) / n,
        threshold=threshold,
        unique=int((f == 1).sum()) / n,
    )


def journalist(sizes: ArrayLike, population: ArrayLike, threshold: float = 0.2) -> Journalist:
    """Journalist risk of a table's classes.

    Args:
        sizes: Published rows f of each class.
        population: Rows F of the same classes in the population, f ≤ F; see `linkage.population_sizes`.
        threshold: Risk from which on rows count as exposed (strictly above).

    Raises:
        ConfigurationError: The two do not match, or there is no class.
    """
    f = _sizes(sizes)
    whole = _population(f, population)
    n = int(f.sum())
    return Journalist(
        highest=1 / int(whole.min()),
        average=float((f / whole).sum()) / n,
        above=int(f[1 / whole > threshold].sum()) / n,
        threshold=threshold,
    )


def marketer(sizes: ArrayLike, population: ArrayLike) -> float:
    """Marketer risk: the share of published rows that a link with the population is expected to get right.

    Args:
        sizes: Published rows f of each class.
        population: Rows F of the same classes in the population, f ≤ F.

    Returns:
        Σ(f/F)/n.

    Raises:
        ConfigurationError: The two do not match, or there is no class.

    Example:
        >>> marketer([2, 3], [4, 30])
        0.12
    """
    f = _sizes(sizes)
    return float((f / _population(f, population)).sum()) / int(f.sum())


def uniqueness(sizes: ArrayLike) -> float:
    """Share of published rows that are alone in their class.

    Raises:
        ConfigurationError: There is no class, or an empty one.
    """
    return prosecutor(sizes).unique

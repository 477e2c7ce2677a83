"""Naive Bayes from counts and moments: categorical attributes with Laplace smoothing, numeric ones as normal.

All that a model needs of rows are whole numbers, which add up over any partition of the rows:

    counts   of each class; then of each categorical attribute, class by class, of each value
    moments  of each numeric attribute, class by class, Σ u; then, class by class, Σ u²; u in steps

Source: Mitchell, Machine Learning, 1997, section 6.9 (m-estimates: smoothing); Chan, Golub and LeVeque, "Algorithms for
Computing the Sample Variance", The American Statistician 37(3), 1983: sums of squares are exact here, in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, shareable
from mining.models.attributes import Attribute, Categorical, Codes, Discrete, LabelledRows, Numeric, check_names

Counts = NDArray[np.int64]
Moments = NDArray[np.uint64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NaiveBayesParameters:
    """What a model is to be.

    Attributes:
        target: The class.
        attributes: Of which a class makes values likely or unlikely, one or more; intervals are values too.
        smoothing: α, added to the count of every value; 0 or more.
        variance_smoothing: This share of the largest variance of a numeric attribute is added to every variance.

    Raises:
        ConfigurationError: A column is named twice or none is, or a number is below 0.
    """

    target: Categorical
    attributes: tuple[Attribute, ...]
    smoothing: Decimal = Decimal(1)
    variance_smoothing: Decimal = Decimal("1e-9")

    def __post_init__(self) -> None:
        check_names(self.target, *self.attributes)
        if not self.attributes:
            raise ConfigurationError("naive Bayes takes one attribute or more")
        if not (self.smoothing >= 0 and self.variance_smoothing >= 0):
            raise ConfigurationError("the smoothing of counts and of variances must be 0 or more")

    @property
    def categorical(self) -> tuple[Discrete, ...]:
        """The attributes of texts, and of numbers of which only the interval counts."""
        return tuple(each for each in self.attributes if not isinstance(each, Numeric))

    @property
    def numeric(self) -> tuple[Numeric, ...]:
        """The attributes of numbers."""
        return tuple(each for each in self.attributes if isinstance(each, Numeric))

    @property
    def n_counts(self) -> int:
        """How many counts there are."""
        return self.target.size * (1 + sum(each.size for each in self.categorical))

    @property
    def n_moments(self) -> int:
        """How many moments there are."""
        return 2 * self.target.size * len(self.numeric)

    @property
    def max_rows(self) -> int:
        """The most rows whose moments fit into 64 bits."""
        return (2**64 - 1) // max((each.steps**2 for each in self.numeric), default=1)


def counts_of(rows: LabelledRows, task: NaiveBayesParameters) -> Counts:
    """The counts of some rows, flat."""
    n_classes = task.target.size
    found = [np.bincount(rows.classes, minlength=n_classes)]
    for attribute, cells in zip(task.attributes, rows.cells, strict=True):
        if not isinstance(attribute, Numeric):
            pairs = rows.classes * attribute.size + cells
            found.append(np.bincount(pairs, minlength=n_classes * attribute.size))
    return np.concatenate(found).astype(np.int64)


def moments_of(rows: LabelledRows, task: NaiveBayesParameters) -> Moments:
    """The moments of some rows, flat; exact up to `max_rows`."""
    found: list[np.uint64] = []
    members = [rows.classes == place for place in range(task.target.size)]
    for attribute, cells in zip(task.attributes, rows.cells, strict=True):
        if isinstance(attribute, Numeric):
            steps = cells.astype(np.uint64)
            found += [steps[member].sum(dtype=np.uint64) for member in members]
            found += [(steps[member] ** 2).sum(dtype=np.uint64) for member in members]
    return np.array(found, np.uint64)


@dataclass(frozen=True, eq=False, slots=True)
class NaiveBayes:
    """A model.

    Attributes:
        task: What it is of.
        class_counts: Shape (classes,).
        value_counts: By categorical attribute, shape (classes, values).
        means: Shape (numeric attributes, classes); of a class without rows 0.
        variances: Shape (numeric attributes, classes), smoothed and above 0.
        moments: Shape (numeric attributes, 2, classes): Σ u and Σ u², from which means and variances are made.
    """

    task: NaiveBayesParameters
    class_counts: Counts
    value_counts: tuple[Counts, ...]
    means: Floats
    variances: Floats
    moments: Moments

    @classmethod
    def of(cls, task: NaiveBayesParameters, counts: Counts, moments: Moments) -> NaiveBayes:
        """The model of all rows that were counted.

        Args:
            task: What is learnt.
            counts: Of all rows, flat.
            moments: Of all rows, flat.

        Raises:
            ValueError: No rows have such counts and moments.
        """
        n_classes = task.target.size
        sizes = [n_classes * each.size for each in task.categorical]
        classes, *tables = np.split(counts, np.cumsum([n_classes, *sizes])[:-1])
        shaped = tuple(table.reshape(n_classes, -1) for table in tables)
        if any((table.sum(axis=1) != classes).any() for table in shaped):
            raise ValueError("the counts of an attribute's values do not add up to those of the classes")
        sums = [[int(number) for number in row] for row in moments.reshape(-1, n_classes)]
        exact = [
            _moments(attribute, [int(count) for count in classes], sums[2 * place], sums[2 * place + 1])
            for place, attribute in enumerate(task.numeric)
        ]
        added = Fraction(task.variance_smoothing) * max((overall for _, _, overall in exact), default=Fraction(0))
        means = np.array([[float(each) for each in means] for means, _, _ in exact]).reshape(-1, n_classes)
        # Where nothing varies and nothing is added, the variance of rounding to a step keeps densities finite.
        variances = [
            [float(each + added or attribute.step**2 / 12) for each in variances]
            for attribute, (_, variances, _) in zip(task.numeric, exact, strict=True)
        ]
        shaped_moments = moments.reshape(-1, 2, n_classes)
        return cls(task, classes, shaped, means, np.array(variances).reshape(-1, n_classes), shaped_moments)

    @property
    def class_log_prior(self) -> Floats:
        """Shape (classes,): the logarithm of each class's share of the rows."""
        with np.errstate(divide="ignore"):
            prior: Floats = np.log(self.class_counts) - np.log(self.class_counts.sum())
        return prior

    @property
    def value_log_probabilities(self) -> tuple[Floats, ...]:
        """By categorical attribute, shape (classes, values): the logarithms of smoothed shares of each class's rows."""
        found = []
        for table in self.value_counts:
            smoothed = table + float(self.task.smoothing)
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))
            found.append(np.where(np.isnan(shares), -np.inf, shares))
        return tuple(found)

    def log_joint(self, cells: Sequence[Codes]) -> Floats:
        """Shape (rows, classes): the logarithm of the probability of class and cells together, up to a constant factor.

        Args:
            cells: By attribute the rows' codes.
        """
        total = np.tile(self.class_log_prior, (len(cells[0]), 1))
        tables, normal = iter(self.value_log_probabilities), iter(zip(self.means, self.variances, strict=True))
        for attribute, codes in zip(self.task.attributes, cells, strict=True):
            if not isinstance(attribute, Numeric):
                total += next(tables)[:, codes].T
            else:
                mean, variance = next(normal)
                distance = attribute.numbers(codes)[:, None] - mean
                total -= 0.5 * (np.log(2 * np.pi * variance) + distance**2 / variance)
        return total

    def predict(self, cells: Sequence[Codes]) -> Codes:
        """The likeliest class of each row, the first of several."""
        likeliest: Codes = np.argmax(self.log_joint(cells), axis=1)
        return likeliest


def check_rows(task: NaiveBayesParameters, n_rows: int) -> None:
    """Refuses more rows than moments are exact for.

    Raises:
        ConfigurationError: There are.
    """
    if n_rows > task.max_rows:
        widest = max(task.numeric, key=lambda each: each.steps)
        raise shareable(
            ConfigurationError(
                f"sums of squares of '{widest.name}' do not fit into 64 bits for so many rows; give it fewer steps"
            )
        )


def _moments(
    attribute: Numeric, counts: list[int], sums: list[int], squares: list[int]
) -> tuple[list[Fraction], list[Fraction], Fraction]:
    """By class mean and variance, and the variance over all rows."""
    low, step = Fraction(attribute.low), attribute.step
    for count, total, square in zip(counts, sums, squares, strict=True):
        if not (total**2 <= count * square and square <= total * attribute.steps <= count * attribute.steps**2):
            raise ValueError("sums of numbers and of their squares are none of that many numbers")
    means = [
        low + step * Fraction(total, count) if count else Fraction(0) for count, total in zip(counts, sums, strict=True)
    ]
    every = [
        step**2 * Fraction(count * square - total**2, count**2) if count else Fraction(0)
        for count, total, square in zip(
            [*counts, sum(counts)], [*sums, sum(sums)], [*squares, sum(squares)], strict=True
        )
    ]
    return means, every[:-1], every[-1]

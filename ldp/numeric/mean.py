"""Mechanisms that estimate the mean of one bounded number a user.

Inside, numbers are scaled to −1 … 1. All mechanisms here are unbiased, and the variance of one report about a value t
is a + b·t², exactly, for values on the mechanism's grid; between grid points random rounding adds (1 + b)·v(t), with v
its variance (`rounding_variance`). So three numbers give a mechanism's whole error: `constant`, `slope` and `steps`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.estimate import two_sided
from ldp.mechanism import Mechanism, Tally, some
from ldp.numeric.interval import Floats, Interval, Points, randomly_rounded, rounding_variance


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """An unbiased estimate of a mean.

    Attributes:
        n: How many reports.
        mean: Raw; noise may carry it beyond the range.
        variance: Of `mean`, by the mechanism's exact formula with estimates in the place of what it asks of the data;
            where reports do not show this, the largest value that it can have.
        low: The range's lower end.
        high: The range's upper end.
    """

    n: int
    mean: float
    variance: float
    low: float
    high: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A normal confidence interval, cut to the range.

        Args:
            confidence: The probability with which it covers the true mean.

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        reach = two_sided(confidence) * self.variance**0.5
        low, high = np.clip([self.mean - reach, self.mean + reach], self.low, self.high)
        return float(low), float(high)


class NumericMechanism(Mechanism[MeanEstimate]):
    """A mechanism for one number of a public range.

    Args:
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.

    Attributes:
        steps: Of the grid that numbers are rounded to.
        constant: a, the variance of a report about 0, on the scale −1 … 1.
        slope: b, by which it grows with the square of the value.
    """

    steps: int
    constant: Fraction
    slope: Fraction

    def __init__(self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False) -> None:
        super().__init__(epsilon)
        self.low, self.high, self.clip = low, high, clip
        self.interval = Interval(low, high, clip)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self._perturb_points(randomly_rounded(self.interval.shares(values), self.steps, rng), rng)

    @abstractmethod
    def _perturb_points(self, points: Points, rng: Randomness) -> tuple[NDArray[Any], ...]:
        """The fields of one report for each grid point."""

    def points(self) -> Floats:
        """The numbers on the grid, in their order: the rows of `channel`; shape (steps + 1,)."""
        return np.linspace(self.low, self.high, self.steps + 1)

    def variance(self, values: ArrayLike) -> Floats:
        """The exact variances of single reports' estimates of their users' values; shape (n,).

        That of the estimated mean of n users is their sum divided by n².
        """
        shares = self.interval.shares(values)
        scaled = self._variance(2 * shares - 1, rounding_variance(shares, self.steps))
        return scaled * self.interval.radius**2

    @property
    def worst_variance(self) -> float:
        """The largest variance of one report, over all values."""
        most = max(float(self.constant), float(self.constant + self.slope))
        return (most + float(1 + self.slope) / self.steps**2) * self.interval.radius**2

    def _variance(self, scaled: Floats, rounding: Floats) -> Floats:
        return float(self.constant) + float(self.slope) * scaled**2 + float(1 + self.slope) * rounding

    @abstractmethod
    def moments(self, tally: Tally, n: int) -> tuple[float, float | None]:
        """Estimates, on the scale −1 … 1, of the mean and, where reports show it, of the mean square."""

    def estimate(self, tally: Tally, n: int) -> MeanEstimate:
        """The unbiased mean and its variance."""
        return self.estimate_of(tally, n, n)

    def estimate_of(self, tally: Tally, n: int, population: int) -> MeanEstimate:
        """The mean of a population of which n users, drawn uniformly without replacement, have reported.

        Args:
            tally: The sums over their reports.
            n: How many reported.
            population: Out of how many.

        Raises:
            InputDataError: There is no report.
        """
        some(n)
        mean, square = self.moments(tally, n)
        bounded = min(max(mean, -1.0), 1.0)
        absent = 1 - n / population
        slope = float(self.slope) + absent
        if square is None:
            square = 1.0 if slope > 0 else bounded**2
        square = min(max(square, bounded**2), 1.0)
        noise = float(self._variance(np.array(square**0.5), np.array(1 / self.steps**2)))
        variance = (noise + absent * (square - bounded**2)) / n
        interval = self.interval
        return MeanEstimate(n, interval.at(mean), variance * interval.radius**2, interval.low, interval.high)

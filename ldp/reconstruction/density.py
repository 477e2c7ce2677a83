"""A distribution of numbers as a histogram, uniform within each interval; and what privacy is left of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.reconstruction.noise import AdditiveNoise, check_numbers
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

_CELLS: Final = 20_000  # of the numeric integral of an entropy
_BEYOND: Final = 1e-9  # the noise that the integral leaves out


def check_edges(edges: ArrayLike) -> Floats:
    """Ends of intervals as doubles, shape (k + 1,).

    Raises:
        ConfigurationError: They do not rise, or there are fewer than two intervals.
    """
    given = np.asarray(edges)
    found = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    if found.ndim != 1 or len(found) < 3 or not np.isfinite(found).all() or not (np.diff(found) > 0).all():
        raise ConfigurationError("intervals are given by three numbers or more, each above the one before")
    return found


def intervals(low: float, high: float, count: int) -> Floats:
    """Ends of `count` intervals of equal widths, shape (count + 1,).

    Raises:
        ConfigurationError: There are fewer than two, or the range is empty.
    """
    return check_edges(np.linspace(low, high, count + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """A distribution that is uniform within each of k intervals.

    Attributes:
        edges: Shape (k + 1,), rising.
        probabilities: Shape (k,), adding up to 1.
    """

    edges: Floats
    probabilities: Floats

    @classmethod
    def of_values(cls, values: ArrayLike, edges: ArrayLike) -> Density:
        """The histogram of values; those outside count in the first or the last interval.

        Raises:
            InputDataError: There is none, or one is no finite number.
        """
        ends, numbers = check_edges(edges), check_numbers(values)
        if not numbers.size:
            raise InputDataError("there is no value to make a histogram of")
        counts = np.bincount(np.searchsorted(ends[1:-1], numbers, side="right"), minlength=len(ends) - 1)
        return cls(ends, counts / len(numbers))

    @property
    def heights(self) -> Floats:
        """The density in each interval, shape (k,)."""
        found: Floats = self.probabilities / np.diff(self.edges)
        return found

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.probabilities @ (self.edges[:-1] + self.edges[1:]) / 2)

    @property
    def variance(self) -> float:
        """Around the mean, in squared units, the intervals' own variance of width²/12 included."""
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        return float(self.probabilities @ (np.square(middles - self.mean) + np.square(np.diff(self.edges)) / 12))

    def below(self, points: ArrayLike) -> Floats:
        """The probability of a value at or below each point."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        found: Floats = np.interp(np.asarray(points, dtype=np.float64), self.edges, cumulative)
        return found

    @property
    def entropy(self) -> float:
        """Differential entropy h in bits."""
        held = self.probabilities > 0
        return -float(self.probabilities[held] @ np.log2(self.heights[held]))

    @property
    def privacy(self) -> float:
        """Π(X) = 2^h(X): the width of a uniform distribution of the same entropy (Agrawal and Aggarwal, PODS 2001)."""
        return math.pow(2, self.entropy)

    def conditional_privacy(self, noise: AdditiveNoise) -> float:
        """Π(X|Z) = 2^h(X|Z): what is left of Π(X) on average for who sees Z = X + Y and knows X's distribution.

        h(X|Z) = h(X) + h(Y) − h(Z), the last by a numeric integral (Agrawal and Aggarwal).
        """
        bits = self.entropy + math.log2(noise.privacy) - _perturbed_entropy(self, noise)
        return math.pow(2, min(bits, self.entropy))

    def privacy_loss(self, noise: AdditiveNoise) -> float:
        """P(X|Z) = 1 − Π(X|Z)/Π(X): 0 where perturbed values reveal nothing, towards 1 where they reveal all."""
        return 1 - self.conditional_privacy(noise) / self.privacy

    def information_loss(self, truth: Density) -> float:
        """I(f, f̂) = ½ ∫ |f − f̂|: 0 where both agree, 1 where they never meet (Agrawal and Aggarwal)."""
        ends = np.union1d(self.edges, truth.edges)
        return float(np.abs(np.diff(self.below(ends)) - np.diff(truth.below(ends))).sum() / 2)


def _perturbed_entropy(density: Density, noise: AdditiveNoise) -> float:
    """h(Z) in bits."""
    reach = min(noise.interval_width(1 - _BEYOND) / 2, noise.reach)
    points = np.linspace(density.edges[0] - reach, density.edges[-1] + reach, _CELLS + 1)
    # The probability of Z ≤ z is the mean of Y's over the intervals of X: exact in each cell.
    below = np.zeros(len(points))
    for low, high, height in zip(density.edges, density.edges[1:], density.heights, strict=False):
        below += height * (noise.below_integral(points - low) - noise.below_integral(points - high))
    cells = np.maximum(np.diff(below), 0)
    held = cells > 0
    return -float(cells[held] @ np.log2(cells[held] / (points[1] - points[0])))

"""Additive noise: a number leaves as itself plus a draw from a public distribution.

This is not local differential privacy. Uniform noise is bounded, so a perturbed value rules true values out altogether;
under Gaussian noise no ε bounds the ratio of densities. What holds is stated as in the papers:

    confidence interval   with confidence c a true value lies in an interval of some width around the perturbed one,
                          whatever else is known of it left aside (Agrawal and Srikant, SIGMOD 2000)
    entropy               noise protects like a value that is uniform on an interval of width 2^h, for its differential
                          entropy h in bits (Agrawal and Aggarwal, PODS 2001)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

_GRID_BITS: Final = 20
_HALF_WORD: Final = 2.0**-53
_ROUNDING: Final = 1e-9


class AdditiveNoise(ABC):
    """A symmetric distribution around 0.

    Perturbed values lie on a grid of 2^-20 scales, up to a factor of 2, and both the value and the noise are rounded to
    it before they are added: the low bits of a sum of doubles would reveal something of the value (Mironov, CCS 2012).

    Args:
        scale: The distribution's parameter, in the unit of the values.

    Raises:
        ConfigurationError: The scale is not a positive number.
    """

    name: ClassVar[str]
    _confident_width: ClassVar[float]

    def __init__(self, scale: float) -> None:
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 1e-200 < scale < 1e200:
            raise ConfigurationError(f"the scale of noise must be a positive number, not {scale!r}")
        self.scale = float(scale)

    @classmethod
    def of_width(cls, width: float, confidence: float = 0.95) -> Self:
        """The noise whose interval of a confidence has a width.

        Args:
            width: In the unit of the values. In the papers "100 % privacy" means the width of their whole range.
            confidence: Strictly between 0 and 1.
        """
        return cls(width / cls(1.0).interval_width(confidence))

    def interval_width(self, confidence: float = 0.95) -> float:
        """How wide an interval around a perturbed value holds the true one with a confidence.

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ConfigurationError(f"a confidence lies between 0 and 1, not at {confidence}")
        return 2 * self.scale * self._unit_quantile(confidence)

    @property
    def privacy(self) -> float:
        """Π(Y) = 2^h(Y): the width of a uniform distribution of the same entropy, in the unit of the values."""
        return self.scale * math.exp(self._unit_entropy)

    @property
    def reach(self) -> float:
        """The largest noise there is; infinite if there is none."""
        return math.inf

    @property
    def step(self) -> float:
        """The grid's step, a power of two: rounding to it is exact."""
        return math.ldexp(1.0, math.frexp(self.scale)[1] - _GRID_BITS)

    def privatise(self, values: ArrayLike, rng: Randomness | None = None) -> Floats:
        """Adds noise to each value.

        Args:
            values: Numbers, shape (n,).
            rng: The source of randomness; by default the operating system's.

        Returns:
            Shape (n,).

        Raises:
            InputDataError: A value is no number, or so large that the grid is finer than doubles.
        """
        numbers = check_numbers(values)
        if numbers.size and np.abs(numbers).max() >= self.step * 2.0**50:
            raise InputDataError("a value is too large for so small a noise; use a larger scale or another unit")
        words = (Randomness.from_os() if rng is None else rng).uint64(len(numbers))
        # The middle of one of 2^53 equal cells: never 0 or 1.
        uniform = (words >> np.uint64(11)).astype(np.float64) * _HALF_WORD + _HALF_WORD / 2
        noise = self.scale * self._unit_inverse(uniform)
        noisy: Floats = (np.rint(numbers / self.step) + np.rint(noise / self.step)) * self.step
        return noisy

    def density(self, noise: Floats) -> Floats:
        """The density at some values of the noise."""
        found: Floats = self._unit_density(noise / self.scale) / self.scale
        return found

    def below(self, noise: Floats) -> Floats:
        """The probability of noise at or below some values."""
        return self._unit_below(noise / self.scale)

    def below_integral(self, noise: Floats) -> Floats:
        """The integral of `below` from −∞ to some values; infinite at +∞."""
        found: Floats = self.scale * self._unit_below_integral(noise / self.scale)
        return found

    # -- the distribution of scale 1 ----------------------------------------------------------------------------------
    _unit_entropy: ClassVar[float]  # in nats

    @abstractmethod
    def _unit_quantile(self, confidence: float) -> float:
        """The largest |noise| within a confidence."""

    @abstractmethod
    def _unit_inverse(self, probability: Floats) -> Floats:
        """The noise below which a probability lies."""

    @abstractmethod
    def _unit_density(self, noise: Floats) -> Floats: ...

    @abstractmethod
    def _unit_below(self, noise: Floats) -> Floats: ...

    @abstractmethod
    def _unit_below_integral(self, noise: Floats) -> Floats: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scale!r})"


class UniformNoise(AdditiveNoise):
    """Uniform on −α … α.

    Args:
        scale: α.
    """

    name: ClassVar[str] = "uniform"
    _unit_entropy = math.log(2)

    @property
    def reach(self) -> float:
        """α, up to the grid: true and perturbed value are no further apart."""
        return self.scale + self.step

    def _unit_quantile(self, confidence: float) -> float:
        return confidence

    def _unit_inverse(self, probability: Floats) -> Floats:
        found: Floats = 2 * probability - 1
        return found

    def _unit_density(self, noise: Floats) -> Floats:
        # Half of it at the ends, where middles of intervals often meet them, but for rounding.
        return np.select([np.abs(noise) < 1 - _ROUNDING, np.abs(noise) <= 1 + _ROUNDING], [0.5, 0.25], 0.0)

    def _unit_below(self, noise: Floats) -> Floats:
        found: Floats = np.clip((noise + 1) / 2, 0, 1)
        return found

    def _unit_below_integral(self, noise: Floats) -> Floats:
        inside = np.square(np.clip(noise, -1, 1) + 1) / 4
        found: Floats = inside + np.maximum(noise - 1, 0)
        return found


class GaussianNoise(AdditiveNoise):
    """Normal with mean 0.

    Args:
        scale: The standard deviation σ.
    """

    name: ClassVar[str] = "gaussian"
    _unit_entropy = math.log(2 * math.pi * math.e) / 2

    def _unit_quantile(self, confidence: float) -> float:
        return NormalDist().inv_cdf((1 + confidence) / 2)

    def _unit_inverse(self, probability: Floats) -> Floats:
        found: Floats = ndtri(probability)
        return found

    def _unit_density(self, noise: Floats) -> Floats:
        found: Floats = np.exp(-np.square(noise) / 2) / math.sqrt(2 * math.pi)
        return found

    def _unit_below(self, noise: Floats) -> Floats:
        found: Floats = ndtr(noise)
        return found

    def _unit_below_integral(self, noise: Floats) -> Floats:
        finite = np.clip(noise, -40, None)  # below it is 0 to any precision
        found: Floats = np.maximum(finite * ndtr(finite) + self._unit_density(finite), 0)
        return found


class LaplaceNoise(AdditiveNoise):
    """Laplace, or double exponential, with mean 0.

    Ratios of densities at two true values a distance D apart are at most e^(D/b). Where all values lie within a range
    of width D, that is ε = D/b but for draws in floating point; mechanisms that keep ε exactly are in `ldp.numeric`.

    Args:
        scale: b; the standard deviation is b·√2.
    """

    name: ClassVar[str] = "laplace"
    _unit_entropy = math.log(2 * math.e)

    def _unit_quantile(self, confidence: float) -> float:
        return -math.log1p(-confidence)

    def _unit_inverse(self, probability: Floats) -> Floats:
        half = 0.5 - probability
        found: Floats = np.sign(half) * np.log(1 - 2 * np.abs(half))
        return found

    def _unit_density(self, noise: Floats) -> Floats:
        found: Floats = np.exp(-np.abs(noise)) / 2
        return found

    def _unit_below(self, noise: Floats) -> Floats:
        tail = self._unit_density(noise)
        return np.where(noise < 0, tail, 1 - tail)

    def _unit_below_integral(self, noise: Floats) -> Floats:
        found: Floats = np.maximum(noise, 0) + self._unit_density(noise)
        return found


def check_numbers(values: ArrayLike) -> Floats:
    """Values as doubles.

    Raises:
        InputDataError: They are no list of finite numbers.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise InputDataError("values must be a list of numbers")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputDataError("a value is missing or infinite; leave it out or replace it before it is perturbed")
    return numbers

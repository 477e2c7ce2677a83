"""Discrete Gaussian noise, sampled exactly: whole numbers with probabilities proportional to e^(−x²/(2σ²)).

Source: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, algorithm 3: a
discrete Laplace number y of scale t = ⌊σ⌋ + 1 is taken with probability e^(−(|y| − σ²/t)²/(2σ²)). Here many are drawn
at once. Both the geometric number |y| and whether it is taken are decided by a comparison of a uniform number with a
power of e: in floating point where it lies outside a proven margin of error, and else exactly, by
`ldp.accounting.lazy_uniform`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.accounting.lazy_uniform import WORD, LazyUniform
from link.errors import ConfigurationError

Noise = NDArray[np.int64]

_LEAST: Final = Fraction(1, 1 << 20)
_LARGEST: Final = 1 << 60
_CHUNK: Final = 1 << 15
# A logarithm of a word is off by 2^-46 at most, a probability to accept by 2^-50 (below): margins are wider.
LOG_MARGIN: Final = 2.0**-43
COIN_MARGIN: Final = 2.0**-40
_NEARLY_EQUAL: Final = 16  # σ² from which the discrete variance is the parameter, but for a share below 10^-130


class DiscreteGaussian:
    """Noise on whole numbers, with mean 0 and a variance of σ², or a little less for σ below 1.

    Args:
        parameter: σ², exact: a fraction, or a float that is taken as the fraction it is.

    Attributes:
        scale: Of the discrete Laplace noise of which it is sampled.

    Raises:
        ConfigurationError: The parameter is not between 2^-20 and 2^60.
    """

    def __init__(self, parameter: float | Fraction) -> None:
        if isinstance(parameter, bool) or not isinstance(parameter, int | float | Fraction) or parameter != parameter:
            raise ConfigurationError(f"the parameter of Gaussian noise is a number, not {parameter!r}")
        if not _LEAST <= parameter <= _LARGEST:
            raise ConfigurationError(
                f"the parameter sigma^2 of discrete Gaussian noise lies between 2^-20 and 2^60, not at {parameter:g}"
            )
        self.parameter = Fraction(parameter)
        self.scale = math.isqrt(math.floor(self.parameter)) + 1
        self._centre = self.parameter / self.scale

    @cached_property
    def variance(self) -> float:
        """Its exact variance: σ² from σ = 4 on, less below."""
        if self.parameter >= _NEARLY_EQUAL:
            return float(self.parameter)
        x = np.arange(1, 64, dtype=np.float64)
        weights = np.exp(-(x**2) / (2 * float(self.parameter)))
        return float(2 * (x**2 @ weights) / (1 + 2 * weights.sum()))

    def draw(self, size: int, rng: Randomness) -> Noise:
        """Independent noise; shape (size,).

        Args:
            size: How many.
            rng: The source of randomness.
        """
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            part = noise[start : start + _CHUNK]
            waiting = np.arange(part.size)
            while waiting.size:
                magnitude = self._magnitudes(waiting.size, rng)
                coins = rng.uint64(-(-waiting.size // WORD)).view(np.uint8)
                negative = np.unpackbits(coins, count=waiting.size).astype(np.bool_)
                part[waiting] = np.where(negative, -magnitude, magnitude)
                # Minus zero is drawn again, so that 0 counts once.
                taken = self._taken(magnitude, rng) & ~(negative & (magnitude == 0))
                waiting = waiting[~taken]
        return noise

    def _magnitudes(self, size: int, rng: Randomness) -> Noise:
        """Geometric numbers: m or more with probability e^(−m/t), that of a uniform number to be below it."""
        words = rng.uint64(size)
        real = words.astype(np.float64)
        exponents = self.scale * (WORD * math.log(2) - np.log(real + 0.5))
        margin = self.scale * (LOG_MARGIN + 1 / (real + 0.5))
        magnitudes = np.floor(exponents).astype(np.int64)
        nearest = np.rint(exponents)
        for place in np.flatnonzero(np.abs(exponents - nearest) <= margin):
            uniform = LazyUniform(int(words[place]), rng)
            found = max(0, math.floor(exponents[place] - margin[place]))
            while uniform.below_power(Fraction(found + 1, self.scale)):
                found += 1
            magnitudes[place] = found
        return magnitudes

    def _taken(self, magnitude: Noise, rng: Randomness) -> NDArray[np.bool_]:
        """Coins with probability e^(−(m − σ²/t)²/(2σ²)).

        With x = |m − σ²/t|/σ the exponent is off by 2^-52·x(x + 4) at most, and e^(−x²/2) times that is below 2^-49.
        """
        words = rng.uint64(magnitude.size)
        off = (magnitude - float(self._centre)) ** 2 / (2 * float(self.parameter))
        distance = words.astype(np.float64) * 2.0**-WORD - np.exp(-off)
        taken: NDArray[np.bool_] = distance < 0
        for place in np.flatnonzero(np.abs(distance) <= COIN_MARGIN):
            exponent = (int(magnitude[place]) - self._centre) ** 2 / (2 * self.parameter)
            taken[place] = LazyUniform(int(words[place]), rng).below_power(exponent)
        return taken

"""Skellam noise: the difference of two Poisson numbers; sums of it are Skellam again.

Each Poisson number is drawn from a table of its distribution in 128-bit fixed point: the first 64 bits of a uniform
number mostly decide, and the others where they do not. The table is cut where less than 2^-65 is left on either side.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Noise = NDArray[np.int64]

_WORK_BITS: Final = 192
_TAIL_BITS: Final = 66
_TABLE_BITS: Final = 128
_WORD: Final = 64


class Skellam:
    """Noise on whole numbers with mean 0 and variance μ.

    Args:
        mu: The variance, exact: a fraction, or a float that is taken as the fraction it is.

    Attributes:
        total_variation: By how much one number's distribution can differ from Skellam's at most. A release of D numbers
            adds D·(1 + e^ε) times this to δ.
        largest: The largest variance that can be drawn.
        first: The least Poisson number that is drawn.
        bounds: Up to which a word of 128 bits gives that number, and each of those that follow.

    Raises:
        ConfigurationError: The variance is not above 0, or above 2^32.
    """

    total_variation: Final = 2.0**-62
    largest: Final = 1 << 32

    def __init__(self, mu: float | Fraction) -> None:
        if isinstance(mu, bool) or not isinstance(mu, int | float | Fraction) or not 0 < mu <= self.largest:
            raise ConfigurationError(f"the variance of Skellam noise lies above 0 and is 2^32 at most, not {mu!r}")
        self.variance = Fraction(mu)
        self.first, self.bounds = _poisson_table(self.variance / 2)
        self._high = np.array([bound >> _WORD for bound in self.bounds], dtype=np.uint64)

    def draw(self, size: int, rng: Randomness) -> Noise:
        """Independent noise; shape (size,).

        Args:
            size: How many.
            rng: The source of randomness.
        """
        return self.poisson(size, rng) - self.poisson(size, rng)

    def poisson(self, size: int, rng: Randomness) -> Noise:
        """Places in the table; two numbers' first entry cancels."""
        words = rng.uint64(size)
        places = np.searchsorted(self._high, words, side="right")
        tied = np.searchsorted(self._high, words, side="left") != places
        for place in np.flatnonzero(tied):
            whole = int(words[place]) << _WORD | int(rng.uint64(1)[0])
            places[place] = bisect_right(self.bounds, whole)
        return places


def _poisson_table(rate: Fraction) -> tuple[int, list[int]]:
    """The least number in the table, and for each but the last one the probability of it or less, times 2^128."""
    mode = int(rate)
    least = 1 << _WORK_BITS - _TAIL_BITS
    above, k = [1 << _WORK_BITS], mode
    while above[-1] * rate.numerator > least * ((k + 1) * rate.denominator - rate.numerator):
        k += 1
        above.append(above[-1] * rate.numerator // (k * rate.denominator))
    below, k = [1 << _WORK_BITS], mode
    while k > 0 and below[-1] * k * rate.denominator > least * (rate.numerator - (k - 1) * rate.denominator):
        below.append(below[-1] * k * rate.denominator // rate.numerator)
        k -= 1
    sums = list(accumulate([*reversed(below[1:]), *above]))
    return k, [(each << _TABLE_BITS) // sums[-1] for each in sums[:-1]]

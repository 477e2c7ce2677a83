"""Two-sided geometric noise, the Laplace distribution's whole-number form, whose guarantee survives rounding.

Laplace noise in floating point is not private (Mironov, CCS 2012). Here the probabilities are whole multiples of 2^-64,
built so that neighbouring outputs never differ by more than the allowed factor, tails included.
Source: Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Values = NDArray[np.int16]

_TOTAL: Final = 1 << 64
_TAIL_BITS: Final = 34  # noise beyond the range has a probability of about 2^-34, and is cut to its ends
_LONGEST: Final = 1 << 14
_CHUNK: Final = 1 << 16


class TruncatedGeometric:
    """Noise k in −T … T with P(k) close to (1 − α)/(1 + α)·α^|k|, for data that move by one.

    Data x ∈ {0, 1} plus the noise, cut to 1 − T … T, give every output with probabilities whose ratio is at most
    `factor`: inside, weights fall by at most this factor from one k to the next; what lies beyond an end is added to
    it, and the ends weigh enough for that.

    Args:
        factor: 1/α, the largest ratio allowed, above 1.

    Raises:
        ConfigurationError: The factor is so near 1 that the range would exceed 16 bits.
    """

    def __init__(self, factor: Fraction) -> None:
        self.factor = factor
        reach = math.ceil(_TAIL_BITS * math.log(2) / math.log(factor)) + 1
        self.reach = min(reach, _LONGEST)
        if factor < 1 + Fraction(8, _LONGEST):
            raise ConfigurationError("so small a budget needs noise beyond 16 bits; take a larger epsilon")
        low, high = 2, _TOTAL
        while high - low > 1:  # the largest even weight of 0 under which all weights fit
            middle = (low + high) // 4 * 2
            middle = middle if middle > low else low + 1
            if sum(self._weights(middle)) * 2 - middle <= _TOTAL:
                low = middle
            else:
                high = middle
        weights = self._weights(low - low % 2)
        weights[-1] += (_TOTAL - 2 * sum(weights) + weights[0]) // 2
        self.weights = tuple(weights)

    def _weights(self, first: int) -> list[int]:
        weights = [first]
        for _ in range(self.reach - 1):
            weights.append(-(-weights[-1] * self.factor.denominator // self.factor.numerator))
        weights.append(math.ceil(weights[-1] / (self.factor - 1)))
        return weights

    def outcome(self, x: int) -> dict[int, Fraction]:
        """The exact probability of each output 1 − T … T for data x, 0 or 1."""
        low, high = 1 - self.reach, self.reach
        found = dict.fromkeys(range(low, high + 1), Fraction(0))
        for k in range(-self.reach, self.reach + 1):
            found[min(max(x + k, low), high)] += Fraction(self.weights[abs(k)], _TOTAL)
        return found

    @cached_property
    def moments(self) -> tuple[Fraction, Fraction, Fraction]:
        """The mean of the output for data 0 and for data 1, and its variance, which is the same for both."""
        outcomes = [self.outcome(x) for x in (0, 1)]
        means = [sum((k * p for k, p in each.items()), Fraction(0)) for each in outcomes]
        square = sum((k * k * p for k, p in outcomes[0].items()), Fraction(0))
        return means[0], means[1], square - means[0] ** 2

    def outputs(self, data: NDArray[np.bool_], rng: Randomness) -> Values:
        """Data plus noise, cut to the range; the data's shape, (n, d)."""
        n, d = data.shape
        result = np.empty((n, d), dtype=np.int16)
        step = max(1, _CHUNK // d)
        for start in range(0, n, step):
            part = data[start : start + step]
            noisy = self._draw(len(part), d, rng.rows(np.arange(start, start + len(part))))
            noisy += part
            np.clip(noisy, 1 - self.reach, self.reach, out=result[start : start + step])
        return result

    def _draw(self, n: int, d: int, rng: Randomness) -> Values:
        """Noise: the first 16 bits of a 64-bit word mostly decide; the other 48 are drawn where they do not."""
        words = rng.uint64(n * -(-d // 4)).reshape(n, -(-d // 4)).view(np.uint16)[:, :d].reshape(-1)
        noise = self._guide[words]
        open_still = np.flatnonzero(noise == self._undecided)
        low = rng.rows(open_still // d).uint64(open_still.size) >> np.uint64(16)
        whole = words[open_still].astype(np.uint64) << np.uint64(48) | low
        noise[open_still] = np.searchsorted(self._bounds, whole, side="right") - self.reach
        return noise.reshape(n, d)

    @property
    def _undecided(self) -> np.int16:
        return np.int16(np.iinfo(np.int16).min)

    @cached_property
    def _bounds(self) -> NDArray[np.uint64]:
        """The first word of each k but the least."""
        weights = [*self.weights[:0:-1], *self.weights]
        total, bounds = 0, []
        for weight in weights[:-1]:
            total += weight
            bounds.append(total)
        return np.array(bounds, dtype=np.uint64)

    @cached_property
    def _guide(self) -> Values:
        """The noise of all words with the same first 16 bits, where it is the same."""
        first = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        least = np.searchsorted(self._bounds, first, side="right")
        most = np.searchsorted(self._bounds, first + np.uint64((1 << 48) - 1), side="right")
        return np.where(least == most, least - self.reach, self._undecided).astype(np.int16)

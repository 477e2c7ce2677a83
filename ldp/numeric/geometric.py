"""Two-sided geometric noise on a fine grid: the Laplace distribution in whole steps, of any length.

`ldp.arithmetic.noise` has a table of all outputs, for data that move by one. Here data move by a whole range of many
steps, and a table holds the places within a range and another one how many ranges further; both have integer weights,
so that the probability of every number of steps is an exact fraction.
Source: Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009; Mironov,
CCS 2012, on why not in floating point.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness

Steps = NDArray[np.int64]

_FINE: Final = 1 << 46  # weight of the first place; 2^15 of them stay below 2^63
_COARSE: Final = 1 << 62
_MOST_RANGES: Final = 64


class FineGeometric:
    """Noise k with P(k) close to α^|k|·(1 − α)/(1 + α), α^range = 1 / factor; symmetric, over all whole numbers.

    With |k| = q·range + r the weight of k is u(r)·v(q). Weights never rise with |k|, and those of |k| and |k| + range
    have a ratio of at most `factor`. So have any two that are at most a range apart, which is the guarantee: data
    of one range, plus the noise, give every output with probabilities whose ratio is at most `factor`.

    v is a table for the first few q; its last entry, the weight of all further ones, adds the table's length and draws
    again.

    Args:
        span: The data's range, in steps.
        factor: The largest ratio allowed, above 1.

    Attributes:
        fine: u(0), u(1), ... in whole numbers.
        coarse: v(0), v(1), ... in whole numbers, as far as the table goes.
    """

    def __init__(self, span: int, factor: Fraction) -> None:
        self.span, self.factor = span, factor
        places = np.exp(-math.log(factor) * np.arange(span) / span) * _FINE
        self.fine = np.minimum.accumulate(places.astype(np.int64))
        self._first, self._last = int(self.fine[0]), int(self.fine[-1])
        self.coarse = self._ranges()
        self._further = self._rest(self.coarse)
        while len(self.coarse) > 1 and not self._falls(self.coarse, self._further):
            self.coarse.pop()
            self._further = self._rest(self.coarse)

    def _ranges(self) -> list[int]:
        weights = [int(_COARSE * (1 - 1 / self.factor))]
        while len(weights) < _MOST_RANGES:
            following = -(-weights[-1] * self.factor.denominator // self.factor.numerator)
            if self._last * weights[-1] < self._first * following:
                break  # too few words are left for the weights to fall from the end of one range to the next
            weights.append(following)
        return weights

    def _rest(self, weights: list[int]) -> int:
        """The least weight of all further ranges that keeps the ratio where the table starts anew."""
        return math.ceil(weights[-1] * sum(weights) / (self.factor * weights[0] - weights[-1]))

    def _falls(self, weights: list[int], further: int) -> bool:
        """Whether weights still fall where the table starts anew."""
        return self._last * weights[-1] * (sum(weights) + further) >= self._first * weights[0] * further

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of two numbers that are at most a range apart; at most `factor`."""
        weights, total = self.coarse, sum(self.coarse) + self._further
        ratios = [Fraction(a, b) for a, b in pairwise(weights)]
        return max([*ratios, Fraction(weights[-1] * total, weights[0] * self._further)])

    def probability(self, k: int) -> Fraction:
        """The exact probability of k steps."""
        return self._one_sided(abs(k)) / (2 - self._one_sided(0))

    def tail(self, k: int) -> Fraction:
        """The exact probability of k steps or more, for k ≥ 1."""
        ranges, place = divmod(k, self.span)
        rounds, left = divmod(ranges, len(self.coarse))
        total = sum(self.coarse) + self._further
        here = self.coarse[left] * Fraction(int(self.fine[place:].sum()), self._fine_total)
        further = sum(self.coarse[left + 1 :]) + self._further
        return Fraction(self._further, total) ** rounds * (here + further) / total / (2 - self._one_sided(0))

    def _one_sided(self, k: int) -> Fraction:
        ranges, place = divmod(k, self.span)
        rounds, left = divmod(ranges, len(self.coarse))
        total = sum(self.coarse) + self._further
        coarse = Fraction(self.coarse[left], total) * Fraction(self._further, total) ** rounds
        return coarse * Fraction(int(self.fine[place]), self._fine_total)

    @cached_property
    def _fine_total(self) -> int:
        return int(self.fine.sum())

    @cached_property
    def variance(self) -> Fraction:
        """Of the noise, in steps squared; its mean is 0."""
        places = [sum(int(u) * r**power for r, u in enumerate(self.fine)) for power in (1, 2)]
        first, second = (Fraction(each, self._fine_total) for each in places)
        size, table = len(self.coarse), sum(self.coarse)
        again = Fraction(self._further, table + self._further)
        within = [Fraction(sum(v * q**power for q, v in enumerate(self.coarse)), table) for power in (1, 2)]
        rounds = again / (1 - again)  # the mean of their geometric number; its square's mean follows from it
        ranges = size * rounds + within[0]
        squares = size**2 * rounds * (1 + 2 * rounds) + 2 * size * rounds * within[0] + within[1]
        one_sided = self.span**2 * squares + 2 * self.span * ranges * first + second
        # Minus zero is drawn again, so that 0 counts once.
        return 2 * one_sided / (2 - self._one_sided(0))

    def draw(self, size: int, rng: Randomness) -> Steps:
        """Noise; shape (size,)."""
        noise = np.empty(size, dtype=np.int64)
        waiting = np.arange(size)
        while waiting.size:
            magnitude = self._magnitudes(waiting.size, rng)
            negative = (rng.uint64(waiting.size) & np.uint64(1)).astype(np.bool_)
            noise[waiting] = np.where(negative, -magnitude, magnitude)
            waiting = waiting[negative & (magnitude == 0)]
        return noise

    def _magnitudes(self, size: int, rng: Randomness) -> Steps:
        ranges = np.zeros(size, dtype=np.int64)
        waiting = np.arange(size)
        while waiting.size:
            drawn = self._pick(np.cumsum(self.coarse), sum(self.coarse) + self._further, waiting.size, rng)
            ranges[waiting] += drawn
            waiting = waiting[drawn == len(self.coarse)]
        return ranges * self.span + self._pick(np.cumsum(self.fine), self._fine_total, size, rng)

    @staticmethod
    def _pick(bounds: NDArray[np.int64], total: int, size: int, rng: Randomness) -> Steps:
        return np.searchsorted(bounds, rng.integers(total, size).astype(np.int64), side="right")

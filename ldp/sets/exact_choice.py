"""Draws from weights of any size, exactly: whole numbers with thousands of digits, such as binomial coefficients."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness

WORD_BITS: Final = 64


class ExactChoice:
    """Numbers 0 … k − 1, each with a probability that is its weight's share of the sum.

    A uniform number in [0, 1) is compared with the cumulative shares. Its first bits decide unless a boundary lies
    between the numbers that begin with them; only then further bits are drawn, until they decide.
    Source: Knuth and Yao, "The Complexity of Nonuniform Random Number Generation", 1976.

    Args:
        weights: Non-negative, not all 0.
        bits: How many bits are drawn first, 64 at most.
    """

    def __init__(self, weights: Sequence[int], bits: int = WORD_BITS) -> None:
        self.weights, self.bits = tuple(weights), bits
        self._total = sum(weights)
        self._bounds = list(accumulate(weights))[:-1]
        most = (1 << bits) - 1
        scaled = [divmod(bound << bits, self._total) for bound in self._bounds]
        # Words below a bound's own one are below it, those above are not; its own one is undecided if the bound lies
        # inside. A bound at 1, before weights of 0, has no word; the last one takes its place.
        self._starts = np.array([min(word, most) for word, _ in scaled], dtype=np.uint64)
        self._open = np.array([min(word, most) for word, rest in scaled if rest or word > most], dtype=np.uint64)

    def probabilities(self) -> list[Fraction]:
        """Of each number, exact."""
        return [Fraction(weight, self._total) for weight in self.weights]

    def draw(self, size: int, rng: Randomness) -> NDArray[np.int64]:
        """Independent numbers, shape (size,)."""
        words = rng.uint64(size) >> np.uint64(WORD_BITS - self.bits)
        chosen = np.searchsorted(self._starts, words, side="right").astype(np.int64)
        for place in np.flatnonzero(np.isin(words, self._open)).tolist():
            chosen[place] = self._decide(int(words[place]), rng)
        return chosen

    def _decide(self, number: int, rng: Randomness) -> int:
        bits = self.bits
        while True:
            number, bits = number << WORD_BITS | int(rng.uint64(1)[0]), bits + WORD_BITS
            low = bisect_right(self._bounds, number * self._total >> bits)
            if low == bisect_right(self._bounds, (number + 1) * self._total - 1 >> bits):
                return low

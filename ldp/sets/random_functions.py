"""Functions from elements to buckets that look random: H_s(v) is the v-th number of SplitMix64 seeded by s.

Strongly universal families (`ldp.arithmetic.hashing`) make two values independent. Where more must look so, a
generator serves whose numbers pass the tests of randomness, and of which each number is had without those before.
Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness

Seeds = NDArray[np.uint64]

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_WORD: Final = 1 << 64
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFF_FFFF)
_TOGETHER: Final = 1 << 14  # functions that are tested together: their words stay in the cache


@dataclass(frozen=True, slots=True)
class RandomFunctions:
    """The functions to t buckets.

    Attributes:
        t: Number of buckets, from 2 to 2^31.
    """

    t: int

    def draw(self, size: int, rng: Randomness) -> Seeds:
        """Uniform functions, shape (size,)."""
        return rng.uint64(size)

    def buckets(self, seeds: Seeds, elements: NDArray[np.int64]) -> NDArray[np.int64]:
        """⌊t·H_s(v)/2^64⌋ of functions and elements that broadcast."""
        words, t = _mixed(seeds + (elements.astype(np.uint64) + np.uint64(1)) * _STEP), np.uint64(self.t)
        # The high word of a product of 64 bits and at most 31.
        return ((words >> _HALF) * t + ((words & _LOW) * t >> _HALF) >> _HALF).astype(np.int64)

    def supporters(self, seeds: Seeds, buckets: NDArray[Any], elements: int) -> NDArray[np.int64]:
        """For each of the elements 0, 1 …, how many functions send it to the bucket that is named beside them.

        Args:
            seeds: Shape (n,).
            buckets: Shape (n,).
            elements: How many elements.

        Returns:
            Shape (elements,).
        """
        first, after = self._start(buckets.astype(np.uint64)), self._start(buckets.astype(np.uint64) + np.uint64(1))
        widths = after - first  # modulo 2^64, so that the last one is right too
        counts = np.zeros(elements, dtype=np.int64)
        for start in range(0, len(seeds), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            state, offset, width = seeds[part].copy(), first[part], widths[part]
            for element in range(elements):
                state += _STEP
                counts[element] += np.count_nonzero(_mixed(state) - offset < width)
        return counts

    def _start(self, buckets: Seeds) -> Seeds:
        """⌈b·2^64/t⌉ modulo 2^64: the first word of each bucket."""
        whole, rest = divmod(_WORD, self.t)
        t = np.uint64(self.t)
        return buckets * np.uint64(whole % _WORD) + (buckets * np.uint64(rest) + t - np.uint64(1)) // t


def _mixed(words: Seeds) -> Seeds:
    """The generator's output function, on a copy."""
    mixed = words ^ words >> np.uint64(30)
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed

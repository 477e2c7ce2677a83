"""A strongly universal family of hash functions on strings of any fixed length.

H(x) = ⌊g · u / 2^32⌋, where u is the upper half of (Σ_i a_i·x_i + b) mod 2^64 for the 32-bit words x_i of a string and
a_i, b uniform over 64 bits. u is uniform and pairwise independent over the draw of the function; where g is no power of
two, a bucket's probability differs from 1/g by at most 2^-32.

Source: Dietzfelbinger, "Universal Hashing and k-Wise Independent Random Variables via Integer Arithmetic without
Primes", STACS 1996; for vectors: Thorup, "High Speed Hashing for Integers and Strings", 2015, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.heavy_hitters.bit_strings import WORD, Words
from ldp.parameters import checked

Seeds = NDArray[np.uint64]
"""Shape (n, words + 1): the a_i and b of each function."""

_CHUNK: Final = 1 << 14  # functions that are tested together; their few arrays stay in the second-level cache
_FEW: Final = 512  # functions that are rather evaluated one by one, on all strings at once


@checked
@dataclass(frozen=True, slots=True)
class VectorHashFamily:
    """The functions from strings to g buckets.

    Attributes:
        words: 32-bit words of a string.
        g: Number of buckets, from 2 to 2^24.
    """

    words: int
    g: int

    def draw(self, size: int, rng: Randomness) -> Seeds:
        """Uniform functions, shape (size, words + 1)."""
        return rng.uint64(size * (self.words + 1)).reshape(size, self.words + 1)

    def buckets(self, seeds: Seeds, strings: Words) -> NDArray[np.int64]:
        """H_i(x_i) of each function and string, or of one function and all strings.

        Args:
            seeds: Shape (n, words + 1) or (1, words + 1).
            strings: Shape (n, words).

        Returns:
            Shape (n,).
        """
        mixed: Words = (seeds[:, :-1] * strings).sum(axis=1, dtype=np.uint64) + seeds[:, -1]
        return ((mixed >> np.uint64(WORD)) * np.uint64(self.g) >> np.uint64(WORD)).astype(np.int64)

    def supporters(self, seeds: Seeds, buckets: NDArray[Any], strings: Words) -> NDArray[np.int64]:
        """For every string, how many functions send it to the bucket that is named beside them.

        Args:
            seeds: Shape (n, words + 1).
            buckets: Shape (n,).
            strings: Shape (c, words).

        Returns:
            Shape (c,).
        """
        counts = np.zeros(len(strings), dtype=np.int64)
        if len(seeds) < _FEW:
            for function, bucket in enumerate(buckets.tolist()):
                counts += self.buckets(seeds[function : function + 1], strings) == bucket
            return counts
        starts = np.array([-(-(bucket << WORD) // self.g) << WORD for bucket in range(self.g)], dtype=np.uint64)
        widths = np.diff(np.append(starts, starts[:1]))  # modulo 2^64, so the last one is right too
        for start in range(0, len(seeds), _CHUNK):
            part = slice(start, start + _CHUNK)
            hashed = seeds[part, -1] - starts[buckets[part]]
            _count(np.ascontiguousarray(seeds[part, :-1].T), hashed, widths[buckets[part]], strings, counts)
        return counts


def _count(steps: Words, hashed: Words, widths: Words, strings: Words, counts: NDArray[np.int64]) -> None:
    """Adds up supporters string by string: from one to the next, the sum changes by a_i for the words that differ.

    Args:
        steps: Shape (words, n): the a_i.
        hashed: Shape (n,): b minus the bucket's first hashed number; overwritten.
        widths: Shape (n,): how many hashed numbers a bucket has.
        strings: Shape (c, words).
        counts: Shape (c,): what is added to.
    """
    hit = np.empty(len(hashed), dtype=np.bool_)
    place, change, step = -1, 0, hashed
    before = [0] * strings.shape[1]
    for row, string in enumerate(strings.tolist()):
        for word, (old, new) in enumerate(zip(before, string, strict=True)):
            if old == new:
                continue
            if (place, change) != (word, new - old):  # neighbours mostly differ by the same step
                place, change = word, new - old
                step = steps[word] * np.uint64(change % (1 << 64))
            np.add(hashed, step, out=hashed)
        before = string
        np.less(hashed, widths, out=hit)
        counts[row] += np.count_nonzero(hit)

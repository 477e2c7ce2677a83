"""A strongly universal family of hash functions on the numbers of a domain, made for whole arrays.

H(v) = ⌊g · ((a·v + b) mod 2^w) / 2^w⌋ with a and b uniform over w bits: multiply-add-shift. The top w − ⌈log2 d⌉ + 1
bits of a·v + b are pairwise independent and uniform over the draw of a and b; local hashing asks no more of functions.

Source: Dietzfelbinger, "Universal Hashing and k-Wise Independent Random Variables via Integer Arithmetic without
Primes", STACS 1996, theorem 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.parameters import checked

Seeds = NDArray[Any]
"""Shape (n, 2) of uint32 or uint64: a and b of each function."""

_CHUNK: Final = 1 << 16  # functions that are tested together: below, numpy's calls would cost as much as the work
# Where g is no power of two, a boundary between two buckets cuts through bits that are not pairwise independent. With
# this many bits to spare, that moves a bucket's probability by less than 2^-16 of it.
_SPARE_BITS: Final = 16


@checked
@dataclass(frozen=True, slots=True)
class HashFamily:
    """The functions from a domain of d values to g buckets.

    Attributes:
        d: Number of values.
        g: Number of buckets, at least 2.
    """

    d: int
    g: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a and b: 32 bits where they suffice, else 64."""
        spare = -1 if self.g & (self.g - 1) == 0 else _SPARE_BITS
        bits = (self.d - 1).bit_length() + (self.g - 1).bit_length() + spare
        return np.dtype(np.uint32 if bits <= 32 else np.uint64)

    def draw(self, size: int, rng: Randomness) -> Seeds:
        """Uniform functions, shape (size, 2)."""
        words = rng.uint64(2 * size if self.dtype == np.uint64 else size)
        return words.view(self.dtype).reshape(size, 2)

    def buckets(self, seeds: Seeds, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """H_i(v_i) of each function and value, or of broadcast ones.

        Args:
            seeds: Shape (…, 2).
            values: Numbers, of a shape that broadcasts with (…).
        """
        mixed = seeds[..., 0] * values.astype(self.dtype) + seeds[..., 1]
        return self._bucket(mixed)

    def _bucket(self, mixed: NDArray[Any]) -> NDArray[np.int64]:
        g, half = np.uint64(self.g), np.uint64(32)
        if self.dtype == np.uint32:
            return (mixed.astype(np.uint64) * g >> half).astype(np.int64)
        # The high word of a product of 64 bits and at most 31.
        low = (mixed & np.uint64(0xFFFF_FFFF)) * g >> half
        return ((mixed >> half) * g + low >> half).astype(np.int64)

    def _starts(self) -> NDArray[np.uint64]:
        """The first hashed word of each bucket."""
        bits = 8 * self.dtype.itemsize
        return np.array([-(-(bucket << bits) // self.g) for bucket in range(self.g)], dtype=self.dtype)

    def supporters(self, seeds: Seeds, buckets: NDArray[Any]) -> NDArray[np.int64]:
        """For every value, how many functions send it to the bucket that is named beside them; shape (d,).

        Args:
            seeds: Shape (n, 2).
            buckets: Shape (n,).
        """
        starts = self._starts()
        widths = np.diff(np.append(starts, starts[:1]))  # modulo 2^w, so the last one is right too
        offsets, reach = seeds[:, 1] - starts[buckets], widths[buckets]
        counts = np.zeros(self.d, dtype=np.int64)
        if len(seeds) < _CHUNK // 16 and len(seeds) < self.d:
            values = np.arange(self.d, dtype=self.dtype)
            for step, offset, width in zip(seeds[:, 0], offsets, reach, strict=True):
                counts += step * values + offset < width
            return counts
        same = int(widths[0]) if np.all(widths == widths[0]) else None
        for start in range(0, len(seeds), _CHUNK):
            part = slice(start, start + _CHUNK)
            _count(seeds[part, 0], offsets[part], reach[part] if same is None else self.dtype.type(same), counts)
        return counts


def _count(steps: NDArray[Any], offsets: NDArray[Any], widths: Any, counts: NDArray[np.int64]) -> None:
    """Adds up supporters value by value: a·v + b − start grows by a from each value to the next."""
    step, place = np.ascontiguousarray(steps), offsets.copy()
    hit = np.empty(len(steps), dtype=np.bool_)
    for value in range(len(counts)):
        np.less(place, widths, out=hit)
        counts[value] += np.count_nonzero(hit)
        np.add(place, step, out=place)

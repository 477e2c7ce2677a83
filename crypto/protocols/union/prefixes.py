"""Prefixes of points: which of them are open is public, and each party knows which of its elements are under which.

Pure functions. A prefix is known by its number among those of its length that are open. Prefixes that nobody has an
element under, or whose only element is known, are closed; their number passes on to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import Points

MOST_BITS: Final = 128  # of a point
FIRST_BITS: Final = 12  # of the shortest prefixes that are asked for
DENSE_BITS: Final = 3  # by which prefixes are extended while many of them are in use
SPARSE_BITS: Final = 5  # by which prefixes of several elements are extended
IN_USE: Final = 4  # one in so many at the most, before names are asked for
_WORD: Final = 64

LIMITS: Final = (1, 1)
"""Two questions of the masked maximum: is some set over its bound, some element too long?"""

Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Prefixes:
    """The open prefixes of one length.

    Attributes:
        points: Of this party's elements, shape (k, 2).
        places: Of each of these elements, the number of its prefix, shape (k,); -1 where that is closed.
        number: How many are open; public.
        bits: Their length; public.
    """

    points: Points
    places: NDArray[np.int64]
    number: int = 1
    bits: int = 0

    @classmethod
    def of(cls, points: Points) -> Prefixes:
        """The empty prefix, which all points have."""
        return cls(points, np.zeros(len(points), np.int64))

    def extended(self, bits: int) -> Prefixes:
        """All that extend these by so many bits, at most 8.

        Raises:
            ValueError: Points have not as many bits.
        """
        if self.bits + bits > MOST_BITS:
            raise ValueError(f"a point has no more than {MOST_BITS} bits")
        found = np.zeros(len(self.points), np.int64)
        for bit in range(self.bits, self.bits + bits):
            next_bit = self.points[:, bit // _WORD] >> np.uint64(bit % _WORD) & np.uint64(1)
            found = found << 1 | next_bit.astype(np.int64)
        places = np.where(self.places < 0, -1, self.places << bits | found)
        return Prefixes(self.points, places, self.number << bits, self.bits + bits)

    def only(self, chosen: NDArray[np.bool_]) -> Prefixes:
        """Those of some numbers, the others closed.

        Args:
            chosen: Shape (number,).
        """
        numbers = np.where(chosen, np.cumsum(chosen) - 1, -1)
        places = np.where(self.places < 0, -1, numbers[self.places])
        return Prefixes(self.points, places, int(chosen.sum()), self.bits)

    def held(self) -> NDArray[np.int64]:
        """Which of this party's elements are under open prefixes."""
        return np.flatnonzero(self.places >= 0)

    def in_use(self) -> Bits:
        """1 at the numbers under which this party has an element, shape (number,)."""
        flags = np.zeros(self.number, np.uint8)
        flags[self.places[self.held()]] = 1
        return flags

    def laid_over(self, held: NDArray[np.int64], words: Bits) -> Bits:
        """By number, the OR of some words of this party's elements under it.

        Args:
            held: Which elements, all of them under open prefixes.
            words: Of each, shape (len(held), w).

        Returns:
            Shape (number, w).
        """
        laid = np.zeros((self.number, words.shape[1]), np.uint8)
        np.bitwise_or.at(laid, self.places[held], words)
        return laid

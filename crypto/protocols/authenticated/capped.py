"""Whether sums of two parties' numbers reach a threshold, by numbers that are capped: fewer ANDs if it is low.

Of numbers that reach 2^w, more than the threshold, no more matters than that they do. So the first of the two takes off
what is above the threshold, the second what is above 2^w − 1, and the sums have w bits and one more. Each proves that
it did. Sums are opened as both numbers, which each of the two learns from a sum anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits
from crypto.primitives.shares.known_bits import KnownBits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.authenticated.bit_proofs import Relations
from crypto.protocols.authenticated.thresholds import Shares, Threshold


@dataclass(frozen=True, slots=True)
class Capped(Threshold):
    """A decision on sums of two parties' numbers; attributes as of `Threshold`."""

    @property
    def sum_planes(self) -> int:
        """As of `Threshold`."""
        return 2 * self.width

    def known_planes(self, first: bool) -> int:
        """As of `Threshold`, and behind these what is capped.

        Before it the second has of each high place but the lowest whether one up to it is set.
        """
        extra = self._places if first or self._high else 0
        return Threshold.known_planes(self, first) + extra + (0 if first else max(0, self._high - 1))

    def known(self, values: NDArray[np.uint64], limit: int, first: bool) -> Bits:
        """As of `Threshold`."""
        planes = Threshold.known(self, values, limit, first)
        if first:
            capped = np.where(values < self.value, values + np.uint64(self.added), 0) & self._largest
            return np.concatenate([planes, unpack_bits(planes_of(capped, self._places), len(values))])
        if not self._high:
            return planes
        numbers = planes[: self.width]
        reaching = np.maximum.accumulate(numbers[self._places :])
        return np.concatenate([planes, reaching[1:], numbers[: self._places] | reaching[-1]])

    def relations(self, known: KnownBits, limit: KnownBits, first: bool) -> list[Relations]:
        """As of `Threshold`."""
        found = Threshold.relations(self, known, limit, first)
        low, extra = slice(0, self._places), self._extra(known, first)
        if first:
            shifted = Threshold.summand(self, known, first)
            below = shifted.bits(slice(self.width, None)).inverted()
            return [*found, Relations(shifted.bits(low), self._repeated(below), extra)]
        if not self._high:
            return found
        numbers = known.bits(slice(0, self.width))
        further, capped = extra.bits(slice(0, self._high - 1)), extra.bits(slice(self._high - 1, None))
        reaching = KnownBits.stacked([numbers.bits(slice(self._places, self._places + 1)), further])
        none = reaching.inverted()
        above = numbers.bits(slice(self._places + 1, None)).inverted()
        return [
            *found,
            Relations(none.bits(slice(0, self._high - 1)), above, further.inverted()),
            Relations(
                numbers.bits(low).inverted(),
                self._repeated(none.bits(slice(self._high - 1, None))),
                capped.inverted(),
            ),
        ]

    def summand(self, known: KnownBits, first: bool) -> KnownBits:
        """As of `Threshold`."""
        if first:
            reached = Threshold.summand(self, known, first).bits(slice(self.width, None))
            return KnownBits.stacked([self._extra(known, first), reached])
        capped = known.bits(slice(-self._places, None)) if self._high else known.bits(slice(0, self.width))
        return KnownBits.stacked([capped, capped.constant(0)])

    def sums(self, _: AuthenticatedBits, numbers: Shares, /) -> AuthenticatedBits:
        """As of `Threshold`."""
        return AuthenticatedBits.stacked(numbers)

    def totals(self, planes: Bits, number: int) -> NDArray[np.uint64]:
        """As of `Threshold`."""
        one, other = (words_of(each, number) for each in np.split(planes, 2))
        return one + other

    @property
    def _places(self) -> int:
        """What is w above."""
        return max(1, self.value.bit_length())

    @property
    def _high(self) -> int:
        """How many places of numbers there are from w on."""
        return self.width - self._places

    @property
    def _largest(self) -> np.uint64:
        return np.uint64((1 << self._places) - 1)

    def _extra(self, known: KnownBits, first: bool) -> KnownBits:
        return known.bits(slice(Threshold.known_planes(self, first), None))

    def _repeated(self, bit: KnownBits) -> KnownBits:
        return KnownBits.stacked([bit] * self._places)

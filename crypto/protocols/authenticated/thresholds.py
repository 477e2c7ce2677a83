"""Whether sums of all parties' numbers reach a threshold, of which each of the two proves what its own numbers add.

The first of the two adds 2^width − threshold to its numbers. So the sums of all have one bit more, which says whether
they reach the threshold, and the others are those of the sum less the threshold: one addition gives both.

A party that knows its number also deals what its limit − number borrows from each place, and the first what arrives at
each place where the constant is added. It proves that they do: one relation a bit, of no AND between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits
from crypto.primitives.shares.known_bits import KnownBits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.authenticated.bit_proofs import Relations
from crypto.protocols.replicated.circuits import Circuit, above, held_against, sums
from crypto.protocols.replicated.verified_sums import borrowing

Shares = Sequence[AuthenticatedBits]
Circuits = list[Circuit[AuthenticatedBits, Any]]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A decision on sums of all parties' numbers.

    Attributes:
        value: From 0 to 2^width − 1, public.
        width: Of the numbers in bits.
    """

    value: int
    width: int

    def known_planes(self, first: bool) -> int:
        """Planes that a computing party deals: numbers, borrows, and the first of the two also carries."""
        return 2 * self.width - 1 + first * self.width

    def known(self, values: NDArray[np.uint64], limit: int, first: bool) -> Bits:
        """These planes.

        Args:
            values: Shape (m,), this party's numbers.
            limit: This party's.
            first: Whether it is the first of the two.
        """
        planes, added = borrowing(values, limit, self.width), np.uint64(self.added)
        if first:
            carries = planes_of(added ^ values ^ added + values, self.width + 1)[1:]
            planes = np.concatenate([planes, carries])
        return unpack_bits(planes, len(values))

    def relations(self, known: KnownBits, limit: KnownBits, first: bool) -> list[Relations]:
        """What a party proves of its planes, with its limit's bits."""
        numbers, borrows, carries = self.parts(known)
        found = [Relations(*held_against([numbers], [borrows], [limit]))]
        if first:
            # From a place is carried what two of number, constant and what arrives there are.
            constant = self._constant(numbers).bits(slice(0, self.width))
            arriving = KnownBits.stacked([numbers.constant(0), carries]).bits(slice(0, self.width))
            found.append(Relations(numbers ^ constant, arriving ^ constant, constant ^ carries))
        return found

    def summand(self, known: KnownBits, first: bool) -> KnownBits:
        """What a party's numbers add to the sums, of one bit more."""
        numbers, _, carries = self.parts(known)
        padded = KnownBits.stacked([numbers, numbers.constant(0)])
        if not first:
            return padded
        return padded ^ self._constant(numbers) ^ KnownBits.stacked([numbers.constant(0), carries])

    def circuits(self, summands: Shares, numbers: Shares, limits: Shares) -> Circuits:
        """The sums less the threshold with a bit above that says whether they reach it, and which numbers are too high.

        Args:
            summands: Of the two, of one bit more.
            numbers: Of parties that do not compute.
            limits: Of these.
        """
        every = [*summands, *(padded(each, summands[0].width) for each in numbers)]
        found: Circuits = [sums(every, few=False)]
        return [*found, above(numbers, limits)] if numbers else found

    @property
    def sum_planes(self) -> int:
        """Planes of what tells sums."""
        return self.width

    def sums(self, outcome: AuthenticatedBits, _: Shares, /) -> AuthenticatedBits:
        """What tells sums, of the first circuit's outcome and the numbers of the two."""
        return outcome.bits(slice(0, self.width))

    def totals(self, planes: Bits, number: int) -> NDArray[np.uint64]:
        """The sums that so many opened words tell; of planes, packed."""
        return words_of(planes, number) + np.uint64(self.value) & np.uint64((1 << self.width) - 1)

    @property
    def added(self) -> int:
        """The constant."""
        return (1 << self.width) - self.value

    def parts(self, known: KnownBits) -> tuple[KnownBits, KnownBits, KnownBits]:
        """Numbers, borrows, and carries, of which the second of the two has none."""
        stops = np.cumsum([0, self.width, self.width - 1, self.width]).tolist()
        one, other, third = (known.bits(slice(*each)) for each in pairwise(stops))
        return one, other, third

    def _constant(self, like: KnownBits) -> KnownBits:
        return KnownBits.stacked([like.constant(self.added >> place & 1) for place in range(self.width + 1)])


def padded(number: AuthenticatedBits, width: int) -> AuthenticatedBits:
    """Numbers with planes of zeros above."""
    return AuthenticatedBits.stacked([number, *[number.constant(0)] * (width - number.width)])

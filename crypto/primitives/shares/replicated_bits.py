"""Replicated sharing of bits among three: words are the XOR of three components, of which each holder has two.

As `replicated`, over bits: holder m (of 0, 1, 2) has the components m and m + 1, counted modulo 3. Words are
bit-sliced as in `xor`. ANDs are computed locally, up to a sharing of their parts (`local_and`).

Source: Araki, Furukawa, Lindell, Nof and Ohara, "High-Throughput Semi-Honest Secure Three-Party Computation with an
Honest Majority", CCS 2016, section 2.1, in the form of Mohassel and Rindal, "ABY3", CCS 2018, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.additive import Share, check_complete, check_same_holders, read_only

Planes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class ReplicatedBits(Share):
    """One holder's share of bits.

    Args:
        own: The component of the holder's number, shape (planes, bytes), uint8; kept as a read-only view. What fills
            up the last byte of a plane means nothing.
        following: The next component, likewise.
        holder: Name of the party that holds this share.
        holders: Names of the three who hold shares of the bits, in the order that all of them use.
    """

    own: Planes
    following: Planes
    holder: str
    holders: tuple[str, ...]

    def __post_init__(self) -> None:
        if any(part.dtype != np.uint8 or part.ndim != 2 for part in (self.own, self.following)):
            raise TypeError("a replicated share of bits holds packed planes, uint8 arrays of two dimensions")
        if self.own.shape != self.following.shape:
            raise TypeError("both components of a replicated share have one shape")
        self._check_holders()
        if len(self.holders) != 3:
            raise ValueError("a replicated share has three holders")
        object.__setattr__(self, "own", read_only(self.own))
        object.__setattr__(self, "following", read_only(self.following))

    @property
    def width(self) -> int:
        """How many planes."""
        return len(self.own)

    def __xor__(self, other: ReplicatedBits) -> ReplicatedBits:
        self._matching(other)
        return self._with(self.own ^ other.own, self.following ^ other.following)

    def bits(self, selection: slice) -> ReplicatedBits:
        """The share of some of the planes."""
        return self._with(self.own[selection], self.following[selection])

    def inverted(self) -> ReplicatedBits:
        """The share of all bits turned over."""
        return self.plus_public(np.full_like(self.own, 0xFF))

    def constant(self, bit: int) -> ReplicatedBits:
        """The share of one plane that holds a public bit everywhere."""
        plane = np.zeros((1, self.own.shape[1]), np.uint8)
        share = self._with(plane, plane)
        return share.inverted() if bit else share

    def plus_public(self, planes: Planes) -> ReplicatedBits:
        """The share of the XOR with public planes, which the first component takes up."""
        number = self.holders.index(self.holder)
        own = self.own ^ planes if number == 0 else self.own
        return self._with(own, self.following ^ planes if number == 2 else self.following)

    def and_public(self, planes: Planes) -> ReplicatedBits:
        """The share of the AND with public planes."""
        return self._with(self.own & planes, self.following & planes)

    def words(self, which: NDArray[np.bool_]) -> ReplicatedBits:
        """The share of some of the words, shape (number,): the flags say of which."""
        own, following = (pack_bits(unpack_bits(part, len(which))[:, which]) for part in (self.own, self.following))
        return self._with(own, following)

    def spread(self, size: int) -> ReplicatedBits:
        """The share of planes of `size` bytes, which hold the first bit of each of these everywhere."""
        own, following = (
            np.repeat((part[:, :1] & 1) * np.uint8(0xFF), size, axis=1) for part in (self.own, self.following)
        )
        return self._with(own, following)

    def reshaped(self, width: int) -> ReplicatedBits:
        """The share of the same bytes, one after the other, in so many planes."""
        return self._with(self.own.reshape(width, -1), self.following.reshape(width, -1))

    @staticmethod
    def stacked(shares: Sequence[ReplicatedBits]) -> ReplicatedBits:
        """The share of one share's planes followed by another's, of equal length.

        Raises:
            TypeError: They are of different holders.
        """
        for share in shares[1:]:
            check_same_holders(shares[0], share)
        own, following = (np.concatenate(parts) for parts in zip(*((s.own, s.following) for s in shares), strict=True))
        return shares[0]._with(own, following)

    def octets(self, places: NDArray[np.int64], unit: int) -> ReplicatedBits:
        """The share of some of the bytes of all planes, in this order: `unit` of them, 1, 2, 4 or 8, make one place."""
        word = np.dtype(f"u{unit}")
        own, following = (
            np.ascontiguousarray(part).view(word).take(places, axis=1).view(np.uint8)
            for part in (self.own, self.following)
        )
        return self._with(own, following)

    def split(self, size: int) -> tuple[ReplicatedBits, ReplicatedBits]:
        """The shares of the first bytes of all planes, so many, and of the others."""
        return (
            self._with(self.own[:, :size], self.following[:, :size]),
            self._with(self.own[:, size:], self.following[:, size:]),
        )

    def repeated(self, times: int) -> ReplicatedBits:
        """The share of the planes, so many times one after the other."""
        return self._with(np.tile(self.own, (times, 1)), np.tile(self.following, (times, 1)))

    @staticmethod
    def joined(shares: Sequence[ReplicatedBits]) -> ReplicatedBits:
        """The share of planes that hold one share's bytes, then another's."""
        for share in shares[1:]:
            check_same_holders(shares[0], share)
        parts = zip(*((share.own, share.following) for share in shares), strict=True)
        own, following = (np.concatenate(each, axis=1) for each in parts)
        return shares[0]._with(own, following)

    def local_and(self, other: ReplicatedBits) -> Planes:
        """This holder's part of the ANDs, plane by plane: the XOR of the three parts is the ANDs.

        The parts are functions of the shares: under no mask, they must not leave.
        """
        self._matching(other)
        part: Planes = self.own & (other.own ^ other.following)
        part ^= self.following & other.own
        return part

    def _with(self, own: Planes, following: Planes) -> ReplicatedBits:
        return ReplicatedBits(own, following, self.holder, self.holders)

    def _matching(self, other: object) -> None:
        if not isinstance(other, ReplicatedBits):
            raise TypeError("a replicated share is computed upon with its like alone")
        check_same_holders(self, other)
        if self.own.shape != other.own.shape:
            raise ValueError(f"shares of shapes {self.own.shape} and {other.own.shape} do not match")

    def __repr__(self) -> str:
        return f"<ReplicatedBits of {self.width} planes>"


def reconstruct_replicated_bits(shares: Sequence[ReplicatedBits]) -> Planes:
    """The planes of three shares, one of each holder, in any order.

    Raises:
        ValueError: A holder's share is missing or doubled, or the shares do not belong together.
    """
    check_complete(shares)
    in_order = sorted(shares, key=lambda share: share.holders.index(share.holder))
    for one, following in zip(in_order, [*in_order[1:], in_order[0]], strict=True):
        if not np.array_equal(one.following, following.own):
            raise ValueError("the shares are of different bits")
    total: Planes = in_order[0].own ^ in_order[1].own ^ in_order[2].own
    return total

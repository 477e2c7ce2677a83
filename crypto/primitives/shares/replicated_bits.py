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
from crypto.primitives.shares.additive import Share, check_complete, check_same_holders

Planes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ReplicatedBits(Share):
    """One holder's share of bits.

    Args:
        own: The component of the holder's number, shape (planes, bytes), uint8. What fills up the last byte of a plane
            means nothing.
        following: The next component, likewise.
        holder: Name of the party that holds this share.
        holders: Names of the three who hold shares of the bits, in the order that all of them use.

    Attributes:
        both: Both components, shape (2, planes, bytes), which cannot be written to.
    """

    both: Planes
    holder: str
    holders: tuple[str, ...]

    def __init__(self, own: Planes, following: Planes, holder: str, holders: tuple[str, ...]) -> None:
        if any(part.dtype != np.uint8 or part.ndim != 2 for part in (own, following)):
            raise TypeError("a replicated share of bits holds packed planes, uint8 arrays of two dimensions")
        if own.shape != following.shape:
            raise TypeError("both components of a replicated share have one shape")
        self._set(np.stack([own, following]), holder, holders)
        self._check_holders()
        if len(holders) != 3:
            raise ValueError("a replicated share has three holders")

    @property
    def own(self) -> Planes:
        """The component of the holder's number."""
        component: Planes = self.both[0]
        return component

    @property
    def following(self) -> Planes:
        """The next component."""
        component: Planes = self.both[1]
        return component

    @property
    def width(self) -> int:
        """How many planes."""
        return len(self.both[0])

    def __xor__(self, other: ReplicatedBits) -> ReplicatedBits:
        self._matching(other)
        return self._with(self.both ^ other.both)

    def bits(self, selection: slice | NDArray[np.int64]) -> ReplicatedBits:
        """The share of some of the planes."""
        return self._with(self.both[:, selection])

    def replaced(self, selection: slice | NDArray[np.int64], share: ReplicatedBits) -> ReplicatedBits:
        """The share with another's planes in place of some."""
        changed = self.both.copy()
        changed[:, selection] = share.both
        return self._with(changed)

    def inverted(self) -> ReplicatedBits:
        """The share of all bits turned over."""
        return self.plus_public(np.full_like(self.own, 0xFF))

    def constant(self, bit: int) -> ReplicatedBits:
        """The share of one plane that holds a public bit everywhere."""
        share = self._with(np.zeros((2, 1, self.both.shape[2]), np.uint8))
        return share.inverted() if bit else share

    def plus_public(self, planes: Planes) -> ReplicatedBits:
        """The share of the XOR with public planes, which the first component takes up."""
        number = self.holders.index(self.holder)
        if number == 1:
            return self
        changed = self.both.copy()
        changed[0 if number == 0 else 1] ^= planes
        return self._with(changed)

    def words(self, which: NDArray[np.bool_]) -> ReplicatedBits:
        """The share of some of the words, shape (number,): the flags say of which."""
        return self._with(pack_bits(unpack_bits(self.both, len(which))[..., which]))

    def octets(self, selection: slice) -> ReplicatedBits:
        """The share of some of the bytes of every plane."""
        return self._with(self.both[..., selection].copy())

    def within(self, planes: Planes) -> ReplicatedBits:
        """The share of the bits where public planes have ones, with zeros elsewhere."""
        return self._with(self.both & planes)

    def transposed(self) -> ReplicatedBits:
        """The share of a word for each plane, filled up to whole bytes, with a plane for each bit of these."""
        size = 8 * self.both.shape[2]
        return self._with(pack_bits(np.ascontiguousarray(unpack_bits(self.both, size).transpose(0, 2, 1))))

    def spread(self, size: int) -> ReplicatedBits:
        """The share of planes of `size` bytes, which hold the first bit of each of these everywhere."""
        return self._with(np.repeat((self.both[..., :1] & 1) * np.uint8(0xFF), size, axis=2))

    def reshaped(self, width: int) -> ReplicatedBits:
        """The share of the same bytes, one after the other, in so many planes."""
        return self._with(self.both.reshape(2, width, -1))

    @staticmethod
    def stacked(shares: Sequence[ReplicatedBits]) -> ReplicatedBits:
        """The share of one share's planes followed by another's, of equal length.

        Raises:
            TypeError: They are of different holders.
        """
        for share in shares[1:]:
            check_same_holders(shares[0], share)
        return shares[0]._with(np.concatenate([share.both for share in shares], axis=1))

    @staticmethod
    def joined(shares: Sequence[ReplicatedBits]) -> ReplicatedBits:
        """The share of planes that hold one share's bytes, then another's."""
        for share in shares[1:]:
            check_same_holders(shares[0], share)
        return shares[0]._with(np.concatenate([share.both for share in shares], axis=2))

    def local_and(self, other: ReplicatedBits) -> Planes:
        """This holder's part of the ANDs, plane by plane: the XOR of the three parts is the ANDs.

        The parts are functions of the shares: under no mask, they must not leave.
        """
        self._matching(other)
        part: Planes = self.own & (other.own ^ other.following)
        part ^= self.following & other.own
        return part

    def _with(self, both: Planes) -> ReplicatedBits:
        """A share of the same holder. Circuits make thousands: what comes of good ones is not checked again."""
        found = object.__new__(ReplicatedBits)
        found._set(both, self.holder, self.holders)
        return found

    def _set(self, both: Planes, holder: str, holders: tuple[str, ...]) -> None:
        both.flags.writeable = False
        object.__setattr__(self, "both", both)
        object.__setattr__(self, "holder", holder)
        object.__setattr__(self, "holders", holders)

    def _matching(self, other: object) -> None:
        if not isinstance(other, ReplicatedBits):
            raise TypeError("a replicated share is computed upon with its like alone")
        check_same_holders(self, other)
        if self.both.shape != other.both.shape:
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

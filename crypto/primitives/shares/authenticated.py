"""Authenticated sharing of bits between two: neither holder can pass off another share as its own.

Holder p has a key Δ_p, and of every shared bit x = x_1 ⊕ x_2 its share x_p and a tag t_p, where

    t_1 ⊕ t_2 = x·(Δ_1 ⊕ Δ_2).

XORs, public bits and multiples by public bits are computed locally, tags with them. If the bit is opened to be x', the
holders' t_p ⊕ x'·Δ_p are equal exactly where x' = x: whoever opens another share than its own would have to know the
other's key. The tag comes of a message authentication code on each holder's share under the other's key, as in
`crypto.protocols.authenticated.correlation`; only its first 64 bits are kept, of which the lowest is public.

Source: Nielsen, Nordholt, Orlandi and Burra, "A New Approach to Practical Active-Secure Two-Party Computation", CRYPTO
2012, section 3 (bits under codes); Damgård, Pastro, Smart and Zakarias, CRYPTO 2012, section 3 (shared codes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import Share, check_complete, check_same_holders, read_only

Bits = NDArray[np.uint8]
Tags = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class AuthenticatedBits(Share):
    """One holder's share of planes of bits.

    Args:
        values: This holder's shares, each 0 or 1, shape (planes, number), uint8; kept as a read-only view.
        tags: Of the same shape, uint64; likewise.
        key: This holder's key.
        holder: Name of the party that holds this share.
        holders: Names of the two who hold shares of the bits, in the order that both use.
    """

    values: Bits
    tags: Tags
    key: np.uint64
    holder: str
    holders: tuple[str, str]

    def __post_init__(self) -> None:
        if self.values.dtype != np.uint8 or self.tags.dtype != np.uint64 or self.values.ndim != 2:
            raise TypeError("an authenticated share holds planes of bits, uint8, and of tags, uint64")
        if self.values.shape != self.tags.shape:
            raise TypeError("an authenticated share has as many tags as bits")
        self._check_holders()
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "tags", read_only(self.tags))

    @property
    def width(self) -> int:
        """How many planes."""
        return len(self.values)

    @property
    def number(self) -> int:
        """Bits of a plane."""
        return int(self.values.shape[1])

    def __xor__(self, other: AuthenticatedBits) -> AuthenticatedBits:
        self._matching(other)
        return self._with(self.values ^ other.values, self.tags ^ other.tags)

    def bits(self, selection: slice | NDArray[np.int64]) -> AuthenticatedBits:
        """The share of some of the planes."""
        return self._with(self.values[selection], self.tags[selection])

    def replaced(self, selection: slice | NDArray[np.int64], share: AuthenticatedBits) -> AuthenticatedBits:
        """The share with another's planes in place of some."""
        values, tags = self.values.copy(), self.tags.copy()
        values[selection], tags[selection] = share.values, share.tags
        return self._with(values, tags)

    def inverted(self) -> AuthenticatedBits:
        """The share of all bits turned over."""
        values = self.values ^ np.uint8(1) if self.is_first else self.values
        return self._with(values, self.tags ^ self.key)

    def constant(self, bit: int) -> AuthenticatedBits:
        """The share of one plane that holds a public bit everywhere."""
        shape = (1, self.number)
        zeros = self._with(np.zeros(shape, np.uint8), np.zeros(shape, np.uint64))
        return zeros.inverted() if bit else zeros

    def plus_public(self, bits: Bits) -> AuthenticatedBits:
        """The share of the XOR with public bits, of the same shape."""
        return self._with(self.values ^ bits if self.is_first else self.values, self.tags ^ bits * self.key)

    def times_public(self, bits: Bits) -> AuthenticatedBits:
        """The share of the AND with public bits, of the same shape."""
        return self._with(self.values & bits, self.tags * bits)

    def witness(self, opened: Bits) -> Tags:
        """What both holders have alike, if and only if these are the bits."""
        witness: Tags = self.tags ^ opened * self.key
        return witness

    def words(self, which: NDArray[np.bool_] | NDArray[np.int64] | slice) -> AuthenticatedBits:
        """The share of some bits of every plane: flags, places or a slice say of which."""
        return self._with(self.values[:, which], self.tags[:, which])

    def spread(self, number: int) -> AuthenticatedBits:
        """The share of planes of so many bits, each of which is the first one of this share's plane."""
        return self._with(np.repeat(self.values[:, :1], number, axis=1), np.repeat(self.tags[:, :1], number, axis=1))

    def reshaped(self, width: int) -> AuthenticatedBits:
        """The share of the same bits, one after the other, in so many planes."""
        return self._with(self.values.reshape(width, -1), self.tags.reshape(width, -1))

    @staticmethod
    def stacked(shares: Sequence[AuthenticatedBits]) -> AuthenticatedBits:
        """The share of one share's planes followed by another's, of equal length.

        Raises:
            TypeError: They are of different holders.
        """
        return _concatenated(shares, 0)

    @staticmethod
    def joined(shares: Sequence[AuthenticatedBits]) -> AuthenticatedBits:
        """The share of planes that hold one share's bits, then another's."""
        return _concatenated(shares, 1)

    def _with(self, values: Bits, tags: Tags) -> AuthenticatedBits:
        return AuthenticatedBits(values, tags, self.key, self.holder, self.holders)

    def _matching(self, other: object) -> None:
        if not isinstance(other, AuthenticatedBits):
            raise TypeError("an authenticated share is computed upon with its like alone")
        check_same_holders(self, other)
        if self.values.shape != other.values.shape:
            raise ValueError(f"shares of shapes {self.values.shape} and {other.values.shape} do not match")

    def __repr__(self) -> str:
        return f"<AuthenticatedBits of {self.width} planes>"


def _concatenated(shares: Sequence[AuthenticatedBits], axis: int) -> AuthenticatedBits:
    first = shares[0]
    for share in shares[1:]:
        check_same_holders(first, share)
    values = np.concatenate([share.values for share in shares], axis=axis)
    tags = np.concatenate([share.tags for share in shares], axis=axis)
    return first._with(values, tags)


def reconstruct_authenticated(shares: Sequence[AuthenticatedBits]) -> Bits:
    """The planes of two shares, one of each holder, in any order.

    Raises:
        ValueError: A holder's share is missing or doubled, or a tag is not that of its bit.
    """
    check_complete(shares)
    one, other = shares
    bits: Bits = one.values ^ other.values
    if not np.array_equal(one.witness(bits), other.witness(bits)):
        raise ValueError("a tag is not that of its bit")
    return bits

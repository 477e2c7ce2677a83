"""XOR sharing of bits: a secret word is the XOR of its holders' shares, bit by bit.

Words are bit-sliced: plane i holds bit i of every word, packed eight to a byte, so that an operation on a byte is one
on eight words. Like every share, one of bits is a value of its own type and never a bare array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.additive import Share, check_complete, check_same_holders, read_only
from crypto.primitives.shares.masks import Words
from link.randomness import RandomStream


@dataclass(frozen=True, eq=False, repr=False)
class XorShare(Share):
    """One holder's share of `number` words of `width` bits.

    Args:
        planes: Shape (width, ⌈number / 8⌉), uint8: plane i holds bit i of every word, packed, the first word's lowest.
            Kept as a read-only view; what fills up the last byte means nothing.
        number: How many words.
        holder: Name of the party that holds this share.
        holders: Names of all who hold shares of the words, in the order that all of them use.
    """

    planes: NDArray[np.uint8]
    number: int
    holder: str
    holders: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.planes.dtype != np.uint8 or self.planes.ndim != 2:
            raise TypeError("a share of bits holds packed planes, a uint8 array of two dimensions")
        if self.planes.shape[1] != -(-self.number // 8):
            raise ValueError(f"planes of {self.planes.shape[1]} bytes do not hold {self.number} words")
        self._check_holders()
        object.__setattr__(self, "planes", read_only(self.planes))

    @property
    def width(self) -> int:
        """Bits of a word."""
        return len(self.planes)

    def __xor__(self, other: XorShare) -> XorShare:
        return self._with(self.planes ^ self._matching(other).planes)

    def __invert__(self) -> XorShare:
        """The share of the words with every bit turned over; only the first holder changes its own."""
        return self._with(~self.planes) if self.is_first else self

    def __getitem__(self, selection: slice | NDArray[np.int64] | NDArray[np.bool_]) -> XorShare:
        """The share of some of the words; an array of positions or flags, or a slice, never a single position."""
        if not isinstance(selection, slice | np.ndarray):
            raise TypeError("a share is selected from by a slice or an array")
        selected = unpack_bits(self.planes, self.number)[:, selection]
        return XorShare(pack_bits(selected), selected.shape[1], self.holder, self.holders)

    def cleared(self) -> NDArray[np.uint8]:
        """The planes, with zeros where the last byte holds no word: what may leave for those who learn the words."""
        planes = self.planes.copy()
        if self.number % 8:
            planes[:, -1] &= np.uint8((1 << self.number % 8) - 1)
        return planes

    def bits(self, selection: slice) -> XorShare:
        """The share of some bits of every word: `bits(slice(0, 1))` is that of the lowest."""
        return self._with(self.planes[selection])

    @staticmethod
    def stacked(shares: Sequence[XorShare]) -> XorShare:
        """The share of words that hold one share's bits after another's, the first's lowest.

        Raises:
            TypeError: They are of different holders.
            ValueError: They hold different numbers of words.
        """
        first = shares[0]
        for share in shares[1:]:
            check_same_holders(first, share)
            if share.number != first.number:
                raise ValueError(f"shares of {first.number} and {share.number} words are not stacked")
        return first._with(np.concatenate([share.planes for share in shares]))

    @staticmethod
    def joined(shares: Sequence[XorShare]) -> XorShare:
        """The share of one share's words followed by another's; all but the last hold a multiple of eight words.

        Raises:
            TypeError: They are of different holders.
            ValueError: Their words have different widths, or one but the last ends inside a byte.
        """
        first = shares[0]
        for share in shares[1:]:
            check_same_holders(first, share)
        if any(share.number % 8 for share in shares[:-1]) or len({share.width for share in shares}) != 1:
            raise ValueError("shares are joined at whole bytes and equal widths")
        planes = np.concatenate([share.planes for share in shares], axis=1)
        return XorShare(planes, sum(share.number for share in shares), first.holder, first.holders)

    def _with(self, planes: NDArray[np.uint8]) -> XorShare:
        return XorShare(planes, self.number, self.holder, self.holders)

    def _matching(self, other: object) -> XorShare:
        if not isinstance(other, XorShare):
            raise TypeError("a share of bits XORs to a share of bits")
        check_same_holders(self, other)
        if (self.number, self.width) != (other.number, other.width):
            raise ValueError(
                f"a share of {self.number} words of {self.width} bits does not XOR to one of {other.number} of "
                f"{other.width}"
            )
        return other

    def __repr__(self) -> str:
        return f"<XorShare of {self.number} words of {self.width} bits>"


def words_of(planes: NDArray[np.uint8], number: int, word: type[np.unsignedinteger[Any]] = np.uint64) -> Words:
    """The words of which these are the planes, shape (number,), in a type that holds them."""
    words: Words = np.zeros(number, word)
    for bit, plane in enumerate(planes):
        words |= unpack_bits(plane, number).astype(word) << word(bit)
    return words


def planes_of(words: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """Words bit-sliced: shape (width, ⌈n / 8⌉), as in `XorShare`, filled up with zeros.

    Args:
        words: Shape (n,), uint64.
        width: Bits of a word, 1 to 64.

    Raises:
        ValueError: The width is out of range, or a word does not fit.
    """
    if not 1 <= width <= 64:
        raise ValueError(f"a word has 1 to 64 bits, not {width}")
    if len(words) and int(words.max()) >> width:
        raise ValueError(f"a word does not fit into {width} bits")
    planes = np.empty((width, -(-len(words) // 8)), np.uint8)
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)
    for bit in range(width):
        octet = octets[:, bit // 8]
        planes[bit] = pack_bits(octet & np.uint8(1 << bit % 8))
    return planes


def share_bits(words: NDArray[np.uint64], width: int, holders: Sequence[str], random: RandomStream) -> list[XorShare]:
    """Split words into shares, of which any but all are independent and uniform.

    Args:
        words: Shape (n,), uint64, each below 2^width.
        width: Bits of a word, 1 to 64.
        holders: Names of at least two holders.
        random: Fresh randomness.

    Returns:
        One share per holder, in the holders' order.

    Raises:
        ValueError: Fewer than two holders, or a word that does not fit.
    """
    if len(holders) < 2:
        raise ValueError("words are shared among at least two holders")
    names, number = tuple(holders), len(words)
    remainder = planes_of(words, width)
    parts = []
    for _ in names[1:]:
        part = np.frombuffer(random.bytes(remainder.size), np.uint8).reshape(remainder.shape)
        remainder ^= part
        parts.append(part)
    return [XorShare(part, number, name, names) for part, name in zip([remainder, *parts], names, strict=True)]


def reconstruct_bits(shares: Sequence[XorShare]) -> Words:
    """XOR the shares of all holders.

    Args:
        shares: One share of each holder, in any order, of words of at most 64 bits.

    Returns:
        The words, shape (number,).

    Raises:
        ValueError: A holder's share is missing or doubled, or the shares are of different words.
    """
    check_complete(shares)
    first = shares[0]
    if any((part.number, part.width) != (first.number, first.width) for part in shares):
        raise ValueError("the shares are of different words")
    planes = np.bitwise_xor.reduce([part.planes for part in shares])
    return words_of(planes, first.number)

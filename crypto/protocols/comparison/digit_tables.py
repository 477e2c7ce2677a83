"""The table behind one digit of a comparison: an outcome for every value of the other party's digit.

Two parties hold numbers, each of m bits, and want shares of the carry out of their sum (an order), or of whether they
are equal. Cut into digits, from the lowest up: with s the sender's digit and r the receiver's, b bits each, and c what
has come out of the digits below,

    order:     s + r + c ≥ 2^b
    equality:  s = r and c.

Where c is not shared yet, it is 0 for an order and 1 for an equality; where it is, the receiver's share is the top bit
of its index, and the sender writes the outcome for either. Outcomes go under one random bit, the sender's share.

Source: Rathee et al., "CrypTFlow2: Practical 2-Party Secure Inference", CCS 2020, section 3.1 (leaves of a comparison
by tables).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.masks import Words
from crypto.protocols.transfers.table_transfers import INDEX_BITS, Table, symbol_count

CHAIN_DIGITS: Final = 3
LONGEST: Final = 64  # bits of a word; longer numbers have several
CHAIN_BITS: Final = INDEX_BITS + (CHAIN_DIGITS - 1) * (INDEX_BITS - 1)

Packed = NDArray[np.uint8]


@dataclass(frozen=True)
class Digit:
    """One digit of the numbers.

    Attributes:
        low: Position of its lowest bit.
        bits: b.
        carried: Whether what comes out of the digits below goes in.
    """

    low: int
    bits: int
    carried: bool = False

    @property
    def table(self) -> Table:
        """Of its outcomes."""
        return Table(self.bits + self.carried)

    def of(self, numbers: Words) -> Words:
        """This digit of each number, shape (n,), in the table's word.

        Args:
            numbers: Shape (n,), or of numbers of several words of `LONGEST` bits shape (n, words), the lowest first.
        """
        low = self.low
        if numbers.ndim > 1:
            word, low = divmod(low, LONGEST)
            numbers = numbers[:, word]
        digit: Words = (numbers >> numbers.dtype.type(low)).astype(self.table.word)
        digit &= self.table.word((1 << self.bits) - 1)
        return digit


def outcomes(digit: Digit, own: Words, *, order: bool, carry: Packed | None, share: Packed) -> Words:
    """The sender's tables, before pads.

    Args:
        digit: Which one.
        own: The sender's numbers, shape (n,).
        order: Whether an order is wanted, else an equality.
        carry: Packed shares of c; None where it is not shared yet.
        share: The sender's random bits, packed.

    Returns:
        Shape (n,), of the table's word.
    """
    word = digit.table.word
    decisive, above = positions(digit, own, order=order)
    if not digit.carried:
        found = above if order else decisive
    else:
        assert carry is not None
        found = above | (decisive & _all_ones(carry, len(own), word))
        found |= (found ^ decisive) << word(1 << digit.bits)
    return under(found, share, digit)


def positions(digit: Digit, own: Words, *, order: bool) -> tuple[Words, Words]:
    """The receiver's digits where what comes out is c, as tables; and those where it is 1 for an order, whatever c is.

    Args:
        digit: Which one.
        own: The sender's numbers, shape (n,).
        order: Whether an order is wanted, else an equality.
    """
    word = digit.table.word
    value = digit.of(own)
    if not order:
        return np.left_shift(word(1), value), np.zeros_like(value)
    decisive = np.left_shift(word(1), word((1 << digit.bits) - 1) - value)
    return decisive, np.negative(decisive + decisive) & word((1 << (1 << digit.bits)) - 1)


def index_of(digit: Digit, own: Words, carry: Packed | None) -> Words:
    """The receiver's index: its digit, with its share of c on top."""
    index = digit.of(own)
    if digit.carried:
        assert carry is not None
        word = digit.table.word
        index |= unpack_bits(carry, len(own)).astype(word) << word(digit.bits)
    return index


def under(found: Words, share: Packed, digit: Digit) -> Words:
    """Tables under the sender's random bits, all of whose positions are turned where the bit is 1."""
    found ^= _all_ones(share, len(found), digit.table.word) & digit.table.positions
    return found


def look_up(tables: Words, index: Words) -> Packed:
    """The bit at the index of each table, packed."""
    return pack_bits(((tables >> index) & tables.dtype.type(1)).astype(np.uint8))


@cache
def chain(bits: int) -> tuple[Digit, ...] | None:
    """Numbers of so many bits cut into at most `CHAIN_DIGITS` digits, each but the first with a carry.

    Of as few digits as possible those that cost least. None where the numbers are too long.
    """
    for count in range(1, CHAIN_DIGITS + 1):
        cuts = [
            tuple(Digit(low, high - low, low > 0) for low, high in itertools.pairwise((0, *ends, bits)))
            for ends in itertools.combinations(range(1, bits), count - 1)
        ]
        fitting = [cut for cut in cuts if all(digit.bits + digit.carried <= INDEX_BITS for digit in cut)]
        if fitting:
            return min(fitting, key=_cost)
    return None


def leaves(bits: int) -> tuple[Digit, ...]:
    """Numbers cut into full digits without carries; what is left over of each word is its highest."""
    words = [(start, min(start + LONGEST, bits)) for start in range(0, bits, LONGEST)]
    return tuple(
        Digit(low, min(INDEX_BITS, stop - low)) for start, stop in words for low in range(start, stop, INDEX_BITS)
    )


def _cost(cut: tuple[Digit, ...]) -> tuple[int, int, int]:
    """Transfers outweigh the hashes of their messages, those the bytes of tables."""
    tables = [digit.table for digit in cut]
    hashes = sum(1 << bits for table in tables for bits in table.symbols)
    return symbol_count(tables), hashes, sum(table.size_bytes for table in tables)


def _all_ones(bits: Packed, number: int, word: type[np.unsignedinteger]) -> Words:
    """A word of ones for each bit that is set."""
    return np.negative(unpack_bits(bits, number).astype(word))

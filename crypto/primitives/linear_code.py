"""A binary linear code that turns 128 bits into 512, of which any two words differ at 112 places or more.

It is the BCH code of length 511 whose words, as polynomials over GF(2), vanish at the powers 0 to 110 of a primitive
element α of GF(2^9), α^9 = α^4 + 1. These are 111 consecutive zeros, so a word that is not 0 has at least 112 ones (the
BCH bound). Of its 129 dimensions 128 are used. A word's first 128 bits are its message; its last two bits are always 0.

Source: Bose and Ray-Chaudhuri, "On a Class of Error Correcting Binary Group Codes", Information and Control 3(1), 1960;
MacWilliams and Sloane, "The Theory of Error-Correcting Codes", 1977, chapters 7 and 9.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import Points, Words

MESSAGE_BITS: Final = 128
WORD_BITS: Final = 512
DISTANCE: Final = 112
_WORDS: Final = WORD_BITS // 64
_LENGTH: Final = 511
_DEGREE: Final = 9
_FIELD: Final = 0b1000010001  # x^9 + x^4 + 1
_ZEROS: Final = 111  # powers of α from 0 on at which all words vanish
_BYTES: Final = MESSAGE_BITS // 8
_AT_ONCE: Final = 1 << 13  # messages: what is added up for them stays in the cache
_COLUMNS_AT_ONCE: Final = 128  # words of a column: all sums of eight of them do, too

Tables = NDArray[np.uint64]
"""Shape (16, 256, 8): by byte of a message and its value, what it adds to the word."""


def encoded(messages: Points, tables: Tables) -> Words:
    """Each message's word.

    Args:
        messages: Shape (n, 2).
        tables: From `encoding`.

    Returns:
        Shape (n, 8).
    """
    words = np.empty((len(messages), _WORDS), np.uint64)
    more = np.empty((min(len(messages), _AT_ONCE), _WORDS), np.uint64)
    values = np.ascontiguousarray(messages).view(np.uint8).reshape(-1, _BYTES)
    for start in range(0, len(messages), _AT_ONCE):
        part = words[start : start + _AT_ONCE]
        first, *others = np.ascontiguousarray(values[start : start + len(part)].T).astype(np.intp)
        np.take(tables[0], first, axis=0, out=part, mode="clip")
        for table, entries in zip(tables[1:], others, strict=True):
            part ^= np.take(table, entries, axis=0, out=more[: len(part)], mode="clip")
    return words


def encoded_columns(messages: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same for messages and words by columns.

    Args:
        messages: Shape (128, n / 8), packed bits, n a multiple of 64.

    Returns:
        Shape (512, n / 8).
    """
    words = np.zeros((WORD_BITS, messages.shape[1]), np.uint8)
    words[:MESSAGE_BITS] = messages
    columns, checks = np.ascontiguousarray(messages).view(np.uint64), words[MESSAGE_BITS:].view(np.uint64)
    entries = _entries()
    sums = np.zeros((256, _COLUMNS_AT_ONCE), np.uint64)
    more = np.empty((len(checks), _COLUMNS_AT_ONCE), np.uint64)
    for start in range(0, columns.shape[1], _COLUMNS_AT_ONCE):
        some = columns[:, start : start + _COLUMNS_AT_ONCE]
        width = some.shape[1]
        total = np.zeros((len(checks), width), np.uint64)
        for byte in range(_BYTES):
            for bit in range(8):
                np.bitwise_xor(sums[: 1 << bit, :width], some[8 * byte + bit], out=sums[1 << bit : 2 << bit, :width])
            total ^= np.take(sums[:, :width], entries[byte], axis=0, out=more[:, :width], mode="clip")
        checks[:, start : start + width] = total
    return words


@cache
def _entries() -> NDArray[np.intp]:
    """By byte of a message and check bit of the word, which of the byte's bits it sums up; shape (16, 384)."""
    bits = np.unpackbits(generator().view(np.uint8), axis=1, bitorder="little")[:, MESSAGE_BITS:]
    return np.packbits(bits.reshape(_BYTES, 8, -1), axis=1, bitorder="little")[:, 0].astype(np.intp)


@cache
def encoding() -> Tables:
    """The tables of the code; under a mask of shape (8,) they give words under that mask."""
    tables = np.zeros((_BYTES, 256, _WORDS), np.uint64)
    for table, rows in zip(tables, generator().reshape(_BYTES, 8, _WORDS), strict=True):
        for bit, row in enumerate(rows):
            table[1 << bit : 2 << bit] = table[: 1 << bit] ^ row
    tables.flags.writeable = False
    return tables


@cache
def generator() -> Words:
    """The words of the messages of a single bit, shape (128, 8)."""
    factor = generator_polynomial()
    checks = factor.bit_length() - 1
    rows, remainder, first = bytearray(), 1, _LENGTH - MESSAGE_BITS
    for place in range(1, _LENGTH):  # of the power of x before it
        remainder <<= 1
        if remainder >> checks:
            remainder ^= factor
        if place >= first:
            rows += (1 << (place - first) | remainder << MESSAGE_BITS).to_bytes(WORD_BITS // 8, "little")
    return np.frombuffer(bytes(rows), "<u8").reshape(-1, _WORDS).astype(np.uint64)


def generator_polynomial() -> int:
    """The least polynomial over GF(2) that vanishes at the powers 0 to 110 of α, its coefficients from the lowest."""
    powers = [1]
    for _ in range(_LENGTH - 1):
        double = powers[-1] << 1
        powers.append(double ^ _FIELD if double >> _DEGREE else double)
    logarithms = {value: exponent for exponent, value in enumerate(powers)}
    product = 1
    for conjugates in {frozenset((zero << times) % _LENGTH for times in range(_DEGREE)) for zero in range(_ZEROS)}:
        coefficients = [1]
        for zero in conjugates:  # the product of all x − α^zero, whose coefficients are bits
            multiples = [powers[(logarithms[value] + zero) % _LENGTH] if value else 0 for value in coefficients]
            coefficients = [low ^ high for low, high in zip([*multiples, 0], [0, *coefficients], strict=True)]
        before, product = product, 0
        for exponent, bit in enumerate(coefficients):
            product ^= before * bit << exponent
    return product

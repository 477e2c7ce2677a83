"""The field GF(2^64): its elements are words, bit i the coefficient of X^i, modulo X^64 + X^4 + X^3 + X + 1.

Words are multiplied as polynomials by multiplying integers: of each operand every fourth bit is taken, so that the sums
of ones fall into the holes between and are masked out. No branch and no place in memory depends on a word.

Source: Pornin, BearSSL, `ghash_ctmul64` (multiplication with holes, the upper half by words that are turned round);
Seroussi, "Table of low-weight binary irreducible polynomials", HP Labs HPL-98-135, 1998 (the modulus).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

BITS: Final = 64
_PIECE: Final = 1 << 12  # elements at once: what a product keeps stays in the cache
_FOURTHS: Final = tuple(np.uint64(0x1111111111111111 << place & (1 << BITS) - 1) for place in range(4))
_HALVES: Final = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in (
        (1, 0x5555555555555555),
        (2, 0x3333333333333333),
        (4, 0x0F0F0F0F0F0F0F0F),
        (8, 0x00FF00FF00FF00FF),
        (16, 0x0000FFFF0000FFFF),
        (32, 0x00000000FFFFFFFF),
    )
)
_LOWER: Final = tuple(np.uint64(shift) for shift in (1, 3, 4))  # of the modulus, beside 1

Elements = NDArray[np.uint64]


def product(x: Elements, y: Elements) -> Elements:
    """Products of elements, place by place, of arrays of one shape (n,)."""
    found = np.empty(len(x), np.uint64)
    for start in range(0, len(x), _PIECE):
        part = slice(start, start + _PIECE)
        found[part] = _product(x[part], y[part])
    return found


def powers(x: np.uint64, number: int) -> Elements:
    """x^0, x^1, … of one element, shape (number,)."""
    found = np.ones(1, np.uint64)
    step = np.array([x], np.uint64)  # x to as many as there are
    while len(found) < number:
        found = np.concatenate([found, product(found, np.repeat(step, len(found)))])
        step = product(step, step)
    return found[:number]


def evaluated(coefficients: Elements, at: np.uint64) -> np.uint64:
    """The sum of one or more coefficients times powers of an element, from its power 0 on."""
    width = min(len(coefficients), _PIECE)
    padded = np.zeros((-(-len(coefficients) // width), width), np.uint64)
    padded.reshape(-1)[: len(coefficients)] = coefficients
    row = powers(at, width + 1)
    step = np.repeat(row[-1:], width)
    found = np.zeros(width, np.uint64)
    for part in padded[::-1]:
        found = _product(found, step) ^ part
    return np.uint64(np.bitwise_xor.reduce(_product(found, row[:-1])))


def _product(x: Elements, y: Elements) -> Elements:
    low, high = _lower(x, y), _turned(_lower(_turned(x), _turned(y)))
    high >>= np.uint64(1)  # of degrees from 64 to 126
    # X^64 is X^4 + X^3 + X + 1; what this carries over the top once more has a degree below 8.
    over = high >> np.uint64(BITS - 1) ^ high >> np.uint64(BITS - 3) ^ high >> np.uint64(BITS - 4)
    high ^= over
    low ^= high
    for shift in _LOWER:
        low ^= high << shift
    return low


def _lower(x: Elements, y: Elements) -> Elements:
    """The coefficients of degrees below 64 of products of polynomials."""
    ones, others = ([each & mask for mask in _FOURTHS] for each in (x, y))
    found = np.zeros_like(x)
    for place, mask in enumerate(_FOURTHS):
        total = ones[0] * others[place]
        for one in range(1, 4):
            total ^= ones[one] * others[(place - one) % 4]
        total &= mask
        found |= total
    return found


def _turned(x: Elements) -> Elements:
    """Words with their bits in the opposite order."""
    for shift, mask in _HALVES:
        x = (x >> shift & mask) | (x & mask) << shift
    return x

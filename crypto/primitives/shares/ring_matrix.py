"""Exact matrix products modulo 2^32 and 2^64 at the speed of floating-point linear algebra.

Words are cut into limbs of 16 bits, and limbs are multiplied as 64-bit floats. A product of two limbs is below 2^32, so
that a sum over up to 2^21 of them stays below 2^53, up to which a float holds every integer, and is exact in whatever
order it is added up; longer sums are cut.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.masks import Words
from link.randomness import RandomStream

MAX_ROWS: Final = (1 << 31) - 1
"""Rows of which counts, in words of 32 bits, keep their top bit free."""

BLOCK_WORDS: Final = 1 << 22  # of all columns together that a protocol computes with at once: 16 MB in words of 32 bits
LIMB_BITS: Final = 16

BLOCK: Final = 1 << 12  # columns at once, which stay in the cache; up to 2^21 are exact
# Products of so few terms stay in one thread of the library for linear algebra. Its threads wait for one another by
# spinning, which costs whole seconds where several processes share the cores, as parties on one machine do.
_TERMS: Final = 1 << 18
_TILE: Final = 64  # rows of x and of y at once

Limbs = NDArray[np.float64]
"""Shape (limbs, pieces, rows, columns of a piece): the words' lowest 16 bits first."""


def matrix_product(x: Words, y: Words, word: type[np.unsignedinteger[Any]]) -> Words:
    """The product x · yᵀ modulo 2^w.

    Args:
        x: Shape (a, n), unsigned words no wider than the result's; the narrower, the faster.
        y: Shape (b, n), likewise.
        word: The result's type, `np.uint32` or `np.uint64`.

    Returns:
        Shape (a, b).

    Raises:
        ValueError: Shapes or types do not fit.
    """
    bits = 8 * np.dtype(word).itemsize
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(f"matrices of shapes {x.shape} and {y.shape} have no product by rows")
    if bits not in (32, 64) or any(each.dtype.kind != "u" or 8 * each.itemsize > bits for each in (x, y)):
        raise ValueError(f"matrices of {x.dtype} and {y.dtype} have no product modulo 2^{bits}")
    total = np.zeros((len(x), len(y)), np.uint64)
    for rows in _tiles(len(x)):
        for columns in _tiles(len(y)):
            total[rows, columns] = _tile_product(x[rows], y[columns], bits)
    return total.astype(word)


def _tiles(number: int) -> list[slice]:
    return [slice(start, min(start + _TILE, number)) for start in range(0, number, _TILE)]


def _tile_product(x: Words, y: Words, bits: int) -> NDArray[np.uint64]:
    piece = min(_TERMS // (len(x) * len(y)), BLOCK)
    total = np.zeros((len(x), len(y)), np.uint64)
    for start in range(0, x.shape[1], BLOCK):
        block = slice(start, start + BLOCK)
        ours, theirs = _limbs(x[:, block], piece), _limbs(y[:, block], piece)
        for place, limb in enumerate(theirs):
            # Pairs of limbs that count 2^w and more are zero modulo 2^w.
            for other, own in enumerate(ours[: bits // LIMB_BITS - place]):
                exact = np.matmul(own, limb.transpose(0, 2, 1)).sum(axis=0)
                total += exact.astype(np.uint64) << np.uint64(LIMB_BITS * (place + other))
    return total


def _limbs(words: Words, piece: int) -> Limbs:
    """Words of shape (rows, n), cut; n is filled up with zeros to whole pieces."""
    rows, length = words.shape
    pieces = -(-length // piece)
    number = max(1, 8 * words.itemsize // LIMB_BITS)
    padded = np.zeros((rows, pieces * piece), words.dtype.newbyteorder("<"))
    padded[:, :length] = words
    narrow = padded if number == 1 else padded.view("<u2")
    cut = narrow.reshape(rows, pieces, piece, number)
    return np.ascontiguousarray(cut.transpose(3, 1, 0, 2), np.float64)


def row_blocks(rows: int, columns: int) -> list[tuple[int, int]]:
    """Rows in blocks that begin at multiples of 8, each with about `BLOCK_WORDS` words of all columns.

    Raises:
        ValueError: There are more than `MAX_ROWS`.
    """
    if not 0 <= rows <= MAX_ROWS:
        raise ValueError(f"columns of {rows} rows are too long: at most {MAX_ROWS} are counted in words of 32 bits")
    step = max(1024, BLOCK_WORDS // max(columns, 1) // 8 * 8)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def random_matrix(random: RandomStream, shape: tuple[int, int], word: type[np.unsignedinteger[Any]]) -> Words:
    """The next words of a stream as a matrix, each uniform; equal streams give equal matrices."""
    number = shape[0] * shape[1]
    octets = number * np.dtype(word).itemsize
    return random.uint64(-(-octets // 8)).view(word)[:number].reshape(shape)

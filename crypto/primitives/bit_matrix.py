"""Bit matrices of 128 rows in numpy: the transpose on which oblivious-transfer extension turns.

A matrix is kept by rows, each a string of bits packed little-endian: bit j of row i is bit j mod 8 of byte j // 8. Its
transpose is kept as rows of 128 bits, two 64-bit words each.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROWS: Final = 128
_TILE_BYTES: Final = 16  # 128 columns
# 410 KB: the tiles' six passes stay in the second-level cache. No power of two, at which rows would share cache sets.
_TILES_AT_ONCE: Final = 205

# Delta swaps: at step s, bits whose position has bit s set change places across rows that lie s apart.
_STEPS: Final = (
    (32, np.uint64(0x00000000FFFFFFFF)),
    (16, np.uint64(0x0000FFFF0000FFFF)),
    (8, np.uint64(0x00FF00FF00FF00FF)),
    (4, np.uint64(0x0F0F0F0F0F0F0F0F)),
    (2, np.uint64(0x3333333333333333)),
    (1, np.uint64(0x5555555555555555)),
)

Rows128 = NDArray[np.uint64]
"""Shape (n, 2): n rows of 128 bits."""


def transpose(matrix: NDArray[np.uint8], out: Rows128 | None = None) -> Rows128:
    """The transpose of a matrix of 128 rows.

    Args:
        matrix: Shape (128, n / 8), C-contiguous, n a multiple of 128.
        out: Where the result goes, as two neighbouring words of longer rows, shape (n, 2).

    Returns:
        Shape (n, 2): row j holds bit j of all 128 rows, that of row i as bit i.

    Raises:
        ValueError: The matrix has another shape.

    Source: Eklundh, "A fast computer method for matrix transposing", IEEE Trans. Computers C-21(7), 1972.
    """
    if matrix.ndim != 2 or matrix.shape[0] != ROWS or matrix.shape[1] % _TILE_BYTES:
        raise ValueError(f"only matrices of 128 rows and a multiple of 128 columns, not {matrix.shape} bytes")
    tiles = matrix.shape[1] // _TILE_BYTES
    rows = np.empty((tiles * ROWS, 2), np.uint64) if out is None else out
    by_tile = rows.reshape(tiles, ROWS, 2, copy=False)
    source = matrix.view("<u8").reshape(ROWS, tiles, 2)
    for start in range(0, tiles, _TILES_AT_ONCE):
        stop = min(start + _TILES_AT_ONCE, tiles)
        by_tile[start:stop] = _transpose_tiles(source[:, start:stop]).transpose(2, 0, 1)
    return rows


def transpose_back(rows: Rows128) -> NDArray[np.uint8]:
    """The matrix whose transpose this is.

    Args:
        rows: Shape (n, 2), n a multiple of 128.

    Returns:
        Shape (128, n / 8).

    Raises:
        ValueError: The rows have another shape.
    """
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) % ROWS:
        raise ValueError(f"only multiples of 128 rows of two words, not {rows.shape}")
    turned = transpose(_side_by_side(rows).view(np.uint8))
    return _side_by_side(turned).view(np.uint8)


def _side_by_side(rows: Rows128) -> NDArray[np.uint64]:
    """Every 128 rows beside those before them: shape (128, n / 64)."""
    return np.ascontiguousarray(rows.reshape(-1, ROWS, 2).transpose(1, 0, 2)).reshape(ROWS, -1)


def _transpose_tiles(source: NDArray[Any]) -> NDArray[np.uint64]:
    """Shape (128, 2, tiles): of every tile the quadrants change places, then each is transposed."""
    number = source.shape[1]
    tiles = np.empty((ROWS, 2, number), np.uint64)
    tiles[:64, 0], tiles[:64, 1] = source[:64, :, 0], source[64:, :, 0]
    tiles[64:, 0], tiles[64:, 1] = source[:64, :, 1], source[64:, :, 1]
    for step, mask in _STEPS:
        pairs = tiles.reshape(2, 64 // (2 * step), 2, step, 2, number)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        swap = low >> np.uint64(step)
        swap ^= high
        swap &= mask
        high ^= swap
        swap <<= np.uint64(step)
        low ^= swap
    return tiles


def xor_each(rows: Rows128, row: NDArray[np.uint64]) -> Rows128:
    """The XOR of one row to each of many, many at a time: numpy is slow where the last axis is short.

    Args:
        rows: Shape (n, 2), C-contiguous.
        row: Shape (2,).

    Returns:
        Shape (n, 2).
    """
    result = np.empty_like(rows)
    whole, wide = len(rows) // ROWS * ROWS, (-1, 2 * ROWS)
    np.bitwise_xor(rows[:whole].reshape(wide), np.tile(row, ROWS), out=result[:whole].reshape(wide))
    np.bitwise_xor(rows[whole:], row, out=result[whole:])
    return result


def pack_bits(bits: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bits along the last axis as bytes, the first bit lowest; the last byte is filled up with zeros."""
    return np.packbits(bits, axis=-1, bitorder="little")


def unpack_bits(packed: NDArray[np.uint8], number: int) -> NDArray[np.uint8]:
    """The first `number` bits of packed bytes along the last axis, each 0 or 1."""
    return np.unpackbits(packed, axis=-1, count=number, bitorder="little")

"""Rows of bits, eight to a byte, the first lowest: what unary reports are, and how they are counted."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic
from ldp.arithmetic.sampling import Bits, coin_words
from ldp.domain import Codes

Rows = NDArray[np.uint8]
"""Shape (n, ⌈d / 8⌉); bits behind the d-th are 0."""

_GROUP: Final = 255  # rows whose ones fit a byte


def row_bytes(d: int) -> int:
    """Bytes of a row of d bits."""
    return -(-d // 8)


def coin_rows(probability: Dyadic, n: int, d: int, rng: Randomness) -> Rows:
    """Rows of d independent bits, each 1 with exactly the given probability."""
    # A row has words of its own, also where it does not fill the last one.
    words = coin_words(probability, n, -(-d // 64), rng)
    rows = np.ascontiguousarray(words.view(np.uint8)[:, : row_bytes(d)])
    if d % 8:
        rows[:, -1] &= (1 << d % 8) - 1
    return rows


def set_bits(rows: Rows, columns: Codes, bits: Bits) -> None:
    """Sets one bit of each row, in place.

    Args:
        rows: n rows.
        columns: Shape (n,): which bit of each.
        bits: Shape (n,): to what.
    """
    place = np.arange(len(rows))
    byte, mask = columns >> 3, (1 << (columns & 7)).astype(np.uint8)
    cleared = rows[place, byte] & ~mask
    rows[place, byte] = np.where(bits, cleared | mask, cleared)


def bits_at(rows: Rows, columns: Codes) -> Bits:
    """Some bits of each row.

    Args:
        rows: n rows of bits.
        columns: Which bits: shape (k,) for the same ones of all rows, or (n, k).

    Returns:
        Shape (n, k).
    """
    places = np.broadcast_to(columns, (len(rows), columns.shape[-1]))
    bytes_of = np.take_along_axis(rows, places >> 3, axis=1)
    return (bytes_of >> (places & 7).astype(np.uint8) & 1).astype(np.bool_)


def column_sums(rows: Rows, d: int) -> NDArray[np.int64]:
    """How many rows have each bit set, shape (d,)."""
    sums = np.zeros(d, dtype=np.int64)
    for start in range(0, len(rows), _GROUP):
        group = np.unpackbits(rows[start : start + _GROUP], axis=1, count=d, bitorder="little")
        sums += group.sum(axis=0, dtype=np.uint8)
    return sums


def clean(rows: Rows, d: int) -> bool:
    """Whether all bits behind the d-th are 0."""
    return d % 8 == 0 or not np.any(rows[:, -1] >> d % 8)

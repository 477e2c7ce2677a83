"""Uniform subsets of a fixed size, many at once, as rows of bits or as lists."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic
from ldp.arithmetic.packed import Rows, coin_rows
from ldp.arithmetic.sampling import Bits
from ldp.domain import Codes

_COIN_BITS: Final = 12


def subset_rows(size: int, n: int, d: int, rng: Randomness) -> Rows:
    """Uniform subsets of 0 … d − 1 with `size` members, as n rows of bits.

    Independent bits give each row a subset that is uniform among those of its size; uniformly chosen members more or
    fewer leave it so. Bits start a little too rare, since a free place is found faster than a member.
    """
    start = max(0.0, size - 2 * sqrt(size)) / d
    rows = coin_rows(Dyadic.floor(Fraction(start), _COIN_BITS), n, d, rng)
    resize(rows, np.full(n, size), d, rng)
    return rows


def resize(rows: Rows, sizes: NDArray[np.int64], d: int, rng: Randomness) -> None:
    """Adds or removes uniformly chosen members until row i has `sizes[i]`, in place."""
    missing = sizes - np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    place = np.flatnonzero(missing)
    missing = missing[place]
    while place.size:
        drawn = rng.rows(place).integers(d, place.size).astype(np.int64)
        byte, mask = drawn >> 3, (1 << (drawn & 7)).astype(np.uint8)
        before = rows[place, byte]
        grows = missing > 0
        fits = ((before & mask) == 0) == grows
        rows[place, byte] = np.where(fits, before ^ mask, before)
        missing -= np.where(fits, np.where(grows, 1, -1), 0)
        unfinished = missing != 0
        place, missing = place[unfinished], missing[unfinished]


def subset_lists(size: int, n: int, d: int, rng: Randomness) -> NDArray[np.int64]:
    """Uniform subsets of 0 … d − 1 with `size` members, as lists in no particular order; shape (n, size).

    Source: Bentley and Floyd, "A Sample of Brilliance", Communications of the ACM 30(9), 1987, algorithm F2.
    """
    lists = np.empty((n, size), dtype=np.int64)
    for step, last in enumerate(range(d - size, d)):
        drawn = rng.integers(last + 1, n).astype(np.int64)
        taken = (lists[:, :step] == drawn[:, None]).any(axis=1)
        lists[:, step] = np.where(taken, last, drawn)
    return lists


def around(others: NDArray[np.int64], codes: Codes) -> NDArray[np.int64]:
    """Numbers among d − 1 as numbers among d that leave out each row's own value."""
    return others + (others >= codes[:, None])


def put_own_value(lists: NDArray[Any], codes: Codes, held: Bits, rng: Randomness) -> None:
    """Replaces a uniformly chosen member by the row's own value where `held` says so, in place."""
    rows = np.flatnonzero(held)
    lists[rows, rng.rows(rows).integers(lists.shape[1], rows.size).astype(np.int64)] = codes[rows]

"""Vectorised sampling with exact probabilities from the project's one source of randomness."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]

_CHUNK: Final = 1 << 15  # words; the few arrays of a chunk stay in the second-level cache
_DENSE_ROUNDS: Final = 9  # after which an eighth of the words holds an undecided bit
_ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def coin_flips(probability: Dyadic, size: int, rng: Randomness) -> Bits:
    """Independent flips, each true with exactly the given probability; shape (size,)."""
    threshold = probability.threshold()
    if threshold > int(_ALL):
        return np.ones(size, dtype=np.bool_)
    flips: Bits = rng.uint64(size) < np.uint64(threshold)
    return flips


def coin_words(probability: Dyadic, n: int, width: int, rng: Randomness) -> Words:
    """Rows of words of independent bits, each 1 with exactly the given probability.

    Each of 64 lanes compares a uniform number with the probability, both in binary from the highest bit on; a lane is
    decided at the first bit in which they differ, after two bits on average, and the slowest of 64 lanes after 7.3
    (Knuth and Yao, 1976, for one lane). How many words are drawn depends on randomness alone.

    Args:
        probability: Of a one.
        n: Rows.
        width: Words of a row.
        rng: What is drawn for a row, and how much, depends on that row's own draws alone.

    Returns:
        Shape (n, width).
    """
    if probability.numerator == 1 << probability.bits:
        return np.full((n, width), _ALL)
    result = np.zeros((n, width), dtype=np.uint64)
    step = max(1, _CHUNK // max(1, width))
    for start in range(0, n, step):
        part = result[start : start + step]
        _flip_lanes(part.reshape(-1), width, probability, rng.rows(np.arange(start, start + len(part))))
    return result


def _flip_lanes(ones: Words, width: int, probability: Dyadic, rng: Randomness) -> None:
    undecided = np.full(len(ones), _ALL)
    digits = [probability.numerator >> place & 1 for place in reversed(range(probability.bits))]
    while digits and digits[-1] == 0:
        digits.pop()  # an undecided lane equals the probability so far: not below it
    for digit in digits[:_DENSE_ROUNDS]:
        undecided = _compare(ones, undecided, digit, rng)
    late = np.flatnonzero(undecided)
    late_ones, undecided = ones[late], undecided[late]
    for digit in digits[_DENSE_ROUNDS:]:
        if not late.size:
            return
        undecided = _compare(late_ones, undecided, digit, rng.rows(late // width))
        ones[late] = late_ones
        open_still = undecided != 0
        late, late_ones, undecided = late[open_still], late_ones[open_still], undecided[open_still]


def _compare(ones: Words, undecided: Words, digit: int, rng: Randomness) -> Words:
    """One digit: marks lanes whose number is now smaller, and returns those that are equal still."""
    drawn = rng.uint64(len(ones))
    np.bitwise_and(drawn, undecided, out=drawn)
    if digit:
        np.bitwise_xor(undecided, drawn, out=undecided)
        np.bitwise_or(ones, undecided, out=ones)
    return drawn

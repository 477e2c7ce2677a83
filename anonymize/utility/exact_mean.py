"""Means of floats that depend on no order: summed exactly and rounded once.

A release whose rows are counted and one whose rows are held thus have the same loss, to the last digit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

_CHUNK: Final = 1 << 20
_DIGITS: Final = 53  # of a float's significand
_PART: Final = 18  # bits that are summed together: exact in a float for up to 2^35 values
_MASK: Final = (1 << _PART) - 1


def exact_sum(values: NDArray[np.float64], weights: NDArray[np.int64] | None = None) -> Fraction:
    """Σ weight · value, exactly.

    Args:
        values: Finite and at least 0, of any shape.
        weights: How often each counts, of the same shape; once if not given. They add up to less than 2^35.
    """
    flat = np.ascontiguousarray(values, np.float64).reshape(-1)
    counts = None if weights is None else weights.reshape(-1)
    total = Fraction(0)
    for start in range(0, len(flat), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        total += _sum(flat[chunk], None if counts is None else counts[chunk])
    return total


def exact_mean(values: NDArray[np.float64]) -> float:
    """The mean of floats of at least 0, rounded once; there is one at least."""
    return float(exact_sum(values) / values.size)


def _sum(values: NDArray[np.float64], weights: NDArray[np.int64] | None) -> Fraction:
    fractions, exponents = np.frexp(values)
    least = int(exponents.min())
    places = exponents - least
    whole = (fractions * float(1 << _DIGITS)).astype(np.int64)  # exact: a float has so many digits
    total = 0
    for part in range(0, _DIGITS + 1, _PART):
        digits = (whole >> part) & _MASK
        sums = np.bincount(places, digits if weights is None else digits * weights)
        total += sum(int(each) << (place + part) for place, each in enumerate(sums.tolist()))
    return total * Fraction(2) ** (least - _DIGITS)

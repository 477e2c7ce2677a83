"""Exact fractions as floats, rounded to a known side."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def float_above(value: Fraction) -> float:
    """The least float that is not below the value, or the next one."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """The largest float that is not above the value, or the next one."""
    return -float_above(-value)


def floats_above(values: Iterable[Fraction]) -> Floats:
    """The same for many, as an array."""
    return np.array([float_above(value) for value in values], dtype=np.float64)


def floats_below(values: Iterable[Fraction]) -> Floats:
    """The same for many, as an array."""
    return np.array([float_below(value) for value in values], dtype=np.float64)

"""Uniform and normal floating-point numbers from the project's source of randomness."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crypto.primitives.randomness import Randomness

Floats = NDArray[np.float64]

_FRACTION_BITS: Final = 53


def uniform(size: int, rng: Randomness) -> Floats:
    """Uniform numbers strictly between 0 and 1, on a grid of 2⁻⁵³; shape (size,)."""
    words: Floats = ((rng.uint64(size) >> np.uint64(64 - _FRACTION_BITS)) + 0.5) / (1 << _FRACTION_BITS)
    return np.minimum(words, np.nextafter(1.0, 0.0))


def symmetric(size: int, rng: Randomness) -> Floats:
    """Uniform numbers strictly between −1 and 1; shape (size,)."""
    return 2 * uniform(size, rng) - 1


def standard_normal(size: int, rng: Randomness) -> Floats:
    """Numbers of the standard normal distribution, by inversion; shape (size,).

    This is noise for publishing, not for differential privacy: the grid of the uniform numbers shows in the tails.
    """
    numbers: Floats = ndtri(uniform(size, rng))
    return numbers

"""The fast Walsh–Hadamard transform."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def walsh_hadamard(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Σ_z (−1)^⟨y, z⟩ · values[z] for every y, along the last axis; O(K log K) for K entries.

    Args:
        values: The last axis has a power of two of entries.

    Returns:
        The same shape; exact while sums fit 64 bits.
    """
    result = np.array(values)
    size, half = result.shape[-1], 1
    while half < size:
        pairs = result.reshape(*result.shape[:-1], -1, 2, half)
        left, right = pairs[..., 0, :], pairs[..., 1, :]
        difference = left - right
        np.add(left, right, out=left)
        right[...] = difference
        half *= 2
    return result


def parity(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each number has an odd number of one bits: −1 in a Hadamard matrix."""
    odd: NDArray[np.bool_] = (np.bitwise_count(numbers) & 1).astype(np.bool_)
    return odd

"""How like its original a virtual record is.

Source: Kang and Meng, "An enhanced privacy-protection method based on identity replacement", Journal of Zhengzhou
University (Natural Science Edition) 50(2), 2018, definitions 3–9.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Beta = Literal["projection", "symmetric"]


def attribute_similarity(original: ArrayLike, virtual: ArrayLike, scale: float) -> Floats:
    """λ = 1 − |v − x| / |x| (eq. 1, 2), cut to [0, 1].

    The paper divides by x and has δ in [0, 1]. Here a negative x counts by its size, and where x = 0 the difference is
    divided by `scale`. A difference above |x| makes λ 0: negative factors would make products positive again.

    Args:
        original: x, any shape.
        virtual: v, of the same shape.
        scale: What an x of 0 is compared with; at a scale of 0 any difference is all.

    Returns:
        The same shape.
    """
    x, v = np.asarray(original, np.float64), np.asarray(virtual, np.float64)
    difference = np.abs(v - x)
    size = np.where(x == 0, scale, np.abs(x))
    delta = np.divide(difference, size, out=np.where(difference > 0, 1.0, 0.0), where=size > 0)
    similarity: Floats = np.clip(1 - delta, 0, 1)
    return similarity


def identity_similarity(similarities: ArrayLike, influences: ArrayLike) -> Floats:
    """α = Π ζ_i·λ_i (eq. 3): shape (n,), of attributes' similarities (n, d) and influences (d,)."""
    alpha: Floats = np.prod(np.asarray(similarities, np.float64) * np.asarray(influences, np.float64), axis=-1)
    return alpha


def feature_similarity(original: ArrayLike, virtual: ArrayLike, kind: Beta = "projection") -> Floats:
    """β (eq. 4), how well the virtual record as a vector represents the original one.

    "projection" is |a|·cos(a, b) / |b|, the length of the virtual a's projection on the original b by the length of b:
    the symbol under the fraction is lost in print, and of the two readings this is the one that falls when the virtual
    record shrinks. It exceeds 1 when the virtual record is longer. "symmetric" is
    min(|a|, |b|) / max(|a|, |b|)·cos(a, b), at most 1. A zero original is like a zero virtual record alone.

    Args:
        original: b, shape (n, d), of numbers in units that make the columns comparable.
        virtual: a, shape (n, d).
        kind: The reading.

    Returns:
        Shape (n,).

    Raises:
        ConfigurationError: The reading is unknown.
    """
    b, a = np.asarray(original, np.float64), np.asarray(virtual, np.float64)
    inner, length, other = (a * b).sum(axis=-1), (b * b).sum(axis=-1), (a * a).sum(axis=-1)
    if kind == "symmetric":
        length, other = np.maximum(length, other), length
    elif kind != "projection":
        raise ConfigurationError(f'beta is "{kind}"; it must be projection or symmetric.')
    beta: Floats = np.divide(inner, length, out=np.where(other == 0, 1.0, 0.0), where=length > 0)
    return beta

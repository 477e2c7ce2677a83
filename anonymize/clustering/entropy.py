"""The entropy of levels of sensitivity in classes.

Source: Shi, Zhang and Dong, "Data anonymity method based on sensitive hierarchical information entropy", Computer
Applications and Software 41(5), 2024: equations 1 and 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def level_entropy(counts: ArrayLike, weights: ArrayLike, base: float = 2.0) -> Floats:
    """HEC, the weighted entropy of the levels of sensitivity in classes (eq. 1, 2).

    Args:
        counts: Shape (…, levels), records of each level in each class; each class has one at least.
        weights: Shape (levels,), of each level.
        base: Of the logarithm. It scales the entropy, and so shifts its weight in an index with other terms.

    Returns:
        Shape (…).
    """
    numbers = np.asarray(counts, np.float64)
    shares = numbers / numbers.sum(axis=-1, keepdims=True)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    entropy: Floats = -(shares * logarithms) @ np.asarray(weights, np.float64) / np.log(base)
    return entropy

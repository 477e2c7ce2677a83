"""The LASSO with coefficients that are not negative, by coordinate descent.

Source: Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear Models via Coordinate Descent",
Journal of Statistical Software 33(1), 2010, section 2; RAPPOR's server uses it to select candidates.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SWEEPS: Final = 1000
_ENOUGH: Final = 1e-6


def non_negative_lasso(matrix: Any, target: Floats, penalties: Floats) -> Floats:
    """Minimises ½·|target − matrix·β|² + Σ penalty_j·β_j over β ≥ 0.

    Each sweep finds by one product the coordinates that can move at all: those that are positive, and those at 0 whose
    correlation with what is left exceeds their penalty. They are then minimised one after another.

    Args:
        matrix: Sparse, in column form, shape (rows, S), no column empty.
        target: Shape (rows,).
        penalties: Shape (S,), not negative.

    Returns:
        β, shape (S,), up to about 10^-6 of the largest coefficient.
    """
    starts, rows, entries = matrix.indptr, matrix.indices, matrix.data
    squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    found, left = np.zeros(matrix.shape[1]), target.astype(np.float64)
    for _ in range(_SWEEPS):
        slopes = matrix.T @ left - penalties
        moved = 0.0
        for j in np.flatnonzero((found > 0) | (slopes > 0)):
            part = slice(starts[j], starts[j + 1])
            slope = float(entries[part] @ left[rows[part]]) - penalties[j]
            step = max(slope / squares[j], -found[j])
            if step:
                found[j] += step
                left[rows[part]] -= step * entries[part]
                moved = max(moved, abs(step))
        if moved <= _ENOUGH * found.max():
            break
    return found

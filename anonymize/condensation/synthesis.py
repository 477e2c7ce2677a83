"""Synthetic records from the moments of groups."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.condensation.moments import Moments, principal_axes
from anonymize.sampling import symmetric
from crypto.primitives.randomness import Randomness

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-13  # of the mean square: a smaller variance is what rounding has left of none


def synthesise(moments: Moments, factor: int, rng: Randomness) -> tuple[Floats, NDArray[np.int64]]:
    """Draws records that have, in expectation, the means and covariances of the groups.

    A record is its group's mean plus, along each principal axis, a uniform number of the axis's variance: within
    ±√(12λ)/2 = ±√(3λ). Source: Aggarwal, "Data Mining", 2015, section 20.3.1.4.

    Args:
        moments: Of g groups.
        factor: Records drawn for each record of a group.
        rng: Where the numbers come from.

    Returns:
        Records, shape (Σ factor·r, d), group after group; and the group of each.
    """
    values, vectors = principal_axes(moments.covariances)
    squares = np.trace(moments.products, axis1=1, axis2=2) / moments.counts
    values[values <= _ROUNDING * squares[:, None]] = 0
    groups = np.repeat(np.arange(len(moments)), factor * moments.counts)
    d = values.shape[1]
    along = symmetric(len(groups) * d, rng).reshape(-1, d) * np.sqrt(3 * values)[groups]
    axes = vectors[groups]
    return moments.means[groups] + np.einsum("nij,nj->ni", axes, along), groups

"""Losses of linear models, by their gradients: what a user computes about its own record.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section V.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

Loss: TypeAlias = Callable[[Floats, Floats], Floats]
"""From predictions x·β and targets y, each of shape (n,), to the derivatives of the loss by the prediction."""


def logistic(predictions: Floats, targets: Floats) -> Floats:
    """Of ln(1 + e^(−y·x·β)), y ∈ {−1, 1}: logistic regression."""
    slopes: Floats = -targets * expit(-targets * predictions)
    return slopes


def squared(predictions: Floats, targets: Floats) -> Floats:
    """Of (x·β − y)²/2: linear regression."""
    slopes: Floats = predictions - targets
    return slopes


def hinge(predictions: Floats, targets: Floats) -> Floats:
    """Of max(0, 1 − y·x·β), y ∈ {−1, 1}: a linear support vector machine."""
    return np.where(targets * predictions < 1, -targets, 0.0)


LOSSES: Final[dict[str, Loss]] = {"logistic": logistic, "squared": squared, "hinge": hinge}

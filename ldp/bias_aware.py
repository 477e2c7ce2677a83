"""Deviations for estimates that are biased by an unknown amount, or selected because they are large.

An estimate with standard deviation s and a bias of at most b is off by no more than s·c in 95 of 100 cases, whatever
the bias, if c is that quantile of |N(b/s, 1)|: 1.96 without bias, and about b/s + 1.645 where bias is most of it. So a
table that has one deviation for each estimate, and ends at ±1.96 of it, takes s·c/1.96.

Of m estimates the k largest are those that err upwards, where noise is most of them. So that of the k that are selected
one in twenty at most is too high, a share of 0.05·k/m of all m may be: 1.96 as before for k = m/2, 2.24 for k = m/4.

Source: Armstrong and Kolesár, "Optimal Inference in a Class of Regression Models", Econometrica 86(2), 2018; Imbens and
Manski, "Confidence Intervals for Partially Identified Parameters", Econometrica 72(6), 2004; Benjamini and
Yekutieli, "False Discovery Rate-Adjusted Multiple Confidence Intervals for Selected Parameters", JASA 100(469), 2005.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE: Final = 0.95
NORMAL: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
ONE_SIDED: Final = NormalDist().inv_cdf(CONFIDENCE)
"""What a standard normal variable exceeds in one of twenty cases."""

_STEPS: Final = 40


def deviations_with_bias(deviations: ArrayLike, biases: ArrayLike) -> NDArray[np.float64]:
    """The standard deviations of unbiased estimates whose 95 % intervals would be as wide as these must be.

    Args:
        deviations: s, not negative.
        biases: b, the largest bias of each, not negative.

    Returns:
        At least `deviations`, in the shape that both have together.
    """
    from scipy.special import ndtr  # clients do without scipy

    spread, bias = np.broadcast_arrays(np.asarray(deviations, np.float64), np.asarray(biases, np.float64))
    ratio = np.divide(bias, spread, out=np.full(bias.shape, np.inf), where=spread > 0)
    known = np.minimum(ratio, 8.0)  # beyond, the far side counts for nothing
    low, high = known + ONE_SIDED, known + NORMAL
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = ndtr(middle - known) - ndtr(-middle - known) >= CONFIDENCE
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    near = spread * high / NORMAL
    return np.where(ratio > known, (bias + ONE_SIDED * spread) / NORMAL, near)


def selection_factor(selected: int, among: int) -> float:
    """By what deviations grow where the largest estimates are selected.

    Args:
        selected: k, how many are selected.
        among: m, from how many they were chosen.

    Returns:
        At least 1.
    """
    return (
        max(1.0, NormalDist().inv_cdf(1 - (1 - CONFIDENCE) * min(selected / among, 1.0)) / NORMAL) if selected else 1.0
    )

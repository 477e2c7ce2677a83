"""How good estimated frequencies are: their L1 distance from the true ones, and the order they put things in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from link.errors import InputDataError


def l1(estimated: ArrayLike, true: ArrayLike) -> float:
    """The sum of absolute errors.

    Args:
        estimated: Shape (k,).
        true: Shape (k,).
    """
    return float(np.sum(np.abs(np.asarray(estimated) - np.asarray(true))))


def ndcg(estimated: ArrayLike, true: ArrayLike, k: int | None = None) -> float:
    """The normalised discounted cumulative gain of the order by estimates, with true frequencies as gains.

    The sum of gain/log₂(place + 1) over the first k places, divided by that of the best order.
    Source: Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM TOIS 20(4), 2002.

    Args:
        estimated: Shape (d,).
        true: Shape (d,): not negative, and not all 0.
        k: How many places count; by default all.

    Raises:
        InputDataError: The true frequencies are none.
    """
    gains, order = np.asarray(true, dtype=np.float64), np.argsort(-np.asarray(estimated), kind="stable")
    if not gains.size or gains.min() < 0 or not gains.any():
        raise InputDataError("an order is measured by true frequencies that are not negative, and not all 0")
    discounts = 1 / np.log2(np.arange(2, gains.size + 2))
    return float(gains[order][:k] @ discounts[:k] / (np.sort(gains)[::-1][:k] @ discounts[:k]))

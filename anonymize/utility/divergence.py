"""How far the distribution that a release suggests lies from the original one, column by column."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError


def spread(counts: ArrayLike, groups: ArrayLike) -> NDArray[np.float64]:
    """Counts of values after each group's total is shared out evenly among the values of the group.

    That is how an analyst must read a generalised column who knows nothing but the hierarchy.

    Args:
        counts: Shape (m,): rows of each value.
        groups: Shape (m,): the group into which each value is merged, as numbers from 0.

    Returns:
        Shape (m,).
    """
    rows, merged = np.asarray(counts, dtype=np.float64), np.asarray(groups, dtype=np.int64)
    totals, members = np.bincount(merged, weights=rows), np.bincount(merged)
    shares: NDArray[np.float64] = totals[merged] / members[merged]
    return shares


def kl_bits(original: ArrayLike, suggested: ArrayLike) -> float:
    """Kullback-Leibler divergence KL(original ‖ suggested) of two columns of counts, in bits.

    Args:
        original: Shape (m,): rows of each value as they were.
        suggested: Shape (m,): rows of each value as the release suggests them; of any total above 0.

    Returns:
        0 or more; infinity where a value that exists is given no probability at all.

    Raises:
        ConfigurationError: The shapes differ, or one of the two is empty.
    """
    p, q = np.asarray(original, dtype=np.float64), np.asarray(suggested, dtype=np.float64)
    if p.shape != q.shape or p.sum() <= 0 or q.sum() <= 0:
        raise ConfigurationError("A divergence compares two distributions over the same values, each of some rows.")
    p, q = p / p.sum(), q / q.sum()
    held = p > 0
    if (q[held] <= 0).any():
        return float("inf")
    return max(0.0, float((p[held] * np.log2(p[held] / q[held])).sum()))

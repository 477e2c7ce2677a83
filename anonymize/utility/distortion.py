"""Distance between numeric records and what was published for them: microaggregation, centres, noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError


def _pair(original: ArrayLike, published: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(original, dtype=np.float64), np.asarray(published, dtype=np.float64)
    x, y = (each[:, None] if each.ndim == 1 else each for each in (x, y))
    if x.shape != y.shape or x.ndim != 2 or x.size == 0:
        raise ConfigurationError(
            f"Distortion compares rows one by one; original data has shape {x.shape}, published data {y.shape}."
        )
    return x, y


def sse(original: ArrayLike, published: ArrayLike) -> float:
    """Sum of squared differences over all cells, in the columns' own units.

    Args:
        original: Shape (n, d) or (n,).
        published: The same shape, row by row what was published for each record.

    Raises:
        ConfigurationError: The shapes differ.
    """
    x, y = _pair(original, published)
    return float(((x - y) ** 2).sum())


def sse_share(original: ArrayLike, published: ArrayLike) -> float:
    """SSE/SST: the share of the variance that was lost (Domingo-Ferrer and Mateo-Sanz 2002). 0 is perfect.

    Columns of different units should be standardised first. Data without any variance loses nothing, unless it changed.

    Args:
        original: Shape (n, d) or (n,).
        published: The same shape.

    Raises:
        ConfigurationError: The shapes differ.
    """
    x, y = _pair(original, published)
    lost, total = float(((x - y) ** 2).sum()), float(((x - x.mean(axis=0)) ** 2).sum())
    if total > 0:
        return lost / total
    return 0.0 if lost == 0 else float("inf")


def il1s(original: ArrayLike, published: ArrayLike) -> float:
    """IL1s (Mateo-Sanz, Sebé and Domingo-Ferrer 2004): mean of |x − x'|/(√2·s), s a column's sample deviation.

    A column without variance counts 0, unless it changed.

    Args:
        original: Shape (n, d) or (n,), of two rows at least.
        published: The same shape.

    Raises:
        ConfigurationError: The shapes differ, or there are fewer than two rows.
    """
    x, y = _pair(original, published)
    if x.shape[0] < 2:
        raise ConfigurationError("IL1s needs a standard deviation, so two rows at least.")
    scale = np.sqrt(2.0) * x.std(axis=0, ddof=1)
    difference = np.abs(x - y)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(difference > 0, difference / scale, 0.0)
    return float(shares.mean())

"""Means, variances and correlations before and after: what regression and many tests depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError


@dataclass(frozen=True)
class Moments:
    """First and second moments of d numeric columns.

    Attributes:
        mean: Shape (d,).
        variance: Shape (d,), of the sample (n − 1).
        correlation: Shape (d, d); NaN where a column has no variance.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]


@dataclass(frozen=True)
class MomentChanges:
    """How moments changed from the original to the published data.

    Attributes:
        mean: Shape (d,): published − original mean, in standard deviations of the original (in the column's own unit
            where that is 0).
        variance: Shape (d,): published/original variance; NaN where the original is 0.
        correlation: Shape (d, d): published − original correlation.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]


def moments(data: ArrayLike) -> Moments:
    """Moments of numeric records.

    Args:
        data: Shape (n, d), of two rows at least.

    Raises:
        ConfigurationError: There are fewer than two rows.
    """
    x = np.asarray(data, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] < 2:
        raise ConfigurationError(f"Moments need records in rows, two at least, not data of shape {x.shape}.")
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / (x.shape[0] - 1)
    variance = np.diag(covariance).copy()
    deviation = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(np.outer(variance, variance) > 0, covariance / np.outer(deviation, deviation), np.nan)
    return Moments(x.mean(axis=0), variance, correlation)


def moment_changes(original: ArrayLike, published: ArrayLike) -> MomentChanges:
    """Compares the moments of two tables of equal columns; their rows need not correspond (synthetic data).

    Args:
        original: Shape (n, d).
        published: Shape (n', d).

    Raises:
        ConfigurationError: The columns differ in number, or one has fewer than two rows.
    """
    before, after = moments(original), moments(published)
    if before.mean.shape != after.mean.shape:
        raise ConfigurationError(f"{before.mean.size} original and {after.mean.size} published columns do not compare.")
    deviation = np.sqrt(before.variance)
    scale = np.where(deviation > 0, deviation, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before.variance > 0, after.variance / before.variance, np.nan)
    return MomentChanges((after.mean - before.mean) / scale, ratio, after.correlation - before.correlation)

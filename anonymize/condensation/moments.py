"""Groups of records as their moments: all that condensation keeps.

Source: Aggarwal and Yu, "A condensation approach to privacy preserving data mining", EDBT 2004; Aggarwal, "Data
Mining", 2015, section 20.3.1.4, equations 20.6–20.9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the records of each group; those of a union of groups are the sums of theirs.

    Attributes:
        counts: r, shape (g,): records.
        sums: Fs, shape (g, d): Σ x_j.
        products: Sc, shape (g, d, d): Σ x_i·x_j.
    """

    counts: NDArray[np.int64]
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, points: Floats, labels: NDArray[np.int64], groups: int) -> Moments:
        """The moments of points, shape (n, d), by the group of each, shape (n,)."""
        d = points.shape[1]
        order = np.argsort(labels, kind="stable")
        sums, products = np.zeros((groups, d)), np.zeros((groups, d, d))
        counts = np.bincount(labels, minlength=groups)
        filled = np.flatnonzero(counts)
        starts = np.concatenate(([0], np.cumsum(counts[filled])[:-1]))
        if len(filled):
            ordered = points[order]
            sums[filled] = np.add.reduceat(ordered, starts)
            for i in range(d):
                products[filled, i] = np.add.reduceat(ordered[:, i, None] * ordered, starts)
        return cls(counts, sums, products)

    def __len__(self) -> int:
        return len(self.counts)

    def __add__(self, other: Moments) -> Moments:
        """The moments of unions, group by group."""
        return Moments(self.counts + other.counts, self.sums + other.sums, self.products + other.products)

    @property
    def means(self) -> Floats:
        """Shape (g, d)."""
        return self.sums / self.counts[:, None]

    @property
    def covariances(self) -> Floats:
        """Shape (g, d, d): Sc_ij / r − Fs_i·Fs_j / r² (eq. 20.7), of the population."""
        means = self.means
        covariances: Floats = self.products / self.counts[:, None, None] - means[:, :, None] * means[:, None, :]
        return covariances


def principal_axes(covariances: ArrayLike) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending and not below 0, and unit eigenvectors.

    Args:
        covariances: Shape (g, d, d).

    Returns:
        Shapes (g, d) and (g, d, d), one eigenvector a column, its largest component positive.
    """
    values, vectors = np.linalg.eigh(np.asarray(covariances, np.float64))
    largest = np.abs(vectors).argmax(axis=1)[:, None, :]
    signs = np.sign(np.take_along_axis(vectors, largest, axis=1))
    return np.maximum(values, 0), vectors * signs


def split(moments: Moments) -> Moments:
    """Two halves of one group whose records are gone, along its longest axis (eq. 20.8, 20.9).

    Records are taken as uniform along each axis, so that they span R = √(12·λ_max) on the longest. The halves have
    means R/4 to either side, the same axes, and a quarter of λ_max. Their moments sum to the group's.

    Args:
        moments: Of one group with an even count.

    Returns:
        Of the two groups, the one on the side of the axis's positive end first.
    """
    values, vectors = (found[0] for found in principal_axes(moments.covariances))
    half = int(moments.counts[0]) // 2
    offset = np.sqrt(12 * values[-1]) / 4 * vectors[:, -1]
    means = moments.means[0] + np.stack([offset, -offset])
    values[-1] /= 4
    covariance = vectors * values @ vectors.T
    products = half * (covariance + means[:, :, None] * means[:, None, :])
    return Moments(np.array([half, half]), half * means, products)

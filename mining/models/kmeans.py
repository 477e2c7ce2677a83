"""k-means by Lloyd's iteration in fixed point: whole numbers throughout, so that all who compute it agree.

Points are in steps of their attributes (`Numeric`), centroids in steps divided by 2^f. Distances are Euclidean in
steps: attributes whose steps are equally long weigh as they do in numbers; equal *numbers* of steps put all attributes
on one scale, from bound to bound.

    assign   a point goes to the centroid at the least distance, the first of several. Since all distances of a point
             have ‖x‖² in common, ‖c‖² − 2·x·c is compared
    update   a centroid becomes the mean of its points, rounded, a half upwards; one without points stays

It ends when an update changes no centroid, or after `max_iterations` updates.

Source: Lloyd, "Least squares quantization in PCM", IEEE Trans. Information Theory 28(2), 1982.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError, shareable
from mining.models.attributes import Codes, Numeric, check_names

Points = NDArray[np.int64]
"""Shape (rows, attributes), in steps."""

Centroids = NDArray[np.int64]
"""Shape (k, attributes), in steps divided by 2^f."""

MAX_FRACTION_BITS = 20
MAX_CLUSTERS = 1 << 12


@dataclass(frozen=True, slots=True)
class KMeansParameters:
    """What is clustered, and from where.

    Attributes:
        attributes: The coordinates, one or more.
        initial: k rows of a number for each attribute, between its bounds; see `drawn_centroids`.
        max_iterations: The most updates.
        fraction_bits: f, of a centroid's coordinate behind the step.

    Raises:
        ConfigurationError: The centroids do not fit the attributes, or distances do not fit into 62 bits.
    """

    attributes: tuple[Numeric, ...]
    initial: tuple[tuple[Decimal, ...], ...]
    max_iterations: int = 100
    fraction_bits: int = 8

    def __post_init__(self) -> None:
        if not self.attributes:
            raise ConfigurationError("k-means takes one attribute or more")
        check_names(*self.attributes)
        if not 1 <= len(self.initial) <= MAX_CLUSTERS:
            raise ConfigurationError(f"k-means takes from 1 to {MAX_CLUSTERS} centroids")
        for row in self.initial:
            if len(row) != len(self.attributes) or not all(
                each.low <= number <= each.high for each, number in zip(self.attributes, row, strict=True)
            ):
                raise ConfigurationError(
                    "every initial centroid must have a number for each attribute, between that attribute's bounds"
                )
        if not (0 <= self.fraction_bits <= MAX_FRACTION_BITS and self.max_iterations >= 1):
            raise ConfigurationError(f"fraction_bits must be from 0 to {MAX_FRACTION_BITS}, max_iterations 1 or more")
        if self.largest_distance * 2 * self.k >= 1 << 62:
            raise ConfigurationError("squared distances do not fit into 62 bits; take fewer steps or fraction_bits")

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.initial)

    @property
    def largest_distance(self) -> int:
        """No squared distance, in steps² divided by 2^2f, is above it."""
        return sum((each.steps << self.fraction_bits) ** 2 for each in self.attributes)

    @property
    def max_rows(self) -> int:
        """The most rows whose sums can be averaged in 62 bits."""
        return (1 << 62) // max(each.steps << (self.fraction_bits + 1) for each in self.attributes)

    def start(self) -> Centroids:
        """The initial centroids."""
        scale = 1 << self.fraction_bits
        rows = [
            [
                round((Fraction(number) - Fraction(each.low)) / each.step * scale)
                for each, number in zip(self.attributes, row, strict=True)
            ]
            for row in self.initial
        ]
        return np.array(rows, np.int64)

    def check_rows(self, n_rows: int) -> None:
        """Refuses more rows than sums are exact for, and fewer than clusters.

        Raises:
            ConfigurationError: There are.
        """
        if n_rows < self.k:
            raise shareable(
                ConfigurationError(f"there are fewer rows than the {self.k} clusters asked for; ask for fewer")
            )
        if n_rows > self.max_rows:
            raise shareable(
                ConfigurationError("sums of so many rows do not fit into 62 bits; take fewer steps or fraction_bits")
            )


@dataclass(frozen=True, eq=False, slots=True)
class Clusters:
    """What has been found.

    Attributes:
        centroids: In steps divided by 2^f.
        counts: Shape (k,): points of each.
        iterations: Updates that were made.
        converged: Whether the last one changed nothing.
    """

    centroids: Centroids
    counts: NDArray[np.int64]
    iterations: int
    converged: bool

    def numbers(self, task: KMeansParameters) -> NDArray[np.float64]:
        """Shape (k, attributes): the centroids as numbers."""
        scaled = self.centroids / float(1 << task.fraction_bits)
        return np.stack([each.numbers(scaled[:, place]) for place, each in enumerate(task.attributes)], axis=1)


def stacked(cells: Sequence[Codes]) -> Points:
    """The points whose coordinates are the codes of columns, one or more."""
    return np.stack(cells, axis=1).astype(np.int64)


def drawn_centroids(attributes: Sequence[Numeric], k: int, seed: int) -> tuple[tuple[Decimal, ...], ...]:
    """Initial centroids between the public bounds, uniform in steps; equal for equal arguments.

    Args:
        attributes: The coordinates.
        k: How many.
        seed: Public.
    """
    random = Randomness.from_seed(b"comine.kmeans/1 %d" % seed)
    found = []
    for _ in range(k):
        row = []
        for each in attributes:
            share = Decimal(random.below(each.steps + 1)) / each.steps
            row.append(min(each.high, each.low + (each.high - each.low) * share))
        found.append(tuple(row))
    return tuple(found)


def partial_scores(points: Points, centroids: Centroids, fraction_bits: int) -> NDArray[np.int64]:
    """Shape (rows, k): ‖c‖² − 2·x·c over some of the coordinates; parts over all coordinates add up."""
    products = points @ (centroids.T << (fraction_bits + 1))
    return np.asarray((centroids**2).sum(axis=1) - products, np.int64)


def assign(points: Points, centroids: Centroids, fraction_bits: int) -> NDArray[np.int64]:
    """The nearest centroid of each point, the first of several."""
    nearest: NDArray[np.int64] = np.argmin(partial_scores(points, centroids, fraction_bits), axis=1)
    return nearest


def cluster_sums(points: Points, labels: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Shape (k, attributes): the sum of each cluster's points."""
    sums = np.zeros((k, points.shape[1]), np.int64)
    np.add.at(sums, labels, points)
    return sums


def cluster_sizes(labels: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Shape (k,): how many points each cluster has."""
    return np.bincount(labels, minlength=k).astype(np.int64)


def updated(centroids: Centroids, sums: NDArray[np.int64], counts: NDArray[np.int64], fraction_bits: int) -> Centroids:
    """The means of all clusters that have points, in steps divided by 2^f."""
    filled = np.maximum(counts, 1)[:, None]
    means = ((sums << (fraction_bits + 1)) + filled) // (2 * filled)
    return np.where(counts[:, None] > 0, means, centroids)

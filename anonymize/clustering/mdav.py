"""MDAV: microaggregation by the maximum distance to the average vector.

Source: Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation", Data
Mining and Knowledge Discovery 11 (2005), algorithm MDAV-generic.

While at least 3k points remain, the k points nearest to the point r farthest from the mean make a group, and of the
rest the k points nearest to the point s farthest from r. If 2k … 3k − 1 remain, one group is made round the point
farthest from their mean, and the others are a group; fewer are a group by themselves. All groups have
k … 2k − 1 points. Ties go to the lowest row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.centres import publish_centres
from anonymize.clustering.inputs import attributes_of, check_k
from anonymize.clustering.remaining import Remaining
from anonymize.clustering.space import Scaling, Space
from anonymize.release import Release
from anonymize.tables import Table

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def mdav(table: Table, k: int, *, scaling: Scaling = "deviation") -> Release:
    """Publishes the centres of MDAV's groups: k-anonymous, with at most 2k − 1 records a class.

    Args:
        table: Its quasi-identifiers are numeric, dates or ordinal (ranks are their numbers).
        k: Least number of records of a class.
        scaling: Columns are divided by their standard deviation, by their range, or by nothing before distances are
            taken. A constant column counts nothing.

    Returns:
        All rows. Numbers are means, dates the nearest day to the mean, ordinal values those beside the mean rank on the
        side of more records. The statistics hold `groups`, and `il`, the sum of squared distances of records from the
        means of their groups by that from the mean of all, on the scaled columns.

    Raises:
        ConfigurationError: k or a column does not suit; the sentence says what would.
    """
    attributes = attributes_of(table, {})
    check_k(k, table.n_rows)
    points = Space.of(table.quasi_identifiers, scaling).points
    labels = mdav_groups(points, k)
    groups = int(labels.max()) + 1
    statistics = {"groups": groups, "il": information_loss(points, labels)}
    return publish_centres("mdav", table, attributes, labels, statistics, {"k": k, "scaling": scaling})


def information_loss(points: Floats, labels: Labels) -> float:
    """SSE / SST: squared distances from the means of groups by those from the mean of all; 0 where all points agree.

    Args:
        points: Shape (n, d).
        labels: Shape (n,), the group of each.
    """
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in points.T], axis=1) / sizes[:, None]
    total = float(np.square(points - points.mean(axis=0)).sum())
    return float(np.square(points - means[labels]).sum()) / total if total else 0.0


def mdav_groups(points: Floats, k: int) -> Labels:
    """Groups points by MDAV; O(n²d / k) operations.

    Args:
        points: Shape (n, d), on scales that make Euclidean distances meaningful; n ≥ k ≥ 1.
        k: Least number of points of a group.

    Returns:
        The group of each point, numbered in the order in which groups are made; shape (n,).
    """
    labels = np.empty(len(points), dtype=np.int64)
    remaining = Remaining(points)
    groups = 0

    def close(rows: NDArray[np.int64]) -> None:
        nonlocal groups
        labels[rows] = groups
        groups += 1

    while remaining.count >= 3 * k:
        first = remaining.farthest(remaining.mean())
        close(remaining.take_nearest(first, k))
        close(remaining.take_nearest(remaining.farthest(first), k))
    if remaining.count >= 2 * k:
        close(remaining.take_nearest(remaining.farthest(remaining.mean()), k))
    close(remaining.rows())
    return labels

"""Models of rows in one place, which joint ones must equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mining.models.attributes import LabelledRows
from mining.models.decision_tree import DecisionTree, Growth, TreeParameters, class_counts
from mining.models.kmeans import Clusters, KMeansParameters, Points, assign, cluster_sizes, cluster_sums, updated
from mining.models.naive_bayes import NaiveBayes, NaiveBayesParameters, check_rows, counts_of, moments_of


def learn_tree(rows: LabelledRows, task: TreeParameters) -> DecisionTree:
    """The tree of rows in one place.

    Raises:
        ConfigurationError: There are more than `max_nodes` nodes to be looked at.
    """
    growth = Growth(task, class_counts(rows, task.target).tolist())
    while growth.offers:
        growth.grow(growth.histograms()(rows))
    return growth.tree


def learn_bayes(rows: LabelledRows, task: NaiveBayesParameters) -> NaiveBayes:
    """The model of rows in one place.

    Raises:
        ConfigurationError: There are too many rows for exact moments.
    """
    check_rows(task, rows.n_rows)
    return NaiveBayes.of(task, counts_of(rows, task), moments_of(rows, task))


def lloyd(points: Points, task: KMeansParameters) -> tuple[Clusters, NDArray[np.int64]]:
    """The clusters of points in one place, and each point's cluster.

    Raises:
        ConfigurationError: There are too many rows for exact sums, or fewer than clusters.
    """
    task.check_rows(len(points))
    centroids, converged, iteration = task.start(), False, 0
    labels, counts = np.zeros(len(points), np.int64), np.zeros(task.k, np.int64)
    while iteration < task.max_iterations and not converged:
        labels = assign(points, centroids, task.fraction_bits)
        counts = cluster_sizes(labels, task.k)
        moved = updated(centroids, cluster_sums(points, labels, task.k), counts, task.fraction_bits)
        converged, centroids, iteration = np.array_equal(moved, centroids), moved, iteration + 1
    return Clusters(centroids, counts, iteration, converged), labels

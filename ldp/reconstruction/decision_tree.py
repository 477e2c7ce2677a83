"""Decision trees from perturbed records (Agrawal and Srikant, "Privacy-Preserving Data Mining", SIGMOD 2000).

Each perturbed value is put into an interval, so that the intervals have their reconstructed shares (`Column.assigned`).
Where the distributions are reconstructed makes the three algorithms:

    global    once, over all records: the classes' differences are blurred
    by-class  once, for each class on its own: the paper's advice
    local     for each class, and again at every node. A column that was split above keeps its intervals, since its
              values there are no longer noise on top of whole distributions

Splits are binary, between intervals, by the Gini index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.parameters import checked
from ldp.reconstruction.columns import Codes, Column, check_columns, check_labels, check_table
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

RECONSTRUCTIONS: Final = ("global", "by-class", "local")

_ROUNDING: Final = 1e-9
_LEAST_LOCAL: Final = 200  # records of a class, below which a node keeps the intervals of the one above


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node of a tree.

    Attributes:
        counts: Shape (classes,): records of each class.
        column: Which column splits; None at a leaf.
        threshold: Records whose value is below go left.
        left: The node of values below the threshold.
        right: The node of the others.
    """

    counts: NDArray[np.int64]
    column: int | None = None
    threshold: float = 0.0
    left: Node | None = None
    right: Node | None = None

    @property
    def leaves(self) -> int:
        """How many leaves there are at or under this node."""
        return 1 if self.left is None or self.right is None else self.left.leaves + self.right.leaves


@checked
class DecisionTree:
    """Learns from perturbed records; classifies records as they are.

    Args:
        columns: What is public of each column.
        reconstruction: One of `RECONSTRUCTIONS`.
        max_depth: The most splits above a leaf.
        min_share: A leaf has at least this share of all records.

    Attributes:
        classes_: The labels in their order.
        root_: The tree.

    Raises:
        ConfigurationError: There is no column, or another parameter is wrong.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        reconstruction: str = "by-class",
        max_depth: int = 8,
        min_share: float = 0.01,
    ) -> None:
        if reconstruction not in RECONSTRUCTIONS:
            raise ConfigurationError(f"a reconstruction is one of {', '.join(RECONSTRUCTIONS)}, not '{reconstruction}'")
        if max_depth < 1 or not 0 <= min_share < 0.5:
            raise ConfigurationError("a tree needs a depth of 1 at least and leaves with less than half of the records")
        self.columns, self.reconstruction = check_columns(columns), reconstruction
        self.max_depth, self.min_share = max_depth, min_share

    def fit(self, records: ArrayLike, labels: ArrayLike) -> Self:
        """Learns.

        Args:
            records: Perturbed as the columns say, shape (n, columns).
            labels: Shape (n,); not perturbed.

        Raises:
            InputDataError: They do not fit together, or hold values that cannot be.
        """
        table = check_table(records, self.columns)
        self.classes_, codes = check_labels(labels, len(table))
        intervals = np.stack([self._intervals(at, table[:, at], codes) for at in range(len(self.columns))], axis=1)
        least = max(1, math.ceil(self.min_share * len(table)))
        self.root_ = self._grow(_Records(table, intervals, codes), frozenset(), 0, least)
        return self

    def predict(self, records: ArrayLike) -> NDArray[np.generic]:
        """The class of each record, shape (n,), for records that are not perturbed.

        Raises:
            InputDataError: Nothing has been learned yet, or records do not fit the columns.
        """
        if not hasattr(self, "root_"):
            raise InputDataError("the classifier has not learned yet; call fit first")
        table = check_table(records, self.columns)
        found = np.empty(len(table), dtype=np.int64)
        waiting = [(self.root_, np.arange(len(table)))]
        while waiting:
            node, rows = waiting.pop()
            if node.column is None or node.left is None or node.right is None:
                found[rows] = np.argmax(node.counts)
                continue
            below = table[rows, node.column] < node.threshold
            waiting += [(node.left, rows[below]), (node.right, rows[~below])]
        return self.classes_[found]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn passes it)
        """The constructor's parameters by name, as scikit-learn asks for them."""
        names = ("columns", "reconstruction", "max_depth", "min_share")
        return {name: getattr(self, name) for name in names}

    def _intervals(self, at: int, perturbed: Floats, codes: Codes) -> Codes:
        """The intervals of one column's values."""
        if self.reconstruction == "global":
            return self.columns[at].assigned(perturbed)
        found = np.empty(len(perturbed), dtype=np.int64)
        for number in np.unique(codes):
            found[codes == number] = self.columns[at].assigned(perturbed[codes == number])
        return found

    def _grow(self, records: _Records, split_above: frozenset[int], depth: int, least: int) -> Node:
        counts = np.bincount(records.codes, minlength=len(self.classes_))
        if depth == self.max_depth or np.count_nonzero(counts) < 2:
            return Node(counts)
        if self.reconstruction == "local" and depth and counts[counts > 0].min() >= _LEAST_LOCAL:
            for at, column in enumerate(self.columns):
                if column.noise is not None and at not in split_above:
                    records.intervals[:, at] = self._intervals(at, records.perturbed[:, at], records.codes)
        cuts = [
            _best_cut(records.intervals[:, at], records.codes, column.intervals, len(counts), least)
            for at, column in enumerate(self.columns)
        ]
        at = int(np.argmin([impurity for impurity, _ in cuts]))
        impurity, first = cuts[at]
        if not impurity < _impurity(counts) * (1 - _ROUNDING):
            return Node(counts)
        below = records.intervals[:, at] < first
        left, right = (self._grow(records.of(side), split_above | {at}, depth + 1, least) for side in (below, ~below))
        return Node(counts, at, float(self.columns[at].edges[first]), left, right)


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Those of one node."""

    perturbed: Floats
    intervals: Codes
    codes: Codes

    def of(self, which: NDArray[np.bool_]) -> _Records:
        """Some of them."""
        return _Records(self.perturbed[which], self.intervals[which], self.codes[which])


def _best_cut(intervals: Codes, codes: Codes, k: int, classes: int, least: int) -> tuple[float, int]:
    """The least impurity that a cut of a column leaves, and the first interval right of the cut.

    Cuts that leave fewer than `least` records on a side do not count; infinity if there is no other.
    """
    counts = np.bincount(intervals * classes + codes, minlength=k * classes).reshape(k, classes)
    left = np.cumsum(counts, axis=0)[:-1]
    right = counts.sum(axis=0) - left
    impurities = _impurity(left) + _impurity(right)
    impurities[np.minimum(left.sum(axis=1), right.sum(axis=1)) < least] = np.inf
    best = int(np.argmin(impurities))
    return float(impurities[best]), best + 1


def _impurity(counts: NDArray[np.int64]) -> Floats:
    """Records times their Gini index: n − Σ c² / n over the last axis."""
    n = counts.sum(axis=-1)
    found: Floats = n - np.square(counts.astype(np.float64)).sum(axis=-1) / np.maximum(n, 1)
    return found

"""What an optimal search minimises, with a lower bound that is known before a node is looked at.

Suppression never lowers these losses, so the loss of a node without suppression bounds its loss with suppression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.examination import Verdict
from anonymize.fulldomain.frequency import FrequencySet
from anonymize.fulldomain.lattice import Lattice, Node
from anonymize.hierarchies.hierarchy import Hierarchy
from link.errors import ConfigurationError

CellLosses = list[list[NDArray[np.float64]]]  # of column and level: shape (leaves,)


class Objective(Protocol):
    """A loss of full-domain recoding."""

    @property
    def bounds(self) -> NDArray[np.float64]:
        """At most the loss of each node, in the lattice's shape.

        Raises:
            ConfigurationError: The lattice is too large.
        """
        ...

    def loss(self, node: Node, verdict: Verdict) -> float:
        """The loss of a node whose violating classes are suppressed."""
        ...

    def floor(self, node: Node, verdict: Verdict) -> float:
        """What neither the node nor any of its generalisations can undercut."""
        ...


class CellObjective:
    """Mean loss of a quasi-identifier cell, where each cell's loss depends on its leaf and its level alone.

    Args:
        frequency: The distinct tuples.
        lattice: The lattice.
        cells: Loss of each leaf at each level.
        suppressed: Loss of a suppressed cell of each leaf; at least its loss at any level.
    """

    def __init__(
        self,
        frequency: FrequencySet,
        lattice: Lattice,
        cells: CellLosses,
        suppressed: Sequence[NDArray[np.float64]],
    ) -> None:
        self._frequency, self._cells, self._suppressed = frequency, cells, suppressed
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._scale = 1 / max(frequency.records * len(cells), 1)
        counts = _leaf_counts(frequency, [len(leaves) for leaves in suppressed])
        self._lattice = lattice
        self._means = [
            self._scale * np.array([loss @ count for loss in levels])
            for levels, count in zip(cells, counts, strict=True)
        ]

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """The loss of each node without suppression, in the lattice's shape."""
        return self._lattice.total(self._means)

    def loss(self, node: Node, verdict: Verdict) -> float:
        """The loss without suppression and what suppression adds."""
        without = self.floor(node, verdict)
        if not verdict.failing:
            return without
        bad = np.flatnonzero(~verdict.good[verdict.labels])
        added = sum(float(self._added(position, level)[bad].sum()) for position, level in enumerate(node))
        return without + self._scale * added

    def floor(self, node: Node, verdict: Verdict) -> float:  # noqa: ARG002 - other objectives look at the classes
        """The loss without suppression."""
        return float(sum(means[level] for means, level in zip(self._means, node, strict=True)))

    def _added(self, position: int, level: int) -> NDArray[np.float64]:
        """What the records of each tuple lose more if a cell is suppressed instead of generalised, shape (u,)."""
        if (position, level) not in self._known:
            more = self._suppressed[position] - self._cells[position][level]
            self._known[position, level] = more[self._frequency.leaves[position]] * self._frequency.weights
        return self._known[position, level]


class Discernibility:
    """Discernibility: the sum of squared class sizes, plus n for each suppressed record (Bayardo and Agrawal 2005).

    No bound is known before a node is looked at. But classes only grow under generalisation, so that the sum of all
    squared sizes at a node bounds all its generalisations.

    Args:
        frequency: The distinct tuples.
        lattice: The lattice.
    """

    def __init__(self, frequency: FrequencySet, lattice: Lattice) -> None:
        self._records = frequency.records
        self._lattice = lattice

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Nothing is known: 0 for each node, in the lattice's shape."""
        return np.asarray(self._lattice.zeros(np.float64))

    def loss(self, node: Node, verdict: Verdict) -> float:  # noqa: ARG002 - other objectives look at the node
        """The sum over good classes, and n for each other record."""
        return float((verdict.sizes[verdict.good] ** 2).sum()) + verdict.failing * self._records

    def floor(self, node: Node, verdict: Verdict) -> float:  # noqa: ARG002 - other objectives look at the node
        """The sum over all classes."""
        return float((verdict.sizes**2).sum())


def objective(loss: str, frequency: FrequencySet, lattice: Lattice, hierarchies: Sequence[Hierarchy]) -> Objective:
    """The objective of a name.

    Args:
        loss: "gcp" (global certainty penalty, leaves of the hierarchy), "prec" (1 − precision: the mean of level over
            height), "entropy" (non-uniform entropy in bits a cell), or "dm" (discernibility).
        frequency: The distinct tuples.
        lattice: The lattice.
        hierarchies: One for each quasi-identifier, in order.

    Raises:
        ConfigurationError: There is no such loss.
    """
    if loss == "dm":
        return Discernibility(frequency, lattice)
    if loss not in _CELL_LOSSES:
        raise ConfigurationError(f'There is no loss "{loss}" to search by; take one of {", ".join(LOSSES)}.')
    counts = _leaf_counts(frequency, [len(hierarchy.leaves) for hierarchy in hierarchies])
    cells = [_CELL_LOSSES[loss](h, count) for h, count in zip(hierarchies, counts, strict=True)]
    # A suppressed cell reveals as little as the top of its hierarchy; by the penalties of a share it counts in full.
    suppressed = [levels[-1] if loss == "entropy" else np.ones(len(levels[-1])) for levels in cells]
    return CellObjective(frequency, lattice, cells, suppressed)


def _certainty(hierarchy: Hierarchy, counts: NDArray[np.float64]) -> list[NDArray[np.float64]]:  # noqa: ARG001
    return [hierarchy.loss(level)[labels] for level, labels in enumerate(hierarchy.maps)]


def _precision(hierarchy: Hierarchy, counts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    return [np.full(len(counts), level / max(hierarchy.height, 1)) for level in range(hierarchy.height + 1)]


def _entropy(hierarchy: Hierarchy, counts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """−log2 of the share that a leaf's records have of its label's, 0 for leaves that do not occur."""
    losses = []
    for labels in hierarchy.maps:
        share = np.divide(counts, np.bincount(labels, counts)[labels], out=np.ones(len(counts)), where=counts > 0)
        losses.append(-np.log2(share))
    return losses


def _leaf_counts(frequency: FrequencySet, leaves: Sequence[int]) -> list[NDArray[np.float64]]:
    """Records of each leaf of each column."""
    return [
        np.bincount(codes, frequency.weights, minlength=size).astype(float)
        for codes, size in zip(frequency.leaves, leaves, strict=True)
    ]


_CELL_LOSSES: Final[dict[str, Callable[[Hierarchy, NDArray[np.float64]], list[NDArray[np.float64]]]]] = {
    "gcp": _certainty,
    "prec": _precision,
    "entropy": _entropy,
}
LOSSES: Final = (*_CELL_LOSSES, "dm")

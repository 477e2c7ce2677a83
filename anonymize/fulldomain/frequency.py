"""Frequency sets: distinct quasi-identifier tuples with their numbers of records, and their roll-up.

Hierarchies are nested, so a class of one node lies inside one class of each generalisation of that node, and any of its
tuples represents it there. A frequency set keeps one such tuple of leaves a class; rolling up needs nothing else.

Source: LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005, section 3.1.1 (frequency sets, rollup property).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.grouping import Histograms, group, histogram
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.tables import Table

_MEMORY: Final = 64_000_000  # bytes of remembered labels


@dataclass(frozen=True, eq=False)
class SensitiveCounts:
    """How often each sensitive value occurs with each tuple; only those that occur.

    Attributes:
        owner: Tuple, shape (p,).
        value: Code of the sensitive value, shape (p,).
        count: Records, shape (p,).
        domain: Number of values of the column.
    """

    owner: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    domain: int

    def of_classes(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Counts in each class, shape (classes, domain).

        Args:
            labels: Class of each tuple, −1 for tuples that are left out, shape (tuples,).
            classes: Number of classes.
        """
        label = labels[self.owner]
        kept = label >= 0
        return histogram(label[kept], classes, self.value[kept], self.domain, self.count[kept])

    def merged(self, labels: NDArray[np.int64]) -> SensitiveCounts:
        """The same counts by class instead of by tuple."""
        cells, inverse = np.unique(labels[self.owner] * self.domain + self.value, return_inverse=True)
        count = np.bincount(inverse, self.count, minlength=len(cells)).astype(np.int64)
        return SensitiveCounts(cells // self.domain, cells % self.domain, count, self.domain)

    def among(self, chosen: NDArray[np.bool_]) -> SensitiveCounts:
        """The counts of some tuples, renumbered."""
        kept = chosen[self.owner]
        number = np.cumsum(chosen) - 1
        return SensitiveCounts(number[self.owner[kept]], self.value[kept], self.count[kept], self.domain)


@dataclass(frozen=True, eq=False)
class FrequencySet:
    """Distinct tuples, or one representative tuple of each class.

    Attributes:
        leaves: Leaf of each quasi-identifier in its hierarchy, shape (d, u).
        weights: Records of each tuple, shape (u,).
        sensitive: Counts of sensitive values, by column.
    """

    leaves: NDArray[np.int32]
    weights: NDArray[np.int64]
    sensitive: Mapping[str, SensitiveCounts]

    @classmethod
    def of(
        cls, table: Table, leaves: NDArray[np.int32], sensitive: Sequence[str]
    ) -> tuple[FrequencySet, NDArray[np.int64]]:
        """The frequency set of a table.

        Args:
            table: The input.
            leaves: Leaf of each cell, shape (d, n).
            sensitive: Columns to count.

        Returns:
            The set, and the tuple of each row, shape (n,).
        """
        owner, tuples = group([(row, int(row.max(initial=0)) + 1) for row in leaves])
        first = representatives(owner, tuples)
        counts = {}
        for name in sensitive:
            column = table.columns[name]
            each = SensitiveCounts(
                owner, column.codes.astype(np.int64), np.ones(len(owner), np.int64), len(column.domain)
            )
            counts[name] = each.merged(np.arange(tuples))
        return cls(leaves.take(first, axis=1), np.bincount(owner, minlength=tuples), counts), owner

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.weights.sum())

    def rolled_up(self, labels: NDArray[np.int64], classes: int) -> FrequencySet:
        """The frequency set of a node, from that of one of its specialisations.

        Args:
            labels: Class of each tuple at the node, shape (u,).
            classes: Number of classes.
        """
        weights = np.bincount(labels, self.weights, minlength=classes).astype(np.int64)
        sensitive = {name: counts.merged(labels) for name, counts in self.sensitive.items()}
        leaves = self.leaves.take(representatives(labels, classes), axis=1)
        return FrequencySet(leaves, weights, sensitive)

    def among(self, chosen: NDArray[np.bool_]) -> FrequencySet:
        """The frequency set of some of the tuples."""
        sensitive = {name: counts.among(chosen) for name, counts in self.sensitive.items()}
        return FrequencySet(self.leaves.compress(chosen, axis=1), self.weights[chosen], sensitive)

    def histograms(self, labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> Histograms:
        """What models look at.

        Args:
            labels: Class of each tuple, −1 for tuples that are left out, shape (u,).
            sizes: Records of each class, shape (c,).
        """
        return Histograms(sizes, {name: s.of_classes(labels, len(sizes)) for name, s in self.sensitive.items()})


class Recoder:
    """Classes of a frequency set at any node.

    Args:
        hierarchies: One for each quasi-identifier, in order.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        self._hierarchies = tuple(hierarchies)

    def classes(
        self, frequency: FrequencySet, node: Sequence[int], attributes: Sequence[int] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Groups tuples that are equal at a node.

        Args:
            frequency: The tuples.
            node: Level of each of the attributes.
            attributes: Positions of the quasi-identifiers that count; all of them if not given.

        Returns:
            Class of each tuple, shape (u,), and records of each class, shape (c,).
        """
        labels, classes = self.labels(frequency, node, attributes)
        return labels, np.bincount(labels, frequency.weights, classes).astype(np.int64)

    def labels(
        self, frequency: FrequencySet, node: Sequence[int], attributes: Sequence[int] | None = None
    ) -> tuple[NDArray[np.int64], int]:
        """The class of each tuple, as `classes`, and how many there are."""
        positions = range(len(self._hierarchies)) if attributes is None else attributes
        keys = []
        for position, level in zip(positions, node, strict=True):
            hierarchy = self._hierarchies[position]
            values = len(hierarchy.labels[level])
            if values > 1:  # a column at its top reveals nothing
                keys.append((hierarchy.maps[level][frequency.leaves[position]], values))
        return group(keys, len(frequency.weights))


class RepeatedRecoder:
    """Classes of one frequency set at many nodes.

    The labels of either half of the columns are remembered by their levels: most nodes then cost one combination of two
    known labels, whose range is smaller, too, since only labels that occur are numbered.

    Args:
        recoder: Of the hierarchies.
        frequency: The tuples.
    """

    def __init__(self, recoder: Recoder, frequency: FrequencySet) -> None:
        self._recoder, self._frequency = recoder, frequency
        self._middle = len(frequency.leaves) // 2
        self._room = max(_MEMORY // (8 * max(len(frequency.weights), 1)), 2)
        self._known: dict[tuple[int, tuple[int, ...]], tuple[NDArray[np.int64], int]] = {}

    def classes(self, node: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Groups tuples that are equal at a node, as `Recoder.classes`."""
        halves = [self._half(0, tuple(node[: self._middle])), self._half(self._middle, tuple(node[self._middle :]))]
        labels, classes = group(halves)
        return labels, np.bincount(labels, self._frequency.weights, classes).astype(np.int64)

    def _half(self, first: int, levels: tuple[int, ...]) -> tuple[NDArray[np.int64], int]:
        """Labels by some columns from the `first`; of those remembered the oldest are dropped."""
        if (first, levels) not in self._known:
            if len(self._known) >= self._room:
                del self._known[next(iter(self._known))]
            columns = range(first, first + len(levels))
            self._known[first, levels] = self._recoder.labels(self._frequency, levels, columns)
        return self._known[first, levels]


def representatives(labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """The first member of each class, shape (classes,); no class is empty."""
    first = np.empty(classes, np.int64)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first

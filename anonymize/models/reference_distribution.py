"""Distances of classes from the sensitive values of the whole input table, by whole numbers.

The table has M records, q_s of them with value s; a class has N, n_s of them with s. All distances but Kullback and
Leibler's are sums over the deviations M n_s − N q_s, divided by M N and by a unit of the ground distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.rationals import TOLERANCE, at_most, fits

Numbers = NDArray[Any]  # int64, or float64 where that might not hold them


@dataclass(frozen=True, eq=False)
class Distance:
    """Distances of classes as numerators over unit · M · N, in whole numbers where 64 bits hold them.

    Attributes:
        numerators: Shape (c,).
        unit: Of the ground distance.
        total: M.
        sizes: Shape (c,): N.
    """

    numerators: Numbers
    unit: int
    total: int
    sizes: NDArray[np.int64]

    @property
    def values(self) -> NDArray[np.float64]:
        """Shape (c,): the distances."""
        return self.numerators / (float(self.unit) * self.total * np.maximum(self.sizes, 1))

    def at_most(self, limit: Fraction) -> NDArray[np.bool_]:
        """Shape (c,): which distances are within a limit: exactly, or within 1e-9 where they are no whole numbers."""
        if self.numerators.dtype == np.int64:
            return at_most(self.numerators, limit * self.unit * self.total, self.sizes)
        return np.asarray(self.values <= float(limit) + TOLERANCE, bool)


@dataclass(frozen=True, eq=False)
class ReferenceDistribution:
    """The sensitive values of the whole input table, Q.

    Attributes:
        counts: Shape (m,): records with each value of the domain.
    """

    counts: NDArray[np.int64]

    @cached_property
    def total(self) -> int:
        """M: how many records there are."""
        return int(self.counts.sum())

    def deviations(self, counts: NDArray[np.int64], sizes: NDArray[np.int64], unit: int = 1) -> Numbers:
        """M n_s − N q_s of classes, shape (c, m): whole numbers, or floats where sums over them might not fit 64 bits.

        Args:
            counts: Shape (c, m): n_s.
            sizes: Shape (c,): N.
            unit: The largest weight that sums give to deviations.
        """
        if fits(2 * self.total * int(sizes.max(initial=0)) * unit):
            return counts * self.total - sizes[:, None] * self.counts
        return counts.astype(np.float64) * self.total - sizes[:, None] * self.counts.astype(np.float64)

    def variational(self, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Distance:
        """½ Σ |p_s − q_s|: the variational distance (eq. 20.13); the earth mover's where all values are equally far."""
        deviations = self.deviations(counts, sizes)
        return Distance(np.abs(deviations).sum(axis=1), 2, self.total, sizes)

    def ordered(self, counts: NDArray[np.int64], sizes: NDArray[np.int64], gaps: NDArray[np.int64]) -> Distance:
        """The earth mover's distance between values on a line, Σ_i gap_i |Σ_{j ≤ i} (p_j − q_j)| / Σ gaps.

        Args:
            counts: Shape (c, m): n_s.
            sizes: Shape (c,): N.
            gaps: Shape (m − 1,): from each value to the next, in whole units.
        """
        span = max(sum(gaps.tolist()), 1)
        carried = np.cumsum(self.deviations(counts, sizes, span)[:, :-1], axis=1)
        return Distance((np.abs(carried) * gaps).sum(axis=1), span, self.total, sizes)

    def hierarchical(
        self, counts: NDArray[np.int64], sizes: NDArray[np.int64], hierarchy: Hierarchy, leaves: NDArray[np.int32]
    ) -> Distance:
        """The earth mover's distance where two values are as far as their lowest common ancestor is high.

        An inner node at level l moves what its children have too much to those that have too little, at cost l / height
        (Li et al. 2007, section 5.2).

        Args:
            counts: Shape (c, m): n_s.
            sizes: Shape (c,): N.
            hierarchy: Of the sensitive column.
            leaves: Shape (m,): the leaf of each value.
        """
        extra = self.deviations(counts, sizes, max(hierarchy.height, 1))
        nodes = leaves
        cost: Numbers = np.zeros_like(extra, shape=len(counts))
        for level in range(1, hierarchy.height + 1):
            parents = hierarchy.maps[level][leaves]
            first = np.unique(nodes, return_index=True)[1]  # a value under each node
            extra = _sums(extra, nodes) if level == 1 else extra
            above = parents[first]
            surplus, lack = _sums(np.maximum(extra, 0), above), _sums(np.maximum(-extra, 0), above)
            cost = cost + level * np.minimum(surplus, lack).sum(axis=1)
            extra, nodes = surplus - lack, parents
        return Distance(cost, max(hierarchy.height, 1), self.total, sizes)

    def kullback_leibler(self, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Shape (c,): Σ_{p_s > 0} p_s ln(p_s / q_s) in nats (eq. 20.14); infinite where a value is not in the table."""
        sizes = np.maximum(sizes, 1)
        logs = np.log(np.where(counts > 0, counts, 1)) - np.log(np.maximum(self.counts, 1))
        distances: NDArray[np.float64] = (counts * logs).sum(axis=1) / sizes + np.log(self.total / sizes)
        distances[(counts[:, self.counts == 0] > 0).any(axis=1)] = np.inf
        return distances


def rank_gaps(values: int) -> NDArray[np.int64]:
    """Shape (values − 1,): neighbours are 1 apart."""
    return np.ones(max(values - 1, 0), np.int64)


def value_gaps(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Shape (m − 1,): from each number to the next, in the largest unit that makes the written decimals whole.

    Numbers with too many digits for that are taken to 2^-40 of their span.
    """
    written = [Fraction(repr(number)) for number in numbers.tolist()]
    unit = math.lcm(*(number.denominator for number in written))
    gaps = [int((b - a) * unit) for a, b in pairwise(written)]
    common = math.gcd(*gaps) or 1
    if sum(gaps) // common < 1 << 40:
        return np.array([gap // common for gap in gaps], np.int64)
    shares = np.diff(numbers) / (numbers[-1] - numbers[0])
    return np.asarray(np.rint(shares * (1 << 40)), np.int64)


def _sums(columns: Numbers, labels: NDArray[np.int32]) -> Numbers:
    """Adds columns that have equal labels; the sums are in ascending order of the labels."""
    order = np.argsort(labels, kind="stable")
    starts = np.unique(labels[order], return_index=True)[1]
    sums: Numbers = np.add.reduceat(columns[:, order], starts, axis=1)
    return sums

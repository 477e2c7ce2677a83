"""Greedy classes for (H, p, k)-anonymity: what MAA-SLIE and GreedyPKClustering have in common.

A class starts with the record farthest from the last one's start and takes one record after the other, the best by an
objective. While it has fewer than H levels of sensitivity only records of a new level may join; then, until it has p
sensitive values, only records of a new value; then any. Classes are begun while k records, p values and H levels
remain, so that there is always a record that may join: before the first record was taken, one of each of p values and
H levels remained, and only records of the class's own values and levels were taken since.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.attributes import Attribute, Codes, Floats, Members
from anonymize.clustering.pool import Pool

_REMEMBERED_SIZE: Final = 512  # tables of attributes with more values are not remembered: classes seldom repeat in them
_REMEMBERED_NUMBERS: Final = 1 << 23  # 64 MB, of all tables together

LossTable = Callable[[Attribute, Members, Codes], Floats]
"""Loss of a class with one more record, by the record's value."""


class Objective(Protocol):
    """What a joining record should maximise."""

    def entropies(self, level_counts: NDArray[np.int64]) -> Floats:
        """Shape (c,): what levels of sensitivity count for; `level_counts` of classes, shape (c, levels)."""
        ...

    def index(self, loss: float, entropy: float) -> float:
        """The objective of a class, by its loss and by what its levels count for."""
        ...


@dataclass
class GrowingClass:
    """A class of records.

    Attributes:
        rows: In the order in which they joined.
        members: By attribute, the sorted codes of the rows.
        level_counts: Shape (levels,).
        values: The sensitive values.
    """

    members: list[list[int]]
    level_counts: NDArray[np.int64]
    rows: list[int] = field(default_factory=list)
    values: set[int] = field(default_factory=set)

    @property
    def levels(self) -> int:
        """How many levels of sensitivity it has."""
        return int(np.count_nonzero(self.level_counts))


@dataclass(frozen=True, eq=False)
class Clustering:
    """Records to cluster, by what rules.

    Attributes:
        attributes: Of the quasi-identifiers.
        codes: Shape (d, n).
        values: Shape (n,), codes of the sensitive attribute.
        levels_of_values: Shape (values,), the level of each.
        levels: How many there are.
        k: Least number of records of a class.
        p: Least number of sensitive values of a class.
        H: Least number of levels of a class.
        loss: Of a class with one more record.
        objective: What a joining record should maximise.
    """

    attributes: tuple[Attribute, ...]
    codes: Codes
    values: Codes
    levels_of_values: Codes
    levels: int
    k: int
    p: int
    H: int
    loss: LossTable
    objective: Objective
    _remembered: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)
    _entropies: dict[tuple[int, ...], list[float]] = field(default_factory=dict, repr=False)

    def grow(self, reference: Sequence[Floats]) -> tuple[list[GrowingClass], NDArray[np.int64]]:
        """Builds classes while the rest allows one.

        Args:
            reference: By attribute, the distances of its values from where the first class's start is farthest.

        Returns:
            The classes, and the rows left over, ascending.
        """
        pool = Pool(self.codes, [a.size for a in self.attributes], self.values, self.levels_of_values, self.levels)
        classes = []
        while self._may_begin(pool):
            pool.compact()
            away = pool.sums(reference, -np.inf)
            grown = self.begin()
            row = pool.take(pool.first(np.flatnonzero(away == away.max())))
            self.join(grown, row)
            reference = self.distances_from(row)
            while len(grown.rows) < self.k:
                losses = pool.sums([self._table(i, m) for i, m in enumerate(grown.members)], np.inf)
                self.join(grown, pool.take(self._best(grown, pool, losses)))
            classes.append(grown)
        return classes, pool.rest()

    def distances_from(self, row: int) -> list[Floats]:
        """By attribute, the distance of each value from a record's."""
        return [a.distances(code) for a, code in zip(self.attributes, self.codes[:, row].tolist(), strict=True)]

    def distances_from_centroid(self) -> list[Floats]:
        """By attribute, the distance of each value from the centre of all records."""
        ordered = (np.sort(codes) for codes in self.codes)
        return [a.distances_from_centre(codes) for a, codes in zip(self.attributes, ordered, strict=True)]

    def begin(self) -> GrowingClass:
        """An empty class."""
        return GrowingClass([[] for _ in self.attributes], np.zeros(self.levels, np.int64))

    def join(self, grown: GrowingClass, row: int) -> None:
        """Adds a record to a class."""
        for members, code in zip(grown.members, self.codes[:, row].tolist(), strict=True):
            bisect.insort(members, code)
        value = int(self.values[row])
        grown.rows.append(row)
        grown.values.add(value)
        grown.level_counts[self.levels_of_values[value]] += 1

    def loss_of(self, grown: GrowingClass) -> float:
        """The loss of a class as it is."""
        if len(grown.rows) < 2:
            return 0.0
        last = [np.array(members[-1:], np.int32) for members in grown.members]
        without = zip(self.attributes, grown.members, last, strict=True)
        return float(sum(self.loss(a, members[:-1], one)[0] for a, members, one in without))

    def losses_with(self, grown: GrowingClass, candidates: Sequence[Codes]) -> list[Floats]:
        """By attribute, the loss of a class with one more record of each candidate value."""
        return [
            self._table(number, members)[codes]
            if attribute.size <= _REMEMBERED_SIZE
            else self.loss(attribute, members, codes)
            for number, (attribute, members, codes) in enumerate(
                zip(self.attributes, grown.members, candidates, strict=True)
            )
        ]

    @cached_property
    def _every(self) -> list[Codes]:
        return [np.arange(attribute.size, dtype=np.int32) for attribute in self.attributes]

    def _may_begin(self, pool: Pool) -> bool:
        enough = np.count_nonzero(pool.value_counts) >= self.p and np.count_nonzero(pool.level_counts) >= self.H
        return bool(enough) and pool.count >= self.k

    def _best(self, grown: GrowingClass, pool: Pool, losses: Floats) -> int:
        """The tuple that should join: greatest objective, then greatest entropy, then the lowest row."""
        entropies = self._entropies_with(grown)
        held = grown.level_counts.tolist()
        lacks_levels = len(held) - held.count(0) < self.H
        complete = not lacks_levels and len(grown.values) >= self.p
        segments = pool.of_levels if complete else pool.of_values
        best = (-math.inf, -math.inf)
        chosen: list[tuple[slice, float]] = []
        least = segments.least(losses)
        for run, level, value, loss in zip(segments.runs, segments.levels, segments.values, least, strict=True):
            if loss == math.inf:  # all used up
                continue
            if not complete and (value in grown.values or (lacks_levels and held[level])):
                continue
            key = (self.objective.index(loss, entropies[level]), entropies[level])
            if key > best:
                best, chosen = key, []
            if key == best:
                chosen.append((run, loss))
        tied = [part.start + np.flatnonzero(losses[part] == loss) for part, loss in chosen]
        return pool.first(np.concatenate(tied) if len(tied) > 1 else tied[0])

    def _entropies_with(self, grown: GrowingClass) -> list[float]:
        """By level, what the levels count for once one more record has that level; remembered."""
        key = tuple(grown.level_counts.tolist())
        found = self._entropies.get(key)
        if found is None:
            counts = grown.level_counts + np.eye(self.levels, dtype=np.int64)
            found = self._entropies[key] = self.objective.entropies(counts).tolist()
        return found

    def _table(self, number: int, members: list[int]) -> Floats:
        """The loss by every value of an attribute, remembered: the same few values meet again and again."""
        attribute = self.attributes[number]
        if attribute.size > _REMEMBERED_SIZE:
            return self.loss(attribute, members, self._every[number])
        key = (number, *members)
        table = self._remembered.get(key)
        if table is None:
            if len(self._remembered) * _REMEMBERED_SIZE > _REMEMBERED_NUMBERS:
                self._remembered.clear()
            table = self._remembered[key] = self.loss(attribute, members, self._every[number])
        return table

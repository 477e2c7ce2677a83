"""Distances, centres and information loss of one attribute, by its kind (MAA-SLIE, section 1.5).

Source: Shi, Zhang and Dong, "Data anonymity method based on sensitive hierarchical information entropy", Computer
Applications and Software 41(5), 2024: equations 3–17 and 20. All distances lie in [0, 1].

A class is the sorted codes of its members. What a class would lose if one more record joined depends on that record's
value only, so it is computed for all values at once: no distance between records is ever stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Whole = NDArray[np.int64]
Members = Sequence[int] | Codes


_ROUNDING: Final = 1e-9
_KEPT_SIZE: Final = 512  # values up to which the distances of all pairs are kept: 2 MB


class Attribute(Protocol):
    """What clustering asks of a quasi-identifier whose values have codes 0 … size − 1."""

    @property
    def size(self) -> int:
        """How many values there are."""
        ...

    def distances(self, code: int) -> Floats:
        """Shape (size,): from one value to each."""
        ...

    def distances_from_centre(self, members: Members) -> Floats:
        """Shape (size,): from the centre of a class to each value."""
        ...

    def loss_with(self, members: Members, candidates: Codes) -> Floats:
        """Shape (candidates,): the loss of a class with one more record that has the candidate's value (eq. 20)."""
        ...

    def spread_with(self, members: Members, candidates: Codes) -> Floats:
        """Shape (candidates,): how general one value must be to cover a class and the candidate, in [0, 1]."""
        ...


class NumericAttribute:
    """Numbers: distance by the range (eq. 3, 4), centre the mean (eq. 5)."""

    def __init__(self, numbers: Floats) -> None:
        """`numbers`: of the domain, ascending, shape (size,). A constant attribute has no distances."""
        span = float(numbers[-1] - numbers[0])
        self._places = (numbers - numbers[0]) / span if span else np.zeros(len(numbers))

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._places)

    def distances(self, code: int) -> Floats:
        """From one value to each; shape (size,)."""
        distances: Floats = np.abs(self._places - self._places[code])
        return distances

    def distances_from_centre(self, members: Members) -> Floats:
        """From the centre of a class to each value; shape (size,)."""
        distances: Floats = np.abs(self._places - self._places[np.asarray(members)].mean())
        return distances

    def loss_with(self, members: Members, candidates: Codes) -> Floats:
        """The loss of a class with one more record, by its value; shape (candidates,)."""
        own, new = self._places[np.asarray(members)], self._places[candidates]
        means = (own.sum() + new) / (len(own) + 1)
        loss: Floats = np.abs(own[:, None] - means).sum(axis=0) + np.abs(new - means)
        return loss

    def spread_with(self, members: Members, candidates: Codes) -> Floats:
        """How general the value is that covers a class and a candidate; shape (candidates,)."""
        new = self._places[candidates]
        spread: Floats = np.maximum(new, self._places[members[-1]]) - np.minimum(new, self._places[members[0]])
        return spread


class OrdinalAttribute:
    """Ranks: distance by the range (eq. 6), centre the rank beside the mean on the side of more values (eq. 7)."""

    def __init__(self, size: int) -> None:
        """Ranks 0 … size − 1."""
        self._ranks = np.arange(size)
        self._span = max(size - 1, 1)

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._ranks)

    def distances(self, code: int) -> Floats:
        """From one value to each; shape (size,)."""
        distances: Floats = np.abs(self._ranks - code) / self._span
        return distances

    def distances_from_centre(self, members: Members) -> Floats:
        """From the centre of a class to each value; shape (size,)."""
        distances: Floats = np.abs(self._ranks - centre_rank(np.asarray(members)[:, None])) / self._span
        return distances

    def loss_with(self, members: Members, candidates: Codes) -> Floats:
        """The loss of a class with one more record, by its value; shape (candidates,)."""
        ranks = np.empty((len(members) + 1, len(candidates)), np.int64)
        ranks[:-1] = np.asarray(members)[:, None]
        ranks[-1] = candidates
        loss: Floats = np.abs(ranks - centre_rank(ranks)).sum(axis=0) / self._span
        return loss

    def spread_with(self, members: Members, candidates: Codes) -> Floats:
        """How general the value is that covers a class and a candidate; shape (candidates,)."""
        spread: Floats = (np.maximum(candidates, members[-1]) - np.minimum(candidates, members[0])) / self._span
        return spread


class NominalAttribute:
    """Values of a tree: distance by the height of the lowest common ancestor (eq. 14), centre the medoid (eq. 15).

    Without a tree all values differ by 1, and the medoid is the most frequent value: the paper's boolean attributes
    (eq. 16, 17). Medoids are values of the class; ties go to the first value of the domain.
    """

    def __init__(self, size: int, levels: Sequence[Codes] | None = None) -> None:
        """`levels`: by level of the tree without its top, the label of each value, shape (size,)."""
        self._labels = np.stack(levels) if levels else np.arange(size)[None]
        every = np.arange(size)
        self._matrix = self._compared(every, every) if size <= _KEPT_SIZE else None

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self._labels.shape[1])

    def distances(self, code: int) -> Floats:
        """From one value to each; shape (size,)."""
        distances: Floats = self._heights(np.array([code]), np.arange(self.size))[0] / len(self._labels)
        return distances

    def distances_from_centre(self, members: Members) -> Floats:
        """From the centre of a class to each value; shape (size,)."""
        return self.distances(self.medoid(members))

    def between(self, some: Codes, others: Codes) -> Floats:
        """The distances of pairs of values; shape (pairs,), twice in and out."""
        differing = np.zeros(len(some), np.int64)
        for labels in self._labels:
            differing += labels[some] != labels[others]
        distances: Floats = differing / len(self._labels)
        return distances

    def neighbourhoods(self, reach: float) -> Codes:
        """A label of each value, equal for values that are at most `reach` apart; shape (size,)."""
        level = int(np.floor(reach * len(self._labels) + _ROUNDING))
        found: Codes = self._labels[level] if level < len(self._labels) else np.zeros(self.size, np.int32)
        return found

    def medoid(self, members: Members) -> int:
        """The member value with the least sum of distances to all members."""
        values, counts = _distinct(members)
        return int(values[(self._heights(values, values) @ counts).argmin()])

    def loss_with(self, members: Members, candidates: Codes) -> Floats:
        """The loss of a class with one more record, by its value; shape (candidates,)."""
        values, counts = _distinct(members)
        to_new = self._heights(values, candidates)
        within = self._heights(values, values) @ counts
        heights = np.minimum(
            (within[:, None] + to_new).min(axis=0), counts @ to_new
        )  # a member is the centre, or the new
        loss: Floats = heights / len(self._labels)
        return loss

    def spread_with(self, members: Members, candidates: Codes) -> Floats:
        """How general the value is that covers a class and a candidate; shape (candidates,)."""
        values, _ = _distinct(members)
        own = self._heights(values[:1], values).max()
        spread: Floats = np.maximum(self._heights(values, candidates).max(axis=0), own) / len(self._labels)
        return spread

    def _heights(self, some: NDArray[np.integer], others: NDArray[np.integer]) -> Whole:
        """Shape (some, others): the height of the lowest common ancestor of values."""
        if self._matrix is not None:
            matrix: Whole = self._matrix[some][:, others]
            return matrix
        return self._compared(some, others)

    def _compared(self, some: NDArray[np.integer], others: NDArray[np.integer]) -> Whole:
        heights = np.zeros((len(some), len(others)), np.int64)
        for labels in self._labels:  # nested levels: values that differ at one differ at all below
            heights += labels[some, None] != labels[others]
        return heights


def _distinct(members: Members) -> tuple[Whole, Whole]:
    """The distinct codes, ascending, and how many members have each."""
    counts = np.bincount(members)
    values = np.flatnonzero(counts)
    return values, counts[values]


def centre_rank(ranks: Whole) -> Whole:
    """The centre by mean and frequency of whole numbers (definition 3, eq. 7).

    The mean is rounded towards the side on which more values lie, and half up if as many lie on both.

    Args:
        ranks: Shape (s, c), the s members of each of c classes.

    Returns:
        Shape (c,).
    """
    size, total = len(ranks), ranks.sum(axis=0)
    scaled = ranks * size  # compared with the total instead of the mean: exact
    return round_to_majority(total, size, (scaled < total).sum(axis=0), (scaled > total).sum(axis=0))


def round_to_majority(total: Whole, size: Whole | int, down: Whole, up: Whole) -> Whole:
    """Eq. 7 for classes of which the sum of ranks, the size, and the numbers of ranks on both sides are known."""
    nearest = (2 * total + size) // (2 * size)
    rounded: Whole = np.where(down < up, -(-total // size), np.where(down > up, total // size, nearest))
    return rounded


def attribute_of(column: Column, hierarchy: Hierarchy | None = None) -> Attribute:
    """The attribute of a column: numbers and dates by range, ordinal ones by rank, all others by tree.

    Args:
        column: Of any kind.
        hierarchy: Of a column of kind tree or code; without one all its values differ by 1.

    Raises:
        InputDataError: The hierarchy lacks values of the column.
    """
    if column.kind in ("numeric", "date"):
        return NumericAttribute(column.numbers)
    if column.kind == "ordinal":
        return OrdinalAttribute(column.size)
    if hierarchy is None or column.kind == "boolean":
        return NominalAttribute(column.size)
    leaves = hierarchy.align(column)
    return NominalAttribute(column.size, [codes[leaves] for codes in hierarchy.maps[: max(hierarchy.height, 1)]])

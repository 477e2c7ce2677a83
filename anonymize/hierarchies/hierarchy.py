"""Generalisation hierarchies: the levels at which the values of one column can be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.cells import SUPPRESSED
from anonymize.columns import Column, listed, number_of, text_of
from anonymize.hierarchies.bins import Bins
from link.errors import ConfigurationError, InputDataError

TOP: Final = SUPPRESSED


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Domain generalisation hierarchy of a column (Samarati 2001, section 2): leaves, and coarser labels by level.

    Level 0 is the value itself, the highest level, `height`, reveals nothing: it has one label. Values that share a
    label share the labels of all higher levels. Build one with `Hierarchy.of`, which checks that.

    Attributes:
        name: Of the column.
        leaves: The values of level 0 as text.
        maps: By level, shape (leaves,): the code of each leaf's label there; level 0 is 0, 1, 2, …
        labels: By level, the text of each label; codes are numbered by first appearance.
    """

    name: str
    leaves: tuple[str, ...]
    maps: tuple[NDArray[np.int32], ...]
    labels: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, name: str, rows: Sequence[Sequence[str]], *, add_top: bool = False) -> Hierarchy:
        """A hierarchy from one row per leaf, level 0 first.

        Args:
            name: Of the column.
            rows: Text; all rows have the same length.
            add_top: Put a level `*` on top if the last one has several labels.

        Raises:
            InputDataError: There are no rows; rows differ in length; a leaf occurs twice; the levels are not nested;
                the top has several labels. The sentence names the values.
        """
        where = f'The hierarchy of column "{name}"'
        if not rows or not rows[0]:
            raise InputDataError(f"{where} has no leaves.")
        width = len(rows[0])
        for number, row in enumerate(rows, 1):
            if len(row) != width:
                leaf = row[0] if row else ""
                raise InputDataError(
                    f'{where} has {width} levels in row 1 but {len(row)} in row {number} ("{leaf}"); give every '
                    "leaf all levels."
                )
        texts = list(zip(*rows, strict=True))
        if len(set(texts[0])) < len(rows):
            seen: set[str] = set()
            twice = next(leaf for leaf in texts[0] if leaf in seen or seen.add(leaf))  # type: ignore[func-returns-value]
            raise InputDataError(f'{where} has two rows for the leaf "{twice}"; keep one.')
        if add_top and len(set(texts[-1])) > 1:
            texts.append((TOP,) * len(rows))
        maps, labels = [], []
        for level in texts:
            codes: dict[str, int] = {}
            maps.append(np.array([codes.setdefault(text, len(codes)) for text in level], np.int32))
            labels.append(tuple(codes))
        if len(labels[-1]) > 1:
            raise InputDataError(
                f"{where} ends in several values at its top level ({listed(labels[-1])}); the top must be one "
                "value, such as *."
            )
        hierarchy = cls(name, texts[0], tuple(maps), tuple(labels))
        hierarchy._check_nesting(where)
        return hierarchy

    def _check_nesting(self, where: str) -> None:
        for level in range(1, self.height):
            split = self.maps[level + 1] != self.parents(level)[self.maps[level]]
            if split.any():
                second = int(np.argmax(split))
                label = self.maps[level][second]
                first = int(np.argmax(self.maps[level] == label))
                raise InputDataError(
                    f'{where} is not nested: "{self.leaves[first]}" and "{self.leaves[second]}" are both '
                    f'"{self.labels[level][label]}" at level {level} but differ at level {level + 1} '
                    f'("{self.label(level + 1, first)}" and "{self.label(level + 1, second)}").'
                )

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.maps) - 1

    def label(self, level: int, leaf: int) -> str:
        """The text that a leaf has at a level."""
        return self.labels[level][int(self.maps[level][leaf])]

    def parents(self, level: int) -> NDArray[np.int32]:
        """Shape (labels of the level,): the code of each label's label one level up."""
        first = np.unique(self.maps[level], return_index=True)[1]
        return self.maps[level + 1][first]

    def leaf_counts(self, level: int) -> NDArray[np.int64]:
        """Shape (labels of the level,): how many leaves each label covers."""
        return np.bincount(self.maps[level], minlength=len(self.labels[level])).astype(np.int64, copy=False)

    def loss(self, level: int) -> NDArray[np.float64]:
        """Shape (labels of the level,): the normalised certainty penalty (leaves − 1) / (all leaves − 1).

        Leaves are those of the hierarchy, whether the data holds them or not. A hierarchy of one leaf loses nothing.
        Source: Xu et al. 2006, in the form of Ghinita et al. 2007.
        """
        if len(self.leaves) == 1:
            return np.zeros(len(self.labels[level]))
        return (self.leaf_counts(level) - 1) / (len(self.leaves) - 1)

    @cached_property
    def bins(self) -> Bins | None:
        """The leaves as intervals of a numeric column; None where no leaf is one.

        Raises:
            ConfigurationError: Some are intervals and others neither that nor numbers, or two of them overlap.
        """
        return Bins.of(self.leaves, self.name)

    def bins_of(self, column: Column) -> Bins | None:
        """The bins of a column's values; None where leaves are values. Errors as in `bins`."""
        return self.bins if column.kind == "numeric" else None

    def find(self, column: Column) -> NDArray[np.int32]:
        """The places of a column's values among the leaves.

        Numbers meet leaves of the same number, however written, or the interval that they lie in; all other values
        meet leaves of the same text.

        Returns:
            Shape (values of the domain,): the leaf of each, −1 where there is none.

        Raises:
            ConfigurationError: As `bins`.
        """
        bins = self.bins_of(column)
        if bins is not None:
            return bins.find(column.numbers)
        places = self._number_places if column.kind == "numeric" else self._places
        return np.array([places.get(text, -1) for text in column.texts], np.int32)

    def align(self, column: Column) -> NDArray[np.int32]:
        """As `find`, of a column whose values all have a leaf.

        Raises:
            ConfigurationError: As `bins`.
            InputDataError: The hierarchy lacks values of the column; the sentence names them.
        """
        found = self.find(column)
        lacking = [column.texts[place] for place in np.flatnonzero(found < 0).tolist()]
        if lacking:
            raise InputDataError(
                f'The hierarchy of column "{column.name}" lacks {len(lacking)} of its {column.size} values: '
                f"{listed(lacking)}; add a row for each."
            )
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {leaf: place for place, leaf in enumerate(self.leaves)}

    @cached_property
    def _number_places(self) -> dict[str, int]:
        places = {}
        for place, leaf in enumerate(self.leaves):
            try:
                places[text_of(number_of(leaf))] = place
            except ValueError:
                places[leaf] = place
        return places

    def codes(self, column: Column, level: int) -> NDArray[np.int32]:
        """Shape (values of the domain,): the label of each value of a column at a level.

        Raises:
            ConfigurationError: There is no such level.
            InputDataError: As `align`.
        """
        if not 0 <= level <= self.height:
            raise ConfigurationError(
                f'The hierarchy of column "{self.name}" has levels 0 to {self.height}, not {level}.'
            )
        return self.maps[level][self.align(column)]

    def common_levels(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.int32]:
        """The level of the lowest common ancestor of two leaves; leaves broadcast against each other.

        Divided by `height` it is the tree distance of the leaves.
        """
        a, b = np.broadcast_arrays(np.asarray(first), np.asarray(second))
        levels = np.zeros(a.shape, np.int32)
        for codes in self.maps[:-1]:  # nested levels: leaves that differ at one differ at all below
            levels += codes[a] != codes[b]
        return levels

    def lowest_common(self, leaves: ArrayLike) -> tuple[int, int]:
        """The lowest common ancestor of a set of leaves.

        Args:
            leaves: Shape (any,), at least one.

        Returns:
            Its level, and the code of its label there.
        """
        members = np.asarray(leaves)
        level = int(self.common_levels(members, members[0]).max())
        return level, int(self.maps[level][members[0]])

    def children(self, level: int, label: int) -> NDArray[np.int32]:
        """Shape (any,): the codes, one level below, of the labels that a label of a level ≥ 1 is made of."""
        return np.flatnonzero(self.parents(level - 1) == label).astype(np.int32)

"""A party's own rows, coded by what is public, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.blocks.keys import Counts, Index, Packing, TupleSums, Words, distinct
from anonymize.fulldomain.frequency import SensitiveCounts
from crypto.primitives.sealed import Rows
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.anonymisation.coding import CodedRows, Coding, Leaves
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.row_form import Form

Cells = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts a party's rows in the possible classes of any node.

    Attributes:
        task: The public parameters.
        words: The distinct tuples of leaves, as `packing_of` packs them, shape (words, u).
        tuples: Leaf of each quasi-identifier of each distinct tuple, shape (d, u).
        weights: Rows of each, shape (u,).
        values: By column with public values that models look at, how often each value occurs with each tuple.
    """

    task: JointAnonymisation
    words: Words
    tuples: Leaves
    weights: Cells
    values: Mapping[str, SensitiveCounts]

    @classmethod
    def of(cls, rows: CodedRows, task: JointAnonymisation) -> Counter:
        """Groups equal rows in memory, so that they are counted once; there is a quasi-identifier at least."""
        counting = TupleCounting.of(task)
        return _summed(task, counting, [counting.counted(rows)])

    @classmethod
    def counted(cls, table: TableRows, coding: Coding, task: JointAnonymisation) -> Counter:
        """The same of rows wherever they lie; those of a block are grouped where they are."""
        counting = TupleCounting.of(task, coding)
        return _summed(task, counting, table.only(coding.columns).parts(counting))

    @classmethod
    def nothing(cls, task: JointAnonymisation) -> Counter:
        """Of no quasi-identifiers."""
        none = np.zeros(0, np.int64)
        return cls(task, none.reshape(0, 0), np.zeros((0, 0), np.int32), none, {})

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.weights.sum())

    def keys(self, node: Mapping[int, int]) -> Cells:
        """The possible class of each tuple, shape (u,): labels in mixed radix.

        Args:
            node: Levels by the places of the quasi-identifiers that are shown.
        """
        keys = np.zeros(len(self.weights), np.int64)
        for place, level in node.items():
            hierarchy = self.task.hierarchies[place]
            keys = keys * len(hierarchy.labels[level]) + hierarchy.maps[level][self.tuples[place]]
        return keys

    def counts(self, node: Mapping[int, int]) -> Cells:
        """Rows in each possible class, shape (cells,)."""
        return np.bincount(self.keys(node), self.weights, self.task.cells(node)).astype(np.int64)

    def histogram(self, node: Mapping[int, int], column: str) -> Cells:
        """Rows in each possible class with each value of a column, shape (cells, values).

        Args:
            node: As for `keys`.
            column: One of `values`.
        """
        return self.values[column].of_classes(self.keys(node), self.task.cells(node))

    def occurring(self) -> list[Cells]:
        """By quasi-identifier, rows with each leaf, shape (leaves,)."""
        sizes = [len(each.leaves) for each in self.task.hierarchies]
        columns = zip(self.tuples, sizes, strict=True)
        return [np.bincount(leaves, self.weights, size).astype(np.int64) for leaves, size in columns]


@dataclass(frozen=True, eq=False)
class TupleCounting:
    """What is counted in a block: its distinct tuples of leaves, and those with a value.

    Attributes:
        coding: Of cells; None where rows come coded.
        sizes: Leaves of each quasi-identifier.
        columns: Columns with public values that models look at, and how many values each has.
    """

    coding: Coding | None
    sizes: tuple[int, ...]
    columns: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, task: JointAnonymisation, coding: Coding | None = None) -> TupleCounting:
        """As the job asks for it."""
        asked = task.requirements.columns
        valued = [(each.name, len(each.values)) for each in task.carried if each.values and each.name in asked]
        return cls(coding, tuple(len(each.leaves) for each in task.hierarchies), tuple(valued))

    @property
    def packings(self) -> list[Packing]:
        """Of the tuples, and of those with a value of each column."""
        return [Packing(self.sizes), *(Packing((*self.sizes, size)) for _, size in self.columns)]

    def __call__(self, table: Table, _first: int) -> list[tuple[Words, Counts]]:
        """The tuples of a block."""
        assert self.coding is not None
        return self.counted(self.coding.code(table))

    def counted(self, rows: CodedRows) -> list[tuple[Words, Counts]]:
        """The tuples of coded rows, by packing: each distinct one, and its rows."""
        own = [[], *([rows.codes[name]] for name, _ in self.columns)]
        pairs = zip(self.packings, own, strict=True)
        return [distinct(packing.pack([*rows.leaves, *more])) for packing, more in pairs]


def _summed(
    task: JointAnonymisation, counting: TupleCounting, parts: Iterable[Sequence[tuple[Words, Counts]]]
) -> Counter:
    sums = [TupleSums(packing) for packing in counting.packings]
    for part in parts:
        for one, found in zip(sums, part, strict=True):
            one.add(*found)
    words, weights = sums[0].merge()
    tuples = np.stack([sums[0].packing.column(words, place) for place in range(len(counting.sizes))])
    values = {name: one.by_tuple(size) for one, (name, size) in zip(sums[1:], counting.columns, strict=True)}
    return Counter(task, words, tuples, weights, values)


@dataclass(frozen=True, eq=False)
class RowPacking:
    """How the rows of a block are written on their way.

    Attributes:
        coding: Of cells.
        form: Of rows.
        sizes: Leaves of each quasi-identifier.
        words: The distinct tuples of all of the party's rows.
        cells: Class of each, −1 where it is not released, shape (u,).
        site: What a row says of its party.
    """

    coding: Coding
    form: Form
    sizes: tuple[int, ...]
    words: Words
    cells: Cells
    site: int

    def __call__(self, table: Table, _first: int) -> Rows:
        """The released rows of a block, shape (rows, bytes)."""
        rows = self.coding.code(table)
        if not rows.n_rows:
            return np.zeros((0, self.form.size), np.uint8)
        cells = self.cells[Index(self.words).find(Packing(self.sizes).pack(list(rows.leaves)))]
        return self.form.pack(rows, cells, np.flatnonzero(cells >= 0), self.site)


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """A party's released rows, ready to be sealed, in their order; they are written where the party's rows lie.

    Attributes:
        table: The party's rows.
        packing: How they are written.
        number: How many are released.
    """

    table: TableRows
    packing: RowPacking
    number: int

    @classmethod
    def of(cls, table: TableRows, coding: Coding, counter: Counter, cells: Cells, site: int) -> ReleasedRows:
        """The rows of some classes.

        Args:
            table: The rows.
            coding: Of their cells.
            counter: Of the same rows.
            cells: Class of each distinct tuple, −1 where it is not released.
            site: What a row says of its party.
        """
        sizes = tuple(len(each.leaves) for each in counter.task.hierarchies)
        packing = RowPacking(coding, Form.of(counter.task), sizes, counter.words, cells, site)
        return cls(table.only(coding.columns), packing, int(counter.weights[cells >= 0].sum()))

    def pieces(self) -> Iterator[Rows]:
        """The rows, some at a time."""
        return self.table.parts(self.packing)

    def all(self) -> Rows:
        """All of them, shape (rows, bytes)."""
        found = np.empty((self.number, self.packing.form.size), np.uint8)
        start = 0
        for part in self.pieces():
            found[start : start + len(part)] = part
            start += len(part)
        return found


def label_losses(leaf_counts: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
    """The normalised certainty penalty of each label, (leaves − 1)/(all leaves − 1), in units, shape (labels,)."""
    most = int(leaf_counts.sum()) - 1
    if not most:
        return np.zeros(len(leaf_counts), np.int64)
    whole, rest = divmod(unit, most)
    more = leaf_counts - 1
    return np.asarray(more * whole + (more * rest + most // 2) // most, np.int64)


def cell_losses(task: JointAnonymisation, node: Sequence[int], unit: int) -> NDArray[np.int64]:
    """What a row of each possible class of a node loses in all quasi-identifiers together, shape (cells,)."""
    total = np.zeros(1, np.int64)
    for hierarchy, level in zip(task.hierarchies, node, strict=True):
        total = (total[:, None] + label_losses(hierarchy.leaf_counts(level), unit)).reshape(-1)
    return total

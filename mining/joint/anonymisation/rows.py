"""A party's own rows, coded by what is public, and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import Column as CodedColumn
from anonymize.grouping import group
from link.errors import ComineError, InputDataError
from mining.data.tables import Column, Table
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation, QuasiIdentifier

Leaves = NDArray[np.int32]
Cells = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A party's rows; perhaps none.

    Attributes:
        leaves: Leaf of each quasi-identifier in its hierarchy, shape (d, n).
        carried: By column that is published as it is, its cells.
        codes: By such a column with public values, the place of each row's value, shape (n,).
    """

    leaves: Leaves
    carried: Mapping[str, Column]
    codes: Mapping[str, NDArray[np.int64]]

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return int(self.leaves.shape[1])

    @classmethod
    def of(cls, table: Table, task: JointAnonymisation, me: str) -> CodedRows:
        """Codes the columns that the job takes. No sentence of an error holds a value or a count: it crosses the wire.

        Raises:
            InputDataError: A column is missing, a cell is empty where it may not be, too long, or no value that the job
                names.
        """
        columns = {column.name: column for column in table.columns}
        for name in (*(each.name for each in task.quasi_identifiers), *(each.name for each in task.carried)):
            if name not in columns:
                raise InputDataError(f"the data of {me} have no column '{name}', which the job takes", party=me)
        leaves = [_leaves(columns[each.name], each, me) for each in task.quasi_identifiers]
        coded = {each.name: _codes(columns[each.name], each, me) for each in task.carried if each.values is not None}
        for each in task.carried:
            _check_lengths(columns[each.name], each, me)
        stacked = np.stack(leaves) if leaves else np.empty((0, table.n_rows), np.int32)
        return cls(stacked, {each.name: columns[each.name] for each in task.carried}, coded)


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts a party's rows in the possible classes of any node.

    Attributes:
        task: The public parameters.
        tuples: Leaf of each quasi-identifier of each distinct tuple, shape (d, u).
        weights: Rows of each, shape (u,).
        owner: Tuple of each row, shape (n,).
    """

    task: JointAnonymisation
    tuples: Leaves
    weights: NDArray[np.int64]
    owner: NDArray[np.int64]

    @classmethod
    def of(cls, rows: CodedRows, task: JointAnonymisation) -> Counter:
        """Groups equal rows, so that they are counted once."""
        if not rows.n_rows:
            return cls(task, rows.leaves, np.zeros(0, np.int64), np.zeros(0, np.int64))
        sized = [(codes, len(each.leaves)) for codes, each in zip(rows.leaves, task.hierarchies, strict=True)]
        owner, number = group(sized)
        first = np.empty(number, np.int64)
        first[owner[::-1]] = np.arange(rows.n_rows - 1, -1, -1)
        return cls(task, rows.leaves[:, first], np.bincount(owner, minlength=number).astype(np.int64), owner)

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

    def histogram(self, node: Mapping[int, int], codes: NDArray[np.int64], values: int) -> Cells:
        """Rows in each possible class with each value of a column, shape (cells, values).

        Args:
            node: As for `keys`.
            codes: Value of each row, shape (n,).
            values: How many there are.
        """
        cells = self.keys(node)[self.owner] * values + codes
        return np.bincount(cells, minlength=self.task.cells(node) * values).astype(np.int64).reshape(-1, values)

    def occurring(self) -> list[Cells]:
        """By quasi-identifier, rows with each leaf, shape (leaves,)."""
        sizes = [len(each.leaves) for each in self.task.hierarchies]
        columns = zip(self.tuples, sizes, strict=True)
        return [np.bincount(leaves, self.weights, size).astype(np.int64) for leaves, size in columns]


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


def _leaves(column: Column, quasi: QuasiIdentifier, me: str) -> Leaves:
    """The leaf of each row."""
    if (column.codes < 0).any():
        raise InputDataError(
            f"the data of {me} have empty cells in the quasi-identifier '{quasi.name}'; fill them in or leave those "
            "rows out",
            party=me,
        )
    places = np.zeros(len(column.values), np.int32)
    if len(column.values):
        try:
            coded = CodedColumn.of(quasi.name, pa.chunked_array([column.values]), quasi.kind, quasi.order)
            places = quasi.hierarchy.align(coded)[coded.codes]
        except ComineError:
            raise InputDataError(
                f"the data of {me} hold values of '{quasi.name}' that are not {quasi.kind} or that no leaf of the "
                "job's hierarchy has; correct them, or agree on a hierarchy that has them",
                party=me,
            ) from None
    return np.asarray(places[column.codes], np.int32)


def _codes(column: Column, carried: Carried, me: str) -> NDArray[np.int64]:
    """The place of each row's value among the public ones."""
    assert carried.values is not None
    places = {value: place for place, value in enumerate(carried.values)}
    known = [places.get(value, -1) for value in column.values.to_pylist()]
    found = np.array([*known, places.get("", -1)], np.int64)[column.codes]
    if (found < 0).any():
        raise InputDataError(
            f"the data of {me} hold cells of '{carried.name}' that the job's values do not name; correct them, or "
            "agree on values that have them",
            party=me,
        )
    return found


def _check_lengths(column: Column, carried: Carried, me: str) -> None:
    longest = max((len(value.encode()) for value in column.values.to_pylist()), default=0)
    if longest > carried.most_bytes:
        raise InputDataError(
            f"the data of {me} hold cells of '{carried.name}' that are longer than the {carried.most_bytes} bytes "
            "that the job allows; raise most_bytes of that column",
            party=me,
        )

"""How the cells of a party's rows become numbers that are public, wherever the rows lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.columns import Column as CodedColumn
from link.errors import ComineError, InputDataError
from mining.data.table_rows import TableRows
from mining.data.tables import Column, Table
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation, QuasiIdentifier

Leaves = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A party's rows, or those of a block; perhaps none.

    Attributes:
        leaves: Leaf of each quasi-identifier in its hierarchy, shape (d, n).
        carried: By column that is published as it is, its cells; where parties hold columns, of those without public
            values alone.
        codes: By such a column with public values, the place of each row's value, shape (n,).
    """

    leaves: Leaves
    carried: Mapping[str, Column]
    codes: Mapping[str, Leaves]

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return int(self.leaves.shape[1])

    @classmethod
    def of(cls, table: Table, task: JointAnonymisation, me: str) -> CodedRows:
        """Codes rows in memory; errors are those of `Coding.of`."""
        return Coding.of(table, task, me).code(table)


@dataclass(frozen=True, eq=False)
class Lookup:
    """A column's texts, and the public number of each.

    Attributes:
        name: Of the column.
        texts: All that occur in the party's rows.
        numbers: Of each, and at the end that of empty cells, shape (texts + 1,).
    """

    name: str
    texts: pa.Array
    numbers: Leaves

    @classmethod
    def of_texts(cls, name: str, texts: pa.Array) -> Lookup:
        """By which a text has the number of its place, and an empty cell −1."""
        return cls(name, texts, np.append(np.arange(len(texts), dtype=np.int32), np.int32(-1)))

    def of(self, column: Column) -> Leaves:
        """The number of each cell of some of the rows, shape (n,)."""
        found = pc.index_in(column.values, self.texts).to_numpy(zero_copy_only=False)
        numbers = np.append(self.numbers[:-1][found], self.numbers[-1])
        return np.asarray(numbers[column.codes], np.int32)


@dataclass(frozen=True, eq=False)
class Coding:
    """The numbers of all cells that a job takes.

    Attributes:
        quasi_identifiers: Of each the leaf of every text.
        valued: Of each column with public values the place of every text among these.
        carried: Names of all columns that are published as they are.
    """

    quasi_identifiers: tuple[Lookup, ...]
    valued: tuple[Lookup, ...]
    carried: tuple[str, ...]

    @classmethod
    def of(cls, table: TableRows, task: JointAnonymisation, me: str) -> Coding:
        """Looks at the texts of all rows. No sentence of an error holds a value or a count: it crosses the wire.

        Raises:
            InputDataError: A column is missing, a cell is empty where it may not be, too long, or no value that the job
                names.
        """
        for name in (*(each.name for each in task.quasi_identifiers), *(each.name for each in task.carried)):
            if name not in table.column_names:
                raise InputDataError(f"the data of {me} have no column '{name}', which the job takes", party=me)
        leaves = tuple(_leaves(table, each, me) for each in task.quasi_identifiers)
        valued = tuple(_places(table, each, me) for each in task.carried if each.values is not None)
        for each in task.carried:
            _check_lengths(table, each, me)
        return cls(leaves, valued, tuple(each.name for each in task.carried))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*(each.name for each in self.quasi_identifiers), *self.carried)

    def code(self, table: Table) -> CodedRows:
        """Some of the rows, coded."""
        columns = {column.name: column for column in table.columns}
        leaves = [each.of(columns[each.name]) for each in self.quasi_identifiers]
        stacked = np.stack(leaves) if leaves else np.empty((0, table.n_rows), np.int32)
        codes = {each.name: each.of(columns[each.name]) for each in self.valued}
        return CodedRows(stacked, {name: columns[name] for name in self.carried}, codes)


def _leaves(table: TableRows, quasi: QuasiIdentifier, me: str) -> Lookup:
    """The leaf of each text of a quasi-identifier."""
    texts, counts = table.value_counts(quasi.name)
    if int(counts.sum()) < table.n_rows:
        raise InputDataError(
            f"the data of {me} have empty cells in the quasi-identifier '{quasi.name}'; fill them in or leave those "
            "rows out",
            party=me,
        )
    places = np.zeros(len(texts) + 1, np.int32)
    if len(texts):
        try:
            coded = CodedColumn.of(quasi.name, pa.chunked_array([texts]), quasi.kind, quasi.order)
            places[:-1] = quasi.hierarchy.align(coded)[coded.codes]
        except ComineError:
            raise InputDataError(
                f"the data of {me} hold values of '{quasi.name}' that are not {quasi.kind} or that no leaf of the "
                "job's hierarchy has; correct them, or agree on a hierarchy that has them",
                party=me,
            ) from None
    return Lookup(quasi.name, texts, places)


def _places(table: TableRows, carried: Carried, me: str) -> Lookup:
    """The place of each text of a column among the public values."""
    assert carried.values is not None
    texts, counts = table.value_counts(carried.name)
    places = {value: place for place, value in enumerate(carried.values)}
    found = np.array([places.get(text, -1) for text in (*texts.to_pylist(), "")], np.int32)
    if (found[:-1] < 0).any() or (found[-1] < 0 and int(counts.sum()) < table.n_rows):
        raise InputDataError(
            f"the data of {me} hold cells of '{carried.name}' that the job's values do not name; correct them, or "
            "agree on values that have them",
            party=me,
        )
    return Lookup(carried.name, texts, found)


def _check_lengths(table: TableRows, carried: Carried, me: str) -> None:
    texts, _ = table.value_counts(carried.name)
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > carried.most_bytes:
        raise InputDataError(
            f"the data of {me} hold cells of '{carried.name}' that are longer than the {carried.most_bytes} bytes "
            "that the job allows; raise most_bytes of that column",
            party=me,
        )

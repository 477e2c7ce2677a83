"""The columns of common rows: which party or column group has which, and this party's own at all positions.

Where rows are aligned by an intersection, every position is a common row. Where the parties of a group hold the same
columns of different rows, positions are those of a union: a party has rows at some of them, and does not know which
are common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anonymize.hierarchies.hierarchy import TOP, Hierarchy
from link.errors import ConfigurationError, shareable
from link.session import Session
from mining.data.table_rows import TableRows
from mining.data.tables import Column, Table
from mining.joint.anonymisation.coding import CodedRows, Coding, Leaves, Lookup
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells, Counter
from mining.joint.anonymisation.vertical.table_choice import Levels
from mining.joint.vertical.grouped.groups import Groups, column_holder, columns_of_holders
from mining.joint.vertical.names import open_names


@dataclass(frozen=True, eq=False)
class Axis:
    """A column by which common rows are counted: a quasi-identifier, or a sensitive one that a model looks at.

    Attributes:
        hierarchy: Of the column; of a sensitive one its values, and all of them together.
        holder: The party that has it, or the group.
        leaves: At the holder, the leaf at each position, shape (n,); None elsewhere.
    """

    hierarchy: Hierarchy
    holder: str
    leaves: Leaves | None

    def labels(self, level: int) -> int:
        """How many labels there are at a level."""
        return len(self.hierarchy.labels[level])

    def coarser(self, level: int, above: int) -> NDArray[np.int32]:
        """The label at a higher level of each label of a level, shape (labels of the level,)."""
        first = np.unique(self.hierarchy.maps[level], return_index=True)[1]
        return self.hierarchy.maps[above][first]


@dataclass(frozen=True, eq=False, slots=True)
class _Coded:
    """The numbers of a block's cells: leaves, places among public values, and places among all texts."""

    coding: Coding
    texts: tuple[Lookup, ...]

    def __call__(self, table: Table, _first: int) -> tuple[Leaves, Leaves, Leaves]:
        rows = self.coding.code(table)
        codes, cells = (
            np.array(each, np.int32).reshape(len(each), table.n_rows)
            for each in (list(rows.codes.values()), [each.of(rows.carried[each.name]) for each in self.texts])
        )
        return rows.leaves, codes, cells


@dataclass(frozen=True, eq=False)
class HeldColumns:
    """What one party has of the common rows.

    Attributes:
        task: The public parameters.
        holders: By column of the job, the party or the group that has it; public.
        me: The holder that this party is, or is a member of.
        own: The part of the parameters that names this party's columns.
        rows: This party's columns at all positions, in common order.
        n_rows: How many common rows there are.
        presence: Shape (positions,): where this party has a row; zeros stand elsewhere. None where all are common.
    """

    task: JointAnonymisation
    holders: Mapping[str, str]
    me: str
    own: JointAnonymisation
    rows: CodedRows
    n_rows: int
    presence: NDArray[np.bool_] | None

    @classmethod
    def of(
        cls,
        table: TableRows,
        task: JointAnonymisation,
        holders: Mapping[str, str],
        placed: NDArray[np.int64],
        n_rows: int,
        me: str,
        groups: Groups = (),
    ) -> HeldColumns:
        """Codes this party's columns, block by block where they lie in blocks, and brings its rows in common order.

        Args:
            table: This party's.
            task: The public parameters.
            holders: By column of the job, the party or the group that has it.
            placed: This party's row at each position, shape (positions,); with groups −1 where it has none.
            n_rows: How many common rows there are.
            me: This party.
            groups: Of the job.

        Raises:
            InputDataError: A cell is empty where it may not be, too long, or no value that the job names.
        """
        holder = column_holder(groups, me)
        own = part_of(task, holders, holder)
        coding = Coding.of(table, own, me)
        free = [each.name for each in own.carried if each.values is None]
        texts = tuple(Lookup.of_texts(name, table.value_counts(name)[0]) for name in free)
        at = np.full(table.n_rows, -1, np.int32)
        here = placed >= 0
        at[placed[here]] = np.flatnonzero(here)
        leaves, codes, cells = (
            np.zeros((number, len(placed)), np.int32)
            for number in (len(own.quasi_identifiers), len(coding.valued), len(texts))
        )
        first = 0
        for block in table.only(coding.columns).parts(_Coded(coding, texts)) if coding.columns else ():
            there = at[first : first + block[0].shape[1]]
            for whole, part in zip((leaves, codes, cells), block, strict=True):
                whole[:, there[there >= 0]] = part[:, there >= 0]
            first += len(there)
        carried = {each.name: Column(each.name, each.texts, own) for each, own in zip(texts, cells, strict=True)}
        valued = {each.name: own for each, own in zip(coding.valued, codes, strict=True)}
        rows = CodedRows(leaves, carried, valued)
        return cls(task, holders, holder, own, rows, n_rows, here if groups else None)

    @property
    def n_positions(self) -> int:
        """How many positions there are; that of common rows where all are."""
        return self.rows.n_rows

    def counter(self) -> Counter:
        """Counts this party's own quasi-identifiers; it may have none."""
        if self.own.quasi_identifiers:
            return Counter.of(self.rows, self.own)
        return Counter.nothing(self.own)

    def occurring(self, counter: Counter) -> list[Cells]:
        """By quasi-identifier of the task, common rows with each leaf where it is this party's, and zeros elsewhere."""
        own = dict(zip(self.places(self.me), counter.occurring(), strict=True))
        sizes = [len(each.leaves) for each in self.task.hierarchies]
        return [own.get(place, np.zeros(size, np.int64)) for place, size in enumerate(sizes)]

    def places(self, holder: str) -> tuple[int, ...]:
        """Which quasi-identifiers, by their places, a holder of columns has."""
        names = [each.name for each in self.task.quasi_identifiers]
        return tuple(place for place, name in enumerate(names) if self.holders[name] == holder)

    def axes(self, sensitive: Sequence[str]) -> tuple[Axis, ...]:
        """The quasi-identifiers in their order, then sensitive columns with public values, by name."""
        own = dict(zip(self.places(self.me), self.rows.leaves, strict=True))
        found = [
            Axis(each.hierarchy, self.holders[each.name], own.get(place))
            for place, each in enumerate(self.task.quasi_identifiers)
        ]
        for name in sensitive:
            codes = self.rows.codes.get(name)
            leaves = None if codes is None else codes.astype(np.int32)
            found.append(Axis(self._flat(name), self.holders[name], leaves))
        return tuple(found)

    def _flat(self, name: str) -> Hierarchy:
        """A carried column's values, and all of them together."""
        values = next(each.values for each in self.task.carried if each.name == name)
        assert values is not None  # a model looks only at columns with public values
        every = np.arange(len(values), dtype=np.int32)
        return Hierarchy(name, values, (every, np.zeros_like(every)), (values, (TOP,)))


async def find_holders(
    session: Session, table: TableRows, task: JointAnonymisation, groups: Groups = ()
) -> dict[str, str]:
    """Every party opens to all which columns of the job it has, label `columns`; returns by column its party or group.

    Args:
        session: A lane of its own.
        table: This party's.
        task: The public parameters.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.

    Raises:
        ConfigurationError: A column is at no party, at two parties or groups, or at some parties of a group alone.
        MalformedMessage: A peer sends something else than names.
    """
    names = column_names(task)
    opened = await open_names(session, "columns", [name for name in names if name in table.column_names])
    columns = columns_of_holders(names, {party: opened[party] for party in session.parties}, groups)
    found = {}
    for name in names:
        parties = [holder for holder, held in columns.items() if name in held]
        if len(parties) != 1:
            where = " and ".join(parties) + " both have" if parties else "no party of the job has"
            raise shareable(
                ConfigurationError(f"{where} the column '{name}'; every column is anonymised from one party's data")
            )
        found[name] = parties[0]
    return found


def part_of(task: JointAnonymisation, holders: Mapping[str, str], holder: str) -> JointAnonymisation:
    """The part of a task that names the columns of one holder, a party or a group."""
    return replace(
        task,
        quasi_identifiers=tuple(each for each in task.quasi_identifiers if holders[each.name] == holder),
        carried=tuple(each for each in task.carried if holders[each.name] == holder),
    )


def column_names(task: JointAnonymisation) -> list[str]:
    """All columns that a job takes."""
    return [*(each.name for each in task.quasi_identifiers), *(each.name for each in task.carried)]


def row_keys(axes: Sequence[Axis], levels: Levels, n_rows: int) -> NDArray[np.int64]:
    """The cell of each row at some levels of some axes that this party has, in mixed radix, shape (n,)."""
    keys = np.zeros(n_rows, np.int64)
    for axis, level in zip(axes, levels, strict=True):
        assert axis.leaves is not None
        keys = keys * axis.labels(level) + axis.hierarchy.maps[level][axis.leaves]
    return keys

"""A table whose rows stay where they are: known are the values of its columns, and how many rows hold each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.blocks.cell_counts import CellCounts
from anonymize.blocks.sources import Blocks
from anonymize.columns import NUMBERED, SHOWN, Column, Kind, Value, default_kind, missing
from anonymize.release import plain
from anonymize.roles import Roles
from anonymize.tables import Missing, Table, check_described
from link.errors import ComineError, InputDataError


@dataclass(frozen=True, eq=False)
class CountedColumn(Column):
    """A column by its distinct cells; `codes` are theirs.

    Attributes:
        cells: The distinct cells.
        rows: Rows that hold each, shape (cells,).
    """

    cells: pa.Array = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Shape (m,): how many rows hold each value of the domain."""
        return np.bincount(self.codes, self.rows, self.size).astype(np.int64)

    def code(self, cells: pa.ChunkedArray) -> NDArray[np.int32]:
        """The code of each cell of a block.

        Raises:
            InputDataError: A cell is none of those that were counted.
        """
        places = pc.index_in(cells, self.cells)
        if places.null_count:
            raise changed()
        return np.asarray(self.codes[places.to_numpy()], np.int32)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of the table.

    Attributes:
        data: Their cells.
        codes: Of quasi-identifiers and sensitive columns, by column, shape (rows,).
    """

    data: pa.Table
    codes: Mapping[str, NDArray[np.int32]]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockTable(Table):
    """A table in blocks, for whatever looks at the values of columns and at numbers of rows.

    `data` holds no rows, only the types of the columns; `rows` and `blocks` give them, block by block.

    Attributes:
        kinds: Of all columns.
        source: Of the rows.
        missing: What becomes of rows that lack values.
    """

    kinds: Mapping[str, Kind]
    source: Blocks = field(repr=False)
    missing: Missing

    @classmethod
    def counted(
        cls,
        source: Blocks,
        names: Sequence[str],
        roles: Roles,
        kinds: Mapping[str, Kind],
        orders: Mapping[str, Sequence[Value]],
        missing: Missing,
    ) -> BlockTable:
        """Reads all rows once and counts the cells of quasi-identifiers and sensitive columns.

        Arguments and errors are those of `Table.of`; columns that are not named are not read.
        """
        roles.check(list(names))
        kinds = {**dict.fromkeys(orders, "ordinal"), **kinds}
        check_described(kinds, names, missing)
        pass_ = _FirstPass(roles, names, kinds, orders, missing)
        for block in source.blocks(names):
            pass_.add(plain(block))
        if pass_.given == 0:
            raise InputDataError("The table has no rows; there is nothing to anonymise.")
        pass_.check_complete()
        columns = {name: _column(name, pass_.cells[name], kinds, orders, source) for name in pass_.cells}
        found = {name: columns[name].kind if name in columns else pass_.kind_of(name) for name in names}
        assert pass_.schema is not None
        return cls(
            columns,
            roles,
            pass_.kept,
            pass_.schema.empty_table(),
            np.zeros(0, np.int64),
            pass_.given - pass_.kept,
            kinds=found,
            source=source,
            missing=missing,
        )

    def rows(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Cells of the rows that are not left out, in blocks."""
        coded = (*self.roles.quasi_identifiers, *self.roles.sensitive)
        looked_at = coded if self.missing == "drop" else ()
        for given in self.source.blocks([name for name in self.data.column_names if name in {*columns, *looked_at}]):
            block = plain(given)
            if looked_at:
                gaps = _gaps(block, coded)
                block = block.filter(pa.array(~gaps)) if gaps.any() else block
            yield block.select(list(columns)).combine_chunks()

    def blocks(self, columns: Sequence[str] = ()) -> Iterator[Block]:
        """Coded rows that are not left out.

        Args:
            columns: Further columns, uncoded.

        Raises:
            InputDataError: The source has changed since it was counted.
        """
        coded = dict.fromkeys((*self.roles.quasi_identifiers, *self.roles.sensitive))
        names = [name for name in self.data.column_names if name in coded or name in columns]
        number = 0
        for data in self.rows(names):
            codes = {name: cast("CountedColumn", self.columns[name]).code(data.column(name)) for name in coded}
            number += data.num_rows
            yield Block(data, codes)
        if number != self.n_rows:
            raise changed()


def changed() -> InputDataError:
    """What to raise where a source holds other rows than before."""
    return InputDataError("The source has changed while it was read; let nobody write to it, and run again.")


class _FirstPass:
    """What one reading of all rows finds."""

    def __init__(
        self,
        roles: Roles,
        names: Sequence[str],
        kinds: Mapping[str, Kind],
        orders: Mapping[str, Sequence[Value]],
        policy: Missing,
    ) -> None:
        self._coded = list(dict.fromkeys((*roles.quasi_identifiers, *roles.sensitive)))
        self._kinds, self._orders, self._policy = kinds, orders, policy
        self.cells = {name: CellCounts(name) for name in self._coded}
        self.schema: pa.Schema | None = None
        self.given = self.kept = 0
        self._lacking = dict.fromkeys(self._coded, 0)
        self._first: dict[str, list[int]] = {name: [] for name in self._coded}
        self._free = {name: _FreeColumn(name, kinds.get(name), orders.get(name, ())) for name in names}

    def add(self, block: pa.Table) -> None:
        """Looks at the rows of a block."""
        self.schema = block.schema
        gaps = np.zeros(block.num_rows, bool)
        for name in self._coded if self._policy != "value" else ():
            own = missing(block.column(name))
            gaps |= own
            self._lacking[name] += int(own.sum())
            rows = np.flatnonzero(own)[: SHOWN + 1 - len(self._first[name])]
            self._first[name] += (rows + self.given).tolist()
        self.given += block.num_rows
        block = block.filter(pa.array(~gaps)) if gaps.any() else block
        for name, counts in self.cells.items():
            counts.add(block.column(name))
        for name in block.column_names:
            if name not in self.cells:
                self._free[name].add(block.column(name), self.kept)
        self.kept += block.num_rows

    def check_complete(self) -> None:
        """Refuses missing cells, and a table that has no complete row.

        Raises:
            InputDataError: It does.
        """
        for name, lacking in self._lacking.items():
            if self._policy == "error" and lacking:
                rows = self._first[name]
                first = ", ".join(map(str, rows[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
                raise InputDataError(
                    f'Column "{name}" lacks {lacking} of {self.given} values (rows {first}); '
                    'fill them in, or choose missing = "drop" or missing = "value".'
                )
        if not self.kept:
            raise InputDataError("Every row lacks a value in a quasi-identifier or sensitive column; nothing is left.")

    def kind_of(self, name: str) -> Kind:
        """The kind of a column that is not coded."""
        return self._free[name].kind


class _FreeColumn:
    """An identifier or insensitive column: gaps may stay there, and then it is no number."""

    def __init__(self, name: str, declared: Kind | None, order: Sequence[Value]) -> None:
        self._name, self._declared, self._order = name, declared, order
        self._default: Kind | None = None
        self._has_gaps = False
        self._wrong: ComineError | None = None

    def add(self, cells: pa.ChunkedArray, first: int) -> None:
        kind = default_kind(cells)
        self._default = kind if self._default in (None, kind) else "tree"  # of times some are no days
        if not self._has_gaps:
            self._has_gaps = bool(missing(cells).any())
        if self._declared is not None and not self._has_gaps and self._wrong is None:
            try:
                Column.of(self._name, cells, self._declared, self._order)
            except ComineError as error:
                self._wrong = _of_block(error, first)

    @property
    def kind(self) -> Kind:
        """Declared, or that of its cells.

        Raises:
            ComineError: A cell is no value of the kind.
        """
        kind = self._declared or self._default or "tree"
        if kind in NUMBERED and self._has_gaps:
            return "tree"
        if self._wrong is not None:
            raise self._wrong
        return kind


def _column(
    name: str,
    found: CellCounts,
    kinds: Mapping[str, Kind],
    orders: Mapping[str, Sequence[Value]],
    source: Blocks,
) -> CountedColumn:
    """A column from its distinct cells.

    Raises:
        ConfigurationError: As `Column.of`.
        InputDataError: As `Column.of`; its rows are those of a block, and the sentence says so.
    """
    values = found.values
    kind, order = kinds.get(name), orders.get(name, ())
    try:
        column = Column.of(name, pa.chunked_array([values]), kind, order)
    except ComineError:
        first = 0
        for block in source.blocks([name]):  # for the row of a wrong cell
            cells = plain(block).column(name)
            try:
                Column.of(name, cells, kind or default_kind(pa.chunked_array([values])), order)
            except ComineError as error:
                raise _of_block(error, first) from error
            first += len(cells)
        raise
    return CountedColumn(column.name, column.kind, column.domain, column.codes, values, found.counts)


def _of_block(error: ComineError, first: int) -> ComineError:
    """An error whose rows are counted from the first of a block."""
    if not first or " row " not in error.message:
        return error
    return type(error)(f"{error.message} Rows are counted from row {first:,}, since the table is read in blocks.")


def _gaps(block: pa.Table, columns: Sequence[str]) -> NDArray[np.bool_]:
    gaps = np.zeros(block.num_rows, bool)
    for name in columns:
        gaps |= missing(block.column(name))
    return gaps

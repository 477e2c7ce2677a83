"""Tables: rows that are known by ids, and columns of cells that are text, byte for byte."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import InputDataError
from link.files.quantities import quantity
from mining.data.arrow_arrays import bytes_of, lengths_of
from mining.data.coded_cells import CodedCells, Codes, checked_texts
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation, RowIds, check_has_ids, checked_ids
from mining.data.transactions import matching

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")
_AT_ONCE: Final = 1 << 20  # rows


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """A column with its distinct values listed.

    Attributes:
        name: As in the source.
        values: Distinct texts in ascending order of UTF-8 bytes, none of them empty: Arrow's large strings.
        codes: By row, the position in `values` of its cell; −1 where the cell is empty. A byte a row, or as many as
            there have to be.
    """

    name: str
    values: pa.Array
    codes: Codes

    @classmethod
    def of(cls, name: str, cells: pa.ChunkedArray) -> Column:
        """Encodes the cells of a column.

        Args:
            name: Of the column.
            cells: Strings, or a dictionary of strings. Null and the empty text are empty cells.

        Raises:
            InputDataError: A cell is not UTF-8 text.
        """
        coded = CodedCells(name)
        for chunk in cells.chunks:
            coded.add(chunk)
        return cls(name, *coded.listed())

    def counts(self) -> NDArray[np.int64]:
        """In how many rows each value is, shape (values,)."""
        found = np.zeros(len(self.values) + 1, np.int64)  # the first counts empty cells
        for start in range(0, len(self.codes), _AT_ONCE):
            some = self.codes[start : start + _AT_ONCE].astype(np.int64)
            found += np.bincount(some + 1, minlength=len(found))
        return found[1:]

    def without(self, patterns: Sequence[str]) -> Column:
        """The same column, with empty cells in place of those whose items match; see `Table.without`."""
        texts = self.values.to_pylist()
        removed = matching((f"{self.name}={text}" for text in texts), patterns)
        if not removed:
            return self
        return self._with(np.array([f"{self.name}={text}" not in removed for text in texts]))

    def occurring(self) -> Column:
        """The same column, without values that are in no row."""
        held = self.counts() > 0
        return self if held.all() else self._with(held)

    def _with(self, kept: NDArray[np.bool_]) -> Column:
        """The same column with empty cells in place of those whose values are not kept."""
        target = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(self.codes.dtype)
        return Column(self.name, self.values.filter(pa.array(kept)), target[self.codes])


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Rows with ids and columns, in the order of the source.

    Attributes:
        id_columns: The columns that together name a row.
        ids: Of each of these the cells, Arrow's large strings without nulls.
        columns: The other columns.
        n_rows: Number of rows.
    """

    id_columns: tuple[str, ...]
    ids: tuple[pa.Array, ...]
    columns: tuple[Column, ...]
    n_rows: int

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        cells: Iterable[pa.ChunkedArray | CodedCells],
        id_columns: Sequence[str],
        where: str,
    ) -> Table:
        """A table from columns of text.

        Args:
            names: Of all columns, in the order of the source.
            cells: Their cells, as long as each other, as `Column.of` takes them, or coded where they are no ids; they
                are taken one by one.
            id_columns: The columns of ids.
            where: The source, which errors name.

        Raises:
            InputDataError: A name is missing, doubled or not fit for items, or a cell is not UTF-8 text.
        """
        check_names(names, id_columns, where)
        ids: dict[str, pa.Array] = {}
        columns = []
        n_rows = 0
        for name, column in zip(names, cells, strict=True):
            if isinstance(column, CodedCells):
                n_rows = column.n_rows
                columns.append(Column(name, *column.listed()))
                continue
            n_rows = len(column)
            if name in id_columns:
                ids[name] = checked_texts(pc.fill_null(pc.cast(column, pa.large_string()), "").combine_chunks(), name)
            else:
                columns.append(Column.of(name, column))
        return cls(tuple(id_columns), tuple(ids[name] for name in id_columns), tuple(columns), n_rows)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, those of ids not among them."""
        return tuple(column.name for column in self.columns)

    @property
    def n_items(self) -> int:
        """Number of distinct cells of all columns, numbers not put into intervals."""
        return sum(len(column.values) for column in self.columns)

    def without(self, patterns: Sequence[str]) -> Table:
        """The same rows and columns, with empty cells in place of those whose items match a pattern.

        Args:
            patterns: Of items `column=value`, as in `fnmatch.fnmatchcase`.
        """
        if not patterns:
            return self
        return replace(self, columns=tuple(column.without(patterns) for column in self.columns))

    def only(self, columns: Sequence[str], *, ids: bool = False) -> Table:
        """The same rows with some of their columns, in this order; see `mining.data.table_rows.TableRows`."""
        own = {column.name: column for column in self.columns}
        kept = (self.id_columns, self.ids) if ids else ((), ())
        return Table(*kept, tuple(own[name] for name in columns), self.n_rows)

    def value_counts(self, column: str) -> tuple[pa.Array, NDArray[np.int64]]:
        """The distinct texts of a column, and in how many rows each is; see `mining.data.table_rows.TableRows`."""
        (found,) = self.only([column]).columns
        return found.values, found.counts()

    def total(self, kernel: Callable[[Table], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.data.table_rows.TableRows`."""
        return kernel(self)

    def parts(self, kernel: Callable[[Table, int], R]) -> Iterator[R]:
        """What a kernel gives for all rows, which are one block; see `mining.data.table_rows.TableRows`."""
        yield kernel(self, 0)

    def row_ids(self, normalisation: IdNormalisation = AS_THEY_ARE) -> RowIds:
        """The rows' ids in an injective encoding.

        Args:
            normalisation: What is done to ids first, equal at all parties of a job.

        Raises:
            InputDataError: There is no column of ids, or rows have no id or share one; the sentence says how many.
        """
        check_has_ids(self.id_columns)
        return checked_ids(self.ids, self.id_columns, normalisation)

    def digest(self) -> bytes:
        """A digest of the contents: equal where names, ids and cells are equal, in the same order."""
        whole = TableDigest(self.n_rows, len(self.ids), len(self.columns))
        for name, cells in zip(self.id_columns, self.ids, strict=True):
            whole.add_texts(name, len(cells), partial(iter, [cells]))
        for column in self.columns:
            whole.add_texts(column.name, len(column.values), partial(iter, [column.values]))
            whole.add_codes(column.codes)
        return whole.digest()

    def __repr__(self) -> str:
        return f"Table(rows={self.n_rows}, ids={list(self.id_columns)}, columns={list(self.column_names)})"


def check_names(names: Sequence[str], id_columns: Sequence[str], where: str) -> None:
    """Refuses tables whose columns cannot be distinguished, or whose items could not.

    An item is `column=value`, so that no two columns give the same item as long as no name has an equals sign.

    Raises:
        InputDataError: A name is missing, doubled or has an equals sign.
    """
    for column in id_columns:
        if column not in names:
            raise InputDataError(
                f'{where} has no column named "{column}" among its {quantity(len(names), "column")}; name the one with '
                "the ids of the rows by id, and check the separator."
            )
    times = Counter(names)
    for place, name in enumerate(names):
        if not name:
            raise InputDataError(f"{where}: column {place + 1} has no name; give it one.")
        if times[name] > 1:
            raise InputDataError(f'{where} has more than one column named "{name}"; rename all but one.')
        if "=" in name and name not in id_columns:
            raise InputDataError(
                f'{where}: the name of column "{name}" has an equals sign, which stands between column and value in '
                "items; rename it."
            )


class TableDigest:
    """The digest of a table's contents, of which not all need be in memory; see `Table.digest`."""

    def __init__(self, n_rows: int, n_ids: int, n_columns: int) -> None:
        self._whole = hashlib.blake2b(digest_size=32)
        self._whole.update(np.array([n_rows, n_ids, n_columns], "<u8").tobytes())

    def add_texts(self, name: str, number: int, pieces: Callable[[], Iterable[pa.Array]]) -> None:
        """A column of ids, in the order of the rows, or the values of another column, whose codes follow.

        Args:
            name: Of the column.
            number: How many texts there are.
            pieces: Gives them, Arrow's large strings without nulls; it is called twice.
        """
        self._add(1, lambda: [pa.array([name], pa.large_string())])
        self._add(number, pieces)

    def add_codes(self, codes: Codes) -> None:
        """Codes of rows, those of a column one after the other."""
        for start in range(0, len(codes), _AT_ONCE):
            self._whole.update(np.ascontiguousarray(codes[start : start + _AT_ONCE], "<i4").data)

    def digest(self) -> bytes:
        """Once all columns were added, those of ids first."""
        return self._whole.digest()

    def _add(self, number: int, pieces: Callable[[], Iterable[pa.Array]]) -> None:
        self._whole.update(np.array([number], "<u8").tobytes())
        for texts in pieces():
            for start in range(0, len(texts), _AT_ONCE):
                self._whole.update(lengths_of(texts.slice(start, _AT_ONCE)).astype("<u8").data)
        for texts in pieces():
            self._whole.update(bytes_of(texts))

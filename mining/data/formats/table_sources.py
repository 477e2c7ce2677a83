"""Transactions from Parquet files and from databases."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.gathering import LongPieces, RowPieces
from mining.data.schemes.registry import database_of
from mining.data.schemes.scheme import ArrowDatabase
from mining.data.schemes.sqlite import FETCH, Sqlite
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.transactions import Transactions

BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class TransactionForm:
    """In which of the three forms typed columns have transactions.

    Attributes:
        kind: The form.
        columns: That hold them: ids and items, the lists, or one for each item.
    """

    kind: Literal["long", "lists", "wide"]
    columns: tuple[str, ...]

    @classmethod
    def of_file(cls, path: Path, id_column: str, item_column: str) -> TransactionForm:
        """That of a Parquet file; see `of`."""
        return cls.of(pq.read_schema(path), id_column, item_column, str(path))

    @classmethod
    def of(cls, schema: pa.Schema, id_column: str, item_column: str, where: str) -> TransactionForm:
        """Long where there are both columns, else lists where there is one column of lists, else wide.

        Raises:
            InputDataError: Two columns have one name.
        """
        lists = [field.name for field in schema if _is_list(field.type)]
        names = schema.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputDataError(f'{where} has more than one column named "{twice[0]}"; rename all but one.')
        if {id_column, item_column} <= set(names) and item_column not in lists:
            return cls("long", (id_column, item_column))
        if len(lists) == 1:
            return cls("lists", (lists[0],))
        return cls("wide", tuple(name for name in names if name != id_column))

    def transactions(self, batches: Iterable[pa.RecordBatch], where: str) -> Transactions:
        """The transactions of all batches, which have the columns of this form.

        Raises:
            InputDataError: Cells are not what the form needs.
        """
        if self.kind == "long":
            return _from_long(batches, self.columns[0], self.columns[1], where)
        if self.kind == "lists":
            return _from_lists(batches, self.columns[0], where)
        return _from_wide(batches, self.columns, where)


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Translates what goes wrong while a Parquet file is read.

    Raises:
        InputDataError: It cannot be read, or holds text that is not UTF-8.
    """
    try:
        yield
    except UnicodeDecodeError:  # which Parquet promises, and nobody checks
        raise InputDataError(f"{path} holds text that is not UTF-8; re-encode it.") from None
    except (pa.ArrowException, OSError, OverflowError, UnicodeEncodeError) as error:
        raise InputDataError(f"{path} cannot be read as a Parquet file; check its format.") from error


def from_parquet(path: Path, id_column: str, item_column: str) -> Transactions:
    """A Parquet file, in whichever of the three forms."""
    with parquet_errors(path):
        form = TransactionForm.of_file(path, id_column, item_column)
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return form.transactions(file.iter_batches(BATCH_ROWS, columns=list(form.columns)), str(path))


def from_sql(url: str, query: str, id_column: str, item_column: str, options: SourceOptions = PLAIN) -> Transactions:
    """The long form from a query against a database, opened for reading only."""
    if isinstance(database_of(url), Sqlite):
        return _from_sqlite(url, query, id_column, item_column)
    pairs = LongPieces()
    for ids, items in sql_pairs(url, query, id_column, item_column, options):
        pairs.add(ids, items)
    return pairs.transactions()


def sql_pairs(
    url: str, query: str, id_column: str, item_column: str, options: SourceOptions = PLAIN
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Ids and items that a query returns, in batches; ids of SQLite, whose cells have types of their own, as text.

    Raises:
        ConfigurationError: It is no URL of a database.
        InputDataError: The database cannot be read, an id is empty or an item is no text.
    """
    database = database_of(url)
    if not isinstance(database, ArrowDatabase):
        yield from _sqlite_pairs(url, query, id_column, item_column)
        return
    with database.query(url, query, options) as batches:
        where = database.where(url)
        for name in (id_column, item_column):
            _place(batches.schema.names, name, where)
        yield from long_pairs(batches, id_column, item_column, where)


def _sqlite_pairs(url: str, query: str, id_column: str, item_column: str) -> Iterator[tuple[pa.Array, pa.Array]]:
    ids: list[str] = []
    items: list[str | None] = []
    for key, item in _sqlite_records(url, query, id_column, item_column):
        number = isinstance(key, float) and key.is_integer()
        ids.append(f"i{int(key)}" if number or isinstance(key, int) else f"{type(key).__name__} {key!r}")  # type: ignore[call-overload]
        items.append(item)
        if len(ids) == FETCH:
            yield pa.array(ids, pa.string()), pa.array(items, pa.large_string())
            ids, items = [], []
    if ids:
        yield pa.array(ids, pa.string()), pa.array(items, pa.large_string())


def _sqlite_records(url: str, query: str, id_column: str, item_column: str) -> Iterator[tuple[object, str | None]]:
    """Each record's id, and its item as text, or none."""
    database = Sqlite()
    where = database.where(url)
    with database.records(url, query) as cursor:
        names = [entry[0] for entry in cursor.description or ()]
        id_place, item_place = _place(names, id_column, where), _place(names, item_column, where)
        while records := cursor.fetchmany(FETCH):
            for record in records:
                key, item = record[id_place], record[item_place]
                if key is None or key == "":
                    raise InputDataError(f'{where} returns a row without a value in column "{id_column}".')
                if item is not None and not isinstance(item, str | int):
                    raise InputDataError(neither_text_nor_number(where, item_column))
                yield key, None if item is None or item == "" else str(item)


def _from_sqlite(url: str, query: str, id_column: str, item_column: str) -> Transactions:
    numbers: dict[object, int] = {}
    codes: dict[str, int] = {}
    rows, indices = array("i"), array("i")  # which take far less than lists
    for key, item in _sqlite_records(url, query, id_column, item_column):
        row = numbers.setdefault(key, len(numbers))
        if item is not None:
            rows.append(row)
            indices.append(codes.setdefault(item, len(codes)))
    return Transactions.from_occurrences(list(codes), np.asarray(rows), np.asarray(indices), len(numbers))


def _place(names: list[str], wanted: str, where: str) -> int:
    if names.count(wanted) != 1:
        raise InputDataError(
            f'{where} must return one column named "{wanted}", but returns {names.count(wanted)}; '
            f'write "… AS {wanted}" in the select list.'
        )
    return names.index(wanted)


def neither_text_nor_number(where: str, column: str) -> str:
    """The sentence about a column that cannot be read as text exactly."""
    return f'{where}: column "{column}" holds values that are neither text nor whole numbers; cast it to text.'


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _texts(column: pa.Array, name: str, where: str) -> pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (textual or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputDataError(neither_text_nor_number(where, name))
    return column.cast(kind).cast(pa.large_string())


def _from_long(batches: Iterable[pa.RecordBatch], id_column: str, item_column: str, where: str) -> Transactions:
    pairs = LongPieces()
    for ids, items in long_pairs(batches, id_column, item_column, where):
        pairs.add(ids, items)
    return pairs.transactions()


def long_pairs(
    batches: Iterable[pa.RecordBatch], id_column: str, item_column: str, where: str
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Ids and items of batches in the long form, none of the ids empty, and the items as text.

    Raises:
        InputDataError: Ids are empty, which is reported once all are counted, or items are no text.
    """
    unnamed = 0
    for batch in batches:
        ids = _plain(batch.column(id_column))
        unnamed += ids.null_count
        if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
            unnamed += pc.sum(pc.equal(ids, "")).as_py() or 0
        if not unnamed:
            yield ids, _texts(batch.column(item_column), item_column, where)
    if unnamed:
        raise InputDataError(f'{where}: column "{id_column}" has {unnamed} empty ids; every row needs one.')


def _from_lists(batches: Iterable[pa.RecordBatch], name: str, where: str) -> Transactions:
    rows = RowPieces()
    for batch in batches:
        rows.add(*list_rows(batch.column(0), name, where))
    return rows.transactions()


def list_rows(column: pa.Array, name: str, where: str) -> tuple[NDArray[np.int64], pa.Array]:
    """Items of each row, and the items of all rows, of a column of lists."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    items = _texts(pc.list_flatten(column), name, where)
    held = pc.fill_null(pc.not_equal(items, ""), False)
    if pc.all(held).as_py():
        return lengths, items
    owner = np.repeat(np.arange(len(lengths)), lengths)[held.to_numpy(zero_copy_only=False)]
    return np.bincount(owner, minlength=len(lengths)), items.filter(held)


def _from_wide(batches: Iterable[pa.RecordBatch], names: Sequence[str], where: str) -> Transactions:
    pieces: list[tuple[NDArray[np.integer], NDArray[np.integer]]] = []
    n_rows = 0
    for batch in batches:
        pieces += [(rows + n_rows, codes) for rows, codes in wide_cells(batch, names, where)]
        n_rows += batch.num_rows
    return Transactions.from_pieces(names, pieces, n_rows)


def wide_cells(
    batch: pa.RecordBatch, names: Sequence[str], where: str
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Rows of a batch that hold an item, and that item's position among the names, item by item."""
    for code, name in enumerate(names):
        held = np.flatnonzero(_truth(batch.column(name), name, where))
        yield held, np.full(len(held), code, np.int32)


def _truth(column: pa.Array, name: str, where: str) -> NDArray[np.bool_]:
    if not column.null_count:
        if pa.types.is_boolean(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False), bool)
        if pa.types.is_integer(column.type):
            values = column.to_numpy()
            if np.all((values == 0) | (values == 1)):
                return np.asarray(values == 1)
    raise InputDataError(
        f'{where}: column "{name}" is neither boolean nor whole numbers 0 and 1 without gaps; without the columns of '
        "the long format and without exactly one column of lists, every column must be an item."
    )

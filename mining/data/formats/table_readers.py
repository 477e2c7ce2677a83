"""Reads tables from CSV and Parquet files and from databases; little of them lies in memory twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from sqlite3 import Cursor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from link.errors import InputDataError
from mining.data.coded_cells import CodedCells
from mining.data.formats.csv_text import read_cells, read_header
from mining.data.formats.table_sources import BATCH_ROWS, neither_text_nor_number, parquet_errors
from mining.data.formats.text_files import read_pieces, read_text
from mining.data.schemes.registry import database_of
from mining.data.schemes.scheme import ArrowDatabase
from mining.data.schemes.sqlite import FETCH, Sqlite
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.tables import Table, check_names

_CELLS = pa.dictionary(pa.int32(), pa.string())


class Batches(NamedTuple):
    """Rows of a table as they are read.

    Attributes:
        names: Of the columns.
        batches: By batch its columns, Arrow's large strings.
    """

    names: Sequence[str]
    batches: Iterable[list[pa.Array]]


def table_from_csv(data: bytes, separator: str, id_columns: Sequence[str], path: Path) -> Table:
    """CSV with a header and a line per row, from checked UTF-8 bytes."""
    header, body = read_header(data, separator, path)
    check_names(header, id_columns, str(path))
    kinds = _kinds(header, id_columns)
    batches = read_cells(body, kinds, separator, data, path, list)
    return gathered(header, (batch.columns for batch in batches), id_columns, str(path))


def table_from_csv_file(path: Path, separator: str, id_columns: Sequence[str]) -> Table:
    """The same from a file, piece by piece: all text never lies in memory together.

    A text that is proper CSV only as a whole, since quotes stand within cells, is read as a whole; so is one that is
    none, of which the error then gives the line.

    Raises:
        InputDataError: It cannot be read, or is not as it must be.
    """
    try:
        return _from_pieces(path, separator, id_columns)
    except InputDataError:
        return table_from_csv(read_text(path, quotes=True), separator, id_columns, path)


def _from_pieces(path: Path, separator: str, id_columns: Sequence[str]) -> Table:
    pieces = (text for _, text in read_pieces(path, quotes=True))
    first = next(pieces)
    header, body = read_header(first, separator, path)
    check_names(header, id_columns, str(path))
    kinds = _kinds(header, id_columns)

    def batches() -> Iterator[list[pa.Array]]:
        for part in chain([body], map(memoryview, pieces)):
            yield from (batch.columns for batch in read_cells(part, kinds, separator, bytes(part), path, list))

    return gathered(header, batches(), id_columns, str(path))


def _kinds(header: Sequence[str], id_columns: Sequence[str]) -> list[pa.DataType | None]:
    return [pa.large_string() if name in id_columns else _CELLS for name in header]


def table_from_parquet(path: Path, id_columns: Sequence[str]) -> Table:
    """A Parquet file with a column for each column; cells that are no text as `_texts` writes them."""
    where = str(path)
    with parquet_errors(path), pq.ParquetFile(path, pre_buffer=False) as file:
        names = file.schema_arrow.names
        check_names(names, id_columns, where)
        for field in file.schema_arrow:
            _check_kind(field.type, field.name, where, is_id=field.name in id_columns)
        cells = (_column_of(file, name, is_id=name in id_columns) for name in names)
        return Table.of(names, cells, id_columns, where)


def _column_of(file: pq.ParquetFile, name: str, *, is_id: bool) -> pa.ChunkedArray | CodedCells:
    """The cells of one column, read and encoded batch by batch."""
    batches = (_texts(batch.column(0)) for batch in file.iter_batches(BATCH_ROWS, columns=[name]))
    if is_id:
        return pa.chunked_array(list(batches), pa.large_string())
    coded = CodedCells(name)
    for batch in batches:
        coded.add(batch)
    return coded


def table_from_arrow(table: pa.Table, id_columns: Sequence[str], where: str) -> Table:
    """A table of Arrow's; cells that are no text as `_texts` writes them."""
    for field in table.schema:
        _check_kind(field.type, field.name, where, is_id=field.name in id_columns)
    return Table.of(table.column_names, map(_texts, table.columns), id_columns, where)


def table_from_sql(url: str, query: str, id_columns: Sequence[str], options: SourceOptions = PLAIN) -> Table:
    """What a query against a database returns, opened for reading only."""
    with sql_batches(url, query, id_columns, options) as (names, batches):
        return gathered(names, batches, id_columns, database_of(url).where(url))


@contextmanager
def sql_batches(url: str, query: str, id_columns: Sequence[str], options: SourceOptions = PLAIN) -> Iterator[Batches]:
    """What a query returns, in batches; see `table_from_sql`."""
    database = database_of(url)
    where = database.where(url)
    if not isinstance(database, ArrowDatabase):
        with Sqlite().records(url, query) as cursor:
            names = [entry[0] for entry in cursor.description or ()]
            check_names(names, id_columns, where)
            yield Batches(names, _sqlite_columns(cursor, names, id_columns, where))
        return
    with database.query(url, query, options) as batches:
        yield arrow_batches(batches.schema, batches, id_columns, where)


def arrow_batches(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], id_columns: Sequence[str], where: str
) -> Batches:
    """Batches of Arrow's, whose cells become texts; see `table_from_arrow`.

    Raises:
        InputDataError: A column is missing, or is of no kind that can be written as text.
    """
    check_names(schema.names, id_columns, where)
    for field in schema:
        _check_kind(field.type, field.name, where, is_id=field.name in id_columns)
    return Batches(schema.names, (list(map(_texts, batch.columns)) for batch in batches))


@contextmanager
def parquet_batches(path: Path, id_columns: Sequence[str], groups: Sequence[int]) -> Iterator[Batches]:
    """Some row groups of a Parquet file, in batches; see `table_from_parquet`."""
    where = str(path)
    with parquet_errors(path), pq.ParquetFile(path, pre_buffer=False) as file:
        names = file.schema_arrow.names
        check_names(names, id_columns, where)
        for field in file.schema_arrow:
            _check_kind(field.type, field.name, where, is_id=field.name in id_columns)
        batches = file.iter_batches(BATCH_ROWS, row_groups=list(groups))
        yield Batches(names, (list(map(_texts, batch.columns)) for batch in batches))


def _sqlite_columns(
    cursor: Cursor, names: Sequence[str], id_columns: Sequence[str], where: str
) -> Iterator[list[pa.Array]]:
    for records in iter(lambda: cursor.fetchmany(FETCH), []):
        columns = zip(names, zip(*records, strict=True), strict=True)
        yield [_sqlite_texts(values, name, where, is_id=name in id_columns) for name, values in columns]


def gathered(names: Sequence[str], batches: Iterable[list[pa.Array]], id_columns: Sequence[str], where: str) -> Table:
    """A table from batches of columns: large strings, or where they are not of ids, dictionaries of strings.

    Each batch is encoded before the next is fetched.
    """
    ids: dict[str, list[pa.Array]] = {name: [] for name in id_columns}
    coded = {name: CodedCells(name) for name in names if name not in ids}
    for batch in batches:
        for name, column in zip(names, batch, strict=True):
            if name in ids:
                ids[name].append(column)
            else:
                coded[name].add(column)
    cells = (pa.chunked_array(ids[name], pa.large_string()) if name in ids else coded.pop(name) for name in names)
    return Table.of(names, cells, id_columns, where)


def _sqlite_texts(values: tuple[object, ...], name: str, where: str, *, is_id: bool) -> pa.Array:
    """SQLite gives every value a type of its own."""
    kinds = set(map(type, values))
    if not kinds <= ({str, int, type(None)} if is_id else {str, int, float, type(None)}):
        raise InputDataError(neither_text_nor_number(where, name) if is_id else _unreadable(where, name))
    if kinds <= {str, type(None)}:
        return pa.array(values, pa.large_string())
    floats = pa.array([value for value in values if type(value) is float], pa.float64())
    decimals = iter(floats.cast(pa.large_string()).to_pylist())
    texts = [None if v is None else next(decimals) if type(v) is float else str(v) for v in values]
    return pa.array(texts, pa.large_string())


def _check_kind(kind: pa.DataType, name: str, where: str, *, is_id: bool) -> None:
    """Ids are compared between parties, so only what every source writes alike will do for them."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if textual or pa.types.is_integer(kind) or pa.types.is_null(kind):
        return
    if is_id:
        raise InputDataError(neither_text_nor_number(where, name))
    if not (pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or _is_time(kind)):
        raise InputDataError(_unreadable(where, name))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind))


def _unreadable(where: str, column: str) -> str:
    return (
        f'{where}: column "{column}" holds values that are neither text, numbers, dates, times nor truth values; cast '
        "it to text or leave it out."
    )


def _texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Cells as text: numbers as the shortest decimals, dates and times as in ISO 8601."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_string())

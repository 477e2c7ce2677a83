"""Opens tables: what libraries hold in memory, CSV and Parquet files, and queries on databases.

Text stays text, byte for byte: no types are guessed, so that `007` is no 7. Columns become numbers or dates where a
table is given their kind.
"""

from __future__ import annotations

import csv
import io
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from link.errors import ConfigurationError, InputDataError
from link.postgres import postgres_query

_READABLE: Final = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null, pa.types.is_boolean),
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_time),
)
_FORMS: Final = "sqlite:///PATH, duckdb:///PATH or postgres://..."


class ArrowTable(Protocol):
    """A table of any library that hands over Arrow's, such as a data frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows = Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]]  # as Python itself has them
Tabular = ArrowTable | Rows


def as_arrow(data: Tabular) -> pa.Table:
    """A table of Arrow's.

    Args:
        data: Of pyarrow, pandas or polars, anything with the Arrow C stream interface, a dictionary of lists, or a list
            of dictionaries (a key that a row lacks is a missing cell).

    Raises:
        InputDataError: It is none of these, a name occurs twice, or a column mixes types or is nested.
    """
    try:
        table = _converted(data)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputDataError(f"The data cannot be read as a table: {reason}.") from error
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputDataError(f'Two columns are named "{twice[0]}"; rename one.')
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not any(is_kind(kind) for is_kind in _READABLE):
            raise InputDataError(
                f'Column "{field.name}" holds values of type {kind}, not text, numbers, truth values, dates or times; '
                "turn them into such, each part into a column of its own."
            )
    return pa.table(list(map(_without_views, table.columns)), table.column_names)


def _without_views(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Views of strings, as polars has them, as strings, for which Arrow has all its functions."""
    if pa.types.is_string_view(cells.type):
        return cells.cast(pa.large_string())
    if pa.types.is_dictionary(cells.type) and pa.types.is_string_view(cells.type.value_type):
        texts = [chunk.dictionary.cast(pa.large_string()) for chunk in cells.chunks]
        pairs = zip(cells.chunks, texts, strict=True)
        chunks = [pa.DictionaryArray.from_arrays(chunk.indices, text) for chunk, text in pairs]
        return pa.chunked_array(chunks, pa.dictionary(cells.type.index_type, pa.large_string()))
    return cells


def _converted(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row)
        return pa.table({name: [row.get(name) for row in data] for name in names})
    return pa.table(data)


def read_csv(path: Path, separator: str = ",") -> pa.Table:
    """Reads CSV with a header; all cells are text, an empty one is the empty text.

    Args:
        path: UTF-8 text, as it is or compressed (`.gz`, `.bz2`, `.zst`); blank lines are ignored.
        separator: One character.

    Raises:
        InputDataError: The file is missing, is no UTF-8 text, or a line has more or fewer cells than the header.
    """
    try:
        with pa.input_stream(str(path)) as stream:
            content: bytes = stream.read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputDataError(f"{path} cannot be read; check the path.") from error
    check_quotes(path, [content])
    try:
        text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
        header = next(filter(None, csv.reader(text, delimiter=separator)), None)
        if header is None:
            raise InputDataError(f"{path} is empty; a first line with the names of the columns is needed.")
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            pa_csv.ReadOptions(block_size=min(max(len(content), 1 << 20), (1 << 31) - 1)),
            *csv_options(header, separator),
        )
    except UnicodeDecodeError as error:
        raise InputDataError(f"{path} is no text in UTF-8; convert it.") from error
    except (pa.ArrowInvalid, csv.Error) as error:
        raise csv_error(path, io.BytesIO(content), separator, error) from error
    return as_arrow(table)


def csv_options(
    header: Sequence[str], separator: str, columns: Sequence[str] = ()
) -> tuple[pa_csv.ParseOptions, pa_csv.ConvertOptions]:
    """How Arrow reads CSV: every cell as text.

    Args:
        header: The columns of the file.
        separator: Of its cells.
        columns: Those that are read; all of them if none are named.
    """
    return (
        pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, include_columns=list(columns)
        ),
    )


def check_quotes(path: Path, contents: Iterable[bytes]) -> None:
    """Refuses CSV with an odd number of quotes: Arrow would read the rest of the file as one cell.

    Raises:
        InputDataError: It has.
    """
    if sum(content.count(b'"') for content in contents) % 2:
        raise InputDataError(f"{path} is not proper CSV: a quote is opened and never closed.")


def csv_error(path: Path, content: IO[bytes], separator: str, error: Exception) -> InputDataError:
    """What to say where Arrow cannot read CSV.

    Args:
        path: Of the file.
        content: From its beginning.
        separator: Of its cells.
        error: Arrow's.
    """
    ragged = _ragged(content, separator)
    if ragged is not None:
        line, width = ragged
        return InputDataError(
            f"{path} is not proper CSV at line {line}: every line must have the {width} cells of the first one."
        )
    # What Arrow says ends in the line itself, which would flood the sentence.
    reason = str(error).splitlines()[0].partition("columns, got ")
    return InputDataError(f"{path} is not proper CSV: {reason[0]}{reason[1]}{reason[2].partition(':')[0]}.")


def _ragged(content: IO[bytes], separator: str) -> tuple[int, int] | None:
    """The line of the first row with more or fewer cells than the header, and the header's cells."""
    try:
        reader = csv.reader(io.TextIOWrapper(content, "utf-8-sig", newline=""), delimiter=separator)
        rows = ((reader.line_num, len(row)) for row in reader if row)
        _, width = next(rows)
        return next(((line, width) for line, cells in rows if cells != width), None)
    except (csv.Error, UnicodeDecodeError, StopIteration):
        return None


def read_parquet(path: Path) -> pa.Table:
    """Reads a Parquet file with the types that it has.

    Raises:
        InputDataError: The file is missing or no Parquet file, or columns are nested.
    """
    try:
        table = pq.read_table(path)
        table.validate(full=True)  # texts, too, which Parquet promises to be UTF-8
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        raise InputDataError(f"{path} cannot be read as a Parquet file; check its path and format.") from error
    return as_arrow(table)


def read_sql(url: str, query: str) -> pa.Table:
    """What a query returns; the database is opened for reading only.

    Args:
        url: `sqlite:///PATH`, `duckdb:///PATH` or `postgres://…`.
        query: A select.

    Raises:
        ConfigurationError: It is no such URL, or the driver of PostgreSQL is not installed.
        InputDataError: The database or the query is wrong.
    """
    scheme, found, rest = url.partition("://")
    if found and scheme in ("postgres", "postgresql"):
        with postgres_query(url, query) as batches:
            return as_arrow(batches.read_all())
    if not (found and scheme in ("sqlite", "duckdb") and rest.startswith("/")):
        raise ConfigurationError(f"A database is named by a URL {_FORMS}; the one given is none of these.")
    path = Path(rest[1:])
    if not os.path.isfile(path):  # which no name makes fail
        raise InputDataError(f"There is no database file {path}; check the path in its URL.")
    return as_arrow(_from_sqlite(path, query) if scheme == "sqlite" else _from_duckdb(path, query))


def _from_sqlite(path: Path, query: str) -> pa.Table:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            cursor = connection.execute(query)
            rows = cursor.fetchall()
        finally:
            connection.close()
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        raise InputDataError(f"The query on {path} failed: {error}.") from error
    if cursor.description is None:
        raise InputDataError(f"The query on {path} returns no rows; it must be a select.")
    names = [entry[0] for entry in cursor.description]
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([_sqlite_column(name, column) for name, column in zip(names, cells, strict=True)], names)


def _sqlite_column(name: str, values: tuple[object, ...]) -> pa.Array:
    """SQLite gives every value a type of its own; numbers among texts are read as text."""
    kinds = set(map(type, values)) - {type(None)}
    if bytes in kinds:
        raise InputDataError(f'Column "{name}" holds bytes; cast it to text in the query.')
    if str in kinds and len(kinds) > 1:
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array(values, pa.float64() if float in kinds else None)


def _from_duckdb(path: Path, query: str) -> pa.Table:
    import duckdb  # large, and needed for such sources only

    where = f"The query on {path}"
    offline: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    try:
        connection = duckdb.connect(str(path), read_only=True, config=offline)
    except duckdb.Error as error:
        raise InputDataError(f"{path} cannot be opened as a DuckDB database for reading.") from error
    try:
        relation = connection.sql(query)
        if relation is None:
            raise InputDataError(f"{where} returns no rows; it must be a select.")
        return relation.to_arrow_table()
    except duckdb.Error as error:
        raise InputDataError(f"{where} failed: {str(error).splitlines()[0]}.") from error
    finally:
        connection.close()

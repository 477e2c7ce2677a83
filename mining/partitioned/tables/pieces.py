"""A source of a table, read piece by piece by the readers that read it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mining.data.formats.csv_text import read_cells, read_header
from mining.data.formats.table_readers import Batches, gathered, parquet_batches, sql_batches
from mining.data.formats.table_sources import parquet_errors
from mining.data.formats.text_files import existing
from mining.data.loading import csv_separator
from mining.data.schemes.registry import database_of
from mining.data.tables import Table, check_names
from mining.partitioned.blocks import MOST_OCCURRENCES, MOST_ROWS
from mining.partitioned.encoding.pieces import behind_header, parsed
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.tables.blocks import MOST_TEXT

Share = tuple[int, ...] | None


def table_shares(source: TableSource, number: int) -> list[Share]:
    """What up to so many readers read each: row groups of a Parquet file; None where one reads everything.

    Raises:
        InputDataError: The file is missing, or no Parquet file.
    """
    if source.format != "parquet":
        return [None]
    with parquet_errors(existing(source.path)):
        groups = pq.read_metadata(source.path).num_row_groups
    bounds = np.linspace(0, groups, min(number, max(groups, 1)) + 1).astype(int).tolist()
    return [tuple(range(start, stop)) for start, stop in pairwise(bounds)]


def table_pieces(source: TableSource, share: Share) -> Iterator[Table]:
    """Rows piece by piece, each piece with dictionaries of its own; at least one piece.

    Args:
        source: Where they are.
        share: Which of them; see `table_shares`.

    Raises:
        ConfigurationError: The separator, or the URL, is none.
        InputDataError: The source cannot be read, or is not what its format says.
    """
    where = database_of(source.place).where(source.place) if source.format == "sql" else str(source.path)
    with _READERS[source.format](source, share) as found:
        yield from pieces_of(found, source.id_columns, where)


def pieces_of(read: Batches, id_columns: Sequence[str], where: str) -> Iterator[Table]:
    """The pieces of a table as it is read; at least one.

    Args:
        read: Its batches.
        id_columns: The columns that together name a row.
        where: The source, which errors name.

    Raises:
        InputDataError: A column is missing, or a cell is not UTF-8 text.
    """
    names, empty = read.names, True
    for some in _pieces(names, read.batches):
        empty = False
        yield gathered(names, some, id_columns, where)
    if empty:
        yield gathered(names, [], id_columns, where)


def _pieces(names: Sequence[str], batches: Iterable[list[pa.Array]]) -> Iterator[Iterator[list[pa.Array]]]:
    """Batches until there are about as many rows, cells or bytes as a block may have; each piece is taken in full."""
    most = max(1, min(MOST_ROWS, MOST_OCCURRENCES // max(len(names), 1)))
    coming = _cut(batches, most)
    first = next(coming, None)

    def piece(begin: list[pa.Array]) -> Iterator[list[pa.Array]]:
        nonlocal first
        n_rows = n_bytes = 0
        following: list[pa.Array] | None = begin
        while following is not None:
            n_rows, n_bytes = n_rows + len(following[0]), n_bytes + sum(map(_size, following))
            if n_rows > len(begin[0]) and (n_rows > most or n_bytes > MOST_TEXT):
                break
            yield following
            following = next(coming, None)
        first = following

    while first is not None:
        yield piece(first)


def _size(column: pa.Array) -> int:
    return int(column.get_total_buffer_size())


def _cut(batches: Iterable[list[pa.Array]], most: int) -> Iterator[list[pa.Array]]:
    """Batches of so many rows at most, and one at least; of slices the bytes that are theirs."""
    for batch in batches:
        n_rows = len(batch[0]) if batch else 0
        if n_rows <= most and n_rows:
            yield batch
            continue
        for start in range(0, n_rows, most):
            yield [pa.concat_arrays([column[start : start + most]]) for column in batch]


# -- by format ---------------------------------------------------------------------------------------------------------
@contextmanager
def _from_csv(source: TableSource, _share: Share) -> Iterator[Batches]:
    separator, path = csv_separator(source.separator), source.path
    pieces = behind_header(path, separator)
    header, lines, text = next(pieces)
    names, _ = read_header(header, separator, path)
    check_names(names, source.id_columns, str(path))

    def cells(data: bytes) -> list[pa.RecordBatch]:
        body = memoryview(data)[len(header) :]
        return read_cells(body, [pa.large_string() for _ in names], separator, data, path, list)

    def batches() -> Iterator[list[pa.Array]]:
        for batch in parsed(cells, header, lines, text):
            yield batch.columns
        for _, before, more in pieces:
            for batch in parsed(cells, header, before, more):
                yield batch.columns

    yield Batches(names, batches())


@contextmanager
def _from_parquet(source: TableSource, share: Share) -> Iterator[Batches]:
    with parquet_batches(existing(source.path), source.id_columns, share or ()) as found:
        yield found


@contextmanager
def _from_sql(source: TableSource, _share: Share) -> Iterator[Batches]:
    with sql_batches(source.place, source.query or "", source.id_columns, source.options) as found:
        yield found


_READERS: dict[str, Callable[[TableSource, Share], AbstractContextManager[Batches]]] = {
    "csv": _from_csv,
    "parquet": _from_parquet,
    "sql": _from_sql,
}

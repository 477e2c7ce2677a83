"""A source of transactions, read piece by piece by the readers that read it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.formats import table_sources, text_sources
from mining.data.formats.csv_text import read_header
from mining.data.formats.text_files import existing, read_pieces
from mining.data.gathering import RowPieces
from mining.data.transactions import Transactions
from mining.partitioned.blocks import MOST_OCCURRENCES, MOST_ROWS
from mining.partitioned.encoding.grouping import grouped
from mining.partitioned.encoding.source import TransactionSource

T = TypeVar("T")

Pairs = tuple[pa.Array, pa.Array]


def shares(source: TransactionSource, number: int) -> list[tuple[int, ...] | None]:
    """What up to so many readers read each: row groups of a Parquet file; None where one reads everything.

    Raises:
        InputDataError: The file is missing, or no Parquet file.
    """
    if source.format != "parquet":
        return [None]
    with table_sources.parquet_errors(existing(source.path)):
        if table_sources.TransactionForm.of_file(source.path, source.id_column, source.item_column).kind == "long":
            return [None]
        groups = pq.read_metadata(source.path).num_row_groups
    bounds = np.linspace(0, groups, min(number, max(groups, 1)) + 1).astype(int).tolist()
    return [tuple(range(start, stop)) for start, stop in pairwise(bounds)]


def pieces(source: TransactionSource, share: tuple[int, ...] | None, scratch: Path) -> Iterator[Transactions]:
    """Rows piece by piece, each piece on a dictionary of its own; at least one piece.

    Args:
        source: Where they are.
        share: Which of them; see `shares`.
        scratch: A folder for what does not fit into memory.

    Raises:
        InputDataError: The source cannot be read, or is not what its format says.
        ResourceError: The disk is full.
    """
    empty = True
    for piece in _READERS[source.format](source, share, scratch):
        for rows in cut(piece):
            empty = False
            yield rows
    if empty:
        yield Transactions.empty()


def cut(rows: Transactions) -> Iterator[Transactions]:
    """The same in pieces of as many rows and occurrences as a block may have; a row stays whole."""
    if not rows.n_rows:
        yield rows
    start = 0
    while start < rows.n_rows:
        stop = int(np.searchsorted(rows.offsets, rows.offsets[start] + MOST_OCCURRENCES, side="right")) - 1
        stop = min(max(stop, start + 1), start + MOST_ROWS, rows.n_rows)
        yield rows.between(start, stop)
        start = stop


def gathered(found: Iterable[tuple[NDArray[np.int64], pa.Array]]) -> Iterator[Transactions]:
    """Rows gathered until there are about as many as a block may have."""
    rows, n_rows, n_items = RowPieces(), 0, 0
    for lengths, items in found:
        if n_rows and (n_rows + len(lengths) > MOST_ROWS or n_items + len(items) > MOST_OCCURRENCES):
            yield rows.transactions()
            rows, n_rows, n_items = RowPieces(), 0, 0
        rows.add(lengths, items)
        n_rows, n_items = n_rows + len(lengths), n_items + len(items)
    if n_rows:
        yield rows.transactions()


# -- Parquet -----------------------------------------------------------------------------------------------------------
def _from_parquet(source: TransactionSource, share: tuple[int, ...] | None, scratch: Path) -> Iterator[Transactions]:
    path, where = existing(source.path), str(source.path)
    with table_sources.parquet_errors(path):
        form = table_sources.TransactionForm.of_file(path, source.id_column, source.item_column)
        with pq.ParquetFile(path, pre_buffer=False) as file:
            batches = file.iter_batches(table_sources.BATCH_ROWS, row_groups=share, columns=list(form.columns))
            if form.kind == "long":
                pairs = table_sources.long_pairs(batches, source.id_column, source.item_column, where)
                yield from gathered(grouped(pairs, scratch))
            elif form.kind == "lists":
                name = form.columns[0]
                yield from gathered(table_sources.list_rows(batch.column(0), name, where) for batch in batches)
            else:
                yield Transactions.from_pieces(form.columns, [], 0)  # also where there is no batch
                for batch in batches:
                    cells: list[tuple[NDArray[np.integer], NDArray[np.integer]]] = [
                        *table_sources.wide_cells(batch, form.columns, where)
                    ]
                    yield Transactions.from_pieces(form.columns, cells, batch.num_rows)


# -- text --------------------------------------------------------------------------------------------------------------
def _from_baskets(source: TransactionSource, _share: tuple[int, ...] | None, _scratch: Path) -> Iterator[Transactions]:
    for lines, text in read_pieces(source.path):
        yield parsed(lambda data: text_sources.from_baskets(data, source.separator, source.path), b"", lines, text)


def _from_records(source: TransactionSource, _share: tuple[int, ...] | None, _scratch: Path) -> Iterator[Transactions]:
    separator = source.separator or ","
    for lines, text in read_pieces(source.path, quotes=True):
        yield parsed(lambda data: text_sources.from_records(data, separator, source.path), b"", lines, text)


def parsed(parse: Callable[[bytes], T], header: bytes, lines: int, text: bytes) -> T:
    """What is read of a piece of text.

    Args:
        parse: Reads them; blank lines count for nothing.
        header: What every piece begins with.
        lines: How many lines of the file are before the piece.
        text: The piece.

    Raises:
        InputDataError: It is wrong; the sentence names the line in the whole file.
    """
    try:
        return parse(header + text)
    except InputDataError:
        parse(header + b"\n" * (lines - header.count(b"\n")) + text)
        raise


def _from_wide(source: TransactionSource, _share: tuple[int, ...] | None, _scratch: Path) -> Iterator[Transactions]:
    separator = source.separator or ","
    for header, lines, text in behind_header(source.path, separator):
        yield parsed(
            lambda data: text_sources.from_wide(data, separator, source.id_column, source.path), header, lines, text
        )


def _from_long(source: TransactionSource, _share: tuple[int, ...] | None, scratch: Path) -> Iterator[Transactions]:
    separator, names = source.separator or ",", (source.id_column, source.item_column)

    def pairs() -> Iterator[Pairs]:
        for header, lines, text in behind_header(source.path, separator):
            yield from parsed(
                lambda data: text_sources.read_long(data, separator, names, source.path, list), header, lines, text
            )

    yield from gathered(grouped(pairs(), scratch))


def behind_header(path: Path, separator: str) -> Iterator[tuple[bytes, int, bytes]]:
    """The header, and pieces of what follows it with the lines before each."""
    header: bytes | None = None
    for lines, text in read_pieces(path, quotes=True):
        if header is None:
            _, body = read_header(text, separator, path)
            header = text[: len(text) - len(body)]
            yield header, header.count(b"\n"), bytes(body)
        else:
            yield header, lines, text


# -- databases ---------------------------------------------------------------------------------------------------------
def _from_sql(source: TransactionSource, _share: tuple[int, ...] | None, scratch: Path) -> Iterator[Transactions]:
    pairs = table_sources.sql_pairs(
        source.place, source.query or "", source.id_column, source.item_column, source.options
    )
    yield from gathered(grouped(pairs, scratch))


_READERS: dict[str, Callable[[TransactionSource, tuple[int, ...] | None, Path], Iterator[Transactions]]] = {
    "parquet": _from_parquet,
    "basket": _from_baskets,
    "csv": _from_records,
    "wide": _from_wide,
    "long": _from_long,
    "sql": _from_sql,
}

"""Parsers of text files of transactions; each takes checked UTF-8 bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.arrow_arrays import texts
from mining.data.formats.csv_text import improper, line_of_record, lines_of, read_cells, read_header
from mining.data.gathering import LongPieces, RowPieces
from mining.data.transactions import Transactions

T = TypeVar("T")

# Text taken apart at a time; several arrays as long as it are held meanwhile.
BLOCK_BYTES = 1 << 21
_LINE_FEED = 10
RECORDS = 1 << 14  # of CSV taken apart at a time where cells are quoted
_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1, "FALSE": 0, "TRUE": 1}
_NEITHER = 2


def from_baskets(data: bytes, separator: str | None, path: Path) -> Transactions:
    """One transaction a line, its items between blanks, where blank lines are ignored, or between `separator`."""
    if data.count(b"\r") != data.count(b"\r\n"):
        _check_returns(data, path)
    rows = RowPieces()
    for block in _blocks(data):
        rows.add(*(_split_at_blanks(block) if separator is None else _split_at(block, separator)))
    return rows.transactions()


def from_records(data: bytes, separator: str, path: Path) -> Transactions:
    """One transaction a line as a CSV record; empty lines are ignored, empty cells give no item."""
    if b'"' not in data:
        return from_baskets(data, separator, path)
    rows = RowPieces()
    reader = csv.reader(lines_of(data), delimiter=separator, strict=True)
    records = filter(None, reader)
    try:
        while piece := [[cell for cell in record if cell] for record in islice(records, RECORDS)]:
            flat = pa.array([item for items in piece for item in items], pa.string())
            rows.add(np.fromiter(map(len, piece), np.int64, len(piece)), flat)
    except csv.Error as error:
        raise improper(path, reader.line_num, error) from None
    return rows.transactions()


def from_long(data: bytes, separator: str, id_column: str, item_column: str, path: Path) -> Transactions:
    """CSV with a header and one line per transaction and item; an empty item only makes its transaction exist."""

    def gathered(found: Iterator[tuple[pa.Array, pa.Array]]) -> Transactions:
        pairs = LongPieces()
        for ids, items in found:
            pairs.add(ids, items)
        return pairs.transactions()

    return read_long(data, separator, (id_column, item_column), path, gathered)


def read_long(
    data: bytes,
    separator: str,
    names: tuple[str, str],
    path: Path,
    gathered: Callable[[Iterator[tuple[pa.Array, pa.Array]]], T],
) -> T:
    """What is made of the pairs of a CSV file in the long form, which come in batches.

    Args:
        data: The text.
        separator: Between its cells.
        names: The columns of ids and of items.
        path: The file, which errors name.
        gathered: Takes ids and items; it may be called again, with all of them.

    Raises:
        InputDataError: A column is missing, an id is empty, or the text is no proper CSV.
    """
    header, body = read_header(data, separator, path)
    places = []
    for column in names:
        if header.count(column) != 1:
            what = "no column" if column not in header else "more than one column"
            raise InputDataError(
                f'{path} has {what} named "{column}" among the {len(header)} columns of its first line; '
                "the long format needs one of ids and one of items, and the separator must fit."
            )
        places.append(header.index(column))
    text = [pa.string() if place in places else None for place in range(len(header))]
    at = sorted(set(places))

    def pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Array, pa.Array]]:
        before = 0
        for batch in batches:
            ids, items = (batch.column(at.index(place)) for place in places)
            unnamed = pc.index(ids, "").as_py()
            if unnamed >= 0:
                line = line_of_record(data, separator, before + unnamed)
                raise InputDataError(
                    f'{path} has an empty cell in column "{names[0]}", line {line}; every line needs an id.'
                )
            before += len(ids)
            yield ids, items

    return read_cells(body, text, separator, data, path, lambda batches: gathered(pairs(batches)))


def from_wide(data: bytes, separator: str, id_column: str, path: Path) -> Transactions:
    """CSV with a header of items and one line per transaction, cells 0 or 1."""
    header, body = read_header(data, separator, path)
    places = [place for place, name in enumerate(header) if name != id_column]
    names = [header[place] for place in places]
    for place, name in zip(places, names, strict=True):
        if not name:
            raise InputDataError(
                f"{path}: column {place + 1} has no name in the first line; the wide format needs one."
            )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputDataError(f'{path} has more than one column named "{twice}"; the wide format needs each item once.')
    text = [pa.string() if place in (places or [0]) else None for place in range(len(header))]

    def gathered(batches: Iterator[pa.RecordBatch]) -> Transactions:
        pieces: list[tuple[NDArray[np.integer], NDArray[np.integer]]] = []
        n_rows = 0
        for batch in batches:
            for code, name in enumerate(names):
                cells = batch.column(code).dictionary_encode()
                known = [_TRUTH.get(text, _NEITHER) for text in cells.dictionary.to_pylist()]
                values = np.array(known, np.int8)[cells.indices.to_numpy()]
                if _NEITHER in known:
                    line = line_of_record(data, separator, n_rows + int(np.argmax(values == _NEITHER)))
                    raise InputDataError(
                        f'{path} has a cell that is neither 0 nor 1 in column "{name}", line {line}; '
                        "the wide format takes 0, 1, false and true."
                    )
                held = np.flatnonzero(values)
                pieces.append((held + n_rows, np.full(len(held), code, np.int32)))
            n_rows += batch.num_rows
        return Transactions.from_pieces(names, pieces, n_rows)

    return read_cells(body, text, separator, data, path, gathered)


def _blocks(data: bytes) -> Iterator[bytes]:
    """Cut text into blocks that end with a line."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", min(start + BLOCK_BYTES, len(data)))
        stop = len(data) if stop < 0 else stop + 1
        yield data[start:stop]
        start = stop


def _split_at_blanks(block: bytes) -> tuple[NDArray[np.int64], pa.StringArray]:
    """Items per line that has any, and all items.

    Dropping the blanks leaves all items one after the other, which is just how Arrow holds an array of strings.
    """
    text = np.frombuffer(block, np.uint8)
    visible = text > 32
    visible |= (text < 9) | ((text > 13) & (text < 32))
    begins = visible.copy()
    begins[1:] &= ~visible[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, np.int64), texts([])
    before = np.cumsum(visible, dtype=np.int32)
    offsets = np.append(before[starts] - 1, before[-1]).astype(np.int32)
    items = pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(text[visible]))
    line_ends = np.flatnonzero(text == _LINE_FEED)
    per_line = np.diff(np.searchsorted(starts, line_ends), prepend=0, append=len(starts))
    return per_line[per_line > 0], items


def _split_at(block: bytes, separator: str) -> tuple[NDArray[np.int64], pa.StringArray]:
    """Items per line that is not empty, and all items; empty ones are dropped."""
    lines = [line for line in (line.removesuffix(b"\r") for line in block.split(b"\n")) if line]
    if not lines:
        return np.empty(0, np.int64), texts([])
    cells = pc.split_pattern(pa.array(lines, pa.string()), separator)
    items = cells.flatten()
    held = pc.not_equal(items, "")
    before = np.concatenate([[0], np.cumsum(held.to_numpy(zero_copy_only=False))])
    return np.diff(before[cells.offsets.to_numpy()]), items.filter(held)


def _check_returns(data: bytes, path: Path) -> None:
    """Refuses a carriage return within a line, which some programs end lines with and others do not."""
    for number, line in enumerate(io.BytesIO(data), 1):
        if b"\r" in line.rstrip(b"\r\n"):
            raise InputDataError(
                f"{path}, line {number}: a carriage return stands alone, where lines end in LF or CR LF; write the "
                "file with one kind of line ends."
            )

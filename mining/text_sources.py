"""Parsers of text files of transactions; each takes checked UTF-8 bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.csv_text import improper, line_of_record, read_cells, read_header
from mining.transactions import Transactions

# Text taken apart at a time; several arrays as long as it are held meanwhile.
_BLOCK_BYTES = 1 << 24
_LINE_FEED = 10
_BLANKS = b" \t\v\f\r"
_TRUTH = {
    "0": False,
    "1": True,
    "false": False,
    "true": True,
    "False": False,
    "True": True,
    "FALSE": False,
    "TRUE": True,
}


def from_baskets(data: bytes, separator: str | None) -> Transactions:
    """One transaction a line, its items between blanks, where blank lines are ignored, or between `separator`."""
    parts: list[pa.StringArray] = []
    rows = [np.empty(0, np.int64)]
    n_rows = 0
    for block in _blocks(data):
        lengths, items = _split_at_blanks(block) if separator is None else _split_at(block, separator)
        rows.append(np.repeat(np.arange(n_rows, n_rows + len(lengths)), lengths))
        parts.append(items)
        n_rows += len(lengths)
    return _encode(rows, parts, n_rows)


def from_records(data: bytes, separator: str, path: Path) -> Transactions:
    """One transaction a line as a CSV record; empty lines are ignored, empty cells give no item."""
    if b'"' not in data:
        return from_baskets(data, separator)
    lengths: list[int] = []
    flat: list[str] = []
    reader = csv.reader(_lines(data), delimiter=separator, strict=True)
    try:
        for record in reader:
            if not record:
                continue
            items = [cell for cell in record if cell]
            lengths.append(len(items))
            flat += items
    except csv.Error as error:
        raise improper(path, reader.line_num, error) from None
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return _encode([rows], [pa.array(flat, pa.string())], len(lengths))


def from_long(data: bytes, separator: str, id_column: str, item_column: str, path: Path) -> Transactions:
    """CSV with a header and one line per transaction and item; an empty item only makes its transaction exist."""
    header, body = read_header(data, separator, path)
    places = []
    for column in (id_column, item_column):
        if header.count(column) != 1:
            what = "no column" if column not in header else "more than one column"
            raise InputDataError(
                f'{path} has {what} named "{column}" among the {len(header)} columns of its first line; '
                "the long format needs one of ids and one of items, and the separator must fit."
            )
        places.append(header.index(column))
    text = [pa.string() if place in places else None for place in range(len(header))]
    cells = dict(zip(sorted(set(places)), read_cells(body, text, separator, data, path), strict=True))
    ids, items = (cells[place] for place in places)
    if not len(ids):
        return Transactions.empty()
    unnamed = pc.index(ids, "").as_py()
    if unnamed >= 0:
        line = line_of_record(data, separator, unnamed)
        raise InputDataError(f'{path} has an empty cell in column "{id_column}", line {line}; every line needs an id.')
    encoded = ids.dictionary_encode().combine_chunks()
    rows = encoded.indices.to_numpy().astype(np.int64)
    held = pc.not_equal(items, "")
    return _encode([rows[held.to_numpy()]], items.filter(held).chunks, len(encoded.dictionary))


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
    columns = read_cells(body, text, separator, data, path)
    rows: list[NDArray[np.int64]] = []
    codes: list[NDArray[np.int64]] = []
    for code, name in enumerate(names):
        cells = columns[code].dictionary_encode().combine_chunks()
        texts = cells.dictionary.to_pylist()
        indices = cells.indices.to_numpy()
        unknown = [text not in _TRUTH for text in texts]
        if any(unknown):
            record = int(np.flatnonzero(np.array(unknown)[indices])[0])
            line = line_of_record(data, separator, record)
            raise InputDataError(
                f'{path} has a cell that is neither 0 nor 1 in column "{name}", line {line}; '
                "the wide format takes 0, 1, false and true."
            )
        held = np.flatnonzero(np.array([_TRUTH[text] for text in texts], bool)[indices])
        rows.append(held)
        codes.append(np.full(len(held), code))
    empty = np.empty(0, np.int64)
    return Transactions.from_occurrences(
        names, np.concatenate([empty, *rows]), np.concatenate([empty, *codes]), len(columns[0])
    )


def _encode(rows: list[NDArray[np.int64]], items: list[pa.StringArray], n_rows: int) -> Transactions:
    encoded = pa.chunked_array(items, pa.string()).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # what combine_chunks makes of no chunks
        return Transactions.from_occurrences([], np.empty(0, np.int64), np.empty(0, np.int64), n_rows)
    dictionary = encoded.dictionary.to_pylist()
    return Transactions.from_occurrences(dictionary, np.concatenate(rows), encoded.indices.to_numpy(), n_rows)


def _blocks(data: bytes) -> Iterator[bytes]:
    """Cut text into blocks that end with a line."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", min(start + _BLOCK_BYTES, len(data)))
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
        return np.empty(0, np.int64), pa.array([], pa.string())
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
        return np.empty(0, np.int64), pa.array([], pa.string())
    cells = pc.split_pattern(pa.array(lines, pa.string()), separator)
    items = cells.flatten()
    held = pc.not_equal(items, "")
    before = np.concatenate([[0], np.cumsum(held.to_numpy(zero_copy_only=False))])
    return np.diff(before[cells.offsets.to_numpy()]), items.filter(held)


def _lines(data: bytes) -> io.StringIO:
    return io.StringIO(data.decode("utf-8"), newline="\n")

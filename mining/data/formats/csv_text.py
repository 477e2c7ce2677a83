"""Tables in CSV text: a first line of column names, then cells, byte for byte; functions take checked UTF-8 bytes.

Lines end in LF or CR LF; blank ones are ignored. A cell that holds separators, quotes or line ends stands in quotes,
and its own quotes are doubled.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from link.errors import InputDataError

T = TypeVar("T")

_QUOTE, _LINE_FEED, _RETURN = b'"'[0], b"\n"[0], b"\r"[0]
BLOCK_BYTES = 1 << 21  # of text whose quotes are looked at together
PARSED_BYTES = 1 << 21  # of text that Arrow takes apart at once
_MOST_PARSED_BYTES = 1 << 28  # the same where a record is longer: no cell may be longer than this


def read_header(data: bytes, separator: str, path: Path) -> tuple[list[str], memoryview]:
    """The names of the first record, and what follows it.

    Raises:
        InputDataError: There is no record, or it is not proper CSV.
    """
    reader = csv.reader(lines_of(data), delimiter=separator, strict=True)
    try:
        for record in reader:
            if record:
                end = -1
                for _ in range(reader.line_num):
                    end = data.find(b"\n", end + 1)
                return record, memoryview(data)[end + 1 if end >= 0 else len(data) :]
    except csv.Error as error:
        raise improper(path, reader.line_num, error) from None
    raise InputDataError(f"{path} is empty; this format needs a first line with column names.")


def read_cells(
    body: memoryview,
    columns: list[pa.DataType | None],
    separator: str,
    data: bytes,
    path: Path,
    gathered: Callable[[Iterator[pa.RecordBatch]], T],
) -> T:
    """What is made of the cells of some columns, which come in batches.

    Args:
        body: What follows the header.
        columns: How each column is to be read: as strings, or as a dictionary of strings; None leaves it out.
        separator: What separates cells.
        data: The whole text, of which errors give the line.
        path: The file, which errors name.
        gathered: Takes the batches, with the columns that are not left out, in order, without nulls. It is called
            again, with all of them, where a record is longer than the text that is first taken apart at once.

    Raises:
        InputDataError: A line has more or fewer cells than there are columns, or its quotes are not proper CSV.
    """
    names = [str(place) for place in range(len(columns))]
    kinds = {name: kind for name, kind in zip(names, columns, strict=True) if kind is not None}
    if not bytes(body[:4096]).strip(b"\r\n") and not bytes(body).strip(b"\r\n"):
        return gathered(iter(()))
    if not _has_plain_quotes(data, separator):
        _check_strictly(data, separator, path)
    for at_once in (PARSED_BYTES, min(max(len(body) + 1, 1 << 20), _MOST_PARSED_BYTES)):
        try:
            batches = pa_csv.open_csv(
                pa.BufferReader(pa.py_buffer(body)),
                pa_csv.ReadOptions(column_names=names, block_size=at_once),
                pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
                pa_csv.ConvertOptions(column_types=kinds, include_columns=list(kinds), strings_can_be_null=False),
            )
            return gathered(batches)
        except pa.ArrowInvalid:
            continue
    # Arrow's own message quotes the row, which must not travel.
    where = _first_ragged_line(data, separator, len(columns))
    raise InputDataError(
        f"{path} is not proper CSV{where}: every line must have the {len(columns)} cells of the first one."
    )


def line_of_record(data: bytes, separator: str, record: int) -> int:
    """The line on which the record of this number after the header ends, or a cell before it that is very long."""
    reader = csv.reader(lines_of(data), delimiter=separator)
    seen = -1
    with suppress(csv.Error):
        for cells in reader:
            if cells:
                if seen == record:
                    break
                seen += 1
    return reader.line_num


def lines_of(data: bytes) -> Iterator[str]:
    """The lines of text, with their ends; one at a time is text."""
    return (line.decode() for line in io.BytesIO(data))


def _first_ragged_line(data: bytes, separator: str, n_columns: int) -> str:
    reader = csv.reader(lines_of(data), delimiter=separator)
    try:
        for record in reader:
            if record and len(record) != n_columns:
                return f" at line {reader.line_num}"
    except csv.Error:
        return f" near line {reader.line_num}"
    return ""


def _has_plain_quotes(data: bytes, separator: str) -> bool:
    """Whether each quote begins a cell, ends one or is doubled, no quote is left open, and no line ends in CR alone.

    Otherwise the text may be proper CSV all the same, or Arrow may read something else without a word: behind a quote
    that is never closed, the rest of the file as one cell.
    """
    before = np.zeros(256, bool)
    before[[ord(separator), _LINE_FEED, _QUOTE]] = True
    after = before.copy()
    after[_RETURN] = True
    if data.count(b"\r") != data.count(b"\r\n"):
        return False
    text = np.frombuffer(data, np.uint8)
    is_open = False
    for start in range(0, len(text) if b'"' in data else 0, BLOCK_BYTES):
        places = np.flatnonzero(text[start : start + BLOCK_BYTES] == _QUOTE) + start
        opening, closing = places[int(is_open) :: 2], places[1 - int(is_open) :: 2]
        opening, closing = opening[opening > 0], closing[closing < len(text) - 1]
        if not (before[text[opening - 1]].all() and after[text[closing + 1]].all()):
            return False
        is_open ^= bool(len(places) % 2)
    return not is_open


def _check_strictly(data: bytes, separator: str, path: Path) -> None:
    """Reads all records by the letter."""
    reader = csv.reader(lines_of(data), delimiter=separator, strict=True)
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        raise improper(path, reader.line_num, error) from None


def improper(path: Path, line: int, error: csv.Error) -> InputDataError:
    """The error of text that is no proper CSV."""
    reason = str(error)
    if reason.startswith("new-line"):
        reason = "a carriage return stands alone outside quotes, where lines must end in LF or CR LF"
    return InputDataError(f"{path} is not proper CSV near line {line}: {reason}.")

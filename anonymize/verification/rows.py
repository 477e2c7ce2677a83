"""Published rows as text, from `release.csv` or `release.parquet`, and the classes that they form."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from link.errors import InputDataError
from link.files.spreadsheet import as_named

SUPPRESSED = "*"
Key = Decimal | str
"""A sensitive value so that equal ones are equal however they are written."""


@dataclass(frozen=True)
class EquivalenceClass:
    """Rows of one published tuple of quasi-identifiers.

    Attributes:
        cells: The published quasi-identifiers.
        size: Rows.
        counts: By sensitive column, rows with each value.
    """

    cells: tuple[str, ...]
    size: int
    counts: Mapping[str, Mapping[Key, int]]


def read_csv(path: Path, separator: str = ",") -> pa.Table:
    """A CSV file, plain or `.gz`, with every cell as text, an empty one as the empty text.

    Raises:
        InputDataError: It cannot be read, or two columns have one name.
    """
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            header = next(filter(None, csv.reader(file, delimiter=separator)), [])
        if len(set(header)) < len(header):
            raise InputDataError(f"{path} has two columns of one name; rename one of them.")
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in header}, strings_can_be_null=False
            ),
        )
    except (EOFError, OSError, UnicodeDecodeError, zlib.error, csv.Error, pa.ArrowException) as error:
        raise InputDataError(f"{path} cannot be read as a CSV table: {error}.") from error


def read_release(path: Path) -> pa.Table:
    """The CSV of a release: as `read_csv` has it, without the marks that keep spreadsheets from running its texts.

    Raises:
        InputDataError: It cannot be read, or two columns have one name.
    """
    table = read_csv(path)
    columns = [column.dictionary_encode() for column in table.columns]
    named = [
        pa.chunked_array(
            [
                pa.array(list(map(as_named, part.dictionary.to_pylist())), pa.string()).take(part.indices)
                for part in each.chunks
            ],
            pa.string(),
        )
        for each in columns
    ]
    return pa.table(named, list(map(as_named, table.column_names)))


def read_parquet(path: Path) -> pa.Table:
    """A Parquet file with its own types.

    Raises:
        InputDataError: It cannot be read.
    """
    try:
        table = pyarrow.parquet.read_table(path)
        table.validate(full=True)  # texts, too, which Parquet promises to be UTF-8
        _ = table.column_names
        return table
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise InputDataError(f"{path} cannot be read as a Parquet table: {error}.") from error


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as a CSV file shows them; a missing one is the empty text.

    Raises:
        InputDataError: No CSV file shows cells of this type, or a time that no calendar has.
    """
    try:
        return _as_text(column)
    except (pa.ArrowException, ValueError, OverflowError):
        raise InputDataError(f"a column of type {column.type} holds cells that cannot be written as text") from None


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        known = (None if v is None or v != v else v for v in column.to_pylist())  # no number is a missing cell
        texts = [None if v is None else str(int(v)) if v.is_integer() else repr(v) for v in known]
        column = pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_timestamp(column.type):
        column = pa.chunked_array([pa.array([v and v.isoformat() for v in column.to_pylist()], pa.string())])
    return pc.fill_null(column.cast(pa.string()), "")


def text_table(table: pa.Table) -> pa.Table:
    """A table with all cells as text.

    Raises:
        InputDataError: As in `as_text`.
    """
    return pa.table({name: as_text(table.column(name)) for name in table.column_names})


def equal_columns(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    """Whether two columns of one table in two formats hold the same cells; numbers are compared as such."""
    typed = right if pa.types.is_string(left.type) else left
    if pa.types.is_floating(typed.type) or pa.types.is_decimal(typed.type):
        try:
            numbers = [
                pc.cast(pc.if_else(pc.equal(as_text(c), ""), None, as_text(c)), pa.float64()) for c in (left, right)
            ]
        except pa.ArrowInvalid:
            return False
        return bool(numbers[0].equals(numbers[1]))
    return bool(as_text(left).combine_chunks().equals(as_text(right).combine_chunks()))


def key_of(text: str, kind: str) -> Key:
    """A value as something that equals however it is written: 3, 3.0 and 3e0 are one number, true and yes one truth."""
    if text == "":
        return text
    if kind == "numeric":
        try:
            return Decimal(text).normalize()
        except InvalidOperation:
            return text
    if kind == "boolean":
        return {"1": "true", "yes": "true", "0": "false", "no": "false"}.get(text.lower(), text.lower())
    return text[:10] if kind == "date" else text  # a time stamp of a day ends in 00:00:00


def distinct(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Distinct tuples of some columns with the number of their rows."""
    if not columns:
        yield (), table.num_rows
        return
    counted = table.select(list(columns)).group_by(list(columns)).aggregate([([], "count_all")])
    tuples = zip(*(counted.column(name).to_pylist() for name in columns), strict=True)
    yield from zip(tuples, counted.column("count_all").to_pylist(), strict=True)


def classes_of(table: pa.Table, quasi_identifiers: Sequence[str], kinds: Mapping[str, str]) -> list[EquivalenceClass]:
    """Equivalence classes of published rows.

    Args:
        table: All cells as text.
        quasi_identifiers: The columns whose equal cells make a class.
        kinds: The sensitive columns and their kinds.
    """
    sizes = dict(distinct(table, quasi_identifiers)) if table.num_rows else {}
    counts: dict[tuple[str, ...], dict[str, dict[Key, int]]] = {cells: {name: {} for name in kinds} for cells in sizes}
    for name, kind in kinds.items():
        for (*cells, value), rows in distinct(table, [*quasi_identifiers, name]):
            held, key = counts[tuple(cells)][name], key_of(value, kind)
            held[key] = held.get(key, 0) + rows
    return [EquivalenceClass(cells, size, counts[cells]) for cells, size in sizes.items()]

"""What a table is expected to take in memory, before it is read.

Of Parquet the footer is read, and nothing else: types, and the bytes of each column before they were compressed. A
column is taken to have as many distinct values as a dictionary and codes of that many bytes may hold; where they lie
there without a dictionary, all are taken to be distinct unless their range says otherwise, so that the figure is too
high rather than too low. Of text the first records are read, and distinct values follow from how many occur once there
and how many twice (Chao, "Nonparametric estimation of the number of classes in a population", Scandinavian Journal of
Statistics 11(4), 1984).
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, expm1
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from link.errors import ConfigurationError
from mining.data.coded_cells import code_type
from mining.data.copies import is_plain
from mining.data.formats.csv_text import PARSED_BYTES
from mining.data.formats.table_sources import BATCH_ROWS
from mining.data.formats.text_files import is_packed
from mining.data.loading import csv_separator
from mining.partitioned.encoding.expected import expected_bytes
from mining.partitioned.encoding.source import TableSource

_SAMPLE: Final = 1 << 18  # bytes of text that are looked at
_PIECE: Final = 1 << 12  # of a compressed file
_OFFSET: Final = 8  # of a text in memory, beside its bytes
_LENGTH: Final = 4  # of a text in Parquet
_ID_COPIES: Final = 1.25  # of ids while they are read, beside those that stay; measured
_ENTRY: Final = 16  # of a value of a batch while a column's values are numbered, beside the text
_WIDTHS: Final = {"BOOLEAN": 5, "INT32": 10, "INT64": 20, "INT96": 26, "FLOAT": 10, "DOUBLE": 18}  # of cells as text
_PHYSICAL: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_PLAIN: Final = 0.9  # of the bytes of all values: from which on a chunk is taken to hold each
_BUFFERS: Final = 46 << 20  # of Parquet while it is read, and of text; measured
_TEXT_BUFFERS: Final = 100 << 20
_COPIES: Final = 6  # of text, where it is shorter than these
_TEXT: Final = 12  # bytes of a text, where nothing is known of it


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """What a table takes in memory, beside the process.

    Attributes:
        rows: Its rows.
        kept: Bytes once it is read; about those of its blocks on the disk, too.
        peak: Bytes while it is read, at the most.
    """

    rows: int
    kept: int
    peak: int


_NOTHING: Final = ExpectedTable(0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column.

    Attributes:
        width: Bytes of a value as text.
        distinct: Values.
        most: Of them, in one part of the table.
        entries: Values of all batches, where each has a dictionary of its own.
    """

    width: float
    distinct: float
    most: float
    entries: float

    def codes(self, rows: int) -> int:
        """Bytes of its codes."""
        return rows * np.dtype(code_type(int(self.most))).itemsize

    def kept(self, rows: int) -> float:
        """Bytes once it is read."""
        return self.codes(rows) + self.distinct * (_OFFSET + self.width)

    def gathered(self, rows: int) -> float:
        """Bytes once all batches are there."""
        return self.codes(rows) + self.entries * (_OFFSET + self.width)

    def numbered(self) -> float:
        """Bytes, beside these, while its values are numbered."""
        return self.entries * _ENTRY + self.distinct * (40 + 2 * self.width)


def expected_table(source: TableSource) -> ExpectedTable:
    """What a table is expected to take; nothing where there is none or it cannot be read, which whoever reads it tells.

    Args:
        source: Where it is. Of a database, and of what is copied first, nothing is known.
    """
    try:
        if source.format == "sql" or not is_plain(source.place, source.options):
            return _NOTHING
        if not source.path.is_file():  # to open a pipe would wait for whoever writes to it
            return _NOTHING
        if source.format == "parquet":
            return _of_parquet(source.path, source.id_columns)
        return _of_text(source.path, csv_separator(source.separator), source.id_columns)
    except (OSError, EOFError, ValueError, OverflowError, ConfigurationError, pa.ArrowException, csv.Error):
        whole = expected_bytes(source.path, source.format)
        return ExpectedTable(0, whole, whole)


# -- Parquet -----------------------------------------------------------------------------------------------------------
def _of_parquet(path: Path, id_columns: Sequence[str]) -> ExpectedTable:
    found = pq.read_metadata(path)
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    ids, columns = 0.0, list[_Column]()
    for place, name in enumerate(found.schema.names):
        chunks = [group.column(place) for group in groups]
        if name in id_columns:
            ids += sum(chunk.num_values * (_OFFSET + _width(chunk, every=True)) for chunk in chunks)
        else:
            columns.append(_column(chunks))
    rows = int(found.num_rows)
    kept = ids + sum(column.kept(rows) for column in columns)
    one = max((column.gathered(rows) + column.numbered() for column in columns), default=0)
    buffers = min(_BUFFERS, 2 * sum(group.total_byte_size for group in groups))
    return ExpectedTable(rows, int(kept), int(kept + max(_ID_COPIES * ids, one) + buffers))


def _column(chunks: Sequence[Any]) -> _Column:
    """A column of a file, from the metadata of its chunks."""
    rows = sum(chunk.num_values for chunk in chunks)
    each = [_distinct(chunk) for chunk in chunks]
    distinct = min(float(rows), sum(each), _range(chunks))
    most = min(max(each, default=0.0), distinct)
    entries = sum(_in_batches(number, chunk.num_values) for number, chunk in zip(each, chunks, strict=True))
    width = max((_width(chunk, every=number >= chunk.num_values) for number, chunk in zip(each, chunks, strict=True)))
    return _Column(width, distinct, most, min(entries, float(rows)))


def _distinct(chunk: Any) -> float:
    """Values of a chunk: as many as a dictionary with codes of that many bytes may have."""
    rows, size = chunk.num_values, chunk.total_uncompressed_size
    if not rows or chunk.physical_type == "BOOLEAN":
        return float(min(2, rows))
    told = chunk.statistics.distinct_count if chunk.is_stats_set else None
    if told:
        return float(told)
    if not chunk.has_dictionary_page:
        return float(rows)
    entry = _PHYSICAL.get(chunk.physical_type) or _LENGTH + _width(chunk, every=False)
    if size >= _PLAIN * entry * rows:  # the dictionary became too long, and the others lie there as they are
        return float(rows)
    bits = next((bits for bits in range(1, 33) if (size - rows * bits / 8) / entry <= 1 << bits), 32)
    return float(min(rows, max((size - rows * bits / 8) / entry, 1 << bits - 1)))


def _range(chunks: Sequence[Any]) -> float:
    """No more distinct values are between the least and the greatest of all."""
    ends = [(chunk.statistics.min, chunk.statistics.max) for chunk in chunks if _has_ends(chunk)]
    if len(ends) < len(chunks) or not all(isinstance(end, int) for both in ends for end in both):
        return float("inf")
    return float(max(most for _, most in ends) - min(least for least, _ in ends) + 1)


def _width(chunk: Any, *, every: bool) -> float:
    """Bytes of a value as text; where the chunk has every one of its own, its size says it of texts."""
    physical, known = chunk.physical_type, _has_ends(chunk)
    if physical in ("FLOAT", "DOUBLE") or (physical != "BYTE_ARRAY" and not known):
        return float(_WIDTHS.get(physical, _TEXT))
    ends = [chunk.statistics.min, chunk.statistics.max] if known else []
    lengths = [len(end if isinstance(end, bytes) else str(end).encode()) for end in ends]
    if physical != "BYTE_ARRAY":
        return float(max(lengths))
    mean = sum(lengths) / 2 if lengths else float(_TEXT)
    if not every:
        return mean
    return float(max(mean, chunk.total_uncompressed_size / max(chunk.num_values, 1) - _LENGTH))


def _has_ends(chunk: Any) -> bool:
    return bool(chunk.is_stats_set and chunk.statistics.has_min_max)


# -- text --------------------------------------------------------------------------------------------------------------
class _InPieces(io.BufferedReader):
    """A file that tells how much of it was needed, for all that a reader asks for more in advance."""

    def read(self, size: int | None = -1, /) -> bytes:
        """A piece, which may be shorter than is asked for."""
        return super().read(size if size is None or size < 0 else min(size, _PIECE))


def _beginning(path: Path) -> tuple[bytes, int]:
    """The first bytes of a text, and how many bytes of its file they take."""
    with path.open("rb") as file:
        if not is_packed(file, path):
            text = file.read(_SAMPLE)
            return text, len(text)
    with _InPieces(io.FileIO(path)) as packed:
        return gzip.GzipFile(fileobj=packed).read(_SAMPLE), packed.tell()


def _of_text(path: Path, separator: str, id_columns: Sequence[str]) -> ExpectedTable:
    text, taken = _beginning(path)
    whole = path.stat().st_size * len(text) / max(taken, 1) if len(text) == _SAMPLE else len(text)
    lines = text[: text.rfind(b"\n") + 1 or len(text)] if len(text) == _SAMPLE else text
    names, *records = csv.reader(lines.decode(errors="replace").splitlines(keepends=True), delimiter=separator)
    records = [record for record in records if len(record) == len(names)]
    line = len(lines) / (len(records) + 1)
    rows = max(round(whole / line) - 1, 0)
    ids, columns = 0.0, list[_Column]()
    for name, cells in zip(names, zip(*records, strict=True), strict=bool(records)):
        width = sum(len(cell.encode()) for cell in cells) / len(cells)
        if name in id_columns:
            ids += rows * (_OFFSET + width)
        else:
            columns.append(_sampled(cells, rows, max(1, int(PARSED_BYTES / line))))
    kept = ids + sum(column.kept(rows) for column in columns)
    numbered = max((column.numbered() for column in columns), default=0)
    gathered = sum(column.gathered(rows) for column in columns)
    buffers = min(_TEXT_BUFFERS, _COPIES * whole)
    return ExpectedTable(rows, int(kept), int((1 + _ID_COPIES) * ids + gathered + numbered + buffers))


def _sampled(cells: Iterable[str], rows: int, batch: int) -> _Column:
    """A column, from some of its cells."""
    times = Counter(cells)
    once, twice = (sum(number == found for number in times.values()) for found in (1, 2))
    distinct = min(float(rows), len(times) + (once * (once - 1)) / (2 * (twice + 1)))
    if not twice and once == len(times):
        distinct = float(rows)
    width = sum(len(cell.encode()) for cell in times) / max(len(times), 1)
    return _Column(width, distinct, distinct, min(float(rows), _in_batches(distinct, rows, batch)))


def _in_batches(distinct: float, rows: int, batch: int = BATCH_ROWS) -> float:
    """Values of all batches together, where each row is as likely to have any."""
    return ceil(rows / batch) * -distinct * expm1(-min(batch, rows) / distinct) if distinct else 0.0

"""What a source of either kind is expected to take in memory, before it is read."""

from __future__ import annotations

from pathlib import Path

from link.errors import ConfigurationError, InputDataError
from mining.data.copies import files_of, is_plain
from mining.data.formats.workbooks import is_workbook
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import ArrowDatabase, DatabaseFile
from mining.partitioned.encoding.expected import MINED, expected_bytes
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.sources import AnySource
from mining.partitioned.tables.expected import expected_table


def expected_source(source: AnySource) -> int:
    """Bytes; 0 where nothing is known of it."""
    if source.format == "sql":
        return _of_database(source)
    if not is_plain(source.place, source.options):
        return _of_copies(source)
    if isinstance(source, TableSource):
        return expected_table(source).peak
    return expected_bytes(source.path, source.format)


def _of_database(source: AnySource) -> int:
    """Of a file by its size, of a server by the cells that it expects the query to return, rather too much."""
    scheme = scheme_of(source.place)
    if isinstance(scheme, DatabaseFile):
        return expected_bytes(scheme.path(source.place), "sql")
    if not isinstance(scheme, ArrowDatabase):
        return 0
    try:
        return MINED.cell * scheme.cells(source.place, source.query or "", source.options)
    except (InputDataError, ConfigurationError):  # which whoever reads it tells
        return 0


def _of_copies(source: AnySource) -> int:
    """Of files here what each is expected to take; of files elsewhere, by their sizes, rather too much."""
    try:
        found = files_of(source.place, source.options)
    except (InputDataError, ConfigurationError):  # which whoever reads it tells
        return 0
    if scheme_of(source.place) is None and not is_workbook(source.place):
        return sum(expected_bytes(Path(file.place), source.format) for file in found)
    packed = source.format == "parquet" or is_workbook(source.place) or source.place.endswith(".gz")
    return (MINED.packed if packed else MINED.byte) * sum(file.size for file in found)

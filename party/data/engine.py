"""Where a dataset's rows are counted: in the node's memory, in blocks by processes, or on a Spark cluster."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

from link.errors import ConfigurationError, InputDataError
from link.memory_limit import memory_limit
from mining.data.copies import files_of, is_plain
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import DatabaseFile
from mining.data.workbooks import is_workbook
from mining.partitioned.encoding.expected import MINED, expected_bytes
from mining.partitioned.tables.expected import expected_table
from party.config import DatasetSection
from party.data.places import table_at


def engine_of(dataset: DatasetSection, memory_share: Decimal) -> Literal["memory", "processes", "spark"]:
    """The engine of a dataset, by what its section says and, with "auto", by the size of its source now.

    Args:
        dataset: With a source that is absolute.
        memory_share: Of this process's memory, that one dataset may take.
    """
    if dataset.engine != "auto":
        return dataset.engine
    if dataset.queries is not None or dataset.hiding is not None:
        return "memory"
    return "processes" if estimated_bytes(dataset) > memory_share * memory_limit() else "memory"


def estimated_bytes(dataset: DatasetSection) -> int:
    """What a source is expected to take in memory; 0 where nothing is known of it."""
    if not dataset.is_database and not is_plain(dataset.source, dataset.options):
        return _bytes_of_copies(dataset)
    if dataset.kind == "table" and not dataset.is_database:
        return expected_table(table_at(dataset)).peak
    if not dataset.is_database:
        return expected_bytes(Path(dataset.source), dataset.format)
    scheme = scheme_of(dataset.source)
    return expected_bytes(scheme.path(dataset.source), dataset.format) if isinstance(scheme, DatabaseFile) else 0


def _bytes_of_copies(dataset: DatasetSection) -> int:
    """Of files here what each is expected to take; of files elsewhere, by their sizes, rather too much."""
    try:
        found = files_of(dataset.source, dataset.options)
    except (InputDataError, ConfigurationError):  # which whoever reads it tells
        return 0
    if scheme_of(dataset.source) is None and not is_workbook(dataset.source):
        return sum(expected_bytes(Path(file.place), dataset.format) for file in found)
    packed = dataset.format == "parquet" or is_workbook(dataset.source) or dataset.source.endswith(".gz")
    return (MINED.packed if packed else MINED.byte) * sum(file.size for file in found)

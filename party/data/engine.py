"""Where a dataset's rows are counted: in the node's memory, in blocks by processes, or on a Spark cluster."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from link.memory_limit import memory_limit
from party.config import FILE_URLS, DatasetSection

# Bytes in memory while a source is read, and of columns of bits while it is counted; measured on the retail data.
_PER_CELL: Final = 32
_PER_BYTE: Final = 8
_PER_PACKED_BYTE: Final = 24


def engine_of(dataset: DatasetSection, memory_share: Decimal) -> Literal["memory", "processes", "spark"]:
    """The engine of a dataset, by what its section says and, with "auto", by the size of its source now.

    Args:
        dataset: With a source that is absolute.
        memory_share: Of this process's memory, that one dataset may take.
    """
    if dataset.engine != "auto":
        return dataset.engine
    if dataset.kind == "table" or dataset.hiding is not None:
        return "memory"
    return "processes" if estimated_bytes(dataset) > memory_share * memory_limit() else "memory"


def estimated_bytes(dataset: DatasetSection) -> int:
    """What a source is expected to take in memory; 0 where nothing is known of it."""
    try:
        if dataset.is_url:
            scheme = next((scheme for scheme in FILE_URLS if dataset.source.startswith(scheme)), None)
            return 0 if scheme is None else _PER_BYTE * Path(dataset.source.removeprefix(scheme)).stat().st_size
        path = Path(dataset.source)
        if dataset.format == "parquet":
            found = pq.read_metadata(path)
            groups = (found.row_group(number) for number in range(found.num_row_groups))
            columns = (group.column(place) for group in groups for place in range(group.num_columns))
            return _PER_CELL * sum(int(column.num_values) for column in columns)
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return (_PER_PACKED_BYTE if packed else _PER_BYTE) * path.stat().st_size
    except (OSError, ValueError, pa.ArrowException):  # which whoever reads it tells
        return 0

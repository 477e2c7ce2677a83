"""Where a dataset's rows are counted: in the node's memory, in blocks by processes, or on a Spark cluster."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

from link.memory_limit import memory_limit
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import DatabaseFile
from mining.partitioned.encoding.expected import expected_bytes
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
    if dataset.kind == "table" and not dataset.is_database:
        return expected_table(table_at(dataset)).peak
    if not dataset.is_database:
        return expected_bytes(Path(dataset.source), dataset.format)
    scheme = scheme_of(dataset.source)
    return expected_bytes(scheme.path(dataset.source), dataset.format) if isinstance(scheme, DatabaseFile) else 0

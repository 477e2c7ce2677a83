"""Where a dataset's rows are counted: in the node's memory, in blocks by processes, or on a Spark cluster."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Literal

from jobs.plan.prices import ID_BYTES, ROW_BYTES
from link.runtime.memory_limit import memory_limit
from mining.partitioned.expected_source import expected_source
from party.config import DatasetSection
from party.data.places import source_of

Engine = Literal["memory", "processes", "spark"]


def engine_of(dataset: DatasetSection, memory_share: Decimal) -> Engine:
    """The engine of a dataset, by what its section says and, with "auto", by the size of its source now.

    Args:
        dataset: With a source that is absolute.
        memory_share: Of this process's memory, that one dataset may take.
    """
    return _chosen(dataset, memory_share, estimated_bytes)


def published_engine(dataset: DatasetSection, memory_share: Decimal) -> Engine:
    """The same by what everybody may know: with "auto", by the number of rows that is published, and never by them."""
    return _chosen(dataset, memory_share, _published_bytes)


def _chosen(dataset: DatasetSection, memory_share: Decimal, in_memory: Callable[[DatasetSection], int]) -> Engine:
    if dataset.engine != "auto":
        return dataset.engine
    if dataset.queries is not None or dataset.hiding is not None:
        return "memory"
    return "processes" if in_memory(dataset) > memory_share * memory_limit() else "memory"


def estimated_bytes(dataset: DatasetSection) -> int:
    """What a source is expected to take in memory; 0 where nothing is known of it."""
    return expected_source(source_of(dataset))


def _published_bytes(dataset: DatasetSection) -> int:
    rows = dataset.public_sizes.coarse().rows or 0
    return rows * (ROW_BYTES if dataset.kind == "transactions" else ID_BYTES)

"""Where a dataset's rows are counted: in the node's memory, in blocks by processes, or on a Spark cluster."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from link.memory_limit import memory_limit
from mining.partitioned.expected_source import expected_source
from party.config import DatasetSection
from party.data.places import source_of


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
    return expected_source(source_of(dataset))

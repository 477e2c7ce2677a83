"""What processes over blocks are expected to take of memory: by what is written of a dataset, and not by its rows."""

from __future__ import annotations

from decimal import Decimal

from jobs.kinds.registry import kind_of
from jobs.plan.prices import PROCESS_BYTES
from jobs.spec.job import JobSpec
from link.executor import available_cores
from party.config import DatasetSection
from party.data.engine import published_engine
from party.data.engine_costs import PROCESS


def expected_block_bytes(dataset: DatasetSection, memory_share: Decimal, spec: JobSpec) -> int | None:
    """Bytes of the processes that count its rows in a job; 0 on a cluster, None where the rows are in memory.

    Args:
        dataset: Its section.
        memory_share: As of `[party]`.
        spec: The job.
    """
    engine = published_engine(dataset, memory_share)
    if engine == "spark":
        return 0
    if engine == "memory" or (dataset.engine == "auto" and not kind_of(spec).takes_blocks(spec)):
        return None
    return available_cores() * (PROCESS_BYTES if dataset.kind == "table" else PROCESS)

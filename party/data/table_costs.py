"""What a table would take in memory and in blocks: in a job over columns where it has ids, else in one over rows."""

from __future__ import annotations

import shutil
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.alignment.costs import list_bytes
from jobs.plan.prices import BLOCK_BYTES, PLACE_BYTES, PROCESS_BYTES
from link.executor import available_cores
from link.runtime.memory_limit import memory_limit
from mining.data.row_ids import RowIds
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.partitioned.tables.expected import ExpectedTable, expected_table
from party.config import DatasetSection
from party.data.engine import engine_of
from party.data.engine_costs import NODE, SAMPLE, EngineCost, size
from party.data.places import table_at


def table_costs(dataset: DatasetSection, table: TableRows, folder: Path) -> tuple[EngineCost, ...]:
    """What the engines that a table may have take.

    Args:
        dataset: With a source that is absolute.
        table: Its rows.
        folder: For blocks, or one above it.

    Returns:
        Nothing of a query, of whose rows nothing is known before they are read.
    """
    found = expected_table(table_at(dataset))
    if not found.rows:
        return ()
    memory, blocks = _bytes(dataset, found, table.n_rows)
    seconds = table.n_rows * next(iter(table.parts(_seconds_for_a_row)))
    return (
        EngineCost("memory", seconds, memory, memory < memory_limit()),
        EngineCost("processes", seconds, blocks, blocks < memory_limit() and _has_room(found, folder)),
    )


def cluster_table_cost(table: TableRows) -> EngineCost:
    """What a cluster takes that has been used before, for a table that lies there, and the node beside it."""
    start = time.perf_counter()
    table.total(_looked_at)
    seconds, memory = time.perf_counter() - start, NODE
    if table.id_columns:
        memory += BLOCK_BYTES + list_bytes(table.n_rows) + table.n_rows * PLACE_BYTES
    return EngineCost("spark", seconds, memory, memory < memory_limit())


def unfit_table(dataset: DatasetSection, memory_share: Decimal, folder: Path) -> str:
    """Why no engine of this machine can have a table, by its source; empty where one can.

    Args:
        dataset: With a source that is absolute.
        memory_share: As of `[party]`.
        folder: For blocks, or one above it.
    """
    found, limit = expected_table(table_at(dataset)), memory_limit()
    memory, blocks = _bytes(dataset, found, found.rows)
    in_memory = memory < limit and engine_of(dataset, memory_share) == "memory"
    in_blocks = dataset.engine != "memory" and dataset.queries is None and blocks < limit and _has_room(found, folder)
    if not found.rows or in_memory or in_blocks:
        return ""
    return (
        f"its {found.rows:,} rows are expected to take {size(memory)} of memory, or in blocks {size(blocks)} and "
        f"{size(found.kept)} of the disk; there are {size(limit)} of memory and {size(shutil.disk_usage(folder).free)} "
        'on the disk; use a larger machine, engine = "spark" on a cluster, or a table of fewer rows or columns'
    )


def _bytes(dataset: DatasetSection, found: ExpectedTable, rows: int) -> tuple[int, int]:
    """Bytes of memory at the node's machine: with the table in memory, and with it in blocks."""
    aligned = list_bytes(rows) if dataset.id else 0
    memory = NODE + max(found.peak, found.kept + aligned)
    return memory, NODE + max(available_cores() * PROCESS_BYTES, BLOCK_BYTES + aligned + rows * PLACE_BYTES)


def _has_room(found: ExpectedTable, folder: Path) -> bool:
    return found.kept < shutil.disk_usage(folder).free


def _seconds_for_a_row(table: Table, _first: int) -> float:
    """Seconds of a core that it takes to compare the id of a row and to count its cells, from some rows of a block."""
    some = min(table.n_rows, SAMPLE)
    start = time.process_time()
    _look_at(table, some)
    return (time.process_time() - start) / max(some, 1)


def _looked_at(table: Table) -> NDArray[np.int64]:
    _look_at(table, table.n_rows)
    return np.array([table.n_rows])


def _look_at(table: Table, rows: int) -> None:
    if table.ids:
        list(map(hash, RowIds(table.ids)[:rows]))
    for column in table.columns:
        np.bincount(column.codes[:rows].astype(np.int64) + 1)

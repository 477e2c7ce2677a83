"""What engines would take for a dataset: memory, disk, and seconds for a level, measured on a sample of its rows."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, islice
from pathlib import Path
from typing import Final

import numpy as np

from link.executor import available_cores
from link.runtime.memory_limit import memory_limit
from mining.counting import ItemsetCounts
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.lattice import Sets
from party.config import DatasetSection
from party.data.engine import estimated_bytes

NODE: Final = 171 << 20  # bytes of memory; docs/tasks/large-data.md
PROCESS: Final = 142 << 20
BYTES_BY_BLOCK_BYTE: Final = 14  # of memory while a source is read, for each byte of its blocks
SAMPLE: Final = 1 << 16  # rows
CANDIDATES: Final = 1000
LENGTH: Final = 3  # of candidates
_ITEMS: Final = 100


@dataclass(frozen=True, slots=True)
class EngineCost:
    """What an engine takes.

    Attributes:
        engine: `memory`, `processes` or `spark`.
        seconds: For a level of `CANDIDATES` candidates.
        memory: Bytes at the node's machine.
        fits: Whether it has these, and room for blocks.
    """

    engine: str
    seconds: float
    memory: int
    fits: bool


@dataclass(frozen=True, slots=True)
class _Sample:
    """Seconds that a kernel takes for a row of a block."""

    counts: ItemsetCounts

    def __call__(self, rows: Transactions, _first: int) -> float:
        some = rows.between(0, min(rows.n_rows, SAMPLE))
        start = time.process_time()
        self.counts(some)
        return (time.process_time() - start) / max(some.n_rows, 1)


def engine_costs(dataset: DatasetSection, rows: Rows, folder: Path) -> tuple[EngineCost, ...]:
    """What the engines that the dataset may have take.

    Args:
        dataset: With a source that is absolute.
        rows: Its rows.
        folder: For blocks, or one above it.
    """
    seconds = rows.n_rows * _seconds_for_a_row(rows)
    cores, blocks = available_cores(), 4 * rows.n_rows + 2 * int(rows.item_counts().sum())
    whole = max(estimated_bytes(dataset), BYTES_BY_BLOCK_BYTE * blocks)
    bounded = NODE + cores * PROCESS
    room = bounded < memory_limit() and blocks < shutil.disk_usage(folder).free
    return (
        EngineCost("memory", seconds, NODE + whole, NODE + whole < memory_limit()),
        EngineCost("processes", seconds / cores, bounded, room),
    )


def cluster_cost(rows: Rows) -> EngineCost:
    """What a cluster takes that has been used before: a level of all rows, begun, counted and fetched."""
    items, sets = _level(rows)
    start = time.perf_counter()
    rows.onto(items).total(ItemsetCounts([sets]))
    return EngineCost("spark", time.perf_counter() - start, NODE, memory_limit() > NODE)


def _seconds_for_a_row(rows: Rows) -> float:
    items, sets = _level(rows)
    return next(iter(rows.onto(items).parts(_Sample(ItemsetCounts([sets])))), 0.0)


def _level(rows: Rows) -> tuple[list[str], Sets]:
    """The most frequent items, and candidates of a level of these.

    As many of either whatever the rows, with items that nobody has where there are too few: what a level takes may be
    published, and a record that makes an item frequent must not add candidates to it.
    """
    order = np.argsort(-rows.item_counts(), kind="stable")[:_ITEMS]
    items = [rows.items[place] for place in order]
    items += [f"\0{number}" for number in range(len(items), _ITEMS)]
    sets = list(islice(combinations(range(_ITEMS), LENGTH), CANDIDATES))
    return items, np.array(sets, np.int32)


def unfit(dataset: DatasetSection, memory_share: Decimal, folder: Path) -> str:
    """Why no engine of this machine can have a dataset, by the size of its source; empty where one can.

    Args:
        dataset: With a source that is absolute.
        memory_share: As of `[party]`.
        folder: For blocks, or one above it.
    """
    whole = estimated_bytes(dataset)
    limit, free = memory_limit(), shutil.disk_usage(folder).free
    bounded, blocks = NODE + available_cores() * PROCESS, whole // BYTES_BY_BLOCK_BYTE
    in_memory = whole <= (memory_share if dataset.engine == "auto" else 1) * limit
    in_blocks = dataset.queries is None and dataset.hiding is None and bounded < limit and blocks < free
    if in_memory or in_blocks:
        return ""
    return (
        f"the rows are expected to take {size(whole)} in memory, of which there are {size(limit)}, or {size(blocks)} "
        f"in blocks on a disk with {size(free)} left and {size(bounded)} of memory; use a larger machine, or "
        'engine = "spark" on a cluster'
    )


def size(number: int) -> str:
    """Bytes for people."""
    return f"{number / (1 << 30):.1f} GiB" if number >= 1 << 30 else f"{number / (1 << 20):.0f} MiB"

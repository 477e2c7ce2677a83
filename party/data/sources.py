"""The datasets of a node, read when a job needs them and kept as long as their files do not change."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from jobs.data import Data, close
from link.executor import Executor
from mining.data.copies import State, state_of
from mining.data.loading import load_table, load_transactions
from mining.data.schemes.local_files import LocalFiles, is_pattern
from mining.data.schemes.registry import scheme_of
from mining.data.source_options import PLAIN
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.expected import MEMORY_SHARE
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.tables.rows import PartitionedTable
from party.config import DatasetSection
from party.data.block_folders import BlockFolders, remove_stale
from party.data.engine import engine_of
from party.data.hidden_rules import without_rules
from party.data.places import source_of
from party.data.spark_blocks import Loading, SparkBlocks

BLOCKS: Final = "blocks"  # in the state folder
SCRATCH: Final = "scratch-"  # there, of the names of folders for copies of rows that commands need for a while

L = TypeVar("L", bound=PartitionedRows | PartitionedTable | None)


class Rows(NamedTuple):
    """What is noted of a reading.

    Attributes:
        number: Of its rows.
        digest: Equal where the rows are equal, in the same order.
    """

    number: int
    digest: bytes


@dataclass(slots=True)
class _Kept:
    """The last reading of one dataset; the lock keeps two jobs from reading it at once."""

    stamp: tuple[object, ...] | None = None
    data: Data | None = None
    digest: bytes = b""
    blocks: BlockFolders | None = None
    spark: SparkBlocks | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: str = ""  # of its folder of blocks, where an earlier reading may still be in use


class Sources:
    """Reads datasets off the event loop and keeps the last reading of each, which is the most that stays in memory.

    Args:
        datasets: As in `party.toml`, with absolute sources.
        executor: Where files are read.
        withheld: By dataset, the patterns of items that its readings are without, as in `read_dataset`.
        blocks: The folder for rows that are counted in blocks; no other process uses it.
        memory_share: Of this process's memory, what a dataset may take in it that says nothing else.
    """

    def __init__(
        self,
        datasets: Iterable[DatasetSection],
        executor: Executor,
        withheld: Mapping[str, Sequence[str]],
        blocks: Path,
        memory_share: Decimal = MEMORY_SHARE,
    ) -> None:
        self._datasets = {dataset.name: (dataset, tuple(withheld[dataset.name])) for dataset in datasets}
        self._executor, self._blocks, self._memory_share = executor, blocks, memory_share
        self._cores = Cores()  # for the jobs on all datasets together
        self._kept = {name: _Kept() for name in self._datasets}
        self._versions = 1
        self._clusters: list[_Kept] = []  # of datasets that are no more, or others by now

    def renewed(
        self, datasets: Iterable[DatasetSection], withheld: Mapping[str, Sequence[str]], memory_share: Decimal
    ) -> Sources:
        """What reads other datasets from now on; readings of those that stay as they are stay too.

        This one goes on for the jobs that have it.

        Args:
            datasets: As in the class.
            withheld: As in the class.
            memory_share: As in the class.
        """
        new = Sources(datasets, self._executor, withheld, self._blocks, memory_share)
        new._cores, new._versions, new._clusters = self._cores, self._versions + 1, self._clusters
        for name in new._kept:
            new._kept[name].version = f"~{new._versions}"
        for name, kept in self._kept.items():
            if name in new._datasets and _as_read(*new._datasets[name]) == _as_read(*self._datasets[name]):
                new._kept[name] = kept
            elif self._datasets[name][0].engine == "spark":
                self._clusters.append(kept)
        return new

    def remove_stale(self) -> int:
        """Removes blocks that no job can use: of datasets that are gone, or that were others; how many folders.

        To be called before any job begins. Blocks of a source that has changed while the node runs are removed by the
        next job on it.
        """
        counted = {
            dataset.name: (source_of(dataset), withheld)
            for dataset, withheld in self._datasets.values()
            if (self._blocks / dataset.name).exists() and engine_of(dataset, self._memory_share) == "processes"
        }
        return remove_stale(self._blocks, counted)

    async def close(self, within_s: float) -> None:
        """Ends the sessions on clusters, which drop the blocks then; once no job uses them any more.

        Args:
            within_s: Seconds to wait for clusters that do not answer; they drop blocks by themselves later.
        """
        kept = (*self._kept.values(), *self._clusters)
        ending = [threading.Thread(target=each.spark.close, daemon=True) for each in kept if each.spark]
        for each in ending:
            each.start()
        until = time.monotonic() + within_s
        for each in ending:
            await asyncio.to_thread(each.join, max(0.0, until - time.monotonic()))

    def missing(self) -> list[str]:
        """Names of the datasets whose file cannot be found now."""
        return [
            name
            for name, (dataset, _) in self._datasets.items()
            if not dataset.is_database and dataset.engine != "spark" and _is_missing(dataset.source)
        ]

    def hidden_rules(self, name: str) -> int:
        """How many rules are hidden in what a dataset contributes."""
        hiding = self._datasets[name][0].hiding
        return 0 if hiding is None else len(hiding.rules)

    async def load(self, name: str, *, job: str = "", in_blocks: bool = True) -> Data:
        """What a dataset contributes, read anew where its file has changed; a database is read for every job.

        Whoever gets it closes it, `jobs.data.close`, once it is not needed any more.

        Args:
            name: Of the dataset.
            job: The id of the job that needs it, by which a cluster shows its work.
            in_blocks: Whether rows may lie in blocks; otherwise `engine = "auto"` reads them into memory.

        Raises:
            ConfigurationError: Its engine cannot be used here.
            InputDataError: The source is missing, corrupt or not in the declared format.
            ResourceError: There is no room for its blocks.
        """
        (dataset, withheld), kept = self._datasets[name], self._kept[name]
        async with kept.lock:
            engine = dataset.engine
            if engine == "auto" and in_blocks:
                (engine,) = await self._executor.map(lambda each: engine_of(each, self._memory_share), [dataset])
            if engine == "spark":
                return await self._on_spark(name, job)
            if engine == "processes":
                kept.data, kept.stamp, kept.digest = None, None, b""
                return await self._in_blocks(name)
            stamp = None if dataset.is_database else await self._state(dataset)
            fresh = stamp is not None and stamp.is_fresh
            if kept.data is not None and stamp is not None and kept.stamp == stamp.marks:
                return kept.data
            kept.data, kept.stamp, kept.digest = (
                None,
                None,
                b"",
            )  # before the new reading, so that the two never lie in memory together
            (data,) = await self._executor.map(lambda each: read_dataset(each, withheld), [dataset])
            if stamp is not None and not fresh:
                kept.data, kept.stamp = data, stamp.marks
            return data

    async def _state(self, dataset: DatasetSection) -> State:
        """How a source of files is now; a store is asked off the event loop."""
        (found,) = await self._executor.map(lambda each: state_of(each.source, each.options), [dataset])
        return found

    async def _in_blocks(self, name: str) -> PartitionedRows | PartitionedTable:
        """The rows of a dataset in blocks, encoded anew where its file has changed; what cancels this ends that."""
        (dataset, withheld), kept = self._datasets[name], self._kept[name]
        if kept.blocks is None:
            make = partial(
                BlockFolders, self._blocks / f"{name}{kept.version}", source_of(dataset), withheld, self._cores
            )
            (kept.blocks,) = await self._executor.map(lambda each: each(), [make])
        rows = await self._lent(kept.blocks.rows)
        if rows is not None:
            return rows
        (encoding,) = await self._executor.map(BlockFolders.encoding, [kept.blocks])
        try:
            return await self._lent(partial(kept.blocks.encode, encoding))
        except asyncio.CancelledError:
            encoding.close()
            raise

    async def _lent(self, lend: Callable[[], L]) -> L:
        """Rows that a thread lends; where nobody waits for them any more, they are closed as soon as they are there."""
        lending = asyncio.ensure_future(self._executor.map(lambda each: each(), [lend]))
        try:
            (rows,) = await asyncio.shield(lending)
        except asyncio.CancelledError:
            lending.add_done_callback(_given_back)
            raise
        return rows

    async def _on_spark(self, name: str, job: str) -> PartitionedRows | PartitionedTable:
        """The rows of a dataset on its cluster; what cancels this ends what the cluster does for it."""
        (dataset, withheld), kept = self._datasets[name], self._kept[name]
        if kept.spark is None:
            kept.spark = SparkBlocks(dataset.cluster, source_of(dataset), withheld)
        loading = kept.spark.loading(job)
        try:
            (rows,) = await self._executor.map(Loading.run, [loading])
        except asyncio.CancelledError:
            loading.close()
            raise
        return rows

    async def rows(self, name: str, data: Data | None = None) -> Rows:
        """What is noted of a reading: of what `load` gave, or else of what it gives now."""
        if data is None:
            data = await self.load(name)
            try:
                return await self.rows(name, data)
            finally:
                close(data)
        kept = self._kept[name]
        if kept.data is data and kept.digest:
            return Rows(data.n_rows, kept.digest)
        (found,) = await self._executor.map(lambda each: each.digest(), [data])
        if kept.data is data:
            kept.digest = found
        return Rows(data.n_rows, found)


def _as_read(dataset: DatasetSection, withheld: tuple[str, ...]) -> tuple[DatasetSection, tuple[str, ...]]:
    """All that a reading of a dataset depends on."""
    judged = dict.fromkeys(("publish", "policy", "privacy", "queries", "anonymization"))
    return dataset.model_copy(update=judged), withheld


def _given_back(lending: asyncio.Future[Sequence[L]]) -> None:
    if lending.cancelled() or lending.exception() is not None:
        return
    for rows in lending.result():
        if rows is not None:
            rows.close()


def _is_missing(source: str) -> bool:
    """Whether there is no such file of this machine; nobody is asked about others."""
    if scheme_of(source) is not None:
        return False
    return not LocalFiles().files(source, PLAIN) if is_pattern(source) else not os.path.exists(source)


def read_dataset(dataset: DatasetSection, withheld: Sequence[str]) -> Transactions | Table:
    """Reads a dataset into memory, without what it must not contribute.

    What is withheld is taken out here, where data enter, so that nothing a job says can have a part in it: items of
    rows, and of tables the cells whose items `column=value` match.

    Args:
        dataset: With a source that is absolute, or relative to the current folder.
        withheld: Patterns of items, as in `fnmatch.fnmatchcase`: what the policy's rule `withhold` names.

    Raises:
        ConfigurationError: The settings do not fit the source.
        InputDataError: The source is missing, corrupt or not in the declared format.
    """
    if dataset.kind == "table":
        table = load_table(
            dataset.source,
            dataset.format,
            separator=dataset.separator,
            query=dataset.query,
            id_columns=dataset.id,
            options=dataset.options,
        )
        return table.without(withheld)
    data = load_transactions(
        dataset.source,
        dataset.format,
        separator=dataset.separator,
        query=dataset.query,
        id_column=dataset.id_column,
        item_column=dataset.item,
        options=dataset.options,
    )
    return (data if dataset.hiding is None else without_rules(data, dataset.hiding)).without(withheld)

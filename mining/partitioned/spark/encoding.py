"""Encodes a source into blocks that a Spark cluster keeps: the workers read it, the node sees names of items alone."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from link.errors import InputDataError
from mining.partitioned.blocks import MOST_ROWS
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.spark.cluster import BATCH_ROWS, Cluster
from mining.partitioned.spark.runner import ClusterRows
from mining.partitioned.spark.values import from_bytes
from mining.partitioned.spark.worker import (
    Files,
    Number,
    ReadLists,
    ReadShares,
    Share,
    TableTask,
    Task,
    merge_names,
    read_names,
    read_sealed,
    seals,
)

S = TypeVar("S", TransactionSource, TableSource)
K = TypeVar("K")


class File(NamedTuple):
    """A Parquet file as the workers see it: its path, size, time of change, and the rows of its row groups."""

    path: str
    size: int
    changed: int
    rows: Sequence[int]


class SourceOnCluster(ABC, Generic[S, K]):
    """One encoding of a source on a cluster.

    Args:
        cluster: Where it is read.
        source: `parquet`: a path that all workers can read, or a pattern of such paths. `sql`: a query of Spark's.
        withheld: Patterns of items that never get into a block.
        tag: Of the work on the cluster.
        partitions: Of the blocks; by default one for each share of row groups, or what a query has.
    """

    def __init__(
        self, cluster: Cluster, source: S, withheld: Sequence[str], tag: str, partitions: int | None = None
    ) -> None:
        self._source: S = source
        self._cluster, self._withheld = cluster, tuple(withheld)
        self._tag, self._partitions = tag, partitions

    def files(self) -> list[File]:
        """The files of a source of Parquet, as they are now.

        Raises:
            InputDataError: The workers find none.
            ResourceError: The cluster is lost.
        """
        ((_, _, value, _),) = self._run(self._cluster.numbers(1, 1), Task(Files(self._source.place)))
        return [File(*each) for each in from_bytes(value)]

    def origin(self) -> str:
        """What blocks depend on: the same where files and settings are the same; empty for a query.

        Raises:
            InputDataError: The workers find no file.
            ResourceError: The cluster is lost.
        """
        return "" if self._source.format == "sql" else self._origin_of(self.files())

    @abstractmethod
    def run(self) -> K:
        """Encodes; whatever ends it early leaves nothing behind.

        Raises:
            ConfigurationError: The workers lack a package.
            InputDataError: The source cannot be read, is not what its format says, or changed meanwhile.
            ResourceError: The cluster is lost, or `close` was called.
        """

    def close(self) -> None:
        """Ends the encoding on the cluster, from whatever thread."""
        self._cluster.interrupt(self._tag)

    def _run(self, frame: Any, work: Task | TableTask) -> Iterator[tuple[int, int, bytes, bytes]]:
        return self._cluster.rows(self._cluster.task(frame, work), self._tag)

    @contextmanager
    def _keeping(self) -> Iterator[list[Any]]:
        """Frames that are kept; the cluster drops them where this ends early."""
        kept = list[Any]()
        try:
            yield kept
        except BaseException:
            for frame in kept:
                self._cluster.forget(frame)
            raise

    def _read_shares(self, reading: Callable[[Sequence[Share]], Task]) -> tuple[Any, str]:
        """The frame of what is read of files, and what it depends on."""
        files = self.files()
        shares = shares_of(files)
        partitions = min(self._partitions or len(shares), len(shares))
        frame = self._cluster.task(self._cluster.numbers(len(shares), partitions), reading(shares))
        return frame, self._origin_of(files)

    def _origin_of(self, files: Sequence[File]) -> str:
        stamp = [*self._source.settings, list(self._withheld), files]
        return hashlib.sha256(json.dumps(stamp).encode()).hexdigest()

    def _check_same(self, origin: str) -> None:
        if self.origin() != origin:
            raise self._changed()

    def _changed(self) -> InputDataError:
        place, way = self._source.place, ""
        if self._source.format == "sql":
            place, way = "what the query of the dataset reads", ", or name a version in the query"
        return InputDataError(f"{place} changed while it was read; run the job again once nobody writes to it{way}")


class SparkEncoding(SourceOnCluster[TransactionSource, ClusterRows]):
    """An encoding of transactions."""

    def run(self) -> ClusterRows:
        """Encodes; see `SourceOnCluster.run`."""
        cluster = self._cluster
        with self._keeping() as kept:
            frame, origin = self._read()
            kept.append(cluster.keep(frame))
            items, counts, read = self._dictionary(kept[0])
            blocks = cluster.task(kept[0], Task(Number(items)))
            kept.append(cluster.keep(blocks))
            found = sorted(self._run(kept[1], Task(seals)))
            self._check_same(origin)
            if [(place, named) for place, _, _, named in found] != read:
                raise self._changed()
        cluster.forget(kept[0])
        whole = hashlib.blake2b(json.dumps(items).encode(), digest_size=32)
        for place, rows, seal, _ in found:
            whole.update(np.array([place, rows], np.int64).tobytes() + seal)
        return ClusterRows(
            cluster,
            kept[1],
            [place for place, _, _, _ in found],
            [seal for _, _, seal, _ in found],
            [rows for _, rows, _, _ in found],
            items,
            counts,
            whole.digest(),
            origin,
        )

    def _read(self) -> tuple[Any, str]:
        """The frame of blocks without numbers, and what they depend on."""
        if self._source.format == "sql":
            return self._read_query(), ""
        return self._read_shares(lambda shares: Task(ReadShares(self._source, shares, self._withheld)))

    def _read_query(self) -> Any:
        """Rows in an order of their own: that in which a partition's rows come from others may vary."""
        frame = self._cluster.query(self._source.query or "")
        name, (id_column, item_column) = "", (self._source.id_column, self._source.item_column)
        if {id_column, item_column} <= set(frame.columns):
            pairs = frame.select(id_column, item_column)
            shared = (
                pairs.repartition(id_column)
                if self._partitions is None
                else pairs.repartition(self._partitions, id_column)
            )
            rows = shared.groupBy(id_column).agg({item_column: "collect_list"}).sortWithinPartitions(id_column)
            name = item_column
        elif len(frame.columns) == 1:
            (name,) = frame.columns
            shared = frame if self._partitions is None else frame.repartition(self._partitions)
            rows = shared.sortWithinPartitions(name)
        else:
            raise InputDataError(
                f'the query of the dataset gives neither the columns "{id_column}" and "{item_column}" nor one column '
                "of lists of items; name its columns so"
            )
        self._cluster.batches_of(BATCH_ROWS)
        return self._cluster.task(numbered(rows), TableTask(ReadLists(name, self._withheld)))

    def _dictionary(self, frame: Any) -> tuple[tuple[str, ...], Any, list[tuple[int, bytes]]]:
        """All items in ascending order of UTF-8 bytes, in how many rows each is, and the blocks they are from."""
        self._cluster.compute(frame, self._tag)
        self._cluster.batches_of(1)
        found: dict[str, int] = {}
        blocks = list[tuple[int, bytes]]()
        for _, _, value, counted in self._run(frame.coalesce(max(1, self._cluster.cores)), Task(merge_names)):
            blocks += read_sealed(counted)
            for item, count in zip(*read_names(value), strict=True):
                found[item] = found.get(item, 0) + count
        items = tuple(sorted(found))
        return items, np.fromiter((found[item] for item in items), np.int64, len(items)), sorted(blocks)


def numbered(frame: Any) -> Any:
    """The same rows, each with the number of its partition first, as `worker.numbered` reads them."""
    return frame.selectExpr("spark_partition_id() AS comine_partition", "*")


def shares_of(files: Sequence[File]) -> list[Share]:
    """Row groups of files, so many together as make about a block."""
    shares: list[Share] = []
    for file in files:
        groups, rows = list[int](), 0
        for number, length in enumerate(file.rows):
            if groups and rows + length > MOST_ROWS:
                shares.append(Share(file.path, tuple(groups)))
                groups, rows = [], 0
            groups.append(number)
            rows += length
        shares.append(Share(file.path, tuple(groups)))
    return shares

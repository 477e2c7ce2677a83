"""Encodes a table into blocks that a Spark cluster keeps: the workers read it, and nothing of it comes to the node."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from link.errors import InputDataError
from mining.data.tables import check_names
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.spark.cluster import BATCH_ROWS
from mining.partitioned.spark.encoding import SourceOnCluster, numbered
from mining.partitioned.spark.table_worker import NoRows, ReadRows, ReadTables, table_seals
from mining.partitioned.spark.tables import ClusterTable
from mining.partitioned.spark.values import from_bytes
from mining.partitioned.spark.worker import SEAL, TableTask, Task


class SparkTableEncoding(SourceOnCluster[TableSource, ClusterTable]):
    """An encoding of a table: of Parquet files with the same columns, or of a query's rows."""

    def run(self) -> ClusterTable:
        """Encodes; see `SourceOnCluster.run`."""
        cluster, source = self._cluster, self._source
        cluster.check_has(*ClusterTable.needed)
        with self._keeping() as kept:
            frame, origin = self._read()
            kept.append(cluster.keep(frame))
            cluster.compute(kept[0], self._tag)
            cluster.batches_of(1)
            found = sorted(self._run(kept[0], Task(table_seals)))
            if not found:
                kept.append(self._no_rows())
                cluster.forget(kept.pop(0))
                found = list(self._run(kept[0], Task(table_seals)))
            self._check_same(origin)
            names = found[0][3]
            if any(each != names for _, _, _, each in found):
                raise InputDataError(f"the files {source.place} have different columns; give them the same ones")
        whole = hashlib.blake2b(json.dumps(source.id_columns).encode() + names, digest_size=32)
        for place, rows, parts, _ in found:
            whole.update(np.array([place, rows], np.int64).tobytes() + parts)
        return ClusterTable(
            cluster,
            kept[0],
            [place for place, _, _, _ in found],
            [[parts[start : start + SEAL] for start in range(0, len(parts), SEAL)] for _, _, parts, _ in found],
            [rows for _, rows, _, _ in found],
            source.id_columns,
            tuple(from_bytes(names)),
            whole.digest(),
            origin,
        )

    def _read(self) -> tuple[Any, str]:
        """The frame of parts of blocks, and what they depend on."""
        source = self._source
        if source.format != "sql":
            return self._read_shares(lambda shares: Task(ReadTables(source, shares, self._withheld)))
        frame = self._cluster.query(source.query or "")
        check_names(frame.columns, source.id_columns, "The query")
        shared = frame if self._partitions is None else frame.repartition(self._partitions)
        rows = shared.sortWithinPartitions(*source.id_columns)  # else as they come from others, which may vary
        self._cluster.batches_of(BATCH_ROWS)
        return self._cluster.task(numbered(rows), TableTask(ReadRows(source.id_columns, self._withheld))), ""

    def _no_rows(self) -> Any:
        """The frame of what there is of a query without rows."""
        names = tuple(self._cluster.query(self._source.query or "").columns)
        return self._cluster.task(self._cluster.numbers(1, 1), Task(NoRows(names, self._source.id_columns)))

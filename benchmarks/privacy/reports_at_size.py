"""Reports of rows in blocks: perturbed by the processes that hold them, and added up in bounded memory.

`python -m benchmarks.privacy.reports_at_size ROWS WORKERS` prints one JSON object of what it measures.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import peak_mb_of, run_process
from benchmarks.mining.counted_levels import cpu_s, encoded, of_workers, timed
from benchmarks.privacy.ldp import EPSILON, VALUES, zipf
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Table
from crypto.primitives.randomness import KEY_BYTES, Randomness
from ldp.aggregator import Aggregator
from ldp.estimate import Estimate
from ldp.mechanism import Mechanism
from ldp.sets.padding import PaddingAndSampling
from mining.joint.hybrid.own_records import RecordsInBlocks
from mining.partitioned.rows import PartitionedRows

ORACLES = ("grr", "olh")
WORKERS = 2
_GROUP = 1 << 20  # rows that are repeated
WAYS = ("added up where they lie", "sent to the node")


def run(settings: Settings) -> list[Table]:
    """Time, memory and errors of each oracle, where its reports are added up at the workers and at the node."""
    table = Table(
        f"Reports of rows in blocks: {VALUES:,} values, ε = {EPSILON:g}, {WORKERS} processes",
        ("rows, oracle, reports", "s", "core s", "rows/core s", "node MB", "each worker MB", "RMSE/theory"),
        notes=[
            "to encode the file, once, is the first line of each number of rows; the rest perturbs and adds up",
            "RMSE/theory: over all values, by the exact variance at the true counts",
        ],
    )
    for rows in settings.rows:
        settings.tell(f"{rows:,} reports")
        command = [sys.executable, "-m", "benchmarks.privacy.reports_at_size", str(rows), str(WORKERS)]
        found = json.loads(run_process(command, environment={"PYTHONPATH": str(ROOT)}).output)
        for line in found:
            table.add(f"{rows:,}, {line['what']}", *(line.get(name) for name in _FIGURES))
    return [table]


_FIGURES = ("s", "cpu_s", "rows_per_cpu_s", "node_mb", "worker_mb", "error")


def measured(n_rows: int, workers: int, folder: Path) -> list[dict[str, float | str]]:
    """What it costs to encode, and for each oracle and way the costs and the error by that of theory."""
    source = folder / "values.parquet"
    write_values(source, n_rows)
    start = time.perf_counter()
    rows = encoded(source, folder / "blocks", workers)
    for child in multiprocessing.active_children():
        child.join()  # so that their seconds are known
    spent = cpu_s(resource.RUSAGE_SELF) + cpu_s(resource.RUSAGE_CHILDREN)
    lines: list[dict[str, float | str]] = [
        {"what": "encode", "s": time.perf_counter() - start, "cpu_s": spent, "rows_per_cpu_s": n_rows / spent}
    ]
    for name in ORACLES:
        mechanism = PaddingAndSampling(rows.n_items, EPSILON, 1, oracle=name)
        for way in WAYS:
            total, costs = timed(rows, lambda: collected(rows, mechanism, at_workers=way == WAYS[0]))  # noqa: B023
            peaks = [peak for _, peak in of_workers(rows).values()]
            lines.append(
                {
                    "what": f"{name}, {way}",
                    **costs,
                    "rows_per_cpu_s": n_rows / costs["cpu_s"],
                    "node_mb": peak_mb_of(os.getpid()),
                    "worker_mb": max(peaks),
                    "error": error(total.estimate(), rows, mechanism),
                }
            )
    rows.close()
    return lines


def collected(rows: PartitionedRows, mechanism: PaddingAndSampling, *, at_workers: bool) -> Aggregator[Estimate]:
    """The sums over one report of each row."""
    records, key = RecordsInBlocks(rows, [rows.n_rows], None), Randomness.from_os().bytes(KEY_BYTES)
    total = Aggregator(cast("Mechanism[Estimate]", mechanism))
    if at_workers:
        for sums in records.sums(0, mechanism, key):
            total.merge(sums)
    else:
        for reports in records.reports(0, mechanism, key):
            total.add(reports)
    return total


def error(estimate: Estimate, rows: PartitionedRows, mechanism: PaddingAndSampling) -> float:
    """The root mean squared error of counts by that of theory."""
    true = rows.item_counts()
    expected = mechanism.variance(true.astype(np.float64), rows.n_rows).mean()
    return math.sqrt(np.square(estimate.counts - true).mean() / expected)


def write_values(path: Path, n_rows: int) -> None:
    """A Parquet file of lists of one value each, the same row group as often as needed."""
    names = pa.array([f"value-{number:04}" for number in range(VALUES)])
    codes = np.concatenate([np.arange(VALUES), zipf(_GROUP - VALUES, VALUES)])  # each occurs
    with pq.ParquetWriter(path, pa.schema({"items": pa.list_(pa.string())})) as writer:
        for start in range(0, n_rows, _GROUP):
            some = codes[: n_rows - start]
            cells = pa.DictionaryArray.from_arrays(pa.array(some), names).cast(pa.string())
            offsets = pa.array(np.arange(len(some) + 1, dtype=np.int32))
            writer.write_table(pa.table({"items": pa.ListArray.from_arrays(offsets, cells)}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as _name:
        print(json.dumps(measured(int(sys.argv[1]), int(sys.argv[2]), Path(_name))))

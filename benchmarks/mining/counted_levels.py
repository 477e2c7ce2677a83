"""`python -m benchmarks.mining.counted_levels SOURCE FOLDER SUPPORT WORKERS` prints what pairs and triples cost.

With 0 workers the rows are in memory, else in blocks in the folder. Prints one JSON object: seconds of the clock and of
the cores, peaks of memory in megabytes, and a digest of all itemsets with their counts.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import peak_mb_of
from mining.candidates import join
from mining.data.loading import load_transactions
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.local_counts import counter_of, frequent_itemsets
from mining.miner import MOST_SETS
from mining.pairs import n_pairs
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.encode import Encoding
from mining.partitioned.encoding.source import TransactionSource
from mining.partitioned.processes import Processes
from mining.partitioned.rows import PartitionedRows
from mining.thresholds import minimum_count

T = TypeVar("T")


def main() -> None:
    source, folder, support, workers = Path(sys.argv[1]), Path(sys.argv[2]), Decimal(sys.argv[3]), int(sys.argv[4])
    start = time.perf_counter()
    rows = encoded(source, folder, workers) if workers else load_transactions(source, "parquet")
    for child in multiprocessing.active_children():
        child.join()  # so that their seconds are known
    begin = {"s": time.perf_counter() - start, "cpu_s": cpu_s(resource.RUSAGE_SELF) + cpu_s(resource.RUSAGE_CHILDREN)}
    least, counts = minimum_count(support, rows.n_rows), rows.item_counts()
    frequent = rows.onto([item for item, count in zip(rows.items, counts, strict=True) if count >= least])
    counter = counter_of(frequent)
    of_pairs, pairs = timed(rows, counter.count_pairs)
    candidates = join(counter.keep(of_pairs >= least))
    of_triples, triples = timed(rows, lambda: counter.count(candidates))
    found, mining = timed(
        rows, lambda: frequent_itemsets(rows, least, max_length=None, limit=MOST_SETS, max_candidates=MOST_SETS)
    )
    lines = sorted(json.dumps([sorted(itemset), count]) for itemset, count in found.rows())
    peaks = [peak for _, peak in of_workers(rows).values()]
    if isinstance(rows, PartitionedRows):
        rows.close()
    costs = {
        "rows": rows.n_rows,
        "occurrences": int(counts.sum()),
        "pairs": n_pairs(frequent.n_items),
        "triples": len(candidates),
        "itemsets": len(found),
        "digest": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "supports": int(of_pairs.sum() + of_triples.sum()),
        "begin": begin,
        "count pairs": pairs,
        "count triples": triples,
        "mine": mining,
        "node_mb": peak_mb_of(os.getpid()),
        "worker_mb": max(peaks, default=None),
        "disk_bytes": sum(file.stat().st_size for file in folder.iterdir()) if workers else 0,
    }
    print(json.dumps(costs))


def encoded(source: Path, folder: Path, workers: int) -> PartitionedRows:
    """The rows in blocks."""
    stored = Encoding(TransactionSource(str(source), "parquet"), (), folder, Cores(workers)).run()
    return stored.rows(lambda sources, lengths: Processes(sources, lengths, Cores(workers)))


def timed(rows: Rows, work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What it gives, and the seconds of the clock and of the cores that it takes."""
    before = all_cpu_s(rows)
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    return result, {"s": seconds, "cpu_s": all_cpu_s(rows) - before}


def all_cpu_s(rows: Rows) -> float:
    """Seconds of the cores so far, of this process and of those that count."""
    return cpu_s(resource.RUSAGE_SELF) + sum(cpu for cpu, _ in of_workers(rows).values())


def of_workers(rows: Rows) -> dict[int, tuple[float, float]]:
    """Seconds of the cores so far and the peak of memory of each process that counts; starts them at first."""
    return {process: (cpu, peak) for process, cpu, peak in rows.parts(of_process) if process != os.getpid()}


def cpu_s(whose: int) -> float:
    """Seconds of the cores."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def of_process(_rows: Transactions, _first: int) -> tuple[int, float, float]:
    """A kernel: which process counts the block, its seconds of the cores so far, its peak of memory."""
    return os.getpid(), cpu_s(resource.RUSAGE_SELF), peak_mb_of(os.getpid())


if __name__ == "__main__":
    main()

"""`python counted_process.py SOURCE FOLDER`: encodes and counts; prints the peak memory of itself and of its worker."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np

from mining.data.transactions import Transactions
from mining.partitioned.cores import Cores
from mining.partitioned.counter import PartitionedCounter
from mining.partitioned.encoding.encode import Encoding
from mining.partitioned.encoding.source import TransactionSource
from mining.partitioned.processes import Processes


def peak(rows: Transactions, _first: int) -> int:
    """The most memory that the process has had which counts this block, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if rows.n_rows else 0


def main() -> None:
    stored = Encoding(TransactionSource(sys.argv[1], "parquet"), (), Path(sys.argv[2]), Cores(1)).run()
    rows = stored.rows(lambda sources, lengths: Processes(sources, lengths, Cores(1)))
    try:
        pairs = PartitionedCounter(rows).count_pairs()
        workers = max(rows.parts(peak))
    finally:
        rows.close()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([len(stored.names), int(np.max(pairs)), own, workers]))


if __name__ == "__main__":
    main()

"""Spark MLlib's FPGrowth on a Parquet file of lists: `spark_itemsets.py FILE MIN_COUNT CORES`.

Runs in an environment with pyspark and knows nothing of ours. Prints one JSON object: seconds of reading and mining
together, the number of itemsets and a digest of all of them with their counts, peak memory of the virtual machine in
megabytes.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import sys
import time

from pyspark.ml.fpm import FPGrowth
from pyspark.sql import SparkSession


def main() -> None:
    path, least, cores = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    start = time.perf_counter()
    frame = session.read.parquet(path)
    # The tool takes a fraction and rounds; half a row below the count gives the count.
    model = FPGrowth(itemsCol="items", minSupport=(least - 0.5) / frame.count(), minConfidence=1.0).fit(frame)
    found = model.freqItemsets.collect()
    seconds = time.perf_counter() - start
    lines = sorted(json.dumps([sorted(row["items"]), row["freq"]]) for row in found)
    machine = session.sparkContext._gateway.proc.pid
    peak = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{machine}/status").read_text())
    ticks = sum(map(int, pathlib.Path(f"/proc/{machine}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    session.stop()
    print(
        json.dumps(
            {
                "itemsets": len(lines),
                "digest": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
                "mine": {"s": seconds, "cpu_s": ticks / 100},
                "peak_mb": int(peak[1]) * 1024 / 1e6 if peak else None,
            }
        )
    )


if __name__ == "__main__":
    main()

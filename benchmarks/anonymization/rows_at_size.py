"""Full-domain recoding of files that exceed the memory.

`python -m benchmarks.anonymization.rows_at_size FOLDER` anonymises `rows.parquet` there by `config.toml`, and prints
one JSON object of what it took.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import peak_mb_of, run_process
from benchmarks.mining.counted_levels import cpu_s
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Table
from jobs.anonymization.in_blocks import anonymize_in_blocks

CONFIG = """[anonymize]
source = "rows.parquet"
engine = "blocks"
quasi_identifiers = ["age", "zip", "sex", "origin"]
sensitive = ["diagnosis"]
insensitive = ["visits"]
max_suppression = 0.01
[anonymize.model]
k = 50
l = 3
[anonymize.columns]
age = { kind = "numeric" }
[anonymize.hierarchies]
age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }
zip = { builder = "prefix", masked = [1, 2, 3] }
sex = "flat"
origin = "flat"
"""
AGES, ZIPS, ORIGINS, DIAGNOSES = 100, 100, 12, 30  # and two sexes: 240,000 combinations
_GROUP = 1 << 20


def run(settings: Settings) -> list[Table]:
    """Time and memory by number of rows."""
    table = Table(
        f"Full-domain search over rows in blocks, {AGES * ZIPS * ORIGINS * 2:,} combinations of leaves, k = 50, l = 3",
        ("rows", "s", "core s", "rows/core s", "peak MB", "combinations", "classes", "suppressed", "MB written"),
        notes=["from the Parquet file to the release, its certificate included; MB written: release.csv"],
    )
    for rows in settings.rows:
        settings.tell(f"{rows:,} rows anonymised")
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            folder = Path(name)
            write_rows(folder / "rows.parquet", rows)
            (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
            command = [sys.executable, "-m", "benchmarks.anonymization.rows_at_size", folder]
            took = json.loads(run_process(command, environment={"PYTHONPATH": str(ROOT)}).output)
        names = ("s", "cpu_s", "rows_per_cpu_s", "peak_mb", "combinations", "classes", "suppressed", "csv_mb")
        table.add(f"{rows:,}", *(took[each] for each in names))
    return [table]


def anonymised(folder: Path) -> dict[str, float]:
    """What the run takes in this process."""
    start = time.perf_counter()
    done, certificate = anonymize_in_blocks(folder / "config.toml", folder / "release")
    cpu, rows = cpu_s(resource.RUSAGE_SELF) + cpu_s(resource.RUSAGE_CHILDREN), done.inputs.table.n_rows
    return {
        "s": time.perf_counter() - start,
        "cpu_s": cpu,
        "rows_per_cpu_s": rows / cpu,
        "peak_mb": peak_mb_of(os.getpid()),
        "combinations": done.release.problem.frequency.leaves.shape[1],
        "classes": certificate.classes or 0,
        "suppressed": certificate.suppressed,
        "csv_mb": (folder / "release" / "release.csv").stat().st_size / 1e6,
    }


def write_rows(path: Path, n_rows: int) -> None:
    """A table in Parquet: few combinations are frequent, and most are rare."""
    names = ("age", "zip", "sex", "origin", "diagnosis", "visits")
    random, writer = np.random.default_rng(1), None
    for start in range(0, n_rows, _GROUP):
        n = min(_GROUP, n_rows - start)
        age = np.clip(random.normal(45, 18, n), 0, AGES - 1).astype(np.int32)
        codes = (
            (age, [str(each) for each in range(AGES)]),
            (np.minimum(random.geometric(0.05, n), ZIPS) - 1, [f"{8000 + each}" for each in range(ZIPS)]),
            (random.integers(0, 2, n), ["f", "m"]),
            (np.minimum(random.geometric(0.4, n), ORIGINS) - 1, [f"origin {each}" for each in range(ORIGINS)]),
            (np.minimum(random.geometric(0.15, n), DIAGNOSES) - 1, [f"diagnosis {each}" for each in range(DIAGNOSES)]),
            (random.integers(0, 5, n), [str(each) for each in range(5)]),
        )
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), pa.array(texts)).cast(pa.string())
            for code, texts in codes
        ]
        rows = pa.table(columns, names)
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    print(json.dumps(anonymised(Path(sys.argv[1]))))

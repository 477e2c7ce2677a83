"""What a level costs over rows in blocks: against rows and processes, beside rows in memory and Spark's FPGrowth."""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.datasets import Case, available, folder
from benchmarks.measure import run_process
from benchmarks.mining.repeated_baskets import repeat
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Table

CASE = Case("retail", Decimal("0.002"))
PEER_SHARE = Decimal("0.005")  # Spark takes much longer at the support of the others
WORKERS = (0, 1, 2)  # 0: in memory
PEER = Path(__file__).parent.parent / "peers" / "spark_itemsets.py"
STEPS = ("count pairs", "count triples")


def run(settings: Settings) -> list[Table]:
    """Levels, memory and disk; and all itemsets beside Spark."""
    levels = Table(
        f"Rows of the kind of {CASE.name}, in Parquet: levels",
        ("rows, how", "step", "candidates", "s", "core s", "rows/s and worker", "rows/core s", "ns/row, cores"),
        notes=[
            "core s = seconds of all cores, which other work on the machine disturbs less than the clock",
            "to encode starts the processes; it happens once for a source",
        ],
    )
    space = Table("The same: memory and disk", ("rows, how", "node MB", "each worker MB", "MB on disk", "bytes/item"))
    mined = Table(
        f"All itemsets from the file, support {PEER_SHARE}, pooled rows",
        ("rows, how", "itemsets", "s", "core s", "×", "peak MB"),
        notes=["comine encodes, then mines; × is a tool's core seconds divided by those of comine by two processes"],
    )
    tables = [levels, space, mined]
    if not available((CASE,)):
        levels.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
        return tables
    if settings.spark_python is None:
        mined.notes.append("Spark is skipped: there is no .venv-spark")
    for wanted in settings.rows:
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            source = Path(name) / "baskets.parquet"
            settings.tell(f"{wanted:,} rows of baskets")
            repeat(CASE, wanted, source)
            _measure(source, levels, space, mined, settings)
    return tables


def _measure(source: Path, levels: Table, space: Table, mined: Table, settings: Settings) -> None:
    supports = set()
    for workers in WORKERS:
        found = counted(source, CASE.support, workers, settings)
        how = f"{found['rows']:,}, {f'{workers} processes' if workers else 'in memory'}"
        supports.add(found["supports"])
        candidates = dict(zip(STEPS, (found["pairs"], found["triples"]), strict=True))
        for step in ("begin", *STEPS):
            costs, each = found[step], max(workers, 1)
            levels.add(
                *(how, "encode" if workers and step == "begin" else "read" if step == "begin" else step),
                *(candidates.get(step), costs["s"], costs["cpu_s"], found["rows"] / costs["s"] / each),
                *(found["rows"] / costs["cpu_s"], costs["cpu_s"] / found["rows"] * 1e9),
            )
        disk = found["disk_bytes"] or None
        space.add(how, found["node_mb"], found["worker_mb"], disk and disk / 1e6, disk and disk / found["occurrences"])
    if len(supports) != 1:
        levels.notes.append(f"{source.name}: supports differ")
    ours = counted(source, PEER_SHARE, WORKERS[-1], settings)
    together = {kind: ours["begin"][kind] + ours["mine"][kind] for kind in ("s", "cpu_s")}
    peak = ours["node_mb"] + WORKERS[-1] * ours["worker_mb"]
    mined.add(f"{ours['rows']:,}, comine by {WORKERS[-1]} processes", ours["itemsets"], *together.values(), 1.0, peak)
    if settings.spark_python is not None:
        settings.tell(f"Spark on {ours['rows']:,} rows")
        least = math.ceil(PEER_SHARE * ours["rows"])
        theirs = json.loads(
            run_process([settings.spark_python, PEER, source, str(least), str(WORKERS[-1])]).output.splitlines()[-1]
        )
        costs = theirs["mine"]
        mined.add(
            *(f"{ours['rows']:,}, Spark FPGrowth on {WORKERS[-1]} cores", theirs["itemsets"], costs["s"]),
            *(costs["cpu_s"], costs["cpu_s"] / together["cpu_s"], theirs["peak_mb"]),
        )
        same = "the same" if theirs["digest"] == ours["digest"] else "OTHER"
        mined.notes.append(f"{ours['rows']:,} rows: Spark gives {same} itemsets, with {same} counts")


def counted(source: Path, support: Decimal, workers: int, settings: Settings) -> dict[str, Any]:
    """What a process of its own measures."""
    settings.tell(f"{source.name} with {workers} processes, support {support}")
    blocks = source.with_name("blocks")
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "benchmarks.mining.counted_levels",
        source,
        blocks,
        str(support),
        str(workers),
    ]
    finished = run_process(command, environment={"PYTHONPATH": str(ROOT)})
    shutil.rmtree(blocks, ignore_errors=True)
    found: dict[str, Any] = json.loads(finished.output)
    return found

"""What `sizing` computes with: costs of a row and of single operations, measured on one machine and kept in a file.

`python -m benchmarks.mining.coefficients` measures them here and writes `coefficients.json` beside this module;
`--rows` takes two other numbers of rows, `--out` another file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.mining.large_rows import CASE, counted
from benchmarks.mining.repeated_baskets import repeat
from benchmarks.settings import ROWS, Settings
from jobs.plan.calibration import Speed, measure
from link.executor import ThreadExecutor

FILE: Final = Path(__file__).with_name("coefficients.json")

Run = Mapping[str, Any]
"""What `counted_levels` prints."""


@dataclass(frozen=True)
class Coefficients:
    """Of a row of the kind of retail, with 9.3 items.

    Attributes:
        encode_s: Seconds of a core to encode it.
        pairs_s: To count its pairs.
        longer_s: To count longer candidates in it.
        disk_bytes: In blocks.
        memory_bytes: In memory, at the most, while it is read and counted.
        node_bytes: Memory of a node with rows in blocks.
        worker_bytes: Memory of each of its processes.
    """

    encode_s: float
    pairs_s: float
    longer_s: float
    disk_bytes: float
    memory_bytes: float
    node_bytes: float
    worker_bytes: float

    @classmethod
    def fitted(cls, in_blocks: tuple[Run, Run], in_memory: tuple[Run, Run]) -> Coefficients:
        """From runs over few rows and over many: what each further row costs, and the most memory besides."""
        return cls(
            encode_s=_slope(in_blocks, "begin", "cpu_s"),
            pairs_s=_slope(in_blocks, "count pairs", "cpu_s"),
            longer_s=_slope(in_blocks, "count triples", "cpu_s"),
            disk_bytes=_slope(in_blocks, "disk_bytes"),
            memory_bytes=1e6 * _slope(in_memory, "node_mb"),
            node_bytes=1e6 * max(run["node_mb"] for run in in_blocks),
            worker_bytes=1e6 * max(run["worker_mb"] for run in in_blocks),
        )


def _slope(runs: tuple[Run, Run], *path: str) -> float:
    few, many = runs
    (first, last), rows = map(float, (_at(few, path), _at(many, path))), many["rows"] - few["rows"]
    return (last - first) / rows


def _at(run: Run, path: Sequence[str]) -> Any:
    found: Any = run
    for name in path:
        found = found[name]
    return found


def read(file: Path = FILE) -> tuple[Coefficients, Speed]:
    """Those of a file."""
    found = json.loads(file.read_text(encoding="utf-8"))
    return Coefficients(**found["row"]), Speed(**found["speed"])


def write(row: Coefficients, speed: Speed, file: Path) -> None:
    """Writes them, each in three digits, and where they were measured."""
    found = {
        "machine": f"{platform.machine()}, one core",
        "row": {name: _digits(each) for name, each in asdict(row).items()},
        "speed": {name: _digits(each) for name, each in asdict(speed).items()},
    }
    file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _digits(number: float) -> float:
    return float(f"{number:.3g}")


def fit(rows: tuple[int, int], settings: Settings) -> Coefficients:
    """Measures so many rows of each kind, in blocks by one process and in memory."""
    found: dict[int, list[Run]] = {0: [], 1: []}
    for number in rows:
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            source = Path(name) / "baskets.parquet"
            repeat(CASE, number, source)
            for workers, runs in found.items():
                runs.append(counted(source, CASE.support, workers, settings))
    (few, many), (few_blocks, many_blocks) = found[0], found[1]
    return Coefficients.fitted((few_blocks, many_blocks), (few, many))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mining.coefficients", description=__doc__)
    parser.add_argument("--rows", type=int, nargs=2, metavar="N", default=ROWS, help="few and many")
    parser.add_argument("--out", type=Path, metavar="FILE", default=FILE)
    given = parser.parse_args()
    row = fit(tuple(given.rows), Settings(False, Console(stderr=True)))
    write(row, asyncio.run(measure(ThreadExecutor())), given.out)


if __name__ == "__main__":
    main()

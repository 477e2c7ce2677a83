"""Columns at size: nodes in control groups.

Two parties align their rows and mine them, with tables in memory and in blocks. Others only align theirs, with tables
in blocks: three by intersection, with lists of ids in memory and on the disk, two by cardinality, and two and three by
union.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.measure import core_seconds_of, peak_mb_of, run_process
from benchmarks.settings import Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from crypto.protocols.alignment.list_limits import LEAST_LIST_MEMORY, LIST_MEMORY

PARTIES: Final = ("north", "south", "east")
COLUMNS: Final = 15
LIMIT: Final = 2 << 30
_BATCH: Final = 1 << 18
_GROUPS: Final = Path("/sys/fs/cgroup")
_JOB: Final = """[job]
name = "columns at size"
task = "{task}"
partition = "vertical"
parties = {parties}
dataset = "people"
deadline = "24h"
"""
_ITEMSETS: Final = """[itemsets]
min_support = 0.05
max_length = 2
engine = "ot"
"""
_IN_MEMORY: Final = 1 << 40


def run(settings: Settings) -> list[Table]:
    """Memory and time of the nodes."""
    return [_mined(settings), _aligned(settings)]


def without_order(settings: Settings) -> list[Table]:
    """Memory and time of nodes that align without learning which rows are common."""
    return [_hidden(settings, "cardinality", (2,))]


def united(settings: Settings) -> list[Table]:
    """Memory and time of nodes that align by union."""
    return [_hidden(settings, "union", (2, 3))]


def _hidden(settings: Settings, mode: str, numbers: Sequence[int]) -> Table:
    table = Table(
        f"Alignments by {mode}, four fifths of any two parties' rows in common, each node in {LIMIT >> 30} GiB",
        ("rows, parties", "party", "node MB", "group MB", "core s", "s of the job", "rows in common"),
        notes=["tables in blocks; lists of ids in the default memory, and on the disk"],
    )
    for rows, number in product(settings.rows, numbers):
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            sources = _sources(settings, Path(name), PARTIES[:number], rows, 1)
            settings.tell(f"{rows:,} rows of {number} by {mode}")
            job = _JOB.format(task="align", parties=list(sources)) + f'[align]\nmode = "{mode}"\n'
            _measure(table, f"{rows:,}, {number}", "processes", sources, Path(name) / mode, job)
    return table


def _mined(settings: Settings) -> Table:
    """Where rows lie in memory and where they lie in blocks."""
    table = Table(
        f"Two parties of {COLUMNS} columns each, four fifths of the rows in common, each node in {LIMIT >> 30} GiB",
        ("rows, engine", "party", "node MB", "group MB", "core s", "s of the job", "itemsets"),
        notes=["node = peak resident memory of the node; group = with its processes, files that the system keeps, too"],
    )
    for rows in settings.rows:
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            sources = _sources(settings, Path(name), PARTIES[:2], rows, COLUMNS)
            found = set()
            for engine in ("memory", "processes"):
                settings.tell(f"{rows:,} rows, {engine}")
                job = _JOB.format(task="itemsets", parties=list(sources)) + _ITEMSETS
                found.add(_measure(table, f"{rows:,}, {engine}", engine, sources, Path(name) / engine, job))
            if len(found) != 1:
                table.notes.append(f"{rows:,} rows: results differ")
    return table


def _aligned(settings: Settings) -> Table:
    """Where lists of ids lie in memory, by default, and with the least of it."""
    table = Table(
        f"Three parties align their rows, four fifths of any two's in common, each node in {LIMIT >> 30} GiB",
        ("rows, lists of ids", "party", "node MB", "group MB", "core s", "s of the job", "rows in common"),
    )
    for rows in settings.rows:
        with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
            sources = _sources(settings, Path(name), PARTIES, rows, 1)
            found = set()
            for how, memory in (("memory", _IN_MEMORY), ("default", LIST_MEMORY), ("least", LEAST_LIST_MEMORY)):
                settings.tell(f"{rows:,} rows of three, lists in memory: {how}")
                job = _JOB.format(task="align", parties=list(sources))
                folder = Path(name) / how
                found.add(_measure(table, f"{rows:,}, {how}", "processes", sources, folder, job, memory))
            if len(found) != 1:
                table.notes.append(f"{rows:,} rows: results differ")
    return table


def _sources(settings: Settings, folder: Path, parties: Sequence[str], rows: int, columns: int) -> dict[str, Path]:
    sources = {party: folder / f"{party}.parquet" for party in parties}
    settings.tell(f"{rows:,} rows for each party")
    for place, source in enumerate(sources.values()):
        write_people(source, rows, place, columns)
    return sources


def write_people(path: Path, rows: int, place: int, columns: int = COLUMNS) -> None:
    """A party's table: rows of so many people and a quarter more, drawn at random, in random order."""
    random = np.random.default_rng(place)
    people = np.sort(random.permutation(rows + rows // 4)[:rows])
    people = people[random.permutation(rows)]
    names = ["id", *(f"party{place}column{column}" for column in range(columns))]
    with pq.ParquetWriter(path, pa.schema([(name, pa.string()) for name in names])) as writer:
        for start in range(0, rows, _BATCH):
            some = people[start : start + _BATCH]
            ids = pa.array([f"person-{number:012}" for number in some.tolist()])
            cells = [_cells(some, place, column) for column in range(columns)]
            writer.write_table(pa.table([ids, *cells], names))


def _cells(people: NDArray[np.int64], place: int, column: int) -> pa.Array:
    values = 4 if column < COLUMNS // 5 else 100
    codes = (people * 2654435761 + column * 40503 * (people % 97) + place * 7919) % values
    texts = pa.array([f"v{value}" for value in range(values)])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), texts).cast(pa.string())


def _measure(
    table: Table,
    how: str,
    engine: str,
    sources: Mapping[str, Path],
    folder: Path,
    job: str,
    alignment_memory: int = LIST_MEMORY,
) -> str:
    """Runs the job and enters what it took; its rows in common and itemsets, as they are in the result."""
    written = {"kind": "table", "format": "parquet", "id": "id", "engine": engine}
    federation = LoopbackFederation.prepare(folder, "people", sources, written=dict.fromkeys(sources, written))
    for party in sources:
        file = folder / party / "party.toml"
        text = file.read_text(encoding="utf-8")
        text = text.replace("[party]", f"[party]\nalignment_memory = {alignment_memory}", 1)
        file.write_text(text.replace('"rules"', '"rules", "align"', 1), encoding="utf-8")
    (folder / "job.toml").write_text(job, encoding="utf-8")
    with federation.running():
        asyncio.run(federation.ready())
        nodes = {party: node.pid for party, node in federation.nodes.items()}
        with _limited(nodes) as groups:
            finished = run_process(
                [
                    *(sys.executable, "-P", "-m", "comine", "job", "run", folder / "job.toml"),
                    *("--federation", federation.file, "--out", folder / "result"),
                ]
            )
            rows = json.loads((folder / "result" / "result.json").read_text(encoding="utf-8"))["n_rows"]
            listed = folder / "result" / "itemsets.csv"
            itemsets = listed.read_text(encoding="utf-8") if listed.exists() else ""
            for party, pid in nodes.items():
                peak = (groups[party] / "memory.max_usage_in_bytes").read_text() if party in groups else None
                table.add(
                    *(how, party, peak_mb_of(pid), peak and int(peak) / 1e6),
                    *(core_seconds_of(pid), finished.seconds, itemsets.count("\n") - 1 if itemsets else rows),
                )
    return f"{rows} {itemsets}"


@contextmanager
def _limited(nodes: Mapping[str, int]) -> Iterator[dict[str, Path]]:
    """Control groups of `LIMIT` bytes each, by party; none where this machine does not let them be made."""
    groups = dict[str, Path]()
    try:
        for party, pid in nodes.items():
            group = _GROUPS / "memory" / f"comine-bench-{pid}"
            group.mkdir()
            groups[party] = group
            (group / "memory.limit_in_bytes").write_text(str(LIMIT))
            (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        groups.clear()
    try:
        yield groups
    finally:
        for group in groups.values():
            for process in (group / "cgroup.procs").read_text().split():
                (_GROUPS / "memory" / "cgroup.procs").write_text(process)
            _remove(group)


def _remove(group: Path) -> None:
    """The system still looks through a group for a while that has become empty."""
    for _ in range(100):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)

"""A federation of processes at work for a while: what they hold after many jobs beside what they held at first."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import random
import re
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from coordinator.demo.loopback import COORDINATOR, LoopbackFederation
from coordinator.jobs.runner import run_job
from jobs.kinds.packages import TASKS
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import ComineError

EVERY_S: Final = 5.0  # between two samples
WARM: Final = 1 / 3  # of the time, in which pools and caches fill
LEAST_GROWTH: Final = 0.02  # of the mean, that is none
LEAST_NUMBER: Final = 2.0  # threads or descriptors, the same
CANCEL_S: Final = 0.3
ROWS: Final = 400
MOST_RELEASES: Final = 100_000  # more than there are jobs
ITEMS: Final = [f"item{i}" for i in range(8)]

_TABLES: Final = "".join(
    f'\n[[dataset]]\nname = "{name}"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\n'
    for name in ("people", "columns")
)
_VERTICAL: Final = {"dataset": "columns", "partition": "vertical"}
_ANY: Final = [["a", "any"], ["b", "any"]]
_FEW_ITEMS: Final = {"min_support": "0.5", "max_length": 1}
JOBS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "itemsets over rows": {"job": {"task": "itemsets"}, "itemsets": {"min_support": "0.2", "max_length": 2}},
    "rules over rows": {
        "job": {"task": "rules"},
        "itemsets": {"min_support": "0.3", "max_length": 2},
        "rules": {"min_confidence": "0.5"},
    },
    "itemsets over columns": {
        "job": {"task": "itemsets", **_VERTICAL},
        "itemsets": {"min_support": "0.2", "max_length": 2},
    },
    "alignment": {"job": {"task": "align", **_VERTICAL}},
    "naive Bayes over rows": {
        "job": {"task": "naive-bayes", "dataset": "people"},
        "columns": {"group": {"values": ["a", "b"]}, "class": {"values": ["x", "y"]}},
        "naive_bayes": {"target": "class", "attributes": ["group"]},
    },
    "naive Bayes over columns": {
        "job": {"task": "naive-bayes", **_VERTICAL},
        "columns": {"first of north": {"values": ["a", "b"]}, "first of south": {"values": ["a", "b"]}},
        "naive_bayes": {"target": "first of north", "attributes": ["first of south"]},
    },
    "columns of parties that may deviate": {
        "job": {"task": "itemsets", **_VERTICAL},
        "itemsets": {"min_support": "0.2", "max_length": 2},
        "trust": {"helper": "east", "security": "malicious"},
    },
    "distributed noise": {
        "job": {"task": "itemsets", "partition": "hybrid"},
        "itemsets": _FEW_ITEMS,
        "privacy": {"model": "distributed", "epsilon": "2", "delta": "1e-6", "colluding": 1},
    },
    "perturbed records": {
        "job": {"task": "itemsets", "partition": "hybrid"},
        "itemsets": {"top_k": 3, "universe": "items", "catalogue": ITEMS},
        "privacy": {"model": "local", "epsilon": "4"},
    },
    "blended estimates": {
        "job": {"task": "itemsets", "partition": "hybrid"},
        "itemsets": {"top_k": 3, "universe": "items", "catalogue": ITEMS, "max_length": 1},
        "privacy": {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["north"]},
    },
    "anonymised rows": {
        "job": {"task": "anonymize", "dataset": "people"},
        "anonymize": {
            "quasi_identifiers": ["group"],
            "sensitive": ["class"],
            "insider_k": 1,
            "model": {"k": 3},
            "columns": {"class": {"values": ["x", "y"]}},
            "hierarchies": {"group": _ANY},
        },
    },
    "anonymised columns": {
        "job": {"task": "anonymize", **_VERTICAL},
        "anonymize": {
            "quasi_identifiers": ["first of north", "first of south"],
            "sensitive": ["first of east"],
            "model": {"k": 3},
            "columns": {"first of east": {"values": ["a", "b"]}},
            "hierarchies": {"first of north": _ANY, "first of south": _ANY},
        },
    },
    "a dataset that nobody has": {"job": {"task": "itemsets", "dataset": "none"}, "itemsets": {"min_support": "0.2"}},
    "cancelled as it runs": {"job": {"task": "itemsets"}, "itemsets": {"min_support": "0.05"}},
}


class Sample(NamedTuple):
    """What one process holds at a moment; of the coordinator, which keeps no jobs here, there are no rows."""

    seconds: float
    resident_mb: float
    threads: int
    descriptors: int
    rows: int | None


@dataclass
class Course:
    """What was run, and what each process held meanwhile."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)


def run(settings: Settings) -> list[Table]:
    """Small jobs of several kinds in turn, failures among them."""
    minutes = settings.minutes or (1.0 if settings.quick else 30.0)  # the last twenty are looked at
    settings.tell(f"a federation at work for {minutes:g} minutes")
    with tempfile.TemporaryDirectory(prefix="comine-soak-") as name:
        federation = _prepared(Path(name))
        with federation.running():
            course = asyncio.run(_work(federation, minutes * 60))
    return [_held(course, minutes), _run(course)]


def flat(seconds: list[float], values: list[float], least: float) -> tuple[float, float, bool]:
    """How much a line through values grows, by how much they scatter about it, and whether that is no growth.

    It is none up to twice the scatter (its standard deviation), up to a fiftieth of the mean, or up to `least`.
    """
    slope, start = np.polyfit(seconds, values, 1)
    growth = float(slope) * (seconds[-1] - seconds[0])
    noise = float(np.std(np.array(values) - (slope * np.array(seconds) + start)))
    return growth, noise, growth <= max(2 * noise, LEAST_GROWTH * float(np.mean(values)), least)


def _prepared(folder: Path) -> LoopbackFederation:
    draw = random.Random(1)
    files = {}
    for party in PARTIES:
        files[party] = folder / f"{party}.dat"
        baskets = [
            [name for i, name in enumerate(ITEMS) if draw.random() < 0.9 / (1 + i / 3)] or ITEMS[:1]
            for _ in range(ROWS)
        ]
        files[party].write_text("".join(" ".join(basket) + "\n" for basket in baskets))
    made = LoopbackFederation.prepare(folder / "federation", "baskets", files)
    for party in PARTIES:
        home = made.folder / party
        rows = "".join(f"{number},{draw.choice('ab')},{draw.choice('xy')}\n" for number in range(ROWS))
        (home / "people.csv").write_text(f"id,group,class\n{rows}")
        (home / "columns.csv").write_text(f"id,first of {party},second of {party}\n{rows}")
        text = (home / "party.toml").read_text().replace("\n[policy]\n", f"{_TABLES}\n[policy]\n")
        names = ", ".join(f'"{task}"' for task in TASKS)
        rules = f"tasks = [{names}]\nmax_releases = {MOST_RELEASES}"
        (home / "party.toml").write_text(text.replace('tasks = ["itemsets", "rules"]', rules))
    return made


def _job(kind: str) -> JobSpec:
    tables = {name: dict(table) for name, table in JOBS[kind].items()}
    job = {"name": kind, "parties": list(PARTIES), "dataset": "baskets", "deadline": "5m", **tables.pop("job")}
    return job_of({"job": job, **tables}, "job.toml", Path())


async def _work(federation: LoopbackFederation, seconds: float) -> Course:
    await federation.ready()
    course, began = Course({name: [] for name in (*PARTIES, COORDINATOR)}), time.monotonic()
    sampling = asyncio.create_task(_sample(federation, course, began))
    hub, addresses = federation.identity(), federation.addresses
    for kind in itertools.cycle(JOBS):
        if time.monotonic() - began >= seconds:
            break
        course.ended[kind, await _outcome(kind, run_job(_job(kind), hub, addresses))] += 1
        gc.collect()  # an error of a job keeps its calls, and these the connections to the nodes, until then
    sampling.cancel()
    return course


async def _outcome(kind: str, job: Any) -> str:
    running = asyncio.ensure_future(job)
    if kind == "cancelled as it runs":
        await asyncio.wait({running}, timeout=CANCEL_S)
        running.cancel()
    try:
        await running
    except ComineError as error:
        return error.code
    except asyncio.CancelledError:
        return "cancelled"
    return "succeeded"


async def _sample(federation: LoopbackFederation, course: Course, began: float) -> None:
    while True:
        for party, node in federation.nodes.items():
            database = federation.folder / party / "state" / "node.db"
            course.samples[party].append(await asyncio.to_thread(_held_now, node.pid, database, began))
        course.samples[COORDINATOR].append(await asyncio.to_thread(_held_now, os.getpid(), None, began))
        await asyncio.sleep(EVERY_S)


def _held_now(pid: int, database: Path | None, began: float) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    return Sample(
        time.monotonic() - began,
        int(_field(status, "VmRSS")) * 1024 / 1e6,
        int(_field(status, "Threads")),
        len(os.listdir(f"/proc/{pid}/fd")),
        None if database is None else _rows(database),
    )


def _field(status: str, name: str) -> str:
    found = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"/proc/PID/status has no {name}")
    return found[1]


def _rows(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names)


def _held(course: Course, minutes: float) -> Table:
    table = Table(
        f"A federation at work for {minutes:g} minutes: what its processes hold",
        ("process: what", "at first", "at last", "growth after warm-up", "scatter", "flat"),
        notes=[
            f"growth: of a line through the samples after the first {WARM:.0%} of the time; flat: at most twice the "
            f"scatter about it, {LEAST_GROWTH:.0%} of the mean, or {LEAST_NUMBER:g} threads or descriptors",
            "rows of node.db grow with each job by design, which it keeps for a year: keep_jobs of party.toml",
            "what fills up once is growth here, too, where that comes late: SQLite's pages, up to 2 MB a database, and "
            "CPython's table of interned names, which doubles from 2 to 4 MB after some hundred jobs",
        ],
    )
    passed = True
    for party, samples in course.samples.items():
        late = [each for each in samples if each.seconds >= WARM * samples[-1].seconds]
        for name, what in (("resident_mb", "resident MB"), ("threads", "threads"), ("descriptors", "descriptors")):
            values = [float(getattr(each, name)) for each in late]
            least = 0.0 if name == "resident_mb" else LEAST_NUMBER
            growth, noise, is_flat = flat([each.seconds for each in late], values, least)
            passed &= is_flat
            table.add(f"{party}: {what}", values[0], values[-1], growth, noise, "yes" if is_flat else "NO")
        if late[0].rows is not None:
            table.add(f"{party}: rows of node.db", late[0].rows, late[-1].rows, None, None, None)
    table.notes.append("PASS: all of memory, threads and descriptors are flat" if passed else "FAIL: something grows")
    return table


def _run(course: Course) -> Table:
    table = Table("… and the jobs that were run meanwhile", ("job", "how it ended", "times"))
    for (kind, how), number in sorted(course.ended.items()):
        table.add(kind, how, number)
    return table

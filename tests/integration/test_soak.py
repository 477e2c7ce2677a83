"""A day and more of a federation in simulated time: nothing that a node holds grows with the hours."""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import sqlite3
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.results.result import Result
from party.state import store
from protos.v1 import control_pb2 as control
from tests.party.nodes import DATA, Nodes, brief, expire, running

pytestmark = pytest.mark.slow

STEP_S = 4 * 3600.0
STEPS = 8  # what limits count is kept for a day
WARM = 2  # steps after which caches and pools are as large as they get
OURS = ("party.", "link.", "jobs.", "coordinator.", "relay.", "crypto.", "mining.")
PARTIES = list(DATA)[:2]
ROWS = {name: DATA[name] for name in PARTIES}


class Time:
    """The time of the process, which a test moves on; the machine's own goes on beneath."""

    def __init__(self) -> None:
        self.ahead_s, self._real = 0.0, time.time

    def __call__(self) -> float:
        return self._real() + self.ahead_s

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop whose timers follow."""
        moved = self

        class Loop(asyncio.SelectorEventLoop):
            def time(self) -> float:
                return super().time() + moved.ahead_s

        return Loop(selectors.DefaultSelector())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    moved, real = Time(), time.time
    monkeypatch.setattr(time, "time", moved)
    for name, module in list(sys.modules.items()):
        for made in vars(module).values() if name.startswith(OURS) else ():
            defaults = getattr(vars(made).get("__init__"), "__kwdefaults__", None) if isinstance(made, type) else None
            if defaults and defaults.get("now") is real:
                monkeypatch.setitem(defaults, "now", moved)
    return moved


@dataclass
class Held:
    """What the process and the nodes' databases hold."""

    objects: Counter[str] = field(default_factory=Counter)
    threads: int = 0
    descriptors: int = 0
    tasks: int = 0
    rows: Counter[str] = field(default_factory=Counter)


def held(nodes: Nodes) -> Held:
    gc.collect()
    found = Held(threads=threading.active_count(), descriptors=len(os.listdir("/proc/self/fd")))
    for each in gc.get_objects():
        module = type(each).__module__
        if isinstance(module, str) and module.startswith(OURS):
            found.objects[f"{module}.{type(each).__qualname__}"] += 1
    found.tasks = len(asyncio.all_tasks())
    for name in nodes.nodes:
        with closing(sqlite3.connect(nodes.folder / "state" / name / "node.db")) as database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                ((number,),) = database.execute(f"SELECT count(*) FROM {table}")
                found.rows[table] += number
    return found


async def settled(nodes: Nodes, before: Held | None) -> Held:
    """What they hold once the calls of the last jobs are over at both ends, which nobody tells."""
    for _ in range(40):
        found = held(nodes)
        if (
            before is not None
            and not found.objects - before.objects
            and found.tasks <= before.tasks
            and found.descriptors <= before.descriptors  # of connections, which gRPC closes when it comes to it
        ):
            break
        await asyncio.sleep(0.05)
        if before is None and not found.objects["party.node.interceptors._Arrived"]:
            break
    return found


async def work(nodes: Nodes, hub: Any) -> None:
    """A job that succeeds, one that is cancelled as it runs, a proposal that expires, and one that is forgotten."""
    assert isinstance(await run_job(brief(parties=PARTIES), hub, nodes.addresses), Result)
    cancelled = await nodes.begin(brief(parties=PARTIES))
    await nodes.clients["north"].cancel(cancelled)
    await nodes.ends(cancelled)
    expired, _ = await nodes.agree(brief(parties=PARTIES))
    for node in nodes.nodes.values():
        expire(node, expired)
    ends = await nodes.ends(expired)
    assert {end.state for end in ends.values()} == {control.EXPIRED}
    await nodes.agree(brief(parties=PARTIES))  # which nobody starts


def test_nothing_grows_in_more_than_a_day(tmp_path: Path, clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_UNSTARTED", 10)
    after: list[Held] = []

    async def test() -> None:
        party = 'keep_jobs = "1h"\n'
        async with running(tmp_path, data=ROWS, party=party) as nodes:
            hub = nodes.authority.issue("hub", "coordinator")
            for _ in range(STEPS):
                await work(nodes, hub)
                clock.ahead_s += STEP_S
                while any(list(node.host.jobs) for node in nodes.nodes.values()):  # noqa: ASYNC110 - what expires
                    await asyncio.sleep(0.01)
                for node in nodes.nodes.values():
                    await node.upkeep.look()
                after.append(await settled(nodes, after[WARM] if len(after) > WARM else None))

    with asyncio.Runner(loop_factory=clock.loop) as runner:
        runner.run(test())
    early, late = after[WARM], after[-1]
    assert late.objects - early.objects == Counter()
    # pools and connections grow at some step to what once was at the same time, by threads and by files of the
    # databases that each of them opens: which is chance. What is left by every step is in the middle one too.
    steps = list(pairwise(after[WARM:]))
    assert median(then.threads - before.threads for before, then in steps) < 1
    assert median(then.descriptors - before.descriptors for before, then in steps) < 1
    assert late.tasks <= early.tasks
    grown = {table for table, number in late.rows.items() if number > early.rows[table]}
    assert grown <= {"jobs", "charges", "asked"}  # which limits look at for a day
    assert late.rows == after[-2].rows

"""Many jobs on one federation: all of them end exactly, and a large one keeps no small one waiting."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from mining.reference.pooled import brute_force
from party.jobs.queue_note import noted
from party.server import Node
from protos.v1 import control_pb2 as control
from tests.examples import slowly
from tests.integration.processes import command
from tests.party.nodes import DATA, Nodes, brief, running, weekly

PARTIES = list(DATA)[:2]
ROWS = {name: DATA[name] for name in PARTIES}
COORDINATORS = 5


def expected(threshold: Fraction) -> dict[Any, int]:
    rows = [row for rows in ROWS.values() for row in rows]
    return brute_force(rows, math.ceil(threshold * len(rows)), 1)


async def supports(nodes: Nodes, place: int, min_support: str = "0.5") -> dict[Any, int]:
    """What a small job finds that one of several coordinators runs."""
    hub = nodes.authority.issue(f"hub{place % COORDINATORS}", "coordinator")
    found: Any = await run_job(
        brief(parties=PARTIES, deadline="10m", itemsets={"min_support": min_support}), hub, nodes.addresses
    )
    return {frozenset(items): count for items, count in found.finding.itemsets}


def hold_first(node: Node) -> asyncio.Event:
    """Keeps the first job of a node from its data until the event is set."""
    release, load, jobs = asyncio.Event(), node.sources.load, itertools.count()

    async def held(name: str, **how: Any) -> Any:
        if next(jobs) == 0:
            await release.wait()
        return await load(name, **how)

    node.sources.load = held  # type: ignore[method-assign]
    return release


@pytest.mark.parametrize("number", slowly([8, 100], now=[0]))
def test_jobs_submitted_at_once_all_end_exactly_beside_one_that_takes_long(tmp_path: Path, number: int) -> None:
    async def test() -> None:
        async with running(tmp_path, data=ROWS, party="max_running = 4") as nodes:
            release = hold_first(nodes.nodes["south"])
            large = asyncio.create_task(supports(nodes, 0, "0.2"))
            while nodes.nodes["south"].host.running < 1:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
            found = await asyncio.gather(*(supports(nodes, place) for place in range(number)))
            assert all(each == expected(Fraction(1, 2)) for each in found)
            assert not large.done()
            release.set()
            assert await large == expected(Fraction(1, 5))
            assert all(not list(node.host.jobs) for node in nodes.nodes.values())

    asyncio.run(test())


def test_operators_are_shown_what_runs_and_what_waits(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=ROWS, party="max_running = 1\nmemory = 1_000_000_000") as nodes:
            north, expiry = nodes.clients["north"], int(time.time()) + 600
            ids = [await north.propose(weekly(parties=PARTIES), bytes([i]) * 16, expiry) for i in range(3)]
            calls = []
            for place, job_id in enumerate(ids[:2]):
                calls.append(north.stub.Queue(control.QueueRequest(job_id=job_id, wait=True)))
                assert (await calls[-1].read()).place == place
            note = tmp_path / "state" / "north" / "queue.json"
            while len(noted(note)) < 2:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
            shown = await asyncio.to_thread(status_of, tmp_path)
            assert shown["runs"]
            found = [(job["job_id"], job["place"], job["coordinator"], job["state"]) for job in shown["jobs"]]
            assert found == [
                (job_id.hex(), n, "analyst", "approved") for job_id, n in zip(ids, (0, 1, None), strict=True)
            ]
            assert all(job["memory_bytes"] is None for job in shown["jobs"])  # nobody publishes any size
            for call in calls:
                call.cancel()
        shown = status_of(tmp_path)
        assert (shown["runs"], note.exists()) == (False, False)
        text = command("party", "status", "north.toml", cwd=tmp_path).out
        assert "the node of north does not run" in text
        assert "0 running, 0 waiting for their turn, 0 awaiting a decision" in text
        assert text.count("analyst") == 3

    asyncio.run(test())


def status_of(folder: Path) -> Any:
    ran = command("party", "status", "north.toml", "--json", cwd=folder)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_job_that_computes_on_all_threads_keeps_no_other_job_from_computing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=ROWS) as nodes:
            done, begun = threading.Event(), threading.Semaphore(0)
            shares = [node.host.context.executor.share() for node in nodes.nodes.values()]

            def compute(_: int) -> None:
                begun.release()
                done.wait()

            large = [asyncio.create_task(share.map(compute, range(4 * share.workers))) for share in shares]
            for _ in range(sum(share.workers for share in shares)):
                await asyncio.to_thread(begun.acquire)
            try:
                assert await supports(nodes, 1) == expected(Fraction(1, 2))
                assert not begun.acquire(blocking=False)
            finally:
                done.set()
                await asyncio.gather(*large)

    asyncio.run(test())

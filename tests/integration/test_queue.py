"""More jobs than may run at once: they wait for their turn at all their parties, are told their places, and all end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.client import PartyClient
from coordinator.jobs.records.store import Store
from coordinator.jobs.runner import run_job
from coordinator.jobs.status import job_list, with_turns
from jobs.results.result import Result
from link.errors import JobCancelled
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.examples import slowly
from tests.party.nodes import Nodes, brief, expire, hold, running

pytestmark = pytest.mark.turn(2)

ONE = "max_running = 1"


async def waiting(client: PartyClient, job_id: bytes) -> control.JobEvent:
    """The job's state once it has a place in the queue."""
    while not (event := await client.look(job_id)).step.startswith("waits for its turn"):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return event


def hub(nodes: Nodes, name: str = "analyst") -> Any:
    return nodes.authority.issue(name, "coordinator")


def test_more_jobs_than_may_run_at_once_all_succeed_and_are_told_their_places(tmp_path: Path) -> None:
    told: list[str] = []

    def watcher(_: str, step: str, *__: object) -> None:
        told.append(step)

    async def test() -> None:
        async with running(tmp_path, party=ONE) as nodes:
            runs = (
                run_job(brief(deadline="60s"), hub(nodes, f"hub{i % 2}"), nodes.addresses, watcher) for i in range(6)
            )
            assert all(isinstance(found, Result) for found in await asyncio.gather(*runs))
            assert {step for step in told if "place" in step} >= {f"waits for its turn: place {i}" for i in (1, 2, 3)}
            assert all(not list(node.host.jobs) for node in nodes.nodes.values())

    asyncio.run(test())


@pytest.mark.parametrize("times", slowly([1, 2], now=[0]))
def test_jobs_whose_parties_cross_never_wait_for_each_other(tmp_path: Path, times: int) -> None:
    pairs = [["north", "south"], ["south", "east"], ["east", "north"], ["south", "north"], ["north", "south", "east"]]

    async def test() -> None:
        async with running(tmp_path, party=ONE) as nodes:
            runs = [
                run_job(
                    brief(parties=parties, deadline="60s"),
                    hub(nodes, f"hub{i % 3}"),
                    {name: nodes.addresses[name] for name in parties},
                )
                for i, parties in enumerate(pairs * times)
            ]
            assert all(isinstance(found, Result) for found in await asyncio.gather(*runs))

    asyncio.run(test())


def test_a_job_that_waits_can_be_cancelled_expires_and_outlives_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, party=ONE) as nodes:
            release = hold(nodes.nodes["north"])
            me = hub(nodes)
            store = Store(tmp_path / "jobs")
            first = asyncio.create_task(run_job(brief(deadline="100s"), me, nodes.addresses, store=store))
            east = PartyClient(me, "east", nodes.addresses["east"])
            while nodes.nodes["east"].host.running < 1:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
            cancelled = asyncio.create_task(run_job(brief(), me, nodes.addresses, store=store))
            expiring = asyncio.create_task(run_job(brief(), me, nodes.addresses))
            (before,) = [job.id for job in nodes.nodes["east"].host.jobs if job.state == control.RUNNING]
            while len(list(nodes.nodes["east"].host.jobs)) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            for job in nodes.nodes["east"].host.jobs:
                if job.id != before:
                    event = await waiting(east, job.id)
                    assert event.state == control.APPROVED
                    assert event.HasField("approval")
                    assert "at east: place " in event.step
            (line, runs) = (await with_turns(job_list(store), me, nodes.addresses)).jobs
            assert line.turns["east"] in {f"waits for its turn at east: place {place}" for place in (1, 2)}
            assert not runs.turns
            cancelled.cancel()
            with pytest.raises((asyncio.CancelledError, JobCancelled)):
                await cancelled
            while len(list(nodes.nodes["east"].host.jobs)) > 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            (waits,) = [job.id for job in nodes.nodes["east"].host.jobs if job.id != before]
            expire(nodes.nodes["east"], waits)
            with fails("E600"):
                await expiring
            while len(list(nodes.nodes["east"].host.jobs)) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            patient = asyncio.create_task(run_job(brief(deadline="100s"), me, nodes.addresses))
            while len(list(nodes.nodes["east"].host.jobs)) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await waiting(east, next(job.id for job in nodes.nodes["east"].host.jobs if job.id != before))
            await nodes.nodes["east"].stop()  # which ends the first job at all parties
            with pytest.raises(JobCancelled):
                await first
            release.set()
            await nodes.restart("east")
            assert isinstance(await patient, Result)
            await east.close()

    asyncio.run(test())


def test_a_turn_that_its_coordinator_let_go_of_is_the_next_ones(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, party=ONE) as nodes:
            north, nonce = nodes.clients["north"], int(time.time()) + 60
            ids = [await north.propose(brief(), bytes([i]) * 16, nonce) for i in range(3)]
            calls = []
            for place, job_id in enumerate(ids):  # one after the other: calls made at once may arrive in any order
                calls.append(north.stub.Queue(control.QueueRequest(job_id=job_id, wait=True)))
                assert (await calls[-1].read()).place == place
            calls[0].cancel()
            assert (await calls[1].read()).place == 0
            assert (await calls[2].read()).place == 1
            await north.cancel(ids[1])
            assert (await calls[2].read()).place == 0
            await north.start(ids[2], nodes.forged(ids[2], brief()))
            assert nodes.nodes["north"].host.running == 1
            await north.cancel(ids[2])

    asyncio.run(test())

"""A party that dies or hangs in any phase of a job is named by all others, and every node then runs the next job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import party.jobs.session_host
from coordinator.jobs import lifecycle
from coordinator.jobs.runner import run_job
from jobs.spec.job import JobSpec
from link.core import Transport
from link.errors import ComineError, DeadlineExceeded, PeerError
from link.transports.faulty import FaultyTransport, Schedule
from link.transports.grpc_transport import GrpcTransport
from party.config import PartyConfig
from party.jobs.context import JobContext
from party.node.logs import open_log
from party.server import Node
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import in_turn
from tests.integration.faults.failing import MANY, STRATEGIES, Passing, all_is_well, failed, job, unwrap, wrap
from tests.party.nodes import Nodes, brief, hold, running, weekly

pytestmark = [pytest.mark.turn(2), pytest.mark.slow]

RECEIPTS = "/receipts"


async def lanes(nodes: Nodes, sender: Node, spec: JobSpec) -> set[str]:
    """The lanes on which a party sends in a job that fares well."""
    sent = set[str]()
    wrap(sender, lambda inner: Passing(inner, lambda frame: sent.add(frame.lane)))
    await job(nodes, spec)
    unwrap(sender)
    return sent


class Dying(FaultyTransport):
    """A party's transport that dies by a schedule, and which the others then lose soon."""

    def __init__(self, inner: Transport, schedule: Schedule, nodes: Nodes, name: str) -> None:
        super().__init__(inner, schedule)
        assert isinstance(inner, GrpcTransport)
        self._nodes, self._name, self._job_id = nodes, name, inner._job_id

    async def send(self, to: str, frame: Frame) -> None:
        if frame.lane == RECEIPTS and self._schedule.crash_at == 0:  # of a union's questions there were fewer this time
            self._schedule = replace(self._schedule, crash_lane=RECEIPTS)
        await super().send(to, frame)

    async def crash(self) -> None:
        await super().crash()
        while not self._nodes.bereave(self._name, self._job_id):  # noqa: ASYNC110 - not all have begun
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_party_that_dies_in_any_phase_is_named_and_the_next_job_succeeds(tmp_path: Path, strategy: str) -> None:
    spec = weekly(itemsets={"strategy": strategy}, deadline="120s")

    async def test() -> None:
        async with running(tmp_path, party=MANY) as nodes:
            south = nodes.nodes["south"]
            phases = await lanes(nodes, south, spec)
            assert {"hello", RECEIPTS} <= phases
            assert len(phases) >= 15
            lanes_of_death = {"hello", RECEIPTS, *in_turn(sorted(phases), 9)}
            deaths = [Schedule(crash_lane=lane, crash_at=0) for lane in sorted(lanes_of_death)]
            deaths.append(Schedule(crash_lane=RECEIPTS, crash_at=1))
            schedules = iter(deaths)
            wrap(south, lambda inner: Dying(inner, next(schedules), nodes, "south"))
            at_once = asyncio.Semaphore(12)  # with all in one event loop, a busy machine's calls are answered too late

            async def dies() -> ComineError:
                async with at_once:
                    return await failed(nodes, spec)

            for error in await asyncio.gather(*(dies() for _ in deaths)):
                assert isinstance(error, PeerError), (error, nodes.logs["south"].getvalue())
                assert (error.exit_code, error.party) == (20, "south"), error
                assert "south was" in error.message
            unwrap(south)
            await all_is_well(nodes)

    asyncio.run(test())


def test_a_party_that_dies_before_its_start_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            started = asyncio.Event()

            def opened(inner: Transport) -> Transport:
                started.set()
                return inner

            wrap(nodes.nodes["south"], opened)
            task = asyncio.create_task(failed(nodes, brief()))
            await started.wait()
            await nodes.crash("south")
            error = await task
            assert (error.exit_code, error.party) == (20, "south")
            assert "south" in error.message

    asyncio.run(test())


def test_a_party_whose_node_was_started_again_has_lost_the_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            hold(nodes.nodes["north"])  # so that no party notices before the coordinator does
            hold(nodes.nodes["east"])
            watched = asyncio.Event()

            def watcher(party: str, *_: object, **__: object) -> None:
                if party == "south":
                    watched.set()

            hub = nodes.authority.issue("analyst", "coordinator")
            task = asyncio.create_task(run_job(brief(), hub, nodes.addresses, watcher))
            await watched.wait()
            await nodes.crash("south")
            again = Node(PartyConfig.load(tmp_path / "south.toml"), open_log("south", nodes.logs["south"]))
            try:
                await again.start()
                with fails("E200", party="south"):
                    await task
            finally:
                await again.stop()

    asyncio.run(test())


def test_a_party_that_dies_before_it_releases_is_named_at_the_deadline_and_gives_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its peers have done their parts and lose nobody; the coordinator waits in case that the node comes back."""
    monkeypatch.setattr(lifecycle, "MARGIN_S", 0.0)
    released = party.jobs.session_host.release

    async def test() -> None:
        async with running(tmp_path) as nodes:

            async def release(context: JobContext, *args: Any) -> Any:
                if context.identity.name == "south":
                    await nodes.crash("south")
                    await asyncio.Event().wait()
                return await released(context, *args)

            monkeypatch.setattr(party.jobs.session_host, "release", release)
            error = await failed(nodes, brief(deadline="6s"))
            assert isinstance(error, DeadlineExceeded)
            assert error.exit_code == 60
            assert error.message.endswith("within its deadline of 6 s; it waited for south; south could not be reached")

    asyncio.run(test())


def test_a_party_that_died_before_it_released_is_named_as_soon_as_its_node_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = party.jobs.session_host.release

    async def test() -> None:
        async with running(tmp_path) as nodes:
            dead = asyncio.Event()

            async def release(context: JobContext, *args: Any) -> Any:
                if context.identity.name == "south":
                    await nodes.crash("south")
                    dead.set()
                    await asyncio.Event().wait()
                return await released(context, *args)

            monkeypatch.setattr(party.jobs.session_host, "release", release)
            ends = asyncio.ensure_future(failed(nodes, brief()))
            await dead.wait()
            await nodes.restart("south")
            error = await ends
            assert (error.exit_code, error.party) == (20, "south")
            assert "was restarted while the job ran" in error.message

    asyncio.run(test())


def test_a_party_that_hangs_is_named_at_the_deadline(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            release = hold(nodes.nodes["south"])
            error = await failed(nodes, brief(deadline="2s"))
            assert isinstance(error, DeadlineExceeded)
            assert error.exit_code == 60
            assert "south" in error.message
            release.set()
            await all_is_well(nodes)

    asyncio.run(test())

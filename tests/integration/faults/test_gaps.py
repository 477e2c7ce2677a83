"""Gaps between a coordinator and a node: whatever breaks, and when, the job goes on, and its result is fetched."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pytest

from coordinator.cli.terminal.live import notes
from coordinator.jobs import party_calls
from coordinator.jobs.client import PartyClient
from coordinator.jobs.driver import Driver
from coordinator.jobs.lifecycle import Job, State
from coordinator.jobs.runner import draft, run_job
from link.transports import grpc_transport
from link.transports.grpc_errors import silent
from mining.reference.pooled import brute_force
from tests.examples import in_turn, slowly
from tests.integration.processes import Organisations
from tests.party.nodes import DATA, brief, hold, running
from tests.proxy import Proxy

pytestmark = pytest.mark.turn(3)

How = Literal["cut", "swallow"]
HOW: Final[tuple[How, ...]] = get_args(How)
CALLS: Final = ("propose", "start", "result")
ANSWERED: Final = ((False, True), (True, False))  # in turn, so that every other case has each call, heard and not
EVERYBODY = ("north", "south", "east")
LONGER_S = 6.5  # than the five seconds for which a party once might be away
SUPPORTS = brute_force([row for rows in DATA.values() for row in rows], 36, 1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party_calls, "MAX_RETRY_S", 0.5)


def _breaking(
    monkeypatch: pytest.MonkeyPatch, method: str, paths: dict[str, Proxy], *, answered: bool, seconds: float
) -> list[str]:
    """Cuts the path to a party when `method` is first called there: before, or after the party has heard it."""
    broken: list[str] = []
    real = getattr(PartyClient, method)

    async def call(client: PartyClient, *arguments: Any, **named: Any) -> Any:
        if client.party not in paths or client.party in broken:
            return await real(client, *arguments, **named)
        broken.append(client.party)
        if answered:
            await real(client, *arguments, **named)
        paths[client.party].breaks("cut", seconds)
        if answered:
            raise silent(client.party, client.address)
        return await real(client, *arguments, **named)

    monkeypatch.setattr(PartyClient, method, call)
    return broken


@pytest.mark.costly
@pytest.mark.parametrize(
    ("method", "answered"),
    in_turn([(method, answered) for method in CALLS for answered in ANSWERED[CALLS.index(method) % 2]], 2),
    ids=lambda value: {False: "unheard", True: "unanswered"}.get(value, value),
)
def test_a_call_that_breaks_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, answered: bool
) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes, AsyncExitStack() as stack:
            paths = {name: await stack.enter_async_context(Proxy(nodes.addresses[name])) for name in EVERYBODY}
            broken = _breaking(monkeypatch, method, paths, answered=answered, seconds=1.0)
            addresses = nodes.addresses | {name: path.address for name, path in paths.items()}
            result = await run_job(brief(), nodes.authority.issue("analyst", "coordinator"), addresses)
            assert set(broken) == set(EVERYBODY)
            assert result.finding is not None
            assert {frozenset(itemset): count for itemset, count in result.finding.itemsets.rows()} == SUPPORTS

    asyncio.run(test())


async def _gap(folder: Path, parties: tuple[str, ...], how: How, seconds: float) -> None:
    """A job at nodes of its own, and a gap between its coordinator and some of them while it runs."""
    async with running(folder) as nodes, AsyncExitStack() as stack:
        paths = {name: await stack.enter_async_context(Proxy(nodes.addresses[name])) for name in parties}
        go = [hold(node) for node in nodes.nodes.values()]
        started, tell_notes = asyncio.Event(), notes()

        def tell(job: Job) -> None:
            tell_notes(job)
            if job.state is State.RUNNING:
                started.set()

        addresses = nodes.addresses | {name: path.address for name, path in paths.items()}
        record = draft(brief(), nodes.authority.issue("analyst", "coordinator"), 600)
        driver = Driver(record, nodes.authority.issue("analyst", "coordinator"), addresses, on_move=tell)
        driven = asyncio.ensure_future(driver.drive())
        await started.wait()
        for path in paths.values():
            path.breaks(how, seconds)
        await asyncio.sleep(seconds / 2)  # the nodes end amid the gap, or after it
        for event in go[: 1 + len(go) // 2]:
            event.set()
        await asyncio.sleep(seconds / 2)
        for event in go:
            event.set()
        assert (await driven).state is State.SUCCEEDED, driver.error
        assert driver.result is not None
        assert driver.result.finding is not None
        assert {frozenset(itemset): count for itemset, count in driver.result.finding.itemsets.rows()} == SUPPORTS


def _check_told(told: str, cuts: int) -> None:
    """What stands on standard error after so many paths were cut."""
    if cuts:
        assert "cannot be reached since" in told
        assert re.search(r"; the job goes on there if its node runs; trying again until \d\d:\d\d:\d\d\n", told)
    assert told.count("can be reached again\n") >= cuts


def test_a_gap_while_the_job_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(_gap(tmp_path, EVERYBODY, "swallow", LONGER_S))
    _check_told(capsys.readouterr().err, 0)


@pytest.mark.slow
def test_long_gaps_while_jobs_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All kinds at once, since each waits for most of its time."""
    kinds = {tmp_path / "-".join((how, *parties)): (parties, how) for parties in (("south",), EVERYBODY) for how in HOW}
    for folder in kinds:
        folder.mkdir()

    async def test() -> None:
        async with asyncio.TaskGroup() as gaps:
            for folder, (parties, how) in kinds.items():
                gaps.create_task(_gap(folder, parties, how, 40.0))

    asyncio.run(test())
    _check_told(capsys.readouterr().err, 2)


def test_a_job_is_cancelled_where_its_parties_can_be_reached_amid_a_gap(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes, Proxy(nodes.addresses["south"]) as path:
            for node in nodes.nodes.values():
                hold(node)
            away = asyncio.Event()

            def tell(job: Job) -> None:
                if job.state is State.RUNNING and not job.away:
                    path.cut()
                if job.away:
                    away.set()

            addresses = nodes.addresses | {"south": path.address}
            identity = nodes.authority.issue("analyst", "coordinator")
            run = asyncio.ensure_future(run_job(brief(), identity, addresses, on_move=tell))
            await away.wait()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            while any(node.host.running for node in nodes.nodes.values()):  # noqa: ASYNC110 - peers tell south
                await asyncio.sleep(0.05)

    asyncio.run(test())


@pytest.mark.parametrize("late", slowly(["north", "east"], now=[1], ids=["who accepts streams", "who dials"]))
def test_a_peer_that_is_started_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """The coordinator reaches two parties, and the third only when their patience has passed."""
    monkeypatch.setattr(grpc_transport, "GRACE_S", 0.2)

    async def test() -> None:
        async with running(tmp_path, patience_s=2.0) as nodes:
            job_id, approvals = await nodes.agree(brief())
            for name, client in nodes.clients.items():
                if name != late:
                    await client.start(job_id, approvals)
            await asyncio.sleep(5.0)
            await nodes.clients[late].start(job_id, approvals)
            assert {event.error_message for event in (await nodes.ends(job_id)).values()} == {""}

    asyncio.run(test())


@pytest.mark.slow
def test_a_coordinator_that_stood_still_beyond_the_deadline_still_fetches_the_result(tmp_path: Path) -> None:
    world = Organisations.create(tmp_path, DATA)
    try:
        world.start()
        run = world.begin(world.job(deadline="8s"))
        world.nodes["north"].until('"job started"')
        run.send(signal.SIGSTOP)
        for node in world.nodes.values():
            node.until('"job succeeded"')
        time.sleep(30)  # beyond the deadline, the time for the parties' own words, and what keeps connections alive
        run.send(signal.SIGCONT)
        ran = run.end()
        assert ran.code == 0, ran.err
    finally:
        world.stop()

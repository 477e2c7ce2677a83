"""How a job that is over stands at each party, and what it has cost there, over real nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.cli.jobs.jobs_kept import show
from coordinator.jobs.driver import Driver
from coordinator.jobs.records.store import JobFolder, Store
from coordinator.jobs.runner import cancel_job, draft, resume_job, run_job
from coordinator.jobs.status import describe, job_status
from jobs.documents.job_status import JobDocument, PartyStatus
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import ComineError, InputDataError, JobCancelled, PeerError, PolicyDenied
from link.pki.authority import Authority
from party.inbox_cli import deny
from protos.v1 import control_pb2 as control
from tests.coordinator.nodes import world
from tests.party.nodes import DATA, Nodes, hold, running, weekly

COLUMNS = job_of(
    {
        "job": {
            "name": "c",
            "task": "itemsets",
            "parties": ["north", "south"],
            "dataset": "d",
            "partition": "vertical",
        },
        "itemsets": {"min_support": 2},
    },
    "the test",
    Path(),
)


def manual(folder: Path, *names: str) -> Callable[[Authority], None]:
    """Lets people at some parties decide."""

    def change(_: Authority) -> None:
        for name in names:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text().replace('approve = "auto"', 'approve = "manual"'))

    return change


async def standing(folder: JobFolder, nodes: Nodes) -> dict[str, PartyStatus]:
    """What `comine job status` has of each party."""
    document = await job_status(folder, nodes.clients["north"].identity, nodes.addresses)
    return dict(document.parties)


async def fails(nodes: Nodes, store: Store, spec: JobSpec, error: type[ComineError]) -> dict[str, PartyStatus]:
    """How the parties stand after a job that ends by an error."""
    with pytest.raises(error):
        await run_job(spec, nodes.clients["north"].identity, nodes.addresses, store=store)
    return await standing(store.jobs()[0], nodes)


def states(parties: dict[str, PartyStatus]) -> dict[str, str]:
    return {name: party.state for name, party in parties.items()}


def shown(capsys: pytest.CaptureFixture[str], document: JobDocument) -> dict[str, str]:
    """The line of each party in the text."""
    capsys.readouterr()
    show(document)
    lines = capsys.readouterr().out.splitlines()
    return {line.split("\t")[0]: line for line in lines if line.split("\t")[0] in DATA}


async def until(store: Store, state: str) -> JobFolder:
    """The only job, once it is in a state."""
    async with asyncio.timeout(20):
        while not store.jobs() or store.jobs()[0].record().job.state != state:  # noqa: ASYNC110 - on disk
            await asyncio.sleep(0.02)
    return store.jobs()[0]


def test_a_job_that_a_person_denies(tmp_path: Path) -> None:
    store = Store(tmp_path / "jobs")

    async def test() -> dict[str, PartyStatus]:
        async with running(tmp_path, prepare=manual(tmp_path, "north", "east")) as nodes:
            job = asyncio.ensure_future(fails(nodes, store, weekly(), PolicyDenied))
            folder = await until(store, "awaiting-approval")
            assert states(await standing(folder, nodes))["north"] == "awaiting-approval"
            await asyncio.to_thread(deny, tmp_path / "north.toml", folder.id[:12], reason="not now", by="ann")
            return await job

    parties = asyncio.run(test())
    assert states(parties) == {"north": "denied", "south": "cancelled", "east": "cancelled"}
    assert not any(party.problem or party.waits_for or party.asked for party in parties.values())


def test_a_job_that_a_policy_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "jobs")

    def strict(_: Authority) -> None:
        file = tmp_path / "north.toml"
        file.write_text(file.read_text() + "min_support = 0.5\n")

    async def test() -> dict[str, PartyStatus]:
        async with running(tmp_path, prepare=strict) as nodes:
            return await fails(nodes, store, weekly(), PolicyDenied)

    parties = states(asyncio.run(test()))
    assert parties["north"] == "refused"
    assert {parties["south"], parties["east"]} <= {"cancelled", "unasked"}  # as the proposal had reached them
    lines = shown(capsys, describe(store.jobs()[0].record(), driven=False, answers={}))
    assert all("\t–, –\t" in line for line in lines.values())


def test_a_job_whose_data_a_policy_refuses_and_one_that_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "jobs")

    async def test() -> dict[str, PartyStatus]:
        async with running(tmp_path, policy="min_new_rows = 5") as nodes:
            me = nodes.clients["north"].identity
            result = await run_job(weekly(), me, nodes.addresses, store=store)
            done = await standing(store.jobs()[0], nodes)
            for name, costs in result.parties.items():
                assert (done[name].bytes_sent, done[name].bytes_received) == (costs.bytes_sent, costs.bytes_received)
                assert (done[name].state, done[name].asked, costs.bytes_sent > 0) == ("released", False, True)
            lines = shown(capsys, describe(store.jobs()[0].record(), driven=False, answers={}))
            assert all("kB, " in line for line in lines.values())
            file = tmp_path / "south.dat"
            file.write_text(file.read_text() + "item0 item1\n")
            return await fails(nodes, store, weekly(), InputDataError)  # which rule it is stays with the party

    assert set(states(asyncio.run(test())).values()) == {"failed"}


def test_a_job_that_is_cancelled_while_it_runs(tmp_path: Path) -> None:
    store = Store(tmp_path / "jobs")

    async def test() -> None:
        async with running(tmp_path) as nodes:
            go = hold(nodes.nodes["south"])
            me = nodes.clients["north"].identity
            job = asyncio.ensure_future(run_job(weekly(), me, nodes.addresses, store=store))
            await cancel_job(await until(store, "running"), me, nodes.addresses, "enough")
            with pytest.raises(JobCancelled):
                await job
            go.set()
            parties = await standing(store.jobs()[0], nodes)
            assert set(states(parties).values()) == {"cancelled"}

    asyncio.run(test())


def test_a_party_that_is_gone_is_not_said_to_have_ended(tmp_path: Path) -> None:
    store = Store(tmp_path / "jobs")

    async def test() -> dict[str, PartyStatus]:
        async with running(tmp_path, prepare=manual(tmp_path, "north", "east")) as nodes:
            me = nodes.clients["north"].identity
            folder = store.create(draft(weekly(), me, 600))
            driver = Driver(folder.record(), me, nodes.addresses, folder=folder)
            await driver.drive(until=lambda job: job.state == "awaiting-approval")
            folder.unlock()
            await nodes.nodes["east"].stop()
            _, untold = await cancel_job(folder, me, nodes.addresses, "enough")
            assert untold == ("east",)
            parties = await standing(folder, nodes)
            nodes.nodes["east"] = await nodes.restart("east")
            return parties

    parties = asyncio.run(test())
    assert states(parties) == {"north": "cancelled", "south": "cancelled", "east": "awaiting-approval"}
    assert "not heard of after the end of the job" in parties["east"].problem
    assert not parties["north"].problem


def test_what_a_party_said_of_an_attempt_is_forgotten_with_the_next(tmp_path: Path) -> None:
    store = Store(tmp_path / "jobs")
    lost = PeerError("south was lost", party="south")
    end = control.JobEvent(
        state=control.FAILED, error_code=lost.code, error_message=lost.message, error_party="south", bytes_sent=3
    )

    async def test() -> None:
        async with world(north={"events": [end]}, south={"events": [end]}) as made:
            me, addresses = made.coordinator, made.addresses
            with pytest.raises(PeerError):
                await run_job(COLUMNS, me, addresses, store=store)
            (folder,) = store.jobs()
            north = (await job_status(folder, me, addresses)).parties["north"]
            assert (north.state, north.bytes_sent) == ("failed", 3)
            made.nodes["north"].refuse["Watch"] = lost
            with pytest.raises(PeerError):
                await resume_job(folder, me, addresses)
            north = (await job_status(folder, me, addresses)).parties["north"]
            assert (north.state, north.bytes_sent) == ("approved", 0)
            assert "not heard of" in north.problem

    asyncio.run(test())

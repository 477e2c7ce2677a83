"""Drivers against scripted nodes: people who decide, drivers that die in any state, and wishes to cancel."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs import driver as driving
from coordinator.jobs import party_calls
from coordinator.jobs.client import PartyClient
from coordinator.jobs.driver import Driver
from coordinator.jobs.lifecycle import Job, Stand, State
from coordinator.jobs.records.store import JobFolder, Record, Store
from coordinator.jobs.released import result_of
from coordinator.jobs.runner import cancel_job, draft, run_job, submit_job
from jobs.consent import check_approvals
from link.errors import PolicyDenied
from protos.v1 import control_pb2 as control
from tests.coordinator.nodes import SPEC, World, world
from tests.errors import fails

MANUAL = {"manual": True}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "jobs")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party_calls, "RETRY_S", 0.05)
    monkeypatch.setattr(party_calls, "MAX_RETRY_S", 0.1)
    monkeypatch.setattr(driving, "LOOK_S", 0.02)


async def until(made: Callable[[], bool]) -> None:
    """Waits for something that other tasks do."""
    async with asyncio.timeout(20):
        while not made():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Told:
    """What a driver tells of its job."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def __call__(self, job: Job) -> None:
        self.jobs.append(job)

    @property
    def states(self) -> list[State]:
        """The states in their order, each once."""
        return list(dict.fromkeys(job.state for job in self.jobs))


def test_people_decide_and_the_job_goes_on(store: Store) -> None:
    told = Told()

    async def test() -> None:
        async with world(north=MANUAL, south=MANUAL) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store, on_move=told))
            await until(lambda: State.AWAITING in told.states)
            assert told.jobs[-1].waits_for == ("north", "south")
            made.nodes["south"].approve()
            await until(lambda: told.jobs[-1].waits_for == ("north",))
            made.nodes["north"].approve()
            result = await job
            assert set(result.approvals) == {"north", "south"}
            assert result.proposal is not None
            check_approvals(
                [result.approvals[name] for name in SPEC.job.parties],
                made.coordinator.trust,
                job_id=result.job_id,
                coordinator="hub",
                parties=SPEC.job.parties,
                lasts_s=SPEC.job.deadline_s,
            )

    asyncio.run(test())
    assert told.states == [
        *(State.PROPOSED, State.AWAITING, State.APPROVED, State.RUNNING),
        *(State.RELEASING, State.SUCCEEDED),
    ]


def test_a_person_denies(store: Store) -> None:
    async def test() -> None:
        async with world(south=MANUAL) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store))
            await made.nodes["south"].watched.wait()
            made.nodes["south"].deny("ann at south denied it: not this month")
            with fails("E300") as caught:
                await job
            assert caught.value.party == "south"
            assert "Start" not in made.nodes["north"].calls
            assert "Cancel" in made.nodes["north"].calls

    asyncio.run(test())
    (folder,) = store.jobs()
    assert folder.record().job.state is State.DENIED
    assert not folder.driven


def test_nobody_decides_in_time(store: Store) -> None:
    async def test() -> None:
        async with world(south=MANUAL) as made:
            with fails("E600"):
                await run_job(SPEC, made.coordinator, made.addresses, store=store, expires_s=2)
            assert all("Cancel" in node.calls for node in made.nodes.values())

    asyncio.run(test())
    (folder,) = store.jobs()
    assert folder.record().job.state is State.EXPIRED


def test_a_clock_that_is_set_back_lengthens_no_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time

    async def test() -> None:
        async with world(south=MANUAL) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store, expires_s=2))
            await made.nodes["south"].watched.wait()
            monkeypatch.setattr("time.time", lambda: right() - 1800)
            async with asyncio.timeout(60):
                with fails("E600"):
                    await job

    asyncio.run(test())


def test_a_node_that_is_restarted_while_people_think_is_found_again(store: Store) -> None:
    told = Told()

    async def test() -> None:
        async with world(north=MANUAL, south=MANUAL) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store, on_move=told))
            await made.nodes["south"].watched.wait()
            await made.stop("south")
            await until(lambda: told.jobs[-1].away == {"south"})
            made.nodes["north"].approve()
            made.nodes["south"].approve()  # on its own console, while its node is down
            await made.start("south")
            assert (await job).n_rows == 9

    asyncio.run(test())


def test_a_node_that_is_down_when_the_last_one_approves_is_waited_for(store: Store) -> None:
    told = Told()

    async def test() -> None:
        async with world(north=MANUAL) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store, on_move=told))
            await made.nodes["north"].watched.wait()
            await made.stop("south")
            made.nodes["north"].approve()
            await until(lambda: told.jobs[-1].state is State.APPROVED and "south" in told.jobs[-1].away)
            assert told.jobs[-1].waits_for == ("south",)
            assert "Start" not in made.nodes["north"].calls
            await made.start("south")
            await job

    asyncio.run(test())


def test_an_approval_of_another_job_is_refused() -> None:
    async def test() -> None:
        async with world(south={"approves": bytes(32)}) as made:
            with fails("E400", party="south"):
                await run_job(SPEC, made.coordinator, made.addresses)
            assert "Start" not in made.nodes["north"].calls

    asyncio.run(test())


async def taken_up(store: Store, made: World) -> Record:
    """A second driver's job, after the first has died."""
    (folder,) = store.jobs()
    folder = JobFolder(folder.path)
    assert folder.lock()
    record = folder.record()
    await Driver(record, made.coordinator, made.addresses, folder=folder).drive()
    folder.unlock()
    return folder.record()


async def dies_in(store: Store, made: World, state: State) -> None:
    """A driver that ends without a word as soon as its job is in a state."""
    reached = asyncio.Event()

    def tell(job: Job) -> None:
        if job.state is state:
            reached.set()

    folder = store.create(draft(SPEC, made.coordinator, 600))
    driver = Driver(folder.record(), made.coordinator, made.addresses, folder=folder, on_move=tell)
    job = asyncio.ensure_future(driver.drive())
    await reached.wait()
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    folder.unlock()


@pytest.mark.parametrize("state", [State.PROPOSED, State.AWAITING, State.APPROVED, State.RUNNING, State.RELEASING])
def test_a_driver_that_dies_is_replaced(store: Store, state: State) -> None:
    async def test() -> None:
        held = state in (State.AWAITING,)
        async with world(south={"manual": held}) as made:
            await dies_in(store, made, state)
            assert not any("Cancel" in node.calls for node in made.nodes.values())
            if held:
                made.nodes["south"].approve()
            record = await taken_up(store, made)
            assert record.job.state is State.SUCCEEDED
            for node in made.nodes.values():
                assert node.calls.count("Propose") <= 1 + (state is State.PROPOSED)
                assert node.calls.count("Start") == 1
            assert record.released.keys() == {"north", "south"}
            result = result_of(record, record.released, store.jobs()[0].table())
            assert (result.n_rows, set(result.approvals)) == (9, {"north", "south"})

    asyncio.run(test())


def test_jobs_whose_nodes_finished_meanwhile_are_fetched(store: Store) -> None:
    async def test() -> None:
        async with world(north={"hold": True}, south={"hold": True}) as made:
            await dies_in(store, made, State.RUNNING)
            for node in made.nodes.values():
                node.go.set()
            record = JobFolder(store.jobs()[0].path).record()
            record.job = record.job._replace(until=time.time() - 1000)  # long after the deadline
            store.jobs()[0].save(record)
            assert (await taken_up(store, made)).job.state is State.SUCCEEDED

    asyncio.run(test())


def test_a_job_that_expired_while_no_driver_lived(store: Store) -> None:
    async def test() -> None:
        async with world(south=MANUAL) as made:
            await dies_in(store, made, State.AWAITING)
            record = store.jobs()[0].record()
            record.job = record.job._replace(expires=time.time() - 1)
            store.jobs()[0].save(record)
            assert (await taken_up(store, made)).job.state is State.EXPIRED
            assert "Cancel" in made.nodes["south"].calls

    asyncio.run(test())


async def phase_of(made: World, name: str) -> control.JobEvent:
    client = PartyClient(made.coordinator, name, made.addresses[name])
    async with aclosing(client.watch(made.nodes[name].job_id)) as events:
        event = await anext(events)
    await client.close()
    return event


@pytest.mark.parametrize("driven", [True, False])
@pytest.mark.parametrize("state", [State.AWAITING, State.RUNNING])
def test_cancelling_whether_or_not_a_driver_lives(store: Store, state: State, driven: bool) -> None:
    changes = {"manual": state is State.AWAITING, "hold": True}

    async def test() -> None:
        async with world(north=changes, south=changes) as made:
            told = Told()
            if driven:
                job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses, store=store, on_move=told))
                await until(lambda: state in told.states)
            else:
                await dies_in(store, made, state)
            ended, untold = await cancel_job(store.jobs()[0], made.coordinator, made.addresses, "no need")
            assert (ended.state, untold) == (State.CANCELLED, ())
            if driven:
                with fails("E500"):
                    await job
            assert all("Cancel" in node.calls for node in made.nodes.values())
            assert store.jobs()[0].record().job.state is State.CANCELLED

    asyncio.run(test())


def test_who_could_not_be_told_of_a_cancellation_is_named(store: Store) -> None:
    async def test() -> None:
        async with world(north={"hold": True}, south={"hold": True}) as made:
            await dies_in(store, made, State.RUNNING)
            await made.stop("south")
            ended, untold = await cancel_job(store.jobs()[0], made.coordinator, made.addresses, "")
            assert (ended.state, untold) == (State.CANCELLED, ("south",))

    asyncio.run(test())


def test_cancelling_while_the_result_is_written_is_too_late_or_leaves_nothing(store: Store, tmp_path: Path) -> None:
    async def test(delay: int) -> None:
        out = tmp_path / f"out{delay}"
        async with world() as made:
            folder = store.create(draft(SPEC, made.coordinator, 600, out=out))
            releasing = asyncio.Event()

            def tell(job: Job) -> None:
                if job.state is State.RELEASING:
                    releasing.set()

            driver = Driver(folder.record(), made.coordinator, made.addresses, folder=folder, on_move=tell)
            driven = asyncio.ensure_future(driver.drive())
            await releasing.wait()
            for _ in range(delay):
                await asyncio.sleep(0.005)
            folder.ask_cancel("")
            job = await driven
            folder.unlock()
            assert (job.state is State.SUCCEEDED) == out.exists()
            if out.exists():
                assert (out / "result.json").exists()
            assert not list(tmp_path.glob(".out*"))  # noqa: ASYNC240

    for delay in (0, 2, 5, 10, 20):
        asyncio.run(test(delay))


def test_submitting_stops_once_all_have_answered(store: Store) -> None:
    async def test() -> None:
        async with world(south=MANUAL) as made:
            folder = await submit_job(SPEC, made.coordinator, made.addresses, store)
            assert folder.driven
            folder.unlock()
            job = folder.record().job
            assert (job.state, job.waits_for) == (State.AWAITING, ("south",))
            assert job.stands == {"north": Stand.APPROVED, "south": Stand.AWAITING}
            assert all("Start" not in node.calls for node in made.nodes.values())

    asyncio.run(test())


def test_a_refused_or_lost_submission_is_told_at_once_and_not_driven(store: Store) -> None:
    async def refused(made: World) -> None:
        with pytest.raises(PolicyDenied):
            await submit_job(SPEC, made.coordinator, made.addresses, store)

    async def lost(made: World) -> None:
        await made.stop("south")
        with fails("E200", party="south"):
            await submit_job(SPEC, made.coordinator, made.addresses, store)

    async def test(act: Callable[[World], Awaitable[None]], **changes: Any) -> None:
        async with world(south=changes) as made:
            await act(made)

    asyncio.run(test(refused, refuse={"Propose": PolicyDenied("south forbids it", party="south")}))
    asyncio.run(test(lost))
    assert [folder.driven for folder in store.jobs()] == [False, False]
    assert {folder.record().job.state for folder in store.jobs()} == {State.DENIED, State.FAILED}


def test_a_result_that_cannot_be_written_is_kept_and_told(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")

    async def test() -> None:
        async with world() as made:
            folder = store.create(draft(SPEC, made.coordinator, 600, out=tmp_path / "file"))
            await Driver(folder.record(), made.coordinator, made.addresses, folder=folder).drive()
            folder.unlock()
            record = folder.record()
            assert record.job.state is State.SUCCEEDED
            assert "is a file" in record.out_problem
            assert result_of(record, record.released, folder.table()).n_rows == 9

    asyncio.run(test())

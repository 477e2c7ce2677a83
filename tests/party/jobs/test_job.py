from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from link.costs import Costs
from link.errors import JobCancelled, PeerError
from party.jobs.job import MOVES, Job
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    EXPIRED,
    FAILED,
    JOB_STATE_UNSPECIFIED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    JobEvent,
    JobState,
    SignedApproval,
)
from tests.party.policy.test_policy import job as spec


def within_a_loop(test: Callable[[Job], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(Job(bytes(32), spec(), "analyst", JobEvent(state=APPROVED)))

    asyncio.run(run())


async def watched(job: Job) -> list[JobEvent]:
    return [event async for event in job.watch()]


def test_a_watcher_sees_the_present_state_and_every_move_to_the_end() -> None:
    async def test(job: Job) -> None:
        job.move(RUNNING)
        watching = asyncio.create_task(watched(job))
        await asyncio.sleep(0)
        job.move(RELEASING)
        job.move(SUCCEEDED)
        assert [event.state for event in await watching] == [RUNNING, RELEASING, SUCCEEDED]
        assert [event.state for event in await watched(job)] == [SUCCEEDED]

    within_a_loop(test)


def test_a_slow_watcher_sees_only_the_latest_progress_of_a_step() -> None:
    async def test(job: Job) -> None:
        job.move(RUNNING)
        watching = asyncio.create_task(watched(job))
        await asyncio.sleep(0)
        for done in range(1, 100_001):
            job.progress("level 2", done, 100_000)
        job.move(RELEASING)
        job.move(SUCCEEDED)
        events = await watching
        assert [(event.state, event.done) for event in events][-3:] == [
            (RUNNING, 100_000),
            (RELEASING, 100_000),
            (SUCCEEDED, 100_000),
        ]
        assert len(events) < 10

    within_a_loop(test)


def test_the_last_word_on_a_step_reaches_a_waiting_watcher() -> None:
    async def test(job: Job) -> None:
        job.move(RUNNING)
        events = job.watch()
        assert (await anext(events)).state == RUNNING
        job.progress("level 1", 1, 2)
        job.progress("level 1", 2, 2)
        assert (await anext(events)).done == 2
        await events.aclose()

    within_a_loop(test)


def test_events_tell_what_the_job_has_cost() -> None:
    async def test(job: Job) -> None:
        job.costs = lambda: Costs(10, 20, 3, 0.5)
        job.move(RUNNING)
        event = await anext(job.watch())
        assert (event.bytes_sent, event.bytes_received, event.rounds, event.seconds) == (10, 20, 3, 0.5)

    within_a_loop(test)


@pytest.mark.parametrize(
    ("error", "state", "party"),
    [
        (PeerError("south was lost", party="south"), FAILED, "south"),
        (PeerError("the link broke"), FAILED, "north"),
        (JobCancelled("the job was cancelled at east", party="east"), CANCELLED, "east"),
    ],
)
def test_an_end_tells_why_and_where(error: PeerError | JobCancelled, state: int, party: str) -> None:
    async def test(job: Job) -> None:
        job.move(RUNNING)
        job.end(state, error, "north")
        (event,) = await watched(job)
        assert (event.state, event.error_code, event.error_message) == (state, error.code, error.message)
        assert event.error_party == party
        assert job.over

    within_a_loop(test)


LEGAL = {
    (AWAITING_APPROVAL, APPROVED),
    (AWAITING_APPROVAL, DENIED),
    (AWAITING_APPROVAL, EXPIRED),
    (AWAITING_APPROVAL, CANCELLED),
    (APPROVED, RUNNING),
    (APPROVED, EXPIRED),
    (APPROVED, CANCELLED),
    (RUNNING, RELEASING),
    (RUNNING, FAILED),
    (RUNNING, CANCELLED),
    (RELEASING, SUCCEEDED),
    (RELEASING, FAILED),
    (RELEASING, CANCELLED),
    (FAILED, RUNNING),
    (CANCELLED, RUNNING),
}
STATES = [state for state in JobState.values() if state != JOB_STATE_UNSPECIFIED]


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_exactly_the_legal_moves_are_made(before: int, after: int) -> None:
    assert (after in MOVES[before]) == ((before, after) in LEGAL)

    async def test() -> None:
        for way in (
            lambda job: job.move(after),
            lambda job: job.end(after, PeerError("the link broke"), "north"),
        ):
            job = Job(bytes(32), spec(), "analyst", JobEvent(state=before))
            if (before, after) in LEGAL:
                way(job)
                assert job.state == after
            else:
                with pytest.raises(RuntimeError, match="cannot go from"):
                    way(job)
                assert job.state == before
            assert job.over == (job.state in (SUCCEEDED, FAILED, CANCELLED, DENIED, EXPIRED))

    asyncio.run(test())


def test_an_approval_is_told_with_the_move() -> None:
    async def test() -> None:
        job = Job(bytes(32), spec(), "analyst", JobEvent(state=AWAITING_APPROVAL))
        job.move(APPROVED, SignedApproval(approval=b"yes"))
        event = await anext(job.watch())
        assert (event.state, event.approval.approval) == (APPROVED, b"yes")

    asyncio.run(test())

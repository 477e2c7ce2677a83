"""How much of a peer's a party keeps unread, by job; and what a job ends with that is cancelled while it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobs.run import run_party
from jobs.spec.job import JobSpec
from link.core import MAX_BUFFERED_BYTES
from link.errors import ComineError, InputDataError, PeerError
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.errors import fails
from tests.jobs.plan.answers import weekly


async def part(spec: JobSpec, **others: Any) -> None:
    """A party's part in a job, with nothing but stubs around it."""
    stub: Any = type("Stub", (), {"name": "north"})()
    around = dict.fromkeys(("data", "transport", "identity", "random", "progress"), stub)
    await run_party(spec, job_id=bytes(32), attempt=1, executor=InlineExecutor(), **around, **others)


@pytest.mark.parametrize(
    ("itemsets", "most"),
    [({}, MAX_BUFFERED_BYTES), ({"max_candidates": 1}, MAX_BUFFERED_BYTES), ({"max_candidates": 10**8}, 16 * 10**8)],
)
def test_a_vector_over_all_candidates_has_room_at_who_still_reads_others(
    monkeypatch: pytest.MonkeyPatch, itemsets: dict[str, Any], most: int
) -> None:
    async def establish(*_: object, ahead_bytes: int, **__: object) -> None:
        assert ahead_bytes == most
        raise PeerError("told enough")

    monkeypatch.setattr("jobs.run.Session.establish", establish)
    with fails("E200"):
        asyncio.run(part(weekly(**itemsets)))


@pytest.mark.parametrize("when", ["abort", "record"])
def test_who_cancels_a_job_while_it_fails_does_not_change_why_it_ended(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Else whoever names a job would learn from a peer what its end tells of rows, and keep it from being counted."""
    reached, told = asyncio.Event(), list[str]()

    async def step(name: str) -> None:
        told.append(name)
        if name == when:
            reached.set()
            await asyncio.sleep(10)

    class Ending:
        id, others, ledger = bytes(32), ("south",), type("Ledger", (), {"record": ()})
        core = type("Core", (), {"evidence": ()})

        def lane(self, _: str) -> Ending:
            return self

        async def abort(self, error: ComineError) -> None:
            assert isinstance(error, InputDataError)
            await step("abort")

    class Records:
        mac_secret = bytes(32)

        async def began(self, _: bytes) -> None:
            pass

        async def ended(self, *_: object, complete: bool) -> None:
            assert not complete
            await step("record")

    async def establish(*_: object, **__: object) -> Ending:
        return Ending()

    async def fail(*_: object, **__: object) -> None:
        raise InputDataError("a cell does not fit")

    monkeypatch.setattr("jobs.run.Session.establish", establish)
    monkeypatch.setattr("jobs.kinds.rows.kind.Rows.run", fail)
    monkeypatch.setattr("jobs.run.Receipts", lambda *_: type("Receipts", (), {"accounts": dict}))

    async def test() -> None:
        task = asyncio.create_task(part(weekly(), recorder=Records()))
        await reached.wait()
        task.cancel()
        await task

    with fails("E101"):
        asyncio.run(test())
    assert told == ["abort", "record"]

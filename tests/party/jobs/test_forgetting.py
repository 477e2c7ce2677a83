"""Journals go when their jobs cannot go on any more: also where nothing else happens, and whatever is in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from link.errors import ResourceError
from party.jobs import forgetting
from party.jobs.endings.end_writer import EndWriter, JobEnd
from party.jobs.forgetting import AGAIN_S, Forgetting
from party.state.journals import Journals
from party.state.store import Store
from protos.v1.control_pb2 import FAILED, RUNNING
from tests.party.jobs.test_progress import spec_of
from tests.party.state.test_store import record


class World:
    """Two jobs that have failed and could go on, whose proposals expire at 2000 and 3000, at a node with a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = Store.open(folder / "node.db")
        self.journals = Journals.beside(self.store, "north")
        self.jobs = [bytes([number]) * 32 for number in (1, 2)]
        for number, expiry in ((1, 2000), (2, 3000)):
            self.store.add(record(number, state=FAILED, expiry=expiry))
            self.journals.begin(self.jobs[number - 1], "v", bytes(32), attempt=1, started=False)
        self.now, self.due, self.wake = 1000.0, list[float](), list[Callable[[], None]]()
        self.errors = list[str]()
        monkeypatch.setattr(forgetting, "call_at", self.call_at)
        log: Any = SimpleNamespace(error=lambda event, **_: self.errors.append(event), info=lambda *_, **__: None)
        self.log, self.forgetting = log, Forgetting(self.journals, log, lambda: self.now, lambda now: None)

    def call_at(self, when: float, now: float, callback: Callable[[], None]) -> Any:
        assert now == self.now
        timer = SimpleNamespace(cancel=lambda: self.wake.remove(callback) if callback in self.wake else None)
        self.due, self.wake = [when], [callback]
        return timer

    async def passes(self) -> None:
        """Time passes until the node wakes and has looked."""
        (self.now,) = self.due
        (callback,) = self.wake
        self.due, self.wake = [], []
        before = asyncio.all_tasks()
        callback()
        await asyncio.gather(*(asyncio.all_tasks() - before))

    def kept(self) -> list[int]:
        keys = {file.stem for file in self.journals.folder.iterdir()}
        rows = [job for job in self.jobs if self.journals.read(job, "*")]
        return [number for number, job in enumerate(self.jobs, 1) if job in rows or job.hex() in keys]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    yield made
    made.store.close()


def test_an_idle_node_forgets_each_job_when_its_proposal_expires(world: World) -> None:
    async def test() -> None:
        await world.forgetting.ended(world.jobs[0], 1, "E200")
        assert (world.due, world.kept()) == ([2000.0], [1, 2])
        await world.passes()
        assert (world.due, world.kept()) == ([3000.0], [2])
        await world.passes()
        assert (world.due, world.kept(), world.errors) == ([], [], [])

    asyncio.run(test())


def test_a_job_that_runs_wakes_nobody_and_its_end_does(world: World) -> None:
    async def test() -> None:
        for job in world.jobs:
            world.store.move(job, FAILED, RUNNING, {})
        world.now = 2500.0
        await world.forgetting.look()
        assert (world.due, world.kept()) == ([], [1, 2])
        world.store.move(world.jobs[0], RUNNING, FAILED, {})
        await world.forgetting.ended(world.jobs[0], 2, "E200")
        assert world.kept() == [2]

    asyncio.run(test())


def test_what_cannot_be_removed_is_tried_again_and_is_in_nothing_elses_way(world: World) -> None:
    async def test() -> None:
        stuck = world.journals.folder / f"{world.jobs[0].hex()}.key"
        stuck.unlink(), stuck.mkdir()
        await world.forgetting.ended(world.jobs[0], 1, "E400")  # nothing can follow, whenever the proposal expires
        await world.forgetting.ended(world.jobs[1], 1, "E400")
        assert (world.kept(), world.errors) == ([1], ["journals not forgotten"] * 2)
        assert world.due == [world.now + AGAIN_S]
        stuck.rmdir(), stuck.touch()
        await world.passes()
        assert (world.due, world.kept()) == ([], [])

    asyncio.run(test())


def test_an_end_is_written_though_its_journal_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise ResourceError("the key cannot be removed")

    async def test() -> None:
        monkeypatch.setattr(world.journals, "keep_only", full)
        world.store.move(world.jobs[0], FAILED, RUNNING, {})
        job: Any = SimpleNamespace(id=world.jobs[0], spec=spec_of(), attempt=1, coordinator="analyst")
        context: Any = SimpleNamespace(store=world.store, log=world.log)
        ends = EndWriter(context, world.forgetting)
        assert await ends.write(JobEnd(job, RUNNING, FAILED, {"ended": 5.0}, None))
        assert ends.of(job.id) is None
        assert world.errors == ["journals not forgotten"]

    asyncio.run(test())

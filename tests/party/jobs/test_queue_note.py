"""The note of what runs at a node and what waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

from party.jobs.limits import JobLimits
from party.jobs.queue_note import QueueNote
from party.jobs.turns import Turns


def test_a_turn_that_changes_as_the_event_loop_ends_leaves_no_task(tmp_path: Path) -> None:
    async def node() -> object:
        turns = Turns(JobLimits(1, 1, 1, 1), "north")
        note = QueueNote(tmp_path / "queue.json", turns, lambda _: None)
        turns.ask(b"job", "hub", 0.0)
        ending = asyncio.create_task(ends(turns))
        await asyncio.sleep(0)
        return note, ending

    async def ends(turns: Turns) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # the note's own task is cancelled meanwhile
            await asyncio.sleep(0)
            turns.end(b"job")
            left.extend(asyncio.all_tasks() - {asyncio.current_task()})

    left: list[asyncio.Task[None]] = []
    asyncio.run(node())
    assert not left

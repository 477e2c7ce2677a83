"""People beside the nodes of the test's process: who decides by commands, and policies that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comine.command import run
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.party.nodes import Client


def manual(folder: Path, *names: str) -> Callable[[Any], None]:
    """What lets people decide at some parties, of nodes that are prepared."""

    def change(_: Any) -> None:
        for name in names:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text().replace('approve = "auto"', 'approve = "manual"'))

    return change


async def command(*arguments: str) -> int:
    """Runs `comine party …` as another process would, beside the node."""
    return await asyncio.to_thread(run, ["party", *arguments])


async def until(client: Client, job_id: bytes, state: int) -> control.JobEvent:
    """The first event of a job in some state."""
    async with asyncio.timeout(20):
        async for event in client.stub.Watch(control.WatchRequest(job_id=job_id)):
            if event.state == state:
                return event
    raise AssertionError(f"the job never came to {control.JobState.Name(state)}")


def store_of(folder: Path, name: str) -> Store:
    return Store.open(folder / "state" / name / "node.db")

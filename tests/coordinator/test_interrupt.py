"""Signals end a job in good order, wherever it is run from."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from coordinator.interrupt import run_interruptibly
from link.errors import JobCancelled
from tests.errors import fails


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_and_lets_clean_up(number: signal.Signals) -> None:
    ended = []

    async def job() -> None:
        try:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(JobCancelled):
        run_interruptibly(job())
    assert ended == [True]


def test_inside_an_event_loop_as_in_a_notebook() -> None:
    async def job() -> int:
        await asyncio.sleep(0)
        return 7

    async def cancelled() -> None:
        raise JobCancelled("no")

    async def notebook() -> None:
        assert run_interruptibly(job()) == 7
        with fails("E500"):
            run_interruptibly(cancelled())

    asyncio.run(notebook())

"""Signals end a job in good order, wherever it is run from."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coordinator.demo.loopback import LoopbackFederation
from coordinator.interrupt import run_interruptibly, signals_interrupt
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


def test_a_node_that_is_being_started_when_a_signal_comes_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    federation = LoopbackFederation(tmp_path, ("shop",))
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        """A process whose start is not known to anyone yet as the signal comes."""

        def __init__(self, _: list[str], **options: Any) -> None:
            super().__init__([sys.executable, "-c", "import time; time.sleep(600)"], **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    async def job() -> None:
        with federation.running():
            await asyncio.Event().wait()

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with signals_interrupt(), pytest.raises(JobCancelled):
        run_interruptibly(job())
    assert [node.poll() for node in started] == [-signal.SIGTERM]

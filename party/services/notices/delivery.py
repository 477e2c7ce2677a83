"""Hands notices over one after the other, in a process of their own each: a queue, a time limit, and a few tries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from link.errors import ComineError
from link.files.quantities import seconds
from link.logs.structured import Log
from party.services.notices.settings import NotifySection

WAITING: Final = 256  # notices; those that come while so many wait are lost
PAUSES_S: Final = (1.0, 5.0)  # before the second and the third try
CLOSE_S: Final = 2.0  # for what waits when the node stops

Notice = Mapping[str, Any]
Write = Callable[[], Awaitable[Sequence[Notice]]]


class Delivery:
    """A queue of notices. To be used on the event loop only; `put` never waits.

    Args:
        settings: The `[notify]` table.
        log: The node's log.

    Attributes:
        waiting: Notices that are yet to be written.
    """

    def __init__(self, settings: NotifySection | None, log: Log) -> None:
        self.settings, self._log = settings, log
        self.waiting: asyncio.Queue[Write] = asyncio.Queue(WAITING)
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def put(self, write: Write) -> None:
        """Takes a notice, which is written once it is its turn; there may be nothing to tell then."""
        try:
            self.waiting.put_nowait(write)
        except asyncio.QueueFull:
            self._lost += 1
            return
        if self._task is None:
            self._task = asyncio.create_task(self._deliver())

    async def close(self) -> None:
        """Hands over what waits, as far as there is time."""
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.waiting.join(), CLOSE_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _deliver(self) -> None:
        while True:
            write = await self.waiting.get()
            try:
                for notice in await write():
                    await self._hand_over(notice)
            except ComineError as error:
                self._log.error("notice failed", error=error)
            finally:
                self.waiting.task_done()
            if self._lost:
                self._log.warning("notices lost", lines=self._lost)
                self._lost = 0

    async def _hand_over(self, notice: Notice) -> None:
        why = ""
        for pause_s in (0.0, *PAUSES_S):
            await asyncio.sleep(pause_s)
            if (settings := self.settings) is None or not (why := await _told(settings, notice)):
                return
        self._log.warning("notice failed", why=why)


async def _told(settings: NotifySection, notice: Notice) -> str:
    """Tells people once; why that failed, empty where it did not."""
    body = json.dumps(notice)
    if settings.command is not None:
        return await run(settings.command, body, seconds(settings.timeout))
    ca = None if settings.webhook_ca is None else str(settings.webhook_ca)
    asked = json.dumps({"url": settings.webhook, "ca": ca, "body": body})  # not among the arguments, which all may see
    return await run((sys.executable, "-m", "party.services.notices.post"), asked, seconds(settings.timeout))


async def run(command: Sequence[str], text: str, within_s: float) -> str:
    """Runs a program without a shell; why it failed, empty where it did not. Nothing of what it says is kept."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    except (OSError, ValueError):
        return "it cannot be run"
    try:
        async with asyncio.timeout(within_s):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read
                await process.communicate(text.encode())
            code = await process.wait()
    except TimeoutError:
        return "it took too long"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with whatever it has begun
            await process.wait()
    return "" if code == 0 else f"exit code {code}".replace("-", "minus ")

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
from party.state.kept_notices import Kept, KeptNotices

WAITING: Final = 256  # notices; those that come while so many wait are lost
PAUSES_S: Final = (1.0, 5.0)  # before the second and the third try
CLOSE_S: Final = 2.0  # for what waits when the node stops

Notice = Mapping[str, Any]
Write = Callable[[], Awaitable[Sequence[Notice]]]


async def nothing() -> Sequence[Notice]:
    """Nothing new: what is left of before is tried."""
    return ()


class Delivery:
    """A queue of notices. To be used on the event loop only; `put` never waits.

    What has been written is kept until it is delivered, also over a restart: each is delivered at least once.

    Args:
        settings: The `[notify]` table.
        kept: What is yet to be delivered.
        log: The node's log.
        also: Takes each notice once it is written, and does not wait.

    Attributes:
        waiting: Notices that are yet to be delivered, or have failed for now.
    """

    def __init__(
        self,
        settings: NotifySection | None,
        kept: KeptNotices,
        log: Log,
        also: Callable[[Notice], None] = lambda notice: None,
    ) -> None:
        self.settings, self._kept, self._log, self._also = settings, kept, log, also
        self.waiting: asyncio.Queue[Write] = asyncio.Queue(WAITING)
        self._written: asyncio.Queue[list[Kept]] = asyncio.Queue(WAITING)
        self._lost = 0
        self._due: int | None = None  # the number of the last one that is, at first of those of before
        self._tasks: list[asyncio.Task[None]] = []

    def put(self, write: Write) -> None:
        """Takes a notice, which is written once it is its turn; there may be nothing to tell then."""
        try:
            self.waiting.put_nowait(write)
        except asyncio.QueueFull:
            self._lost += 1
            return
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._deliver())]

    async def close(self) -> None:
        """Hands over what waits, as far as there is time; the rest is kept."""
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.waiting.join(), CLOSE_S)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self) -> None:
        """Writes notices soon after they have come, however long it takes to hand over those before them."""
        while True:
            write, new = await self.waiting.get(), list[Kept]()
            try:
                notices = await write()
                if self._due is None:
                    self._due = max((each.number for each in await asyncio.to_thread(self._kept.all)), default=0)
                for notice in notices:
                    self._also(notice)
                    new.append(await asyncio.to_thread(self._kept.add, json.dumps(notice)))
            except ComineError as error:
                self._log.error("notice failed", error=error)
            await self._written.put(new)
            if self._lost:
                self._log.warning("notices lost", lines=self._lost)
                self._lost = 0

    async def _deliver(self) -> None:
        """Hands over what is new, and where that goes well what is left of before."""
        while True:
            new = await self._written.get()
            try:
                good = [await self._hand_over(each, PAUSES_S) for each in new]
                self._due = max([self._due or 0, *(each.number for each in new)])
                for each in await asyncio.to_thread(self._kept.all) if all(good) else ():
                    if each.number <= self._due:
                        await self._hand_over(each, ())
            except ComineError as error:
                self._log.error("notice failed", error=error)
            finally:
                self.waiting.task_done()

    async def _hand_over(self, notice: Kept, pauses_s: Sequence[float]) -> bool:
        """Whether people have it, or nobody is to be told anything any more."""
        why = ""
        for pause_s in (0.0, *pauses_s):
            await asyncio.sleep(pause_s)
            if (settings := self.settings) is None or not (why := await _told(settings, notice.text)):
                await asyncio.to_thread(self._kept.remove, notice)
                return True
        self._log.warning("notice failed", why=why)
        return False


async def _told(settings: NotifySection, body: str) -> str:
    """Tells people once; why that failed, empty where it did not."""
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

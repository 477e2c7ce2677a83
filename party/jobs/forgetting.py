"""When the journals of jobs are forgotten: as soon as a job cannot go on any more, also at a node that is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from link.errors import ComineError
from link.logs.structured import Log
from party.jobs.open_jobs import call_at
from party.jobs.progress import forget_stale, is_over
from party.state.journals import Journals

AGAIN_S: Final = 60.0  # after what could not be forgotten


class Forgetting:
    """Forgets journals. To be used on the event loop only.

    Args:
        journals: Of this party.
        log: The node's.
        now: Unix seconds.
        others: Forgets what else there is of jobs that cannot go on, as of a time.
    """

    def __init__(self, journals: Journals, log: Log, now: Callable[[], float], others: Callable[[float], None]) -> None:
        self._journals, self._log, self._now, self._others = journals, log, now, others
        self._over: set[bytes] = set()  # jobs that have ended for good, of which something may be there yet
        self._next: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def ended(self, job_id: bytes, attempt: int, error_code: str) -> None:
        """Takes note of the end of an attempt, which is on the disk; it is none the less if something stays.

        Args:
            job_id: The job.
            attempt: Its number.
            error_code: Of what ended it; empty where it succeeded.
        """
        if is_over(attempt, error_code):
            self._over.add(job_id)
        await self.look()

    async def look(self) -> None:
        """Forgets all that cannot go on, and looks again when the next proposal expires."""
        over = frozenset(self._over)
        try:
            stale = await asyncio.to_thread(forget_stale, self._journals, self._now(), over)
            self._over -= over
            await asyncio.to_thread(self._others, self._now())
        except ComineError as error:
            self._log.error("journals not forgotten", error=error)
            stale = self._now() + AGAIN_S
        if self._next is not None:
            self._next.cancel()
        self._next = None if stale is None or self._closed else call_at(stale, self._now(), self._wake)

    async def close(self) -> None:
        """Forgets nothing more; the next start of the node does."""
        self._closed = True
        if self._next is not None:
            self._next.cancel()
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    def _wake(self) -> None:
        self._looking = asyncio.create_task(self.look())

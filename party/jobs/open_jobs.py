"""The jobs of a node that have not ended: in memory for so long, and only so many of each coordinator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

from link.errors import ResourceError
from party.jobs.job import Job
from party.jobs.limits import JobLimits

MINUTE_S: Final = 60.0
MAX_OPEN_BYTES: Final = 16 << 20  # of their proposals, which take several times as much in memory


class OpenJobs:
    """Jobs by id. To be used on the event loop only.

    Args:
        me: This party.
        now: Unix seconds.
        limits: How many jobs each coordinator may have and propose.
    """

    def __init__(self, me: str, now: Callable[[], float], limits: JobLimits) -> None:
        self._me, self.now, self.limits = me, now, limits
        self._proposed: dict[str, deque[float]] = {}  # by coordinator, when its proposals of the last minute came
        self._jobs: dict[bytes, Job] = {}
        self._expiring: dict[bytes, asyncio.TimerHandle] = {}
        self._coming: list[tuple[str, int]] = []  # proposals that are judged: whose, and of how many bytes
        self._come = asyncio.Condition()

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def of(self, job: Job) -> Job:
        """The one object of a job that is open; of one that is not, this."""
        return self._jobs.get(job.id, job)

    def get(self, job_id: bytes) -> Job | None:
        """The job, where it is open."""
        return self._jobs.get(job_id)

    @asynccontextmanager
    async def place_for(self, coordinator: str, size: int) -> AsyncIterator[None]:
        """Keeps a place for a job while its proposal is judged.

        Args:
            coordinator: Who proposes it.
            size: Bytes of the proposal.

        Raises:
            ResourceError: The coordinator has too many open jobs, or too large ones, or proposes too often.
        """
        self._count(coordinator)
        sizes = [job.size for job in self._jobs.values() if job.coordinator == coordinator]
        sizes += [coming for name, coming in self._coming if name == coordinator]
        most = self.limits.open_of_one
        if len(sizes) >= most:
            raise ResourceError(
                f"{self._me} has {most} open jobs of {coordinator}, as many as its policy allows (rule max_open_jobs); "
                "propose the job later",
                party=self._me,
            )
        if sizes and sum(sizes) + size > MAX_OPEN_BYTES:
            raise ResourceError(
                f"the open jobs of {coordinator} fill the {MAX_OPEN_BYTES >> 20} MiB that {self._me} keeps for them; "
                "propose the job later",
                party=self._me,
            )
        self._coming.append((coordinator, size))
        try:
            yield
        finally:
            self._coming.remove((coordinator, size))
            async with self._come:
                self._come.notify_all()

    def _count(self, coordinator: str) -> None:
        now, most = self.now(), self.limits.proposals_of_one
        for name, times in list(self._proposed.items()):
            while times and not now - MINUTE_S < times[0] <= now:
                times.popleft()
            if not times:
                del self._proposed[name]
        times = self._proposed.setdefault(coordinator, deque())
        if len(times) >= most:
            raise ResourceError(
                f"{coordinator} has proposed {most} jobs to {self._me} within a minute, as many as its policy allows "
                "(rule max_proposals); propose the job later",
                party=self._me,
            )
        times.append(now)

    async def judged(self, coordinator: str) -> None:
        """Waits until every proposal of a coordinator that has come is a job here, or was refused."""
        async with self._come:
            await self._come.wait_for(lambda: all(name != coordinator for name, _ in self._coming))

    def keep(self, job: Job, expiry: float, expire: Callable[[Job], None]) -> None:
        """Keeps a job until `leave`; `expire` is called when its proposal ends, if it is open then."""
        self._jobs[job.id] = job
        self._expiring[job.id] = call_at(expiry, self.now(), lambda: expire(job))
        job.settled = lambda: self.leave(job)

    def leave(self, job: Job) -> None:
        """Lets go of a job whose end is on the disk: the store knows it from now on."""
        if self._jobs.get(job.id) is job:
            del self._jobs[job.id]
        if (timer := self._expiring.pop(job.id, None)) is not None:
            timer.cancel()
        job.began_after = None

    def close(self) -> None:
        """Lets time pass without a word."""
        for timer in self._expiring.values():
            timer.cancel()


def call_at(when: float, now: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    """Calls a function at a time, in Unix seconds, on the running event loop."""
    return asyncio.get_running_loop().call_later(max(0.0, when - now), callback)

"""The ends of jobs on their way to the disk: first into the audit log, then into the database.

Where either cannot be written, a job has ended all the same, and its node keeps the end in memory until it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.audit.events import Ended
from jobs.kinds.registry import opens
from link.errors import ComineError, ConfigurationError, InputDataError, OverLimit
from mining.joint.anonymisation.disclosure import OF_A_RELEASE
from party.jobs.context import JobContext
from party.jobs.forgetting import Forgetting
from party.jobs.job import Job
from party.services.anonymization.releases import Earlier
from protos.v1.control_pb2 import JobState

RETRY_S: Final = 1.0
_ROWS_ALLOW_NONE: Final = (ConfigurationError.code, InputDataError.code, OverLimit.code)  # no joint release


@dataclass(slots=True)
class JobEnd:
    """How a job ended.

    Attributes:
        job: The job.
        before: Where it stood.
        state: How it ended.
        changes: New values of its record.
        event: What is written to the audit log; None once it knows.
        error_code: Of what ended it early; empty of a job that succeeded.
    """

    job: Job
    before: JobState.ValueType
    state: JobState.ValueType
    changes: Mapping[str, Any]
    event: Ended | None
    error_code: str = ""


class EndWriter:
    """Writes ends. To be used on the event loop only.

    Args:
        context: What the node's jobs share.
        forgetting: Of journals, once an end is on the disk.
    """

    def __init__(self, context: JobContext, forgetting: Forgetting) -> None:
        self._context, self._forgetting = context, forgetting
        self._unwritten: dict[bytes, JobEnd] = {}
        self._trying: asyncio.Task[None] | None = None
        self._closed = False

    def renew(self, context: JobContext) -> None:
        """Goes on with other settings."""
        self._context = context

    def of(self, job_id: bytes) -> JobEnd | None:
        """The end of a job that is not on the disk yet."""
        return self._unwritten.get(job_id)

    async def write(self, end: JobEnd) -> bool:
        """Writes an end, now or once that is possible.

        Returns:
            Whether the database took it: not where somebody else has moved the job on.
        """
        try:
            return await self._write(end)
        except ComineError as error:
            self._context.log.error("end not written", caller=end.job.coordinator, job=end.job.id.hex(), error=error)
            self._unwritten[end.job.id] = end
            if not self._closed and (self._trying is None or self._trying.done()):
                self._trying = asyncio.create_task(self._try_again())
            return True

    async def close(self) -> None:
        """Gives up; what is not written, the next start of the node finds out."""
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    async def _write(self, end: JobEnd) -> bool:
        context, job_id = self._context, end.job.id
        if end.event is not None:
            await context.audit.record(end.event)
            end.event = None
        if opens(end.job.spec, "release") and end.error_code:
            await asyncio.to_thread(self.discharge, end)
        moved = await asyncio.to_thread(context.store.move, job_id, end.before, end.state, end.changes)
        if moved:
            await self._forgetting.ended(job_id, end.job.attempt, end.error_code)
        return moved

    def discharge(self, end: JobEnd) -> None:
        """Takes back that a release was made, where none was: the network may break before anything has left.

        That the rows allow none, any peer may say; it is believed only while nothing of a release has been opened. What
        an earlier attempt may have opened is not opened again, so once one counts as a release, the job does.
        """
        releases, job = self._context.releases, end.job
        if job.earlier_release is Earlier.RELEASE:
            return
        if end.error_code in _ROWS_ALLOW_NONE and not job.opened() & OF_A_RELEASE:
            releases.came_to_nothing(job.id)
        elif not job.in_session():
            releases.take_back(job.id, job.earlier_release)

    async def _try_again(self) -> None:
        while self._unwritten:
            await asyncio.sleep(RETRY_S)
            for job_id, end in list(self._unwritten.items()):
                try:
                    await self._write(end)
                except ComineError:
                    break
                del self._unwritten[job_id]
                self._context.log.info("end written", job=job_id.hex())
                end.job.settled()

"""The states of a node's jobs: written to the disk first, then shown in memory and to watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from jobs.audit.events import Ended
from link.errors import ComineError, UnexpectedMessage, from_code
from party.jobs.context import JobContext
from party.jobs.endings.end_writer import EndWriter, JobEnd
from party.jobs.endings.failure import WORDS
from party.jobs.forgetting import Forgetting
from party.jobs.job import Job
from party.jobs.open_jobs import OpenJobs
from party.jobs.turns import Turns
from party.node.uninterrupted import uninterrupted
from party.state.store import early_end
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    SUCCEEDED,
    JobState,
    ResultHeader,
    SignedApproval,
)

_DECIDED_BY_PEOPLE: Final = (AWAITING_APPROVAL, APPROVED)  # these states, by commands


class Transitions:
    """Moves jobs from one state to the next. To be used on the event loop only.

    Args:
        context: What the node's jobs share.
        jobs: Those that have not ended.
        turns: Which of them may run.
        forgetting: Of the journals of those that have ended.
        now: Unix seconds.
    """

    def __init__(
        self, context: JobContext, jobs: OpenJobs, turns: Turns, forgetting: Forgetting, now: Callable[[], float]
    ) -> None:
        self._context, self._jobs, self._turns, self._now = context, jobs, turns, now
        self._me, self._ends = context.identity.name, EndWriter(context, forgetting)
        self._forgetting = forgetting

    def renew(self, context: JobContext) -> None:
        """Goes on with other settings."""
        self._context = context
        self._ends.renew(context)

    def unwritten(self, job_id: bytes) -> JobEnd | None:
        """The end of a job that is not on the disk yet."""
        return self._ends.of(job_id)

    async def close(self) -> None:
        """Writes no more ends, and forgets no more journals."""
        await self._ends.close()
        await self._forgetting.close()

    async def notice(self, job: Job) -> None:
        """Takes note of a person's decision, which was made by the command line."""
        if (
            job.state not in _DECIDED_BY_PEOPLE
            or (record := await asyncio.to_thread(self._context.store.get, job.id)) is None
            or job.state not in _DECIDED_BY_PEOPLE
            or record.state == job.state  # noticed meanwhile, or nothing was decided
        ):
            return
        if record.state == APPROVED:
            job.move(APPROVED, SignedApproval.FromString(record.approval))
            self._context.log.info("job approved", caller=job.coordinator, job=job.id.hex())
        elif record.state in (DENIED, CANCELLED):
            error = from_code(record.error_code, record.error_message, party=self._me)
            self._turns.end(job.id, error)
            job.end(record.state, error, self._me)
            self._jobs.leave(job)
            self._context.log.info(
                "job denied" if record.state == DENIED else "job cancelled", caller=job.coordinator, job=job.id.hex()
            )

    async def move(self, job: Job, state: JobState.ValueType, **changes: Any) -> None:
        """Moves a job on to its next state; the move is made whole, even if its caller is cancelled.

        Raises:
            UnexpectedMessage: Another process has moved the job.
        """
        await uninterrupted(self._moved(job, state, changes))

    async def succeed(self, job: Job, header: ResultHeader) -> None:
        """Ends a job that has succeeded.

        Args:
            job: The job.
            header: What this party has signed about it.
        """
        await self._settle(job, SUCCEEDED, {"ended": self._now(), "release": header.SerializeToString()}, None)
        job.move(SUCCEEDED)
        self._context.notices.ended(job.id, job.coordinator, SUCCEEDED)
        self._context.metrics.ended(job.spec.job.task, None, job.costs())
        self._leave(job)
        self._turns.end(job.id)

    async def end(
        self, job: Job, state: JobState.ValueType, public: ComineError, error: BaseException | None = None
    ) -> None:
        """Ends a job early, once; where its end cannot be written, it has ended all the same.

        Args:
            job: The job.
            state: How it ends.
            public: Why, as coordinator and peers learn it.
            error: Why, for the node's log.
        """
        if job.is_ending or job.over:
            return
        job.is_ending = True
        await uninterrupted(self._end(job, state, public, error))

    async def _moved(self, job: Job, state: JobState.ValueType, changes: dict[str, Any]) -> None:
        if not await asyncio.to_thread(self._context.store.move, job.id, job.state, state, changes):
            raise UnexpectedMessage(f"this job has been moved on at {self._me} by another process", party=self._me)
        job.move(state)

    async def _end(self, job: Job, state: JobState.ValueType, public: ComineError, error: BaseException | None) -> None:
        try:
            reporter = error.reporter if isinstance(error, ComineError) else None
            event = Ended.by(job.id, WORDS[state], public, reporter)
            if not await self._settle(job, state, early_end(self._now(), public, self._me), event, public.code):
                await self.notice(job)  # a person has just decided
                if job.over:
                    return
                await self._settle(job, state, early_end(self._now(), public, self._me), None, public.code)
        finally:
            job.is_ending = False
            self._turns.end(job.id, public)
        job.end(state, public, self._me)
        self._context.notices.ended(job.id, job.coordinator, state)
        self._context.metrics.ended(job.spec.job.task, public, job.costs())
        self._leave(job)
        cause = public if error is None or isinstance(error, asyncio.CancelledError) else error
        self._context.log.warning(f"job {WORDS[state]}", caller=job.coordinator, job=job.id.hex(), error=cause)

    async def _settle(
        self, job: Job, state: JobState.ValueType, changes: dict[str, Any], event: Ended | None, code: str = ""
    ) -> bool:
        """Writes an end, now or later; False where somebody else has moved the job."""
        return await self._ends.write(JobEnd(job, job.state, state, changes, event, code))

    def _leave(self, job: Job) -> None:
        if self.unwritten(job.id) is None:
            self._jobs.leave(job)

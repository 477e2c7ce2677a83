"""How jobs end before they succeed: what the store keeps, what the audit log says, and what others learn."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from jobs.audit.events import Ended, Event
from link.errors import ComineError, DeadlineExceeded, InternalError, JobCancelled, ResourceError, outward
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.state.store import Record, early_end
from protos.v1.control_pb2 import APPROVED, CANCELLED, EXPIRED, FAILED, JobEvent, JobState, Release, ResultHeader

Early = Literal["failed", "cancelled", "expired"]
WORDS: Final[dict[JobState.ValueType, Early]] = {FAILED: "failed", CANCELLED: "cancelled", EXPIRED: "expired"}


def public(job: Job, error: BaseException, me: str) -> ComineError:
    """What coordinator and peers learn of an error: a fault of comine itself is not described to them.

    Args:
        job: Which it has ended.
        error: As it was raised.
        me: This party.
    """
    match error:
        case ComineError():
            return outward(error, me)
        case asyncio.CancelledError():
            return job.cancelled or JobCancelled(f"the job was cancelled at {me}", party=me)
        case TimeoutError():
            return DeadlineExceeded(
                f"{me} was not done when the job's deadline of {job.spec.job.deadline_s} s had passed; allow more time",
                party=me,
            )
        case MemoryError():
            return outward(ResourceError("too little memory"), me)
        case _:
            return outward(InternalError("a fault of comine itself"), me)


async def end_record(
    context: JobContext, now: float, record: Record, state: JobState.ValueType, reason: ComineError, *before: Event
) -> None:
    """Ends a job that is not in memory, once `before` is recorded."""
    await context.audit.record(*before, Ended.by(record.job_id, WORDS[state], reason))
    context.store.move(record.job_id, record.state, state, early_end(now, reason, context.identity.name))
    context.notices.ended(record.job_id, record.coordinator, state)
    context.log.warning(f"job {WORDS[state]}", caller=record.coordinator, job=record.job_id.hex(), error=reason)


def present(record: Record) -> JobEvent:
    """What a watcher sees of a job as the store has it."""
    event = JobEvent(state=record.state, attempt=record.attempt)
    if record.error_code:
        event.error_code, event.error_message = record.error_code, record.error_message
        event.error_party = record.error_party
    if record.state == APPROVED:
        event.approval.ParseFromString(record.approval)
    if record.release:
        release = Release.FromString(ResultHeader.FromString(record.release).release)
        event.bytes_sent, event.bytes_received = release.bytes_sent, release.bytes_received
        event.rounds, event.seconds = release.rounds, release.seconds
    return event

"""Which jobs go on by themselves after an attempt was lost, and how long each of them waits before it does.

That is for what passes: a party was lost, its node restarted, the network gone. It is another attempt like those that
people ask for (`jobs.resumption`), in which the parties agree to nothing new; but it has what is left of the deadline
of the attempt before, and is no way for a party that breaks a job off to see more, since noise is repeated.
"""

from __future__ import annotations

from typing import Final

from coordinator.jobs.lifecycle import Job
from coordinator.jobs.records.store import Record
from jobs.resumption import hindrance
from link.errors import JobCancelled, PeerError
from link.steps import MAX_ATTEMPTS

RETRIES: Final = 3
MAX_RETRIES: Final = MAX_ATTEMPTS - 1
_PAUSE_S: Final = 1.0
_MAX_PAUSE_S: Final = 30.0


def goes_on(record: Record, now: float) -> bool:
    """Whether a job that has ended early goes on by itself.

    Args:
        record: The job.
        now: Unix seconds.
    """
    job, problem = record.job, record.job.problem
    if problem is None or job.retried >= record.retries:
        return False
    stopped = problem.code == JobCancelled.code and problem.party is not None  # a node, not people at the coordinator
    if problem.code != PeerError.code and not stopped:
        return False
    if job.hindrance(now) or hindrance(record.spec, problem.code, job.attempt):
        return False
    return not job.began or now + _pause_s(job.retried) < job.began + job.deadline_s


def pause_s(job: Job) -> float:
    """Seconds for which a job waits before it begins an attempt: more with each that it began by itself."""
    return _pause_s(job.retried - 1) if job.retried else 0.0


def _pause_s(before: int) -> float:
    return min(_PAUSE_S * 2.0**before, _MAX_PAUSE_S)

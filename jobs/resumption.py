"""Which jobs may go on in another attempt, and after what: the coordinator and every party decide alike.

Another attempt is for jobs that were lost on the way, not for jobs that went wrong: those would go wrong again. Data
that a party could not read, or that had changed, may be back by then, and a full disk may have room. Nobody approves
another attempt, since nothing is done but what was approved; so it must begin before the proposal expires, on the very
rows of the attempt before.
"""

from __future__ import annotations

from typing import Final

from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link.errors import CancelledByOwner, DeadlineExceeded, InputDataError, JobCancelled, PeerError, ResourceError
from link.steps import MAX_ATTEMPTS

_LOST: Final = frozenset(
    {PeerError.code, DeadlineExceeded.code, JobCancelled.code, InputDataError.code, ResourceError.code}
)


def goes_on(spec: JobSpec) -> bool:
    """Whether the parties of such a job keep what is disclosed on the way, for another attempt to go on from there."""
    return kind_of(spec).resumes(spec)


def lost(code: str) -> bool:
    """Whether an error only interrupts a job: something was lost, time ran out, or somebody cancelled."""
    return code in _LOST


def hindrance(spec: JobSpec, error_code: str, attempts: int) -> str:
    """Why a job that ended early cannot go on, as the end of a sentence; empty where it can.

    Args:
        spec: The job.
        error_code: Of what ended it.
        attempts: How many it has had.
    """
    if not goes_on(spec):
        return "jobs of its kind keep nothing to go on from"
    if error_code == CancelledByOwner.code:
        return "the people of a party have cancelled it for good"
    if not lost(error_code):
        return "only a job that lost a party, its data or its disk, was cancelled or met its deadline can go on"
    if attempts >= MAX_ATTEMPTS:
        return f"it has had its {MAX_ATTEMPTS} attempts"
    return ""

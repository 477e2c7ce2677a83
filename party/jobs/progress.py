"""What the steps of a job have given, kept in `node.db` so that another attempt of the job can go on from there.

Only what this party knows anyway is kept, and coins of its own. The job's id binds it to the specification, its version
to the software and the wire: another version takes all steps anew, and refuses a job with coins. Another attempt on
other rows is refused: the journal has their digest, and the job's record, where rules look at rows. It is forgotten
when the job succeeds, when it ends in a way after which no attempt can follow, and when its proposal expires while it
does not run: the noise of a job that runs is drawn from it to the end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from crypto.primitives.randomness import Randomness
from jobs.resumption import goes_on, hindrance, lost
from jobs.spec.job import JobSpec
from link.errors import InputDataError, PeerError, UnexpectedMessage
from link.journal import SECRET_BYTES, Journal
from link.steps import MAX_ATTEMPTS
from link.version import WIRE_VERSION, software_version
from party.state.journals import Journals
from party.state.ledger import Entry
from party.state.store import Record
from protos.v1.control_pb2 import APPROVED, CANCELLED, FAILED, RELEASING, RUNNING

_ROWS: Final = "rows"  # under which a journal has their digest: jobs that noise protects are noted nowhere else
_RUNNING: Final = (RUNNING, RELEASING)
_WAITING: Final = (APPROVED, FAILED, CANCELLED)


def open_journal(journals: Journals, job_id: bytes, spec: JobSpec, attempt: int, before: Collection[Entry]) -> None:
    """Opens the journal of a job that starts, before the start is charged; from then on it has all coins of the job.

    Args:
        journals: Of this party.
        job_id: The job.
        spec: It.
        attempt: That starts.
        before: What earlier starts were charged: what one drew under noise, this one must not draw anew.

    Raises:
        VersionMismatch: What it holds was written by another version of comine.
        ConfigurationError: It cannot be read, or what an earlier start has drawn is lost.
        ResourceError: It cannot be written.
    """
    if not goes_on(spec):
        return
    if any(entry.charge.epsilon is not None for entry in before):
        journals.check_begun(job_id)
    root = Randomness.from_os().bytes(SECRET_BYTES)
    journals.begin(job_id, _version(), root, attempt=attempt, started=bool(before))


def journal_of(journals: Journals, job_id: bytes, spec: JobSpec, data_digest: bytes) -> Journal | None:
    """The journal of a job that has started; None of one that cannot go on.

    Args:
        journals: Of this party.
        job_id: The job.
        spec: It.
        data_digest: Of the rows on which it runs.

    Raises:
        InputDataError: The rows have changed.
        VersionMismatch: Another version of comine has drawn coins for it.
        ConfigurationError: It is lost, or cannot be read.
        ResourceError: It cannot be written.
    """
    if not goes_on(spec):
        return None
    journal = journals.resume(job_id, _version())
    if journal.secret(_ROWS, data_digest) != data_digest:
        raise _changed(journals.me)
    return journal


def keep_found(journals: Journals, job_id: bytes, spec: JobSpec, packed: bytes) -> None:
    """Keeps what a job has found, as long as another attempt of it may hand that over.

    Args:
        journals: Of this party.
        job_id: The job.
        spec: It.
        packed: What was found.

    Raises:
        ComineError: It cannot be kept.
    """
    if goes_on(spec):
        journals.keep_found(job_id, _version(), packed)


def found_before(journals: Journals, job_id: bytes) -> bytes | None:
    """What was kept of what a job has found; None where nothing was, or by another version of comine.

    Raises:
        ComineError: It cannot be read.
    """
    return journals.found(job_id, _version())


def check_goes_on(record: Record, spec: JobSpec, attempt: int, me: str) -> None:
    """Whether a job may have an attempt here that is not its first.

    Raises:
        UnexpectedMessage: It may not.
    """
    code = record.error_code or PeerError.code  # where it has not begun here, the attempt before was lost elsewhere
    why = hindrance(spec, code, attempt - 1) or ("" if record.approval else "nobody has approved it")
    if why:
        raise UnexpectedMessage(f"this job cannot go on at {me}: {why}; propose it anew", party=me)


def check_same_rows(record: Record, data_digest: bytes, me: str) -> None:
    """Another attempt runs on the rows of the one before: on others, the two would reveal what no single job may.

    Raises:
        InputDataError: The rows have changed.
    """
    if record.data_digest not in (None, data_digest):
        raise _changed(me)


def is_over(attempt: int, error_code: str = "") -> bool:
    """Whether no attempt can follow one that has ended.

    Args:
        attempt: Its number.
        error_code: Of what ended it; empty where it succeeded.
    """
    return not lost(error_code) or attempt >= MAX_ATTEMPTS


def forget_stale(journals: Journals, now: float, over: Collection[bytes] = ()) -> float | None:
    """Forgets the journals of all jobs that cannot go on any more.

    Args:
        journals: Of this party.
        now: Unix seconds.
        over: Jobs after which no attempt can follow.

    Returns:
        When the proposal of one of the others expires next, in Unix seconds; None where none can.

    Raises:
        ResourceError: Something stays that should not.
    """
    journals.keep_only(_RUNNING, _WAITING, now, over)
    return journals.next_stale(_WAITING)


def _version() -> str:
    return f"{software_version()} {WIRE_VERSION}"


def _changed(me: str) -> InputDataError:
    return InputDataError(
        f"the dataset of {me} has changed since an earlier attempt of this job, so it cannot go on; bring "
        "back the rows of that attempt, or run the job again as a new one",
        party=me,
    )

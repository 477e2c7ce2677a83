"""What the steps of a job have disclosed, kept in `node.db` so that another attempt of the job can go on from there.

Only what all parties of the job know is kept, and of common rows and of supports what this party has learned. The job's
id binds it to the specification, `version` to the software and the wire; on what rows the job runs is in its record,
and another attempt on other rows is refused. It is forgotten when the job succeeds, when it ends in a way after which
no attempt can follow, and when its proposal expires.
"""

from __future__ import annotations

from typing import Final

from jobs.resumption import goes_on, hindrance, lost
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, InputDataError, PeerError, UnexpectedMessage
from link.version import WIRE_VERSION, software_version
from mining.joint.progress import KEEPS_NOTHING, KeptLevel, KeptRows, LevelKeeper
from party.state.store import Record, Store
from protos.v1.control_pb2 import APPROVED, CANCELLED, FAILED, RELEASING, RUNNING

_ROWS: Final = 0  # before the first level
_OPEN: Final = (APPROVED, RUNNING, RELEASING, FAILED, CANCELLED)


def keeper_of(store: Store, job_id: bytes, spec: JobSpec, attempt: int) -> LevelKeeper:
    """What has been kept of a job, and how it keeps more.

    Raises:
        ConfigurationError: The database holds something else than what was kept.
    """
    if not goes_on(spec):
        return KEEPS_NOTHING
    version = f"{software_version()} {WIRE_VERSION}"

    def keep(level: KeptLevel) -> None:
        store.keep_level(job_id, level.length, version, level.pack())

    def keep_rows(rows: KeptRows) -> None:
        store.keep_level(job_id, _ROWS, version, rows.pack())

    kept, rows = _kept(store, job_id, version) if attempt > 1 else (None, None)
    return LevelKeeper(kept, keep, rows, keep_rows)


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
        raise InputDataError(
            f"the dataset of {me} has changed since an earlier attempt of this job, so it cannot go on; bring "
            "back the rows of that attempt, or run the job again as a new one",
            party=me,
        )


def forget(store: Store, job_id: bytes, error_code: str = "") -> None:
    """Forgets the levels of a job that has ended, unless another attempt can follow on an error with this code."""
    if not lost(error_code):
        store.forget_levels(job_id)


def forget_stale(store: Store, now: float) -> None:
    """Forgets the levels of all jobs that cannot go on any more."""
    store.keep_levels_of(_OPEN, now)


def _kept(store: Store, job_id: bytes, version: str) -> tuple[tuple[KeptLevel, ...], KeptRows | None]:
    """Levels 1, 2, … without a gap, and the common rows."""
    kept, rows = list[KeptLevel](), None
    for length, packed in store.levels(job_id, version):
        try:
            if length == _ROWS:
                rows = KeptRows.unpack(packed)
                continue
            level = KeptLevel.unpack(packed)
        except ValueError:
            raise ConfigurationError(
                f"what is kept of the levels of job {job_id.hex()[:12]} cannot be read: the job database was damaged; "
                "run the job again as a new one"
            ) from None
        if length != len(kept) + 1 or level.length != length:
            break
        kept.append(level)
    return tuple(kept), rows

"""The coordinator's jobs on disk: one folder a job, which a driver that died leaves fit to be taken up again.

    STATE_DIR/<job id>/proposal      the signed proposal; written once, with the folder
                       state.json    how the job stands, the approvals and what the parties signed
                       table         the packed result, where the coordinator is a recipient
                       plan.json     what was predicted, where a plan was made before
                       cancel.json   somebody wants the job to end; its driver looks for it
                       acts.jsonl    what people have done with the job at the coordinator's console
                       lock          held by the process that drives the job
                       driver.log    what a driver in the background had to say
    STATE_DIR/plans/<spec digest>.json

Every file is written beside its place and moved there in one step, so a reader finds the old one or the new one,
whenever a writer dies; `acts.jsonl` alone grows, by whole lines. Only who holds the lock writes `state.json` and
`table`. Folders are 0700 and files 0600.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from google.protobuf.message import DecodeError
from pydantic import BaseModel, ConfigDict, Field

from coordinator.jobs.lifecycle import Job, Problem, Stand, State
from coordinator.jobs.records.acts import FILE as ACTS
from coordinator.jobs.records.acts import LATEST, Act, What, acts_in, add_act
from jobs.federation import Federation
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, ResourceError, UsageError
from link.files import locks
from link.files.json_text import read_json
from link.files.private_file import replace_private
from protos.v1.control_pb2 import Approval, Proposal, Release, ResultHeader, SignedApproval, SignedProposal

LEAST_PREFIX: Final = 4
_SCHEMA: Final = "comine.job-state/1"

_Seconds = Annotated[float, Field(ge=0, le=LATEST)]
_Natural = Annotated[int, Field(ge=0, lt=1 << 63)]
_ID = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(rf"[0-9a-f]{{{LEAST_PREFIX},64}}")


class LastEvent(NamedTuple):
    """The last that a party said of a job.

    Attributes:
        state: Of the job at the party.
        bytes_sent: To its peers; 0 where it has not said.
        bytes_received: From its peers; 0 where it has not said.
    """

    state: str
    bytes_sent: int
    bytes_received: int


@dataclass
class Record:
    """All that the coordinator knows of one job.

    Attributes:
        spec: What is to be done.
        id: The job's id.
        proposal: What every party was asked.
        created: Unix seconds.
        job: How it stands.
        approvals: The parties' consents, as they come in.
        released: What each party signed at the end.
        last: What each party last said of an attempt that ended early.
        out: Where the result is to be written by the driver in the background.
        out_problem: Why it could not be written there.
        plan: What was predicted for it, as data.
        acts: What people have done with it at the coordinator's console.
        retries: In how many attempts more it may go on by itself, since somebody has last wanted one.
    """

    spec: JobSpec
    id: bytes
    proposal: SignedProposal
    created: float
    job: Job
    approvals: dict[str, SignedApproval] = field(default_factory=dict)
    released: dict[str, ResultHeader] = field(default_factory=dict)
    last: dict[str, LastEvent] = field(default_factory=dict)
    out: Path | None = None
    out_problem: str = ""
    plan: dict[str, Any] | None = None
    acts: tuple[Act, ...] = ()
    retries: int = 0

    @property
    def name(self) -> str:
        """The job's name in its file, unfit for a terminal as it is."""
        return self.spec.job.name


class JobFolder:
    """The folder of one job. `lock` it before writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def id(self) -> str:
        """The job's id in hex."""
        return self.path.name

    def lock(self) -> bool:
        """Takes the job for this process, unless another one drives it; whether that worked."""
        if self._lock is not None:
            return True
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        try:
            locks.lock(lock)
        except BlockingIOError:
            os.close(lock)
            return False
        self._hold(lock)
        return True

    def adopt(self, lock: int) -> None:
        """Goes on with the lock that the parent of this process holds, once it lets go.

        Raises:
            UsageError: There is no such lock.
        """
        try:
            os.set_inheritable(lock, False)
            locks.lock(lock)
        except OSError:
            raise UsageError(f"{lock} is not the lock of the job {self.id[:12]}") from None
        self._hold(lock)

    def _hold(self, lock: int) -> None:
        self._lock = lock
        os.pwrite(lock, f"{os.getpid():10}\n".encode(), 0)  # for people who look for the process

    @property
    def lock_number(self) -> int:
        """The open file that holds the lock, for a child to adopt."""
        if self._lock is None:
            raise RuntimeError("the job is not locked by this process")
        return self._lock

    def unlock(self) -> None:
        """Leaves the job to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def driven(self) -> bool:
        """Whether a process drives the job now."""
        if self._lock is not None or not self.lock():
            return True
        self.unlock()
        return False

    def save(self, record: Record) -> None:
        """Keeps how the job stands.

        Raises:
            ResourceError: The folder cannot be written.
        """
        write_whole(self.path / "state.json", json.dumps(_as_data(record)).encode())

    def keep_table(self, packed: bytes) -> None:
        """Keeps the packed result."""
        write_whole(self.path / "table", packed)

    def table(self) -> bytes:
        """The packed result.

        Raises:
            ConfigurationError: It is gone.
        """
        return _read(self.path / "table")

    def record(self) -> Record:
        """The job as it was last saved.

        Raises:
            ConfigurationError: A file of the folder is gone, or is not what was written.
        """
        try:
            proposal = SignedProposal.FromString(_read(self.path / "proposal"))
            body = Proposal.FromString(proposal.proposal)
            spec = job_from_canonical(body.spec)
            record = _from_data(read_json(_read(self.path / "state.json")), spec, proposal)
        except (DecodeError, ValueError, KeyError) as error:
            raise ConfigurationError(
                f"{self.path} does not hold a job as comine writes it ({type(error).__name__}); move it away"
            ) from None
        record.id = bytes.fromhex(self.id)
        record.plan = _read_plan(self.path / "plan.json")
        record.acts = self._acts()
        return record

    def note(self, what: What, by: str) -> None:
        """Writes down that somebody does something with the job.

        Raises:
            ResourceError: The folder cannot be written.
        """
        try:
            add_act(self.path, what, by)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def ask_cancel(self, reason: str) -> None:
        """Asks the process that drives the job to end it."""
        write_whole(self.path / "cancel.json", json.dumps({"reason": reason}).encode())

    def _acts(self) -> tuple[Act, ...]:
        try:
            return tuple(acts_in(self.path))
        except OSError as error:
            raise ConfigurationError(f"{self.path / ACTS} cannot be read ({error.strerror})") from None

    def forget_cancel(self) -> None:
        """Takes back `ask_cancel`, before another attempt."""
        try:
            (self.path / "cancel.json").unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def cancel_asked(self) -> str | None:
        """Why somebody wants the job to end; None where nobody does."""
        path = self.path / "cancel.json"
        if not path.exists():
            return None
        try:
            return str(read_json(_read(path))["reason"])
        except (ValueError, KeyError, TypeError):
            return ""


class Store:
    """The jobs of a coordinator.

    Args:
        folder: `[coordinator] state_dir`; it is created when the first job is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @classmethod
    def of(cls, federation: Federation) -> Store:
        """Where the coordinator of a federation keeps its jobs.

        Raises:
            ConfigurationError: The federation file has no `[coordinator]` table.
        """
        if federation.coordinator is None:
            raise ConfigurationError("the federation file has no [coordinator] table, so no jobs are kept")
        return cls(federation.coordinator.state_dir)

    def create(self, record: Record) -> JobFolder:
        """Makes the folder of a new job, whole or not at all, and locks it.

        Raises:
            ResourceError: The state folder cannot be written.
        """
        final = self.folder / record.id.hex()
        draft = self.folder / f".{record.id.hex()}.new"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.mkdir(mode=0o700)
            made = JobFolder(draft)
            write_whole(draft / "proposal", record.proposal.SerializeToString())
            if record.plan is not None:
                write_whole(draft / "plan.json", json.dumps(record.plan).encode())
            made.save(record)
            made.lock()
            draft.rename(final)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        made.path = final
        return made

    def jobs(self) -> list[JobFolder]:
        """All jobs, newest first."""
        if not self.folder.is_dir():
            return []
        try:
            found = [path for path in self.folder.iterdir() if _ID.fullmatch(path.name) and path.is_dir()]
            return [JobFolder(path) for path in sorted(found, key=_written, reverse=True)]
        except OSError as error:
            raise ConfigurationError(f"the state folder {self.folder} cannot be read ({error.strerror})") from None

    def find(self, asked: str) -> JobFolder:
        """The job with an id, a unique beginning of one, or the latest of a name.

        Raises:
            UsageError: There is none, or the beginning fits several.
        """
        found = self.jobs()
        if _PREFIX.fullmatch(asked.lower()):
            fitting = [job for job in found if job.id.startswith(asked.lower())]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                some = ", ".join(job.id[:12] for job in fitting[:4])
                raise UsageError(f"'{asked}' is the beginning of several jobs' ids ({some}); give more of it")
        for job in found:
            if job.record().name == asked:
                return job
        short = f"; an id needs at least {LEAST_PREFIX} of its digits" if len(asked) < LEAST_PREFIX else ""
        raise UsageError(f"there is no job '{asked}' in {self.folder}{short}; see comine job list")

    def save_plan(self, spec_digest: bytes, plan: Mapping[str, Any]) -> None:
        """Keeps what was predicted for a job file, for the next job of that file.

        Raises:
            ResourceError: The state folder cannot be written.
        """
        plans = self.folder / "plans"
        try:
            plans.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        write_whole(plans / f"{spec_digest.hex()}.json", json.dumps(plan).encode())

    def load_plan(self, spec_digest: bytes) -> dict[str, Any] | None:
        """What was last predicted for a job file; None where nothing was."""
        return _read_plan(self.folder / "plans" / f"{spec_digest.hex()}.json")


def _as_data(record: Record) -> dict[str, Any]:
    job, problem = record.job, record.job.problem
    return {
        "schema": _SCHEMA,
        "created": record.created,
        "state": job.state,
        "expires": job.expires,
        "deadline_s": job.deadline_s,
        "attempt": job.attempt,
        "began": job.began,
        "retried": job.retried,
        "retries": record.retries,
        "lost": job.lost,
        "until": job.until,
        "stands": dict(job.stands),
        "problem": None if problem is None else [problem.code, problem.message, problem.party],
        "approvals": {name: _text(approval.SerializeToString()) for name, approval in record.approvals.items()},
        "released": {name: _text(header.SerializeToString()) for name, header in record.released.items()},
        "last": record.last,
        "out": None if record.out is None else str(record.out),
        "out_problem": record.out_problem,
    }


class _State(BaseModel):
    """The whole of `state.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Literal["comine.job-state/1"] = Field(alias="schema")
    created: _Seconds
    state: Annotated[State, Field(strict=False)]
    expires: _Seconds
    deadline_s: _Seconds
    attempt: Annotated[int, Field(ge=1, lt=1 << 31)] = 1
    began: _Seconds = 0.0
    retried: _Natural = 0
    retries: _Natural = 0
    lost: str = ""
    until: _Seconds
    stands: dict[str, Annotated[Stand, Field(strict=False)]]
    problem: Annotated[tuple[str, str, str | None], Field(strict=False)] | None
    approvals: dict[str, str]
    released: dict[str, str]
    last: dict[str, Annotated[tuple[str, _Natural, _Natural], Field(strict=False)]] = {}
    out: str | None
    out_problem: str


def _from_data(data: Any, spec: JobSpec, proposal: SignedProposal) -> Record:
    """What `_as_data` made.

    Raises:
        ValueError: It is something else.
        KeyError: It lacks a party.
        DecodeError: What a party signed in it cannot be read.
    """
    state = _State.model_validate(data)
    parties = spec.job.parties
    job = Job(
        parties=parties,
        expires=state.expires,
        deadline_s=state.deadline_s,
        attempt=state.attempt,
        began=state.began,
        retried=state.retried,
        lost=state.lost,
        until=state.until,
        state=state.state,
        stands={party: state.stands[party] for party in parties},
        problem=None if state.problem is None else Problem(*state.problem),
    )
    record = Record(
        spec=spec,
        id=b"",
        proposal=proposal,
        created=state.created,
        job=job,
        approvals={name: SignedApproval.FromString(b64decode(text)) for name, text in state.approvals.items()},
        released={name: ResultHeader.FromString(b64decode(text)) for name, text in state.released.items()},
        last={name: LastEvent(*event) for name, event in state.last.items()},
        out=None if state.out is None else Path(state.out),
        out_problem=state.out_problem,
        retries=state.retries,
    )
    for approval in record.approvals.values():
        if not 0 <= Approval.FromString(approval.approval).decided <= LATEST:
            raise ValueError("a time that no calendar has")
    for header in record.released.values():
        Release.FromString(header.release)
    return record


def _read_plan(path: Path) -> dict[str, Any] | None:
    """What was predicted; None where nothing was, or it is not to be read: no job depends on it."""
    if not path.exists():
        return None
    try:
        plan = read_json(_read(path))
    except ValueError:
        return None
    return plan if isinstance(plan, dict) else None


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _written(path: Path) -> tuple[float, str]:
    """When the job was proposed: its proposal is written once."""
    try:
        return (path / "proposal").stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def write_whole(path: Path, content: bytes) -> None:
    """Puts a file in its place in one step, on the disk.

    Raises:
        ResourceError: The disk is full, or the folder cannot be written.
    """
    try:
        replace_private(path, content)
    except OSError as error:
        raise _unwritable(path.parent, error) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror})") from None


def _unwritable(folder: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"the coordinator's folder for jobs, {folder}, cannot be written ({error.strerror}); set state_dir under "
        "[coordinator] in the federation file"
    )

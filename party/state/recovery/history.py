"""Holds `node.db` against the audit log beside it when a node starts, and gives it back what it has lost.

Every answer, start and end of a job is in the log before it is in the database or, for a start, at the same time. So
the log knows of every job that was ever begun here, and with it the rules that count jobs, and what they may have cost
the records of a dataset. Of rows the log knows nothing, and of errors the code alone.

The database notes up to which entry of which log it knows all, and the latest one of a session that it has seen. Of a
log that goes on the rest is read; what cannot be so, or cannot be made whole again, keeps the node from starting.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from jobs.audit.events import (
    ApprovalGiven,
    Approved,
    CertificateChanged,
    Ended,
    Event,
    HeadLost,
    HoldWithheld,
    JobEvent,
    LineTorn,
    LogBegan,
    LogFollows,
    NodeStarted,
    OwnerCancelled,
    PlanAsked,
    Proposed,
    Refused,
    SessionBegan,
    SessionLost,
    Started,
    Transcript,
)
from jobs.audit.log import AuditLog
from jobs.audit.tail import LoggedEvent, Mark, cut, entries_after, entry_at
from jobs.spec.job import JobSpec
from link.errors import ComineError, ConfigurationError, PolicyDenied, placeless
from party.jobs.job import ENDS
from party.policy.consent import POLICY, proposal_of
from party.policy.joint_result import JointResult
from party.policy.policy_input import Version
from party.state.audit_count import Sizes, first_hour
from party.state.ledger import Entry, Ledger
from party.state.plan_count import PlanCount
from party.state.recovery import companions
from party.state.recovery.heads import follow
from party.state.recovery.remembered import Remembered, remembered
from party.state.recovery.seen_entries import SeenEntries
from party.state.store import Reached, Record, Store
from protos.v1 import control_pb2 as control

UNKNOWN: Final = b""  # in the place of the digest of rows that a job ran on, and that nobody knows any more
_STATES: Final = {
    "succeeded": control.SUCCEEDED,
    "failed": control.FAILED,
    "cancelled": control.CANCELLED,
    "expired": control.EXPIRED,
}
_ABOUT_THE_LOG: Final = (LogBegan, CertificateChanged, LineTorn, HeadLost)
_ORDER: Final = {control.AWAITING_APPROVAL: 0, control.APPROVED: 1, control.RUNNING: 2, control.RELEASING: 3}
_REMEDY: Final = (
    "bring both back from a copy of one time, or begin without a history in an empty state folder (see the page on "
    "running a party)"
)


class Restored(NamedTuple):
    """What the database was given back.

    Attributes:
        jobs: How many jobs were made or mended.
        starts: How many starts were charged anew.
    """

    jobs: int
    starts: int


@dataclass(slots=True)
class _Life:
    """What the log says of one job beyond what the database is known to know."""

    proposed: Proposed | None = None
    received: float = 0.0
    answer: Approved | Refused | None = None
    decided: float = 0.0
    starts: dict[int, float] = field(default_factory=dict)
    in_session: bool = False
    sessions: set[bytes] = field(default_factory=set)
    ended: Ended | None = None
    ended_at: float = 0.0
    owner_end: OwnerCancelled | HoldWithheld | None = None
    voices: list[ApprovalGiven] = field(default_factory=list)

    def take(self, logged: LoggedEvent) -> None:
        """Takes note of the next entry."""
        event, at = logged.event, logged.entry.time.timestamp()
        match event:
            case Proposed():
                self.proposed, self.received = event, at
            case Approved() | Refused():
                self.answer, self.decided = event, at
            case Started():
                self.starts.setdefault(event.attempt, at)
                self.ended = None
            case SessionBegan():
                self.in_session = True
                self.sessions.add(event.session)
            case Transcript() | SessionLost():
                self.sessions.discard(event.session)
            case ApprovalGiven():
                self.voices.append(event)
            case OwnerCancelled() | HoldWithheld():
                self.owner_end = event
            case Ended():
                self.ended, self.ended_at = event, at

    @property
    def state(self) -> control.JobState.ValueType:
        """Where the log leaves the job."""
        if self.ended is not None:
            return _STATES[self.ended.state]
        if self.starts:
            return control.RUNNING
        if self.answer is None:
            return control.AWAITING_APPROVAL
        return control.APPROVED if isinstance(self.answer, Approved) else control.DENIED


def reconcile(
    store: Store,
    ledger: Ledger,
    plans: PlanCount,
    audit: AuditLog,
    party: str,
    *,
    ran_before: bool,
    noted: Callable[[JobSpec], bool],
) -> Restored:
    """Makes sure that the database knows all that the log says; what it lacks it is given back.

    Args:
        store: The jobs.
        ledger: What they may have cost.
        plans: How many were asked for lately.
        audit: The log beside both; nobody else writes to it but people at the command line, who hold the database.
        party: Whose they are.
        ran_before: Whether other files of the state folder show that a node ran there.
        noted: Whether it is noted on what rows such a job runs, with which later ones are compared.

    Raises:
        ConfigurationError: Something is lost that the log does not say; the sentence says what to do.
        ResourceError: The database or the log cannot be read or written.
    """
    store.check_whole()
    SeenEntries.beside(store).check(audit.path, audit.mark())
    with store.alone():
        known = _known(store.reached(), store.is_empty(), audit, party, ran_before=ran_before)
        lives: dict[bytes, _Life] = {}
        others: list[Event] = []
        asked: list[tuple[str, float]] = []
        sizes, latest = Sizes(), 0.0
        for logged in entries_after(audit.path, known):
            latest = max(latest, logged.entry.time.timestamp())
            sizes.add(logged.event, logged.entry.time.timestamp())
            if not isinstance(logged.event, JobEvent):
                others.append(logged.event)
                if isinstance(logged.event, PlanAsked):
                    asked.append((logged.event.coordinator, logged.entry.time.timestamp()))
            else:
                lives.setdefault(logged.event.job, _Life()).take(logged)
        _check_log(store, audit.path, known, lives)
        follow(store, others)
        store.follow_standings(others)
        store.follow_owner_ends(life.owner_end for life in lives.values() if life.owner_end is not None)
        store.follow_voices(voice for life in lives.values() for voice in life.voices)
        store.clock(latest)
        companions.note(store, audit.path.parent, others)
        companions.check(store, audit.path.parent, party)
        records = {job_id: record for job_id, life in lives.items() if (record := _whole(store, job_id, life))}
        jobs = 0
        for job_id, life in lives.items():
            record = records.get(job_id)
            if record is not None and (mended := _mended(store.get(job_id), record, life, noted)) is not None:
                store.put(mended)
                jobs += 1
    lost = (SessionLost(job=job_id, session=each) for job_id, life in lives.items() for each in sorted(life.sessions))
    audit.append(*lost)
    plans.restore(asked, float("-inf") if known is None else entry_at(audit.path, known).time.timestamp())
    for job_id in records:
        if (kept := store.get(job_id)) is not None and kept.data_digest == UNKNOWN:
            ledger.note_version(kept.dataset, Version(None, UNKNOWN))
    starts = sum(_recharge(ledger, records[job_id], life, noted) for job_id, life in lives.items() if job_id in records)
    if not ledger.has_all_results:
        ledger.recount_results(_results(entries_after(audit.path, None), noted))
    with store.alone():
        if known is None:
            store.drop_bins()
        store.add_bins(sizes.bins(store.coordinator_of), first_hour(time.time()))
        store.reach(Reached(party, *audit.mark()))
    store.fold()
    return Restored(jobs, starts)


def note(store: Store, audit: AuditLog, mark: Mark, party: str) -> None:
    """Notes that the database knows all that the log says up to an entry, and leaves it in one file."""
    reached = store.reached()
    known = None if reached is None or reached.log != mark.log else Mark(*reached[1:])
    logged = takewhile(lambda each: each.entry.seq <= mark.seq, entries_after(audit.path, known))
    events, sizes, latest = list[Event](), Sizes(), 0.0
    for each in logged:  # before the database is held, since it may take a while
        events.append(each.event)
        sizes.add(each.event, each.entry.time.timestamp())
        latest = max(latest, each.entry.time.timestamp())
    with store.alone():
        follow(store, events)
        store.follow_standings(events)
        store.clock(latest)
        store.add_bins(sizes.bins(store.coordinator_of), first_hour(time.time()))
        store.reach(Reached(party, *mark))
    store.fold()


def _known(reached: Reached | None, empty: bool, audit: AuditLog, party: str, *, ran_before: bool) -> Mark | None:
    """The entry of the log up to which the database knows it; None where it must be read from the beginning."""
    if reached is not None and reached.party != party:
        raise ConfigurationError(
            f"the job database node.db in the state folder of {party} is that of {reached.party}; bring back the one "
            f"of {party}"
        )
    here = audit.mark()
    if reached is not None and reached.log == here.log:
        return Mark(*reached[1:])
    is_new, follows, head_lost = _about(audit.path)
    if reached is not None:
        if is_new:
            earlier = bytes.fromhex(reached.log), reached.seq, bytes.fromhex(reached.entry)
            audit.append(LogFollows(log=earlier[0], seq=earlier[1], entry=earlier[2]))
        elif follows is None or (follows.log.hex(), follows.seq) != (reached.log, reached.seq):
            raise ConfigurationError(
                f"the job database node.db of {party} is not of the audit log beside it, or is older than that log: it "
                f"may lack jobs that ran; {_REMEDY}"
            )
    elif empty and is_new and ran_before:
        raise ConfigurationError(
            f"the state folder of {party} has lost both its job database and its audit log, so nothing shows which "
            f"jobs ran; {_REMEDY}"
        )
    elif empty and (follows is not None or head_lost):
        raise ConfigurationError(
            f"the job database node.db of {party} is lost, and its audit log is not whole, so nothing shows which "
            f"jobs ran; {_REMEDY}"
        )
    return None


def _check_log(store: Store, path: Path, known: Mark | None, lives: Mapping[bytes, _Life]) -> None:
    """Proposals and ends are in the log before they are in the database, so a log that lacks one was cut."""
    if known is None:
        return
    since = entry_at(path, known).time.timestamp()
    ended, received = set(store.ended_after(since)), set(store.received_after(since))
    late = {
        job_id
        for job_id in ended | received
        if job_id not in lives
        or (job_id in ended and lives[job_id].ended is None)
        or (job_id in received and lives[job_id].proposed is None)
    }
    if not late:
        return
    whole = {job_id: _Life() for job_id in late}  # their entries are before the known one, or nowhere
    for logged in entries_after(path, None):
        if isinstance(logged.event, JobEvent) and logged.event.job in late:
            whole[logged.event.job].take(logged)
    for job_id, life in sorted(whole.items()):
        if job_id in received and life.proposed is None:
            raise cut(path, f"knows the job {job_id.hex()[:12]}")
        if job_id in ended and life.ended is None:
            raise cut(path, f"knows the end of job {job_id.hex()[:12]}")


def _about(path: Path) -> tuple[bool, LogFollows | None, bool]:
    """Whether a log is about nothing but itself, which one it follows, and whether its head was lost unseen."""
    is_new, follows, head_lost = True, None, False
    for logged in entries_after(path, None):
        if isinstance(logged.event, LogFollows):
            follows = logged.event
        elif isinstance(logged.event, HeadLost):
            head_lost = True
        elif isinstance(logged.event, NodeStarted):
            is_new = head_lost = False  # a node that starts has held the two against each other
        elif not isinstance(logged.event, _ABOUT_THE_LOG):
            is_new = False
    return is_new and follows is None, follows, head_lost


def _whole(store: Store, job_id: bytes, life: _Life) -> Record | None:
    """What is known of a job from the time before, or of its proposal; None of a job that is forgotten, or never ran.

    Raises:
        ConfigurationError: It was started, and nothing says which job it was.
    """
    record = store.get(job_id)
    if record is not None:
        return record
    if life.proposed is not None:
        return _proposed(job_id, life.proposed, life.received)
    if life.starts:
        raise ConfigurationError(
            f"the job database lacks the job {job_id.hex()[:12]}, which the audit log says was started; {_REMEDY}"
        )
    return None


def _proposed(job_id: bytes, proposed: Proposed, received: float) -> Record:
    bare = Record(
        job_id=job_id,
        proposal=proposed.proposal,
        coordinator=proposed.coordinator,
        dataset="",
        parties=(),
        min_support="",
        expiry=0,
        received=received,
        state=control.AWAITING_APPROVAL,
    )
    job = _remembered(bare)
    return replace(
        bare,
        dataset=job.dataset,
        parties=job.parties,
        min_support=job.min_support,
        expiry=proposal_of(bare).expiry,
    )


def _remembered(record: Record) -> Remembered:
    try:
        return remembered(proposal_of(record).spec)
    except ComineError as error:
        raise ConfigurationError(
            f"the job {record.job_id.hex()[:12]} cannot be made again out of the audit log ({error.message}); bring "
            "comine to the version that ran it"
        ) from None


def _mended(kept: Record | None, record: Record, life: _Life, noted: Callable[[JobSpec], bool]) -> Record | None:
    """The job as the log leaves it; None where the database is not behind."""
    last = max(life.starts, default=record.attempt)
    behind = kept is None or last > kept.attempt or _rank(life.state) > _rank(kept.state)
    if not behind or (kept is not None and kept.state in ENDS and last <= kept.attempt):
        return None
    changes = dict[str, object](state=life.state, attempt=last)
    if life.answer is not None:
        changes |= {"decided": life.decided, "decided_by": life.answer.by}
    match life.answer:
        case Approved():
            changes["approval"] = life.answer.approval
        case Refused():
            changes |= {
                "reason": life.answer.reason,
                "ended": life.decided,
                "error_code": "E300",
                "error_message": refusal_of(life.answer),
            }
    if life.starts and record.started is None:
        changes["started"] = min(life.starts.values())
    if life.in_session and record.data_digest is None and is_noted(record, noted):
        changes["data_digest"] = UNKNOWN
    if life.ended is not None:
        changes |= {"ended": life.ended_at} | _error(life.ended)
    return replace(record, **changes)  # type: ignore[arg-type]


def refusal_of(refused: Refused) -> str:
    """In what words a coordinator was refused."""
    if refused.by != POLICY:
        return refused.reason
    return placeless(PolicyDenied(refused.reason, party="the node"), "the node").message


def is_noted(record: Record, noted: Callable[[JobSpec], bool]) -> bool:
    """Whether later jobs are compared with the rows of a job; they are with those of one that cannot be read."""
    try:
        spec = _remembered(record).spec
    except ConfigurationError:
        return True
    return spec is None or noted(spec)


def _error(ended: Ended) -> dict[str, object]:
    if ended.error_code is None:
        return {}
    what = "the job ended early; in what words was lost with the job database"
    return {"error_code": ended.error_code, "error_message": what, "error_party": ended.error_party or ""}


def _results(entries: Iterable[LoggedEvent], noted: Callable[[JobSpec], bool]) -> set[tuple[str, JointResult]]:
    """What of all starts that the log has counts for what several jobs reveal together, by dataset."""
    return {(job.dataset, job.result) for job in _started(entries) if job.spec is None or noted(job.spec)}


def _started(entries: Iterable[LoggedEvent]) -> Iterator[Remembered]:
    """The job of each start, but for those that nobody can read any more."""
    proposals: dict[bytes, bytes] = {}
    for logged in entries:
        match logged.event:
            case Proposed(job=job_id):
                proposals[job_id] = logged.event.proposal
            case Started(job=job_id) if job_id in proposals:
                signed = control.SignedProposal.FromString(proposals[job_id])
                with contextlib.suppress(ConfigurationError):
                    yield remembered(control.Proposal.FromString(signed.proposal).spec)


def _rank(state: control.JobState.ValueType) -> int:
    return _ORDER.get(state, len(_ORDER))


def _recharge(ledger: Ledger, record: Record, life: _Life, noted: Callable[[JobSpec], bool]) -> int:
    """Charges the starts that the ledger does not know; how many those were."""
    charged = {entry.attempt for entry in ledger.of_job(record.job_id)}
    lost = sorted(life.starts.keys() - charged)
    if not lost:  # so a job of which nothing can be read any more keeps no node from starting
        return 0
    job, whose = _remembered(record), record.coordinator
    if job.spec is None or noted(job.spec):
        ledger.note_result(job.dataset, job.result)
    return sum(
        ledger.record(Entry(record.job_id, attempt, life.starts[attempt], job.dataset, job.name, whose, job.charge))
        for attempt in lost
    )

"""Holds the audit logs of several parties against each other.

Each log must have been verified by itself (`jobs.audit.checks.verify`). Here it is found what only a comparison shows:
entries and sessions that one party's log lacks, logs that were written anew, approvals that a party never gave, and
frames of which two parties have signed different accounts. Parties whose logs are not at hand are judged by what
the others hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

from jobs.audit.checks.finding import Finding, Record
from jobs.audit.checks.verify import CheckedLog
from jobs.audit.events import (
    Approved,
    Ended,
    JobEvent,
    NodeStarted,
    Proposed,
    Released,
    SessionBegan,
    SessionLost,
    Started,
    Transcript,
    ValuesOpened,
)
from link.core import ABORT_LANE, HELLO_LANE
from link.transcripts.receipts import differences
from protos.v1.control_pb2 import Approval, SignedApproval, SignedProposal
from protos.v1.link_pb2 import Receipt, SignedReceipt

E = TypeVar("E", bound=JobEvent)

_SHORT = 16  # hexadecimal digits
# What must have been recorded of a job at a party before each event.
_BEFORE: Mapping[type[JobEvent], tuple[type[JobEvent], str]] = {
    Approved: (Proposed, "was proposed"),
    Started: (Approved, "was approved"),
    SessionBegan: (Started, "was started"),
    ValuesOpened: (SessionBegan, "had a session"),
    Transcript: (SessionBegan, "had a session"),
    Released: (Transcript, "had its session's end recorded"),
}
_LOST = ("failed", "cancelled")  # ends that another attempt may follow
_GREETING = frozenset({HELLO_LANE, ABORT_LANE})
_ONCE: tuple[type[JobEvent], ...] = (Proposed, Approved, Started, SessionBegan, Transcript, Ended)


class Journal:
    """What one party's logs record, job by job.

    Args:
        party: The party.
        records: The lines of its logs that hold, in order.
    """

    def __init__(self, party: str, records: Sequence[Record]) -> None:
        self.party = party
        self.records = records
        self._jobs: dict[bytes, list[Record]] = defaultdict(list)
        for record in records:
            if isinstance(record.event, JobEvent):
                self._jobs[record.event.job].append(record)

    @property
    def jobs(self) -> tuple[bytes, ...]:
        """The jobs that it records, in the order of their first entries."""
        return tuple(self._jobs)

    def of(self, job: bytes) -> list[Record]:
        """All that is recorded of a job."""
        return self._jobs.get(job, [])

    def events(self, job: bytes, kind: type[E]) -> list[tuple[Record, E]]:
        """The events of one kind that are recorded of a job."""
        return [(record, record.event) for record in self.of(job) if isinstance(record.event, kind)]


def journals(logs: Sequence[CheckedLog]) -> tuple[dict[str, Journal], list[Finding]]:
    """One journal per party; its log may have been moved away and begun anew, and older copies of it may be at hand.

    Returns:
        The journals by party, and a finding for every copy that another contradicts.
    """
    findings: list[Finding] = []
    chosen: dict[tuple[str, str], CheckedLog] = {}
    for log in logs:
        if not log.records:
            continue
        key = (log.party, log.records[0].entry.digest)
        if (other := chosen.get(key)) is not None:
            findings += _fork(log, other)
            log = max(log, other, key=lambda copy: len(copy.records))
        chosen[key] = log
    by_party: dict[str, list[CheckedLog]] = defaultdict(list)
    for log in chosen.values():
        by_party[log.party].append(log)
    return {
        party: Journal(
            party,
            [record for log in sorted(own, key=lambda log: log.records[0].entry.time) for record in log.records],
        )
        for party, own in by_party.items()
    }, findings


def compare(found: Mapping[str, Journal]) -> list[Finding]:
    """All that the journals of the parties at hand contradict or lack.

    Args:
        found: By party, its journal.
    """
    jobs = dict.fromkeys(job for journal in found.values() for job in journal.jobs)
    findings: list[Finding] = []
    for job in jobs:
        for journal in found.values():
            findings += _order(journal, job)
            findings += _approvals(found, journal, job)
            findings += _sessions(found, journal, job)
        for one, other in combinations(found.values(), 2):
            findings += _coordinators(one, other, job)
            findings += _transcripts(one, other, job)
    return findings


def gaps(found: Mapping[str, Journal]) -> list[str]:
    """What parties say that they could not record: no word against them, and nobody can check it by their logs.

    Args:
        found: By party, its journal.
    """
    return [
        f"{party} could not record what it opened in session {called(event.session)} of job {called(job)}"
        for party, journal in found.items()
        for job in journal.jobs
        for _, event in journal.events(job, SessionLost)
    ]


def called(job: bytes) -> str:
    """A job's or session's id in a sentence."""
    return job.hex()[:_SHORT]


def _fork(one: CheckedLog, other: CheckedLog) -> Iterator[Finding]:
    there = {record.entry.seq: record for record in other.records}
    for left in one.records:
        right = there.get(left.entry.seq, left)
        if left.entry.digest != right.entry.digest:
            yield left.finding(
                f"this copy of the log of {one.party} and {other.path} begin alike and part here (line {right.line} "
                "there); one of them was written anew"
            )
            return


def _order(journal: Journal, job: bytes) -> Iterator[Finding]:
    """What one party's log records of a job must be whole and in order; another attempt comes after the end of one."""
    seen: set[type[JobEvent]] = set()
    open_session = last = None
    attempt, may_go_on = 0, False
    for record in journal.of(job):
        event = record.event
        if not isinstance(event, JobEvent):
            continue
        kind = type(event)
        if isinstance(event, Started):
            if Ended in seen and event.attempt > attempt:
                seen &= {Proposed, Approved}
            attempt = event.attempt
        before = _BEFORE.get(kind)
        if before is not None and before[0] not in seen:
            yield record.finding(f"no entry before it says that job {called(job)} {before[1]} at {journal.party}")
        if kind in seen and kind in _ONCE and not (isinstance(event, Ended) and may_go_on):
            yield record.finding(f"job {called(job)} has two entries '{event.event}' at {journal.party}")
        seen.add(kind)
        if isinstance(event, Ended):  # another attempt may end before it has begun anything
            may_go_on = event.state in _LOST
        if isinstance(event, SessionBegan):
            open_session = event.session
        elif isinstance(event, Transcript | ValuesOpened | Released) and event.session != open_session:
            yield record.finding(
                f"it names another session than the one that job {called(job)} began at {journal.party}"
            )
        last = record
    if last is not None and Started in seen and Ended not in seen:
        restarted = any(r.entry.time > last.entry.time and isinstance(r.event, NodeStarted) for r in journal.records)
        if restarted:
            yield last.finding(f"job {called(job)} was started at {journal.party}, and no entry records its end")


def _approvals(found: Mapping[str, Journal], journal: Journal, job: bytes) -> Iterator[Finding]:
    """Every approval that a party was shown must be in the log of the party that gave it."""
    for record, started in journal.events(job, Started):
        for raw in started.approvals:
            shown = SignedApproval.FromString(raw).approval
            party = Approval.FromString(shown).party
            if party not in found:
                continue
            given = [
                SignedApproval.FromString(event.approval).approval for _, event in found[party].events(job, Approved)
            ]
            if not given:
                yield record.finding(f"{party} approved job {called(job)}, and the log of {party} lacks its approval")
            elif shown not in given:
                yield record.finding(f"the approval of {party} for job {called(job)} is not the one in its own log")


def _sessions(found: Mapping[str, Journal], journal: Journal, job: bytes) -> Iterator[Finding]:
    """A session that one party began, all its parties began, unless they failed while they greeted each other."""
    for record, began in journal.events(job, SessionBegan):
        if record.late:
            continue  # anybody with a revoked key could write it, so it accuses nobody
        for party in began.parties:
            if party == journal.party or party not in found:
                continue
            peer = found[party]
            theirs = [event for _, event in peer.events(job, SessionBegan) if event.session == began.session]
            if not theirs:
                failed = any(event.state != "succeeded" for _, event in peer.events(job, Ended))
                if failed and not _took_part(journal, party, began):
                    continue
                yield record.finding(
                    f"the log of {party} lacks session {called(began.session)} of job {called(job)}, in which it took "
                    "part"
                )
            elif (theirs[0].attempt, theirs[0].parties) != (began.attempt, began.parties):
                yield record.finding(f"the log of {party} names other parties or another attempt in this session")


def _took_part(journal: Journal, peer: str, began: SessionBegan) -> bool:
    """Whether a party's log shows frames of a protocol that it got of a peer."""
    for _, event in journal.events(began.job, Transcript):
        account = event.peers.get(peer)
        if account is not None and event.session == began.session:
            mine = Receipt.FromString(SignedReceipt.FromString(account.mine).receipt)
            return account.theirs is not None or any(head.lane not in _GREETING for head in mine.received)
    return False


def _coordinators(one: Journal, other: Journal, job: bytes) -> Iterator[Finding]:
    for (record, mine), (there, theirs) in zip(one.events(job, Proposed), other.events(job, Proposed), strict=False):
        proposals = [SignedProposal.FromString(event.proposal).proposal for event in (mine, theirs)]
        if mine.coordinator != theirs.coordinator or proposals[0] != proposals[1]:
            yield record.finding(
                f"job {called(job)} was proposed by {mine.coordinator} here, and otherwise to {other.party} "
                f"({there.file}, line {there.line})"
            )


def _transcripts(one: Journal, other: Journal, job: bytes) -> Iterator[Finding]:
    """What two parties state of the frames between them, as each keeps it."""
    left = {event.session: (record, event) for record, event in one.events(job, Transcript)}
    right = {event.session: (record, event) for record, event in other.events(job, Transcript)}
    for session in left.keys() | right.keys():
        if session not in left or session not in right:
            record, event = left.get(session) or right[session]
            missing = other if session in left else one
            if any(event.session == session for _, event in missing.events(job, SessionLost)):
                continue  # `gaps` reports it
            if missing.party in event.peers and event.peers[missing.party].theirs is not None:
                yield record.finding(
                    f"{missing.party} signed a receipt for session {called(session)}, and its log lacks the "
                    "session's end"
                )
            continue
        (record, mine), (there, theirs) = left[session], right[session]
        if other.party not in mine.peers or one.party not in theirs.peers:
            yield record.finding(f"{one.party} and {other.party} did not record the same peers of this session")
            continue
        ours, yours = mine.peers[other.party], theirs.peers[one.party]
        for holder, signer, given, kept in (
            (one, other, ours.theirs, yours.mine),
            (other, one, yours.theirs, ours.mine),
        ):
            if given is not None and given != kept:
                at = record if holder is one else there
                yield at.finding(
                    f"disputed: the receipt that {holder.party} got of {signer.party} is not the one in the log of "
                    f"{signer.party}"
                )
        accounts = [Receipt.FromString(SignedReceipt.FromString(raw).receipt) for raw in (ours.mine, yours.mine)]
        for direction, lane in differences(*accounts, ended=mine.complete and theirs.complete):
            sender, receiver = (one, other) if direction == "sent" else (other, one)
            yield record.finding(
                f"disputed: what {sender.party} sent {receiver.party} in lane '{lane[:80]}' is recorded otherwise by "
                f"{other.party} ({there.file}, line {there.line})"
            )

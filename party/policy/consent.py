"""What this party answers to proposals, by its policy or by a person: the node and the command line decide alike.

An answer is in the audit log before it is in the database, and in the database before anybody learns of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from jobs.audit.events import (
    ApprovalGiven,
    Approved,
    Ended,
    HoldReleased,
    HoldWithheld,
    OwnerCancelled,
    Proposed,
    Refused,
)
from jobs.audit.log import AuditLog
from jobs.audit.standing_events import StandingApproved, StandingRevoked, StandingUsed
from jobs.consent import approve as signed_approval
from jobs.consent import read_proposal
from jobs.proposed import job_from_canonical
from jobs.resumption import hindrance
from jobs.spec.job import MAX_SPEC_BYTES, JobSpec
from link.errors import (
    ComineError,
    ConfigurationError,
    DeadlineExceeded,
    LimitExceeded,
    PolicyDenied,
    UnexpectedMessage,
    UsageError,
    placeless,
)
from link.pki.identity import Identity, check_own_span, check_span
from party.policy.judge import Judge
from party.policy.standing import SLACK_S, Schedule, grant, why_not
from party.state.standing import Standing
from party.state.store import Record, Store, early_end
from party.state.voices import person
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    FAILED,
    RELEASING,
    RUNNING,
    JobState,
    Proposal,
    SignedApproval,
    SignedProposal,
)

POLICY: Final = "policy"  # who decides where no person does
MAX_REASON: Final = 1000  # characters that are kept of a sentence, which may name what a proposal is full of


def proposal_of(record: Record) -> Proposal:
    """The proposal inside a record, whose signature was checked when it came."""
    return Proposal.FromString(record.signed_proposal.proposal)


def spec_of(record: Record) -> JobSpec:
    """The specification inside a record.

    Raises:
        ConfigurationError: This version of comine does not know such jobs, or the record was changed.
    """
    proposal = proposal_of(record)
    spec = job_from_canonical(proposal.spec)
    if spec.job_id(proposal.nonce, proposal.expiry) != record.job_id or proposal.expiry != record.expiry:
        raise ConfigurationError(
            f"the record of job {record.job_id.hex()[:12]} is not the job that was proposed: the job database was "
            "changed or damaged"
        )
    return spec


def goes_on(record: Record, now: float) -> bool:
    """Whether another attempt of a job may follow the one that has ended.

    Args:
        record: The job.
        now: Unix seconds.
    """
    return (
        record.state in (FAILED, CANCELLED)
        and record.expiry > now
        and not hindrance(spec_of(record), record.error_code, record.attempt)
    )


class Consent:
    """The answers of one party.

    Args:
        judge: Its policy.
        identity: The party.
        store: Its jobs.
        audit: Its audit log.
        now: Unix seconds.
    """

    def __init__(
        self,
        judge: Judge,
        identity: Identity,
        store: Store,
        audit: AuditLog,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.judge, self._identity, self._store, self._audit, self.now = judge, identity, store, audit, now
        self._me = identity.name

    async def receive(self, signed: SignedProposal, coordinator: str) -> tuple[Record, JobSpec]:
        """Records a proposal and what the policy says to it; a job id is taken once.

        Raises:
            ComineError: The proposal cannot be read, has expired or was received before; or it was refused, which is
                recorded too.
            LimitExceeded: It is too long, or the audit log takes no more of the coordinator today; nothing is written.
        """
        proposal = read_proposal(signed, self._identity.trust, coordinator)
        if len(proposal.spec) > MAX_SPEC_BYTES:
            raise LimitExceeded(f"a job specification has at most {MAX_SPEC_BYTES} bytes", party=self._me)
        now = self.now()
        if proposal.expiry <= now:
            raise DeadlineExceeded(
                f"the proposal had expired when it reached {self._me}; check the clocks and propose the job anew",
                party=self._me,
            )
        spec = await asyncio.to_thread(job_from_canonical, proposal.spec)
        check_span(signed.certificate, coordinator, spec.job.deadline_s)
        check_own_span(self._identity, spec.job.deadline_s)
        job_id = spec.job_id(proposal.nonce, proposal.expiry)
        if await asyncio.to_thread(self._store.get, job_id) is not None:
            raise self._twice()
        record = Record(
            job_id=job_id,
            proposal=signed.SerializeToString(),
            coordinator=coordinator,
            dataset=spec.job.dataset,
            parties=spec.job.parties,
            min_support=support_asked(spec),
            expiry=proposal.expiry,
            received=now,
            state=AWAITING_APPROVAL,
        )
        proposed = Proposed.of(signed, job_id, coordinator)
        try:
            how = await asyncio.to_thread(self.judge.decide, spec, coordinator, expiry=proposal.expiry)
        except ComineError as error:
            reason = error.message[:MAX_REASON]
            await self._audit.record(proposed, Refused(job=job_id, by=POLICY, reason=reason))
            public = placeless(error, self._me)
            await self._add(replace(record, state=DENIED, **_denial(public, POLICY, now), reason=reason))
            await asyncio.to_thread(self._store.forget_refused, POLICY)  # proposed again, it is judged again
            raise
        used = None if how == "auto" else await asyncio.to_thread(self._in_advance, signed, spec, job_id, coordinator)
        if how == "auto" or used is not None:
            by = POLICY if used is None else f"{used.terms.by}, in advance"
            approval = self._sign(job_id, coordinator, by, now)
            record = replace(record, state=APPROVED, decided=now, decided_by=by, approval=approval.SerializeToString())
            in_advance = () if used is None else (StandingUsed(standing=used.terms.id, job=job_id, at=int(now)),)
            await self._audit.record(proposed, *in_advance, Approved.of(approval, job_id, by=by))
        else:
            await self._audit.record(proposed)
        try:
            await self._add(record)
        except ConfigurationError as error:  # nobody learns of the answer, and the log says that it came to nothing
            with contextlib.suppress(ComineError):
                await self._audit.record(Ended.by(job_id, "failed", error.at(self._me)))
            raise
        return record, spec

    def _in_advance(self, signed: SignedProposal, spec: JobSpec, job_id: bytes, coordinator: str) -> Standing | None:
        """The standing approval that a proposal uses up one run of; None where it needs a person.

        The run is used up before anything else, and stays so whatever becomes of it. Where the clock was set back,
        nobody knows what has ended, and a person decides.
        """
        now = self.now()
        with self._store.alone():
            latest = self._store.clock(now)
            if now < latest - SLACK_S:
                return None
            for each in self._store.standings():
                trust, me = self._identity.trust, self._me
                unfit = why_not(each, spec, signed, coordinator, trust, me, max(now, latest))
                if not unfit and self._have_approved(each.terms.job, spec.job.dataset):
                    self._store.follow_standings([StandingUsed(standing=each.terms.id, job=job_id, at=int(now))])
                    return each
        return None

    def check_people(self, job_id: bytes, dataset: str) -> None:
        """Refuses the start of a job that fewer people have approved than the policy asks for by now.

        Raises:
            PolicyDenied: It is so; or the standing approval of a run was revoked.
        """
        used = self._store.standing_of(job_id)
        if used is not None and used[1]:
            raise PolicyDenied(
                f"{self._me} had approved this run in advance and has revoked that; propose the job anew",
                party=self._me,
            )

        record = self._store.get(job_id)
        asked = job_id if used is None else used[0]
        if record is not None and record.decided_by != POLICY and not self._have_approved(asked, dataset):
            raise PolicyDenied(
                f"the policy of {self._me} asks for the approval of {self.judge.approvals(dataset)} people by now, and "
                "fewer have approved this job (rule approvals); propose it anew",
                party=self._me,
            )

    def revoke(self, standing: bytes, by: str) -> None:
        """Takes back what was approved in advance; runs that have not begun do not begin."""
        event = StandingRevoked(standing=standing, by=by)
        with self._store.alone():
            self._audit.append(event)
            self._store.follow_standings([event])

    def approve(self, record: Record, by: str, schedule: Schedule | None = None) -> None:
        """A person's consent to a job, and to more runs of it where there is a schedule.

        Where the policy asks for several people, the party agrees with the last of them; the others are written down.

        Raises:
            DeadlineExceeded: The proposal has expired.
            PolicyDenied: The policy refuses the job by now.
            UsageError: The job is not awaiting a decision; or several people have to approve it, and this one has, or
                approves other runs in advance.
        """
        with self._deciding(record):
            read_proposal(record.signed_proposal, self._identity.trust, record.coordinator)
            self.judge.decide(spec_of(record), record.coordinator, job_id=record.job_id)
            given = self._heard(record, by, "" if schedule is None else schedule.runs)
            voices = self._store.voices(record.job_id)
            if 0 < len(voices) < self.judge.approvals(record.dataset):
                self._audit.append(*given)
                return
            now, by = self.now(), ", ".join(voice.by for voice in voices) or by
            approval = self._sign(record.job_id, record.coordinator, by, now)
            signed, granted = record.signed_proposal, list[StandingApproved]()
            if schedule is not None:
                spec, whose = spec_of(record), record.coordinator
                granted = [grant(schedule, record.job_id, spec, signed, whose, self._identity, by, now)]
            self._audit.append(*given, Approved.of(approval, record.job_id, by=by), *granted)
            self._store.follow_standings(granted)
            changes = {"decided": now, "decided_by": by, "approval": approval.SerializeToString()}
            self._store.move(record.job_id, AWAITING_APPROVAL, APPROVED, changes)

    def _heard(self, record: Record, by: str, runs: str) -> tuple[ApprovalGiven, ...]:
        """Counts a person's approval where a job needs several, or did when the first was given."""
        needed, voices = self.judge.approvals(record.dataset), self._store.voices(record.job_id)
        if needed == 1 and not voices:
            return ()
        has_approved = person(by) in {person(voice.by) for voice in voices}
        if has_approved and len(voices) < needed:
            raise UsageError(
                f"{by} has approved the job {record.job_id.hex()[:12]} before; {needed} different people have to, and "
                f"so far {', '.join(voice.by for voice in voices)} did"
            )
        if other := [voice.by for voice in voices if voice.runs != runs]:
            raise UsageError(
                f"{other[0]} approved other runs of the job {record.job_id.hex()[:12]} in advance, or none; all who "
                "approve it give the same --times, --every and --until"
            )
        given = () if has_approved else (ApprovalGiven(job=record.job_id, by=by, needed=needed, runs=runs),)
        self._store.follow_voices(given)
        return given

    def _have_approved(self, job_id: bytes, dataset: str) -> bool:
        """Whether as many people have approved a job as the policy asks for now."""
        return max(1, len(self._store.voices(job_id))) >= self.judge.approvals(dataset)

    def deny(self, record: Record, by: str, reason: str) -> None:
        """A person's refusal of a job.

        Raises:
            DeadlineExceeded: The proposal has expired.
            UsageError: The job is not awaiting a decision.
        """
        with self._deciding(record):
            # A person chose these words for others to read, places among them.
            denial = PolicyDenied(f"{by} at {self._me} denied the job: {reason}", party=self._me)
            self._audit.append(Refused(job=record.job_id, by=by, reason=reason))
            changes = _denial(denial, by, self.now()) | {"reason": reason}
            self._store.move(record.job_id, AWAITING_APPROVAL, DENIED, changes)

    def cancel(self, record: Record, by: str, reason: str) -> None:
        """A person ends a job that was approved, runs, or could go on in another attempt.

        One that runs is ended by its node, which looks for that; where the node does not run, at its next start.

        Raises:
            UsageError: The job is none of these.
        """
        event = OwnerCancelled(job=record.job_id, by=by, reason=reason)
        with self._store.alone():
            present = self._store.get(record.job_id) or record
            waits = present.state == APPROVED and present.expiry > self.now()
            if not (waits or present.state in (RUNNING, RELEASING) or goes_on(present, self.now())):
                raise UsageError(
                    f"the job {record.job_id.hex()[:12]} {_state_text(present)}; only jobs that are approved, run or "
                    "could be resumed can be cancelled, and one that awaits approval can be denied"
                )
            if self._store.owner_end(record.job_id, self._me) is not None:
                return
            self._store.follow_owner_ends([event])
            cancelled = self._store.owner_end(record.job_id, self._me)
            if waits and cancelled is not None:
                self._audit.append(event, Ended.by(record.job_id, "cancelled", cancelled))
                changes = early_end(self.now(), cancelled, self._me)
                self._store.move(record.job_id, APPROVED, CANCELLED, changes)
            else:
                self._audit.append(event)

    def release(self, record: Record, by: str) -> None:
        """A person releases what a job has found.

        Raises:
            UsageError: Nothing of the job is held.
        """
        with self._store.alone():
            self._check_held(record)
            self._audit.append(HoldReleased(job=record.job_id, by=by))
            self._store.let_go(record.job_id, by)

    def withhold(self, record: Record, by: str, reason: str) -> None:
        """A person does not release what a job has found, whose node then ends it, for good.

        Raises:
            UsageError: Nothing of the job is held.
        """
        event = HoldWithheld(job=record.job_id, by=by, reason=reason)
        with self._store.alone():
            self._check_held(record)
            self._audit.append(event)
            self._store.follow_owner_ends([event])

    def _check_held(self, record: Record) -> None:
        present, held = self._store.get(record.job_id) or record, self._store.held(record.job_id)
        may_leave = present.state == RUNNING or goes_on(present, self.now())
        if held is None or held.released_by or not may_leave:
            raise UsageError(
                f"nothing of the job {record.job_id.hex()[:12]} is held for release; comine party results lists what is"
            )
        if self._store.owner_end(record.job_id, self._me) is not None:
            raise UsageError(
                f"the job {record.job_id.hex()[:12]} was ended by its party, and nothing of it is released"
            )

    @contextmanager
    def _deciding(self, record: Record) -> Iterator[None]:
        """Holds the database while a job is decided that awaits it."""
        with self._store.alone():
            present = self._store.get(record.job_id) or record
            if present.state != AWAITING_APPROVAL:
                raise UsageError(
                    f"the job {record.job_id.hex()[:12]} {_state_text(present)}; only jobs that await approval can be "
                    "approved or denied"
                )
            if present.expiry <= self.now():
                raise DeadlineExceeded(
                    f"the proposal expired on {dt.datetime.fromtimestamp(present.expiry, dt.UTC):%Y-%m-%d %H:%M} UTC; "
                    f"ask {present.coordinator} to propose the job anew",
                    party=self._me,
                )
            yield

    def _sign(self, job_id: bytes, coordinator: str, by: str, now: float) -> SignedApproval:
        return signed_approval(job_id, coordinator, self._identity, decided=int(now), by=by)

    async def _add(self, record: Record) -> None:
        if not await asyncio.to_thread(self._store.add, record):
            raise self._twice()

    def _twice(self) -> UnexpectedMessage:
        return UnexpectedMessage(f"{self._me} has received this very proposal before; make a new one", party=self._me)


def _state_text(record: Record) -> str:
    """How a job stands that awaits no decision, as the end of a sentence about it."""
    by = " by the policy" if record.decided_by == POLICY else f" by {record.decided_by}"
    match record.state:
        case JobState.APPROVED | JobState.DENIED:
            return f"was {JobState.Name(record.state).lower()}{by}"
        case JobState.RUNNING | JobState.RELEASING:
            return "is running"
        case JobState.CANCELLED:
            return "was cancelled"
        case JobState.AWAITING_APPROVAL:
            return "awaits approval"
        case _:  # succeeded, failed, expired
            return f"has {JobState.Name(record.state).lower()}"


def support_asked(spec: JobSpec) -> str:
    """The support that a job asks for, or how many itemsets it wants whatever their support."""
    if spec.itemsets_ is None:
        return ""
    asked = spec.itemsets.min_support_
    return f"top {spec.itemsets.top_k}" if asked is None else str(asked)


def _denial(denial: ComineError, by: str, now: float) -> dict[str, Any]:
    return {
        "decided": now,
        "decided_by": by,
        "ended": now,
        "error_code": denial.code,
        "error_message": denial.message[:MAX_REASON],
        "error_party": denial.party,
    }

"""The inbox of a party as data: what was proposed, and all that a person needs to decide on one job."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jobs.kinds.charge import charge
from jobs.spec.diff import diff
from jobs.spec.job import JobSpec
from jobs.statement import statement
from jobs.summary import summary
from link.errors import ComineError, UsageError
from party.policy.consent import goes_on, proposal_of, spec_of
from party.policy.judge import Judge
from party.policy.policy_input import Verdict
from party.policy.privacy_budget import amounts, amounts_of
from party.policy.standing import as_typed
from party.state.standing import Standing
from party.state.store import Record, Store
from protos.v1.control_pb2 import APPROVED, AWAITING_APPROVAL, RUNNING, JobState

LEAST_DIGITS: Final = 4  # of a job id, to name the job


def find(store: Store, prefix: str) -> Record:
    """The job whose id begins with some hexadecimal digits.

    Raises:
        UsageError: They are too few, or none; or no job's id or several begin with them.
    """
    if len(prefix) < LEAST_DIGITS or not set(prefix.lower()) <= set("0123456789abcdef"):
        raise UsageError(f"name a job by its id, or by its first {LEAST_DIGITS} hexadecimal digits or more")
    found = store.find(prefix)
    if not found:
        raise UsageError(f"there is no job {prefix[:64]}; comine party inbox --all lists the jobs")
    if len(found) > 1:
        raise UsageError(f"{len(found)} jobs begin with {prefix[:64]}; give more digits")
    return found[0]


def state_of(record: Record, now: float) -> str:
    """Where a job stands, in words; one whose time is over has expired, whether or not a node was there to see it."""
    if record.state in (APPROVED, AWAITING_APPROVAL) and record.expiry <= now:
        return "expired"
    return words(JobState.Name(record.state))


def words(state: str) -> str:
    """A state's name for people."""
    return state.lower().replace("_", " ")


def clock(seconds: float | None) -> str | None:
    """A time in UTC, as ISO 8601."""
    return None if seconds is None else f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def listed(party: str, records: Sequence[Record], store: Store, judge: Judge, now: float) -> dict[str, Any]:
    """A list of jobs as JSON values, by the schema `comine.inbox/1`."""
    jobs = [line(record, now) | {"approvals": approvals_of(record, store, judge)} for record in records]
    return {"schema": "comine.inbox/1", "party": party, "jobs": jobs}


def approvals_of(record: Record, store: Store, judge: Judge) -> dict[str, Any]:
    """How many people have to approve a job, and where several do, who has, with which more runs of it in advance."""
    voices = store.voices(record.job_id)
    runs = next((as_typed(voice.runs) for voice in voices if voice.runs), None)
    return {"needed": judge.approvals(record.dataset), "by": [voice.by for voice in voices], "runs": runs}


def in_advance(standings: Sequence[Standing], now: float) -> list[dict[str, Any]]:
    """Standing approvals as JSON values."""
    return [
        {
            "id": each.terms.id.hex(),
            "state": "revoked" if each.revoked else "ended" if _is_over(each, now) else "stands",
            "job_id": each.terms.job.hex(),
            "spec_digest": each.terms.spec_digest.hex(),
            "coordinator": each.terms.coordinator,
            "times": each.terms.times,
            "used": len(each.uses),
            "every_s": each.terms.every_s,
            "until": clock(each.terms.until),
            "approved": clock(each.terms.approved),
            "by": each.terms.by,
            "revoked_by": each.revoked or None,
        }
        for each in standings
    ]


def find_standing(standings: Sequence[Standing], prefix: str) -> Standing:
    """The standing approval that stands and whose id, or whose job's id, begins with some hexadecimal digits.

    Raises:
        UsageError: None does, or several do.
    """
    found = [
        each
        for each in standings
        if not each.revoked
        and len(prefix) >= LEAST_DIGITS
        and (each.terms.id.hex().startswith(prefix) or each.terms.job.hex().startswith(prefix))
    ]
    if len(found) != 1:
        raise UsageError(
            f"{len(found)} standing approvals that stand have an id, or a job's, that begins with {prefix[:64]}; "
            "comine party inbox lists them"
        )
    return found[0]


def _is_over(standing: Standing, now: float) -> bool:
    return now >= standing.terms.until or len(standing.uses) >= standing.terms.times


def line(record: Record, now: float) -> dict[str, Any]:
    """One job of a list."""
    job = json.loads(proposal_of(record).spec)["job"]
    return {
        "job_id": record.job_id.hex(),
        "name": job["name"],
        "state": state_of(record, now),
        "coordinator": record.coordinator,
        "task": job["task"],
        "dataset": record.dataset,
        "parties": list(record.parties),
        "min_support": record.min_support,
        "received": clock(record.received),
        "expiry": clock(record.expiry),
        "decided": clock(record.decided),
        "decided_by": record.decided_by or None,
        "reason": record.reason or None,
    }


def course(record: Record, store: Store, now: float) -> dict[str, Any]:
    """How a job went so far: its line of the list, when it began and ended, and what is held of it."""
    return line(record, now) | {
        "started": clock(record.started),
        "ended": clock(record.ended),
        "error": _error(record),
        "held": held_of(record, store, now),
    }


def shown(
    party: str,
    record: Record,
    store: Store,
    judge: Judge,
    plan: dict[str, Any] | None,
    alignment: Path | None,
    now: float,
) -> dict[str, Any]:
    """One job as JSON values, by the schema `comine.proposal/1`.

    Args:
        party: This party.
        record: The job.
        store: All its jobs.
        judge: Its policy.
        plan: What the job would cost, as computed here; None where that is not known.
        alignment: Where this party's aligned rows are; None where the job has left none.
        now: Unix seconds.

    Raises:
        ConfigurationError: The record cannot be read by this version, or was changed.
    """
    spec = spec_of(record)
    declared = statement(spec)
    return {
        "schema": "comine.proposal/1",
        "party": party,
        **course(record, store, now),
        "spec_digest": spec.digest.hex(),
        "standing": in_advance([each for each in store.standings() if each.terms.spec_digest == spec.digest], now),
        "job": spec.model_dump(mode="json", by_alias=True),
        "summary": summary(spec).model_dump(mode="json"),
        "disclosure": declared.as_data(),
        "statement": declared.prose(),
        "privacy": {
            "model": spec.privacy.model,
            "charge": amounts_of(charge(spec)).model_dump(),
            "left": amounts(judge.left(spec, record.job_id)).model_dump(),
        },
        "policy": _policy(record, spec, judge),
        "approvals": approvals_of(record, store, judge),
        "release": judge.policy_of(spec).release,
        "plan": plan,
        "alignment": None if alignment is None else str(alignment),
        "changes": _changes(record, spec, store),
        "earlier": [
            {
                "job_id": job.job_id.hex(),
                "started": clock(job.started),
                "state": words(job.state),
                "parties": list(job.parties),
                "min_support": job.min_support,
                "n_rows": job.n_rows,
            }
            for job in judge.earlier(spec, record.job_id)
        ],
    }


def held_of(record: Record, store: Store, now: float) -> dict[str, Any] | None:
    """What is held of a job, as people are shown it; None where nothing is, or it was decided.

    That a job has lost its session, as with a restart of its node, decides nothing while another attempt may follow.
    """
    held = store.held(record.job_id)
    if held is None or held.released_by or store.owner_end(record.job_id, "") is not None:
        return None
    if record.state == RUNNING:
        return held.shown | {"lost": False}
    return held.shown | {"lost": True, "until": clock(record.expiry)} if goes_on(record, now) else None


def _error(record: Record) -> dict[str, str] | None:
    if not record.error_code:
        return None
    return {"code": record.error_code, "message": record.error_message, "party": record.error_party}


def _policy(record: Record, spec: JobSpec, judge: Judge) -> dict[str, Any]:
    rules: list[dict[str, Any]] = []
    try:
        rules += map(_rule, judge.verdicts(spec, record.coordinator, job_id=record.job_id))
        decision: str = judge.decide(spec, record.coordinator, job_id=record.job_id)
    except ComineError as error:
        return {"decision": "refuse", "refusal": error.message, "rules": rules}
    return {"decision": decision, "refusal": None, "rules": rules}


def _rule(verdict: Verdict) -> dict[str, Any]:
    says = "refuses" if verdict.refusal else "is checked at the start" if verdict.later else "allows"
    return {"rule": verdict.rule, "says": says, "allowed": verdict.allows, "refusal": verdict.refusal}


def _changes(record: Record, spec: JobSpec, store: Store) -> dict[str, Any] | None:
    """What differs from the last job of this coordinator on this dataset that was approved before."""
    last = store.last_approved(record.coordinator, record.dataset, record.received)
    if last is None:
        return None
    try:
        changes = diff(spec_of(last), spec)
    except ComineError:  # written by another version; there is nothing to compare with
        return None
    return {
        "since": last.job_id.hex(),
        "decided": clock(last.decided),
        "changes": [change._asdict() for change in changes],
    }

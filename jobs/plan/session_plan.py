"""The plan of a job from what its session sends: what plans of all kinds of jobs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.plan.answer import Answer
from jobs.plan.plan import PartyPlan, Plan
from jobs.plan.privacy import Privacy
from jobs.spec.job import JobSpec
from jobs.statement import statement
from jobs.summary import summary
from link.traffic import Traffic


def session_plan(
    spec: JobSpec,
    answers: Mapping[str, Answer],
    traffic: Traffic,
    seconds: float,
    memory_bytes: Mapping[str, int],
    *,
    privacy: Privacy | None = None,
    **figures: Any,
) -> Plan:
    """The plan.

    Args:
        spec: The job.
        answers: What each of its parties is taken to be, in the order of the job.
        traffic: Of the whole session.
        seconds: Of the slowest party.
        memory_bytes: By party.
        privacy: What the job costs each record; then what a party has left is shown too.
        figures: All else that the plan says, as fields of `Plan`.
    """
    declared = statement(spec)
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        rounds=traffic.rounds,
        seconds=seconds,
        parties={
            name: PartyPlan(
                rows_public=answer.rows_public,
                n_rows=answer.n_rows,
                bytes_sent=traffic.bytes_sent(name),
                bytes_received=traffic.bytes_received(name),
                seconds=seconds,
                memory_bytes=memory_bytes[name],
                left=None if privacy is None else answer.left,
            )
            for name, answer in answers.items()
        },
        summary=summary(spec),
        disclosure=declared.as_data(),
        prose=declared.prose(),
        privacy=privacy,
        **figures,
    )


def with_limits(plan: Plan, sent: Mapping[str, int], received: Mapping[str, int]) -> Plan:
    """A plan with the most bytes that each party may send and receive."""
    parties = {
        name: party.model_copy(
            update={"bytes_sent_at_most": sent[name], "bytes_received_at_most": received[name]},
        )
        for name, party in plan.parties.items()
    }
    return plan.model_copy(update={"parties": parties})

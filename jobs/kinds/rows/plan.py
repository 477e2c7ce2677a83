"""The plan of a job over rows: its unions and sums, and other ways to do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.kinds.rows.parameters import computing_choice, horizontal_mining
from jobs.kinds.rows.plan_alternatives import alternatives
from jobs.kinds.rows.plan_figures import Figures, session_traffic
from jobs.kinds.rows.plan_sizes import allowed
from jobs.plan.answer import Answer
from jobs.plan.assumptions import advice, assumptions, of_unions
from jobs.plan.plan import Batch, Plan
from jobs.plan.prices import memory, unions_machine_s
from jobs.plan.session_plan import session_plan, with_limits
from jobs.spec.job import JobSpec
from mining.joint.parameters import HorizontalMining
from mining.joint.sizes import Step, Vote, steps


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """What the job will cost and disclose; arguments as in `jobs.plan.estimate`."""
    task, parties = horizontal_mining(spec), spec.job.parties
    answers = {name: answers[name] for name in parties}
    figures = Figures.of(task, answers, latency_s, spec.plan.bytes_per_s)
    found, traffic = figures.found, figures.traffic
    unknown = found is None or any(answer.n_rows is None for answer in answers.values())
    most = [session_traffic(task, parties, answers, limit) for limit in allowed(task, parties)] if unknown else []
    plan = session_plan(
        spec,
        answers,
        traffic,
        figures.seconds,
        {name: memory(task, answer, figures.sizes, len(parties)) for name, answer in answers.items()},
        n_rows=found.n_rows if found is not None else None,
        strategy=found.strategy if found is not None else spec.itemsets.strategy,
        is_least=found is None,
        batches=_batches(task, steps(task, figures.sizes)) if found is not None else [],
        assumptions=[
            *others,
            *assumptions(spec, found, answers, latency_s),
            *_computing(spec),
            *of_unions(unions_machine_s(task, figures.sizes, {n: answers[n].speed for n in parties})),
        ],
        advice=advice(spec),
        alternatives=alternatives(spec, figures, answers, latency_s) if compare else [],
    )
    if not most:
        return plan
    return with_limits(
        plan,
        {name: max(limit.bytes_sent(name) for limit in most) for name in parties},
        {name: max(limit.bytes_received(name) for limit in most) for name in parties},
    )


def _computing(spec: JobSpec) -> list[str]:
    """Why two parties compute, or three, where the job leaves it open."""
    choice = computing_choice(spec)
    if choice is None or spec.is_verified:
        return []
    return [choice.reason]


def _batches(task: HorizontalMining, taken: Sequence[Step]) -> list[Batch]:
    votes = [step for step in taken if isinstance(step, Vote)]
    return [Batch.of(vote.name, task.disclose, vote.candidates, vote.frequent) for vote in votes]

"""A plan from the specification of a job and what its parties answer: pure arithmetic, the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.kinds.blended.parameters import is_blended
from jobs.kinds.columns.plan import estimate_vertical
from jobs.kinds.models.plan import estimate_model
from jobs.kinds.noisy.parameters import is_noisy
from jobs.kinds.reported.parameters import is_reported
from jobs.kinds.rows.plan_alternatives import alternatives
from jobs.kinds.rows.plan_figures import Figures, session_traffic
from jobs.kinds.rows.plan_sizes import allowed
from jobs.parameters import horizontal_mining
from jobs.plan.answer import Answer
from jobs.plan.assumptions import advice, assumptions, of_unions
from jobs.plan.plan import Batch, PartyPlan, Plan
from jobs.plan.prices import memory, unions_machine_s
from jobs.spec import JobSpec
from jobs.statement import statement
from mining.joint.parameters import HorizontalMining
from mining.joint.sizes import Step, Vote, steps


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """What the job will cost and disclose.

    Args:
        spec: The job.
        answers: What each of its parties is taken to be.
        latency_s: Seconds that a message is expected to take from party to party.
        others: What else the figures rest on, in sentences.
        compare: Whether other ways to do the job are looked at too.
    """
    if spec.anonymizes:
        from jobs.kinds.release.plan import estimate_anonymization  # with what other jobs do without

        return estimate_anonymization(spec, answers, latency_s, *others)
    if spec.trains:
        return estimate_model(spec, answers, latency_s, *others)
    if spec.is_vertical:
        return estimate_vertical(spec, answers, latency_s, *others, compare=compare)
    if is_reported(spec):
        from jobs.kinds.reported.plan import estimate_reported  # with what other jobs do without

        return estimate_reported(spec, answers, latency_s, *others)
    if is_noisy(spec):
        from jobs.kinds.noisy.plan import estimate_noisy

        return estimate_noisy(spec, answers, latency_s, *others)
    if is_blended(spec):
        from jobs.kinds.blended.plan import estimate_blended

        return estimate_blended(spec, answers, latency_s, *others)
    task, parties = horizontal_mining(spec), spec.job.parties
    answers = {name: answers[name] for name in parties}
    figures = Figures.of(task, answers, latency_s, spec.plan.bytes_per_s)
    found, traffic = figures.found, figures.traffic
    unknown = found is None or any(answer.n_rows is None for answer in answers.values())
    most = [session_traffic(task, parties, answers, limit) for limit in allowed(task, parties)] if unknown else []
    declared = statement(spec)
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        n_rows=found.n_rows if found is not None else None,
        strategy=found.strategy if found is not None else spec.itemsets.strategy,
        rounds=traffic.rounds,
        seconds=figures.seconds,
        is_least=found is None,
        parties={
            name: PartyPlan(
                rows_public=answers[name].rows_public,
                n_rows=answers[name].n_rows,
                bytes_sent=traffic.bytes_sent(name),
                bytes_received=traffic.bytes_received(name),
                bytes_sent_at_most=max((limit.bytes_sent(name) for limit in most), default=None),
                bytes_received_at_most=max((limit.bytes_received(name) for limit in most), default=None),
                seconds=figures.seconds,
                memory_bytes=memory(task, answers[name], figures.sizes, len(parties)),
            )
            for name in parties
        },
        batches=_batches(task, steps(task, figures.sizes)) if found is not None else [],
        disclosure=declared.as_data(),
        prose=declared.prose(),
        assumptions=[
            *others,
            *assumptions(spec, found, answers, latency_s),
            *of_unions(unions_machine_s(task, figures.sizes, {n: answers[n].speed for n in parties})),
        ],
        advice=advice(spec),
        alternatives=alternatives(spec, figures, answers, latency_s) if compare else [],
    )


def _batches(task: HorizontalMining, taken: Sequence[Step]) -> list[Batch]:
    votes = [step for step in taken if isinstance(step, Vote)]
    return [Batch(step=vote.lane, candidates=vote.candidates, opened=_opened(task, vote)) for vote in votes]


def _opened(task: HorizontalMining, vote: Vote) -> int:
    """Of how many candidates the sums are opened."""
    if task.disclose == "supports":
        return vote.frequent
    return 0 if task.is_shared else vote.candidates

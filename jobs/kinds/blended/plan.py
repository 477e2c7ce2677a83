"""The plan of a blended job: what it sends, and what it costs each record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.blended.parameters import blended_mining
from jobs.kinds.charge import charge
from jobs.kinds.reported.plan import likely_rows
from jobs.plan.answer import Answer
from jobs.plan.assumptions import of_network
from jobs.plan.plan import Batch, PartyPlan, Plan
from jobs.plan.prices import NODE_BYTES, ROW_BYTES, SETTLE_S, moving_s
from jobs.plan.privacy import Privacy
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.traffic import Traffic
from mining.joint.blended.budget import spent
from mining.joint.blended.parameters import Blending
from mining.joint.blended.sizes import blended_traffic

_NAME_BYTES: Final = 20  # of an item's name with its count in a list, about
_FOUND_BYTES: Final = 60  # of an item with its count and deviation among estimates, about
_ANSWER: Final = 0.006  # group multiplications, about, of a record's answer


def estimate_blended(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str) -> Plan:
    """What a blended job will cost and disclose; arguments as in `estimate`.

    Raises:
        ConfigurationError: The job is none that can be blended.
    """
    answers = {name: answers[name] for name in spec.job.parties}
    task, rows, declared = blended_mining(spec), likely_rows(answers), statement(spec)
    traffic = _traffic(task, answers)
    told = [each for each in answers.values() if each.n_rows is not None]
    work_s = max(rows[name] * _ANSWER * answer.speed.multiply_s for name, answer in answers.items())
    moving = max(moving_s(traffic, name, answer.speed, spec.plan.bytes_per_s) for name, answer in answers.items())
    seconds = SETTLE_S + traffic.rounds * latency_s + work_s + moving
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        n_rows=sum(rows.values()) if told else None,
        strategy="blended",
        rounds=traffic.rounds,
        seconds=seconds,
        parties={
            name: PartyPlan(
                rows_public=answer.rows_public,
                n_rows=answer.n_rows,
                bytes_sent=traffic.bytes_sent(name),
                bytes_received=traffic.bytes_received(name),
                seconds=seconds,
                memory_bytes=NODE_BYTES + rows[name] * ROW_BYTES,
                left=answer.left,
            )
            for name, answer in answers.items()
        },
        batches=[Batch(step="head", candidates=task.head, opened=0)],
        disclosure=declared.as_data(),
        prose=declared.prose(),
        assumptions=[
            *others,
            f"Trusted parties name as many items as the head list has at most, {task.head}.",
            "A party that tells no number of rows is taken to have as many as the others.",
            of_network(spec, latency_s, ", as between them and the coordinator"),
            "The parties' machines are as busy as when they were asked, and their data are read already.",
        ],
        privacy=Privacy.of(spent(task), charge(spec)),
    )


def _traffic(task: Blending, answers: Mapping[str, Answer]) -> Traffic:
    traffic = Traffic(tuple(answers))
    named = dict.fromkeys(task.opted_in, task.head * _NAME_BYTES)
    blended_traffic(traffic, task, named, task.head, task.k * _FOUND_BYTES)
    traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
    return traffic

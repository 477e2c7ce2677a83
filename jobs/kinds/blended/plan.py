"""The plan of a blended job: what it sends, and what it costs each record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.blended.parameters import blended_mining
from jobs.kinds.charge import charge
from jobs.kinds.reported.plan import likely_rows
from jobs.plan.answer import Answer
from jobs.plan.assumptions import of_network
from jobs.plan.plan import Batch, Plan
from jobs.plan.prices import NODE_BYTES, passes_s, rows_bytes, session_s
from jobs.plan.privacy import Privacy
from jobs.plan.session_plan import session_plan
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.blended.budget import spent
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
    task, rows, traffic = blended_mining(spec), likely_rows(answers), Traffic(tuple(answers))
    named = dict.fromkeys(task.opted_in, task.head * _NAME_BYTES)
    blended_traffic(traffic, task, named, task.head, task.k * _FOUND_BYTES)
    traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
    speeds = {name: answer.speed for name, answer in answers.items()}
    work_s = max(rows[name] * _ANSWER * speed.multiply_s for name, speed in speeds.items())
    published = any(answer.n_rows is not None for answer in answers.values())
    return session_plan(
        spec,
        answers,
        traffic,
        session_s(traffic, speeds, latency_s, spec.plan.bytes_per_s) + work_s + passes_s(answers, 1),
        {name: NODE_BYTES + rows_bytes(answer, rows[name]) for name, answer in answers.items()},
        n_rows=sum(rows.values()) if published else None,
        strategy="blended",
        batches=[Batch(step="head", candidates=task.head, opened=0)],
        assumptions=[
            *others,
            f"Trusted parties name as many items as the head list has at most, {task.head}.",
            "A party that publishes no number of rows is taken to have as many as the others.",
            of_network(spec, latency_s, ", as between them and the coordinator"),
            "The parties' machines are as busy as when they were asked, and their data are read already.",
        ],
        privacy=Privacy.of(spent(task), charge(spec)),
    )

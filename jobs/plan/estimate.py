"""A plan from the specification of a job and what its parties answer: pure arithmetic, the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kinds.registry import kind_of
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec


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
    return kind_of(spec).estimate(spec, answers, latency_s, *others, compare=compare)

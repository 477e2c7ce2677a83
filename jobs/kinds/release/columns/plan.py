"""The plan of a release of columns: that of the alignment."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kinds.columns.plan import estimate as estimate_columns
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec

_ONLY_ALIGNED = (
    "The figures are those of the alignment alone, which is the smaller part. Which nodes are examined depends on the "
    "rows: each table that is computed takes some hundred bytes for every common row, and the joined rows are sent "
    "some twenty times over."
)


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """As `jobs.kinds.kind.Kind.estimate`."""
    aligned = estimate_columns(spec, answers, latency_s, *others, _ONLY_ALIGNED, compare=compare)
    return aligned.model_copy(update={"strategy": spec.anonymization.algorithm, "is_least": True})

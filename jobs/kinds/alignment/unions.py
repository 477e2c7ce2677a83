"""What an alignment of rows is among the unions of a job."""

from __future__ import annotations

from jobs.kinds.kind import Unions
from jobs.spec.job import JobSpec


def of_alignment(spec: JobSpec) -> Unions:
    """An alignment has the fakes of a union."""
    return Unions(
        taken=spec.alignment.mode == "union",
        merges=0 if len(spec.job.parties) == 2 else 1,
        key="[align] bound",
        bound=spec.alignment.bound,
        otherwise='mode = "intersection"',
        instead="two parties alone",
    )

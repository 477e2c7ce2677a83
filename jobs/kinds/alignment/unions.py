"""What an alignment of rows is among the unions of a job."""

from __future__ import annotations

from jobs.kinds.kind import Unions
from jobs.spec.job import JobSpec


def of_alignment(spec: JobSpec) -> Unions:
    """An alignment shows nobody how much others have in common."""
    taken = spec.alignment.mode == "union"
    return Unions(taken, "[align] bound", spec.alignment.bound, otherwise='mode = "intersection"')

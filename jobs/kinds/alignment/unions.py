"""What an alignment of rows is among the unions of a job."""

from __future__ import annotations

from crypto.protocols.alignment.disclosure import shows_groups
from jobs.kinds.kind import Unions
from jobs.spec.job import JobSpec


def of_alignment(spec: JobSpec) -> Unions:
    """An alignment by union has the fakes of one."""
    mode, bound = spec.alignment.mode, spec.alignment.bound
    return Unions(
        taken=mode == "union",
        merges=int(shows_groups(mode, len(spec.job.parties))),
        key="[align] bound",
        bound=bound,
        otherwise='mode = "intersection"',
    )

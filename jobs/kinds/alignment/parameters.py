"""From a job specification to the public parameters of an alignment of rows."""

from __future__ import annotations

from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.data.row_ids import IdNormalisation
from mining.joint.align import RowAlignment


def row_alignment(spec: JobSpec) -> RowAlignment:
    """How the rows of a vertical job are aligned, as the specification gives it."""
    align = spec.alignment
    return RowAlignment(spec.job.parties[0], align.mode, id_normalisation(spec), align.bound)


def id_normalisation(spec: JobSpec) -> IdNormalisation:
    """What a vertical job has done to ids before they are compared."""
    align = spec.alignment
    return IdNormalisation(align.trim, align.case, align.unicode)


def check_alignment(spec: JobSpec) -> None:
    """Refuses an alignment by which a job could not go on.

    Raises:
        ConfigurationError: It reveals how many rows all parties have, and no more.
    """
    if spec.alignment.mode == "cardinality":
        raise ConfigurationError(
            '[align] mode = "cardinality" reveals only how many rows all parties have; it needs task = "align"'
        )

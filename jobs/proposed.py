"""Reads jobs that crossed the wire, and refuses those that cannot run."""

from __future__ import annotations

from typing import Final

from jobs.kinds.registry import kind_of, read_spec
from jobs.kinds.tables import check_tables
from jobs.spec.job import JobSpec
from jobs.union_limit import too_large_unions
from link.errors import ConfigurationError, InputDataError
from link.files.json_text import read_json

_PROPOSED: Final = "the proposed job"


def job_from_canonical(data: bytes) -> JobSpec:
    """Reads a job that crossed the wire.

    Raises:
        ConfigurationError: It is not in canonical form, or cannot run.
    """
    try:
        contents = read_json(data)
    except ValueError:
        raise ConfigurationError(f"{_PROPOSED} is not JSON") from None
    spec = read_spec(contents, _PROPOSED)
    if spec.canonical() != data:
        raise ConfigurationError(f"{_PROPOSED} is not in canonical form; bring both nodes to the same version")
    check_job(spec, _PROPOSED)
    return spec


def check_job(spec: JobSpec, where: str) -> None:
    """Refuses a job that cannot run, or says something in vain.

    Args:
        spec: The job.
        where: What errors call it.

    Raises:
        ConfigurationError: With the reason.
    """
    try:
        kind = kind_of(spec)
        check_tables(spec, kind.tables(spec))
        kind.check(spec)
        if refusal := too_large_unions(spec):
            raise ConfigurationError(refusal)
    except (ConfigurationError, InputDataError) as error:
        raise ConfigurationError(f"{where}: {error.message}") from None

"""What a job may cost each record at most, by its kind."""

from __future__ import annotations

from jobs.kinds.registry import kind_of
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec


def charge(spec: JobSpec) -> Charge:
    """The most that a job may cost a record."""
    return kind_of(spec).charge(spec)

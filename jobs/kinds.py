"""The two kinds of data: transactions of one's own, and tables where parties hold columns of the same rows."""

from __future__ import annotations

from typing import Literal

from jobs.spec import JobSpec
from link.errors import ConfigurationError

Kind = Literal["transactions", "table"]


def needed_kind(spec: JobSpec) -> Kind:
    """The kind of data that a job needs."""
    return "table" if spec.is_vertical else "transactions"


def check_kind(spec: JobSpec, kind: Kind, me: str) -> None:
    """Refuses data that a job cannot use.

    Args:
        spec: The job.
        kind: Of this party's dataset.
        me: This party.

    Raises:
        ConfigurationError: The job needs another kind.
    """
    needed = needed_kind(spec)
    if kind != needed:
        raise ConfigurationError(
            f"the dataset '{spec.job.dataset}' of {me} has kind = \"{kind}\", and a job with partition = "
            f'"{spec.job.partition}" needs kind = "{needed}"',
            party=me,
        )

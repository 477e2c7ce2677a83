"""The two kinds of data: transactions, and tables, from which models are learnt and whose columns parties may share."""

from __future__ import annotations

from typing import Literal

from jobs.spec import JobSpec
from link.errors import ConfigurationError

Kind = Literal["transactions", "table"]


def needed_kind(spec: JobSpec) -> Kind:
    """The kind of data that a job needs."""
    return "table" if spec.is_vertical or spec.trains or spec.anonymizes else "transactions"


def default_ids(spec: JobSpec) -> tuple[str, ...]:
    """The columns of ids that a job takes from files where nobody names any: none where it needs none."""
    return () if (spec.trains or spec.anonymizes) and not spec.is_vertical else ("id",)


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
        of = f'task = "{spec.job.task}"' if spec.trains or spec.anonymizes else f'partition = "{spec.job.partition}"'
        raise ConfigurationError(
            f"the dataset '{spec.job.dataset}' of {me} has kind = \"{kind}\", and a job with {of} needs "
            f'kind = "{needed}"',
            party=me,
        )

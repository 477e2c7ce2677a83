"""Refuses what a job file says in vain, so that nobody counts on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from jobs.kinds.kind import ALL
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError


def check_tables(spec: JobSpec, tables: Mapping[str, frozenset[str]]) -> None:
    """Refuses tables and keys that mean nothing in a job.

    Args:
        spec: The job.
        tables: By table, the keys that mean something.

    Raises:
        ConfigurationError: Another one is given, or the job is to withstand what nobody checks in it.
    """
    trusted = tables.get("trust", frozenset())
    if spec.is_verified and trusted != ALL and "security" not in trusted:
        raise ConfigurationError(
            'security = "malicious" in [trust] is for itemsets and rules, without noise: with '
            f"{settings(spec)} nothing checks what a party sends; where parties may deviate, do not run this job"
        )
    for said in said_in_vain(spec, tables):
        raise ConfigurationError(f"{said} means nothing with {settings(spec)}; leave it out")


def said_in_vain(spec: JobSpec, tables: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The tables and keys that are given and mean nothing, as they are called in the file."""
    for name, field in type(spec).model_fields.items():
        table, section = field.alias or name, getattr(spec, name)
        meant = tables.get(table, frozenset())
        if name == "job" or not section or meant == ALL:
            continue
        if not isinstance(section, BaseModel) or (not meant and field.default is None):
            yield f"{'an' if table[0] in 'aeiou' else 'a'} [{table}] table"
            continue
        for key, known in type(section).model_fields.items():
            called = known.alias or key
            if called not in meant and getattr(section, key) != known.get_default(call_default_factory=True):
                yield f"[{table}] {called}"


def settings(spec: JobSpec) -> str:
    """What makes a job one of its kind, in words."""
    said = f'task = "{spec.job.task}" and partition = "{spec.job.partition}"'
    if spec.privacy_ is None:
        return said
    return f'task = "{spec.job.task}", partition = "{spec.job.partition}" and [privacy] model = "{spec.privacy.model}"'

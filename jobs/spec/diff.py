"""How two job specifications differ, key by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from jobs.spec.job import JobSpec


class Change(NamedTuple):
    """One key whose value is another one.

    Attributes:
        key: Its table and name, such as "itemsets.min_support".
        before: Its value as in JSON; None where it was not set.
        after: Likewise.
    """

    key: str
    before: Any
    after: Any


def diff(before: JobSpec, after: JobSpec) -> tuple[Change, ...]:
    """What changed from one specification to another, in the order of their keys; empty where they are the same."""
    old, new = (
        dict(_flat(before.model_dump(mode="json", by_alias=True))),
        dict(_flat(after.model_dump(mode="json", by_alias=True))),
    )
    keys = dict.fromkeys((*old, *new))
    return tuple(Change(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key))


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value

"""How two job specifications differ, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from jobs.spec.job import JobSpec
from link.files.quantities import percent

_SHARES: Final = frozenset({"min_support", "min_confidence", "max_suppression"})  # keys whose text is a share
_PLAIN: Final = frozenset({"job", "itemsets", "rules"})  # tables that need not be named with their keys
_LONG: Final = 300  # characters of a value that are shown


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

    @property
    def text(self) -> str:
        """It in a line, as of a key that a person has written."""
        table, _, rest = self.key.partition(".")
        name = rest if table in _PLAIN else self.key
        if isinstance(self.before, list) and isinstance(self.after, list):
            gone = [value_text(each) for each in self.before if each not in self.after]
            come = [value_text(each) for each in self.after if each not in self.before]
            if gone or come:
                return f"{name}: " + "; ".join(
                    f"{value_text(values)} {what}" for values, what in ((come, "added"), (gone, "removed")) if values
                )
        before, after = (_shown(self.key, each) for each in (self.before, self.after))
        return f"{name}: {before} → {after}"


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


def _shown(key: str, value: Any) -> str:
    return (
        percent(Decimal(value)) if key.rpartition(".")[2] in _SHARES and isinstance(value, str) else value_text(value)
    )


def value_text(value: Any) -> str:
    """A value of a specification for people, cut off where it is long."""
    if value is None:
        return "not set"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = ", ".join(value) or "none"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"

"""The rules that hold for a dataset, for people: what is written, where, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobs.spec.meanings import meanings
from jobs.spec.toml import TomlTable
from party.config import PartyConfig
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import PolicySection


class Rule(NamedTuple):
    """A rule in force.

    Attributes:
        key: Its name in the file.
        value: What it is, for people.
        meaning: What that means.
        table: Where it is written; empty where nobody wrote it, and it holds nevertheless.
    """

    key: str
    value: str
    meaning: str
    table: str


def rules(config: PartyConfig, dataset: str) -> list[Rule]:
    """The rules of the policy and of the budget for jobs on a dataset, in the order of the reference."""
    section = config.datasets[dataset]
    own = frozenset() if section.policy is None else section.policy.model_fields_set
    written = dict.fromkeys(config.policy.model_fields_set, "[policy]") | dict.fromkeys(own, "[dataset.policy]")
    found = list(_of(config.policy_of(dataset), PolicySection, written))
    if section.privacy is not None:
        budgeted = dict.fromkeys(section.privacy.model_fields_set, "[dataset.privacy]")
        found += _of(section.privacy, DatasetBudget, budgeted)
    return found


def written(config: PartyConfig) -> dict[str, str]:
    """What `[policy]` itself says, by rule."""
    table = config.policy
    return {key: _text(getattr(table, key)) for key in PolicySection.model_fields if key in table.model_fields_set}


def _of(table: TomlTable, model: type[TomlTable], written: Mapping[str, str]) -> Iterator[Rule]:
    told = meanings(model)
    for key in model.model_fields:
        value = getattr(table, key)
        if key in written or value not in (None, ()):
            yield Rule(key, _text(value), told.get(key, ""), written.get(key, ""))


def _text(value: Any) -> str:
    if isinstance(value, TomlTable):
        return _text({key: getattr(value, key) for key in type(value).model_fields if key in value.model_fields_set})
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_text(each)}" for key, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(f"({_text(each)})" if isinstance(each, TomlTable) else _text(each) for each in value) or "none"
    return str(value)

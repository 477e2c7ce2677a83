"""Which changes of rules are told to allow more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from party.console.policy_fields import fields_of
from party.policy.looser import direction, direction_of_budget
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import PolicySection

BASE: dict[str, Any] = {"approve": "manual", "tasks": ["itemsets"]}
AUTO, REFUSE = {"decide": "auto", "coordinators": ["a"]}, {"decide": "refuse", "coordinators": ["b"]}
FLOOR = {"min_support": Decimal("0.1")}


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate(BASE | rules)


# The rule; then what is looser than what. The other way round it is stricter.
ORDERED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("approve", {"approve": "auto"}, {}),
    ("tasks", {"tasks": ["itemsets", "rules"]}, {}),
    ("approvals", {}, {"approvals": 2}),
    ("release", {}, {"release": "manual"}),
    ("min_count", {"min_count": 19}, {"min_count": 20}),
    ("min_count", {}, {"min_count": 20}),
    ("max_length", {}, {"max_length": 3}),
    ("max_length", {"max_length": 4}, {"max_length": 3}),
    ("max_deadline", {"max_deadline": "2h"}, {"max_deadline": "90m"}),
    ("max_jobs_period", {"max_jobs_period": "29d"}, {}),
    ("coordinators", {"coordinators": ["a", "b"]}, {"coordinators": ["a"]}),
    ("helpers", {}, {"helpers": []}),
    ("security", {}, {"security": "malicious"}),
    ("withhold", {"withhold": ["a"]}, {"withhold": ["a", "b"]}),
    ("columns", {}, {"columns": {"age": ["sensitive"]}}),
    ("columns", {"columns": {"age": ["sensitive", "insensitive"]}}, {"columns": {"age": ["sensitive"]}}),
    ("party_sets", {}, {"party_sets": "fixed"}),
    ("keys", {"keys": "union"}, {}),
    ("column_groups", {}, {"column_groups": "refuse"}),
    ("max_releases", {"max_releases": 2}, {}),
]


@pytest.mark.parametrize(("key", "loose", "strict"), ORDERED)
def test_what_allows_more_is_looser(key: str, loose: dict[str, Any], strict: dict[str, Any]) -> None:
    assert direction(key, policy(**strict), policy(**loose)) == "looser"
    assert direction(key, policy(**loose), policy(**strict)) == "stricter"


# What looks stricter, and lets jobs through that were refused.
DOUBTFUL: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("min_count", FLOOR, {**FLOOR, "min_count": 20}, "may be looser"),
    ("disclose", FLOOR, {**FLOOR, "disclose": ["candidates"]}, "looser"),
    ("disclose", FLOOR, {**FLOOR, "disclose": ["supports"]}, "stricter"),
    ("disclose", {"disclose": ["supports", "frequent"]}, {}, "looser"),
    ("coordinators", {"coordinators": ["a", "b"]}, {"coordinators": ["c"]}, "looser"),
    ("columns", {"columns": {"age": ["sensitive"]}}, {"columns": {"sex": ["sensitive"]}}, "looser"),
    ("approval", {}, {"approval": [REFUSE]}, "stricter"),
    ("approval", {"approval": [AUTO, REFUSE]}, {"approval": [REFUSE]}, "stricter"),
    ("approval", {"approval": [REFUSE]}, {}, "may be looser"),
    ("approval", {"approval": [REFUSE, AUTO]}, {"approval": [AUTO, REFUSE]}, "may be looser"),
    ("approval", {}, {"approval": [AUTO]}, "may be looser"),
]


@pytest.mark.parametrize(("key", "before", "after", "told"), DOUBTFUL)
def test_what_may_allow_more_is_never_told_to_be_stricter(
    key: str, before: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    assert direction(key, policy(**before), policy(**after)) == told


def budget(**keys: Any) -> DatasetBudget:
    numbers = {key: Decimal(keys[key]) for key in ("epsilon", "delta") if key in keys}
    return DatasetBudget.model_validate(keys | numbers)


def test_changes_of_a_budget() -> None:
    small, large = ({"epsilon": number, "delta": "1e-6"} for number in ("4", "20"))
    for key, before, after, told in (
        ("epsilon", budget(**small), budget(**large), "looser"),
        ("epsilon", budget(**small), None, "looser"),
        ("epsilon", budget(**large), budget(**small), "stricter"),
        ("exact", budget(exact="refuse"), None, "looser"),
        ("period", budget(**small), budget(**small, period="7d"), "looser"),
        ("period", budget(**small, period="7d"), budget(**small, period="8d"), "stricter"),
        ("composition", budget(**small), budget(**small, composition="optimal"), "looser"),
    ):
        assert direction_of_budget(key, before, after, policy()) == told
    # Noise within a small budget stands in for a floor.
    assert direction_of_budget("epsilon", budget(**large), budget(**small), policy(**FLOOR)) == "may be looser"


def test_every_rule_of_a_form_has_an_order() -> None:
    same = policy()
    for field in fields_of(PolicySection):
        assert direction(field.key, same, same) in ("looser", "may be looser", "stricter")
    for field in fields_of(DatasetBudget):
        assert direction_of_budget(field.key, None, None, same) in ("looser", "stricter")

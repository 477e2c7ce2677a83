from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec import JobSpec
from link.errors import ConfigurationError, PolicyDenied
from party.config import PolicySection
from party.policy import check_rows, decide


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate({"approve": "auto", "tasks": ["itemsets", "rules"], **rules})


def job(*, itemsets: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets",
            "parties": ["north", "south", "east"],
            "dataset": "baskets",
            **changes,
        },
        "itemsets": {"min_support": Decimal("0.01"), **(itemsets or {})},
    }
    return JobSpec.of(contents, "job.toml", Path())


def judge(rules: PolicySection, spec: JobSpec) -> None:
    decide(rules, spec, me="north", federation=("north", "south", "east"), datasets=("baskets", "visits"))


def test_a_policy_without_rules_allows() -> None:
    judge(policy(), job())
    judge(policy(), job(itemsets={"min_support": 1}))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"parties": ["south", "east"]}, "the job has no part for north"),
        ({"parties": ["north", "west"]}, "north does not know the party 'west'"),
        ({"dataset": "sales"}, "north has no dataset 'sales'"),
    ],
)
def test_a_job_that_does_not_fit_the_node(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        judge(policy(), job(**changes))
    assert caught.value.party == "north"


@pytest.mark.parametrize(
    ("rules", "spec", "sentence"),
    [
        ({"approve": "manual"}, job(), "has no inbox"),
        ({"tasks": ["rules"]}, job(), "allows only 'rules'"),
        ({"datasets": ["visits"]}, job(), "does not open the dataset 'baskets'"),
        ({"peers": ["south"]}, job(), "does not allow jobs together with 'east'"),
        ({"min_parties": 4}, job(), "at least 4 parties"),
        ({"min_support": Decimal("0.02")}, job(), "min_support of at least 0.02"),
        ({"min_count": 10}, job(itemsets={"min_support": 9}), "a count of at least 10"),
        ({"min_count": 10}, job(), "as a count of at least 10"),
        ({"max_length": 3}, job(), "max_length of at most 3, and the job has none"),
        ({"max_length": 3}, job(itemsets={"max_length": 4}), "max_length of at most 3, and the job has 4"),
    ],
)
def test_a_refusal_names_the_party_and_the_rule(rules: dict[str, Any], spec: JobSpec, sentence: str) -> None:
    with pytest.raises(PolicyDenied, match=sentence) as caught:
        judge(policy(**rules), spec)
    assert caught.value.party == "north"
    assert "north" in caught.value.message


def test_limits_are_inclusive() -> None:
    judge(policy(min_support=Decimal("0.01")), job())
    judge(policy(min_count=10), job(itemsets={"min_support": 10}))
    judge(policy(max_length=3), job(itemsets={"max_length": 3}))
    judge(policy(min_parties=3, peers=["south", "east"]), job())


@given(
    asked=st.decimals("0.0001", 1, places=4),
    floor=st.decimals("0.0001", 1, places=4),
)
def test_a_fraction_is_judged_by_the_fraction_alone(asked: Decimal, floor: Decimal) -> None:
    spec, rules = job(itemsets={"min_support": asked}), policy(min_support=floor, min_count=10)
    if asked >= floor:
        judge(rules, spec)
        check_rows(rules, spec, me="north", n_rows=10**9)
    else:
        with pytest.raises(PolicyDenied):
            judge(rules, spec)


@given(count=st.integers(1, 1000), rows=st.integers(0, 10_000))
def test_a_count_without_min_count_is_judged_by_this_partys_rows(count: int, rows: int) -> None:
    spec, rules = job(itemsets={"min_support": count}), policy(min_support=Decimal("0.1"))
    judge(rules, spec)
    if count * 10 >= rows:
        check_rows(rules, spec, me="north", n_rows=rows)
    else:
        with pytest.raises(PolicyDenied) as caught:
            check_rows(rules, spec, me="north", n_rows=rows)
        assert str(rows) not in caught.value.message.replace(str(count), "")


def test_min_count_makes_the_decision_independent_of_the_rows() -> None:
    spec, rules = job(itemsets={"min_support": 10}), policy(min_support=Decimal("0.5"), min_count=10)
    check_rows(rules, spec, me="north", n_rows=10**9)

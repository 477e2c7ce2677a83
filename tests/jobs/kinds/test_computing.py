"""Whether three parties compute or two, where a job over rows leaves it open: all choose alike, and all is said."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.kinds.registry import kind_of
from jobs.kinds.rows.parameters import computing_choice, horizontal_mining
from jobs.kinds.rows.plan_alternatives import variants
from jobs.plan.estimate import estimate
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from jobs.spec.plan import PlanSection
from jobs.statement import statement
from tests.jobs.plan.answers import PARTIES, answers, weekly

CATALOGUE = {"universe": "a file", "catalogue": ["a", "b"]}


def left_open(spec: JobSpec, **trust: Any) -> JobSpec:
    return spec.model_copy(update={"trust": spec.trust.model_copy(update={"helper": "auto", **trust})})


def over(bandwidth: str) -> JobSpec:
    """A job of many rows."""
    return weekly(min_support=10_000_000).model_copy(update={"plan": PlanSection(bandwidth=bandwidth)})


@pytest.mark.parametrize("compute", [None, ("south", "east")])
def test_the_third_party_computes_as_if_the_job_named_it(compute: tuple[str, str] | None) -> None:
    spec = left_open(weekly(), compute=compute)
    third = "east" if compute is None else "north"
    named = left_open(weekly(), compute=compute, helper=third)
    assert job_from_canonical(spec.canonical()) == spec
    assert spec.digest != named.digest
    assert kind_of(spec).helper(spec) == third
    assert horizontal_mining(spec) == horizontal_mining(named)
    assert statement(spec) == statement(named)
    assert "any two of these three together" in statement(spec).collusion


def test_nobody_is_added_where_none_is_allowed_or_needed() -> None:
    assert kind_of(weekly()).helper(weekly()) is None
    for spec in (weekly(PARTIES[:2]), weekly(disclose="candidates")):
        assert computing_choice(left_open(spec)) is None
        assert horizontal_mining(left_open(spec)) == horizontal_mining(spec)


def test_two_parties_compute_where_that_is_quicker() -> None:
    """As many more rounds as bytes that a very wide network carries in no time."""
    wide = left_open(over("100 Gbit/s"))
    choice = computing_choice(wide)
    assert choice is not None
    assert choice.two.seconds < choice.three.seconds
    assert choice.reason.startswith('helper = "auto" takes nobody: ')
    assert kind_of(wide).helper(wide) is None
    assert statement(wide) == statement(over("100 Gbit/s"))
    narrow = left_open(over("10 Mbit/s"))
    assert kind_of(narrow).helper(narrow) == "east"


def test_a_job_that_parties_may_deviate_in_takes_its_third_party_whatever_it_costs() -> None:
    spec = left_open(weekly(**CATALOGUE), security="malicious")
    assert job_from_canonical(spec.canonical()) == spec
    assert kind_of(spec).helper(spec) == "east"


def test_the_plan_says_what_is_chosen_and_why_and_what_the_other_would_be() -> None:
    spec = left_open(weekly())
    plan = estimate(spec, answers(), 0.002)
    (reason,) = (line for line in plan.assumptions if line.startswith("helper"))
    choice = computing_choice(spec)
    assert choice is not None
    assert reason == choice.reason
    assert f"{choice.three}, and two {choice.two}" in reason
    assert choice.three.bytes_sent < choice.two.bytes_sent / 3
    assert {'helper = "none"'} == {each.name for each in variants(spec) if "helper" in each.name}
    two = estimate(weekly(), answers(), 0.002)
    assert plan.bytes_sent < two.bytes_sent

"""What a policy says to jobs that learn models."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.spec.job import JobSpec
from party.policy.policy import decide, verdicts
from party.policy.policy_input import PolicyInput
from party.policy.rules import PolicySection
from tests.errors import fails
from tests.mining.joint.model_jobs_world import PARTIES, TASKS, Task, job


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate({"approve": "auto", "tasks": TASKS, **rules})


def facts(spec: JobSpec) -> PolicyInput:
    return PolicyInput(spec, "analyst", "north", PARTIES, ("people",), now=0.0)


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("task", TASKS)
def test_rules_about_itemsets_say_nothing(task: Task, partition: str) -> None:
    rules = policy(max_length=2, max_candidates=5, helpers=[])
    spec = job(task, partition=partition)
    assert decide(rules, facts(spec)) == "auto"
    assert not {"max_length", "max_candidates", "helpers"} & {v.rule for v in verdicts(rules, facts(spec))}


@pytest.mark.parametrize("task", TASKS)
def test_tasks_must_be_allowed_by_name(task: Task) -> None:
    others = [other for other in TASKS if other != task]
    with fails("E300"):
        decide(policy(tasks=others), facts(job(task)))


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("task", TASKS)
def test_no_model_takes_a_column_of_which_items_are_withheld(task: Task, partition: str) -> None:
    spec = job(task, partition=partition)
    told = [
        verdict.allows for verdict in verdicts(policy(withhold=["hiv*"]), facts(spec)) if verdict.rule == "withhold"
    ]
    assert told == ["models without columns that may hold 'hiv*'"]
    assert decide(policy(withhold=["hiv*", "x"]), facts(spec)) == "auto"
    for column in spec.columns:
        for pattern in (f"{column}=*", f"{column[:1]}*", f"{column}=no", "*"):
            with fails("E300"):
                decide(policy(withhold=[pattern]), facts(spec))


def test_a_tree_keeps_to_nodes_of_many_rows() -> None:
    rules = policy(min_count=10)
    assert decide(rules, facts(job("decision-tree", min_rows=10))) == "auto"
    with fails("E300", party="north"):
        decide(rules, facts(job("decision-tree", min_rows=9)))
    (verdict,) = (
        each for each in verdicts(rules, facts(job("decision-tree", min_rows=10))) if each.rule == "min_count"
    )
    assert "within whose nodes counts may be smaller" in verdict.allows


@pytest.mark.parametrize("task", ["naive-bayes", "k-means"])
def test_models_of_counts_of_any_size_need_a_policy_that_says_so(task: Task) -> None:
    with fails("E300", party="north"):
        decide(policy(min_count=2), facts(job(task)))
    assert decide(policy(min_count=1), facts(job(task))) == "auto"


def test_who_computes_and_how() -> None:
    clusters, bayes = job("k-means", partition="vertical"), job("naive-bayes", partition="vertical")
    with fails("E300", party="north"):
        decide(policy(compute=["south", "east"]), facts(clusters))
    assert decide(policy(compute=["south"]), facts(bayes)) == "auto"
    assert decide(policy(compute=["south"]), facts(job("k-means"))) == "auto"
    with fails("E300", party="north"):
        decide(policy(engines=["paillier"]), facts(bayes))
    assert decide(policy(engines=["paillier"]), facts(job("naive-bayes"))) == "auto"


def test_the_bound_of_an_alignment() -> None:
    rules = policy(max_union_bound=100)
    assert decide(rules, facts(job("decision-tree"))) == "auto"
    with fails("E300", party="north"):
        decide(rules, facts(job("decision-tree", partition="vertical")))
    assert decide(rules, facts(job("decision-tree", partition="vertical", align={"bound": 100}))) == "auto"

"""Job files that learn models: what is refused, and in which words."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.models.parameters import model_parameters
from jobs.kinds.registry import coordinator_learns, kind_of
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.report.job_file import job_file
from jobs.spec.job import JobSpec
from jobs.spec.toml import read_toml
from mining.models.attributes import Categorical, Intervals, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters
from tests.errors import fails
from tests.mining.joint.model_jobs_world import TASKS, Task, job

TREE: dict[str, Any] = {
    "job": {"name": "t", "task": "decision-tree", "parties": ["north", "south"], "dataset": "people"},
    "decision_tree": {"target": "ill", "attributes": ["age", "sex"]},
    "columns": {"ill": {"values": ["no", "yes"]}, "sex": {"values": ["f", "m"]}, "age": {"cuts": [30, 50]}},
}
GROUPS: dict[str, Any] = {
    "job": {"name": "t", "task": "k-means", "parties": ["north", "south"], "dataset": "people"},
    "k_means": {"attributes": ["age"], "k": 2},
    "columns": {"age": {"low": 0, "high": 100}},
}
BAYES: dict[str, Any] = {
    **TREE,
    "job": {**TREE["job"], "task": "naive-bayes"},
    "decision_tree": None,
    "naive_bayes": TREE["decision_tree"],
}


def of(contents: dict[str, Any]) -> JobSpec:
    return job_of({key: value for key, value in contents.items() if value is not None}, "job.toml", Path())


def changed(contents: dict[str, Any], table: str, **keys: Any) -> dict[str, Any]:
    """The same with other keys in a table; None takes one away."""
    merged = {**(contents.get(table) or {}), **keys}
    return {**contents, table: {key: value for key, value in merged.items() if value is not None}}


def test_the_parameters_of_the_three_models() -> None:
    sex, age = Categorical("sex", ("f", "m")), Intervals("age", (Decimal(30), Decimal(50)))
    ill = Categorical("ill", ("no", "yes"))
    assert model_parameters(of(TREE)) == TreeParameters(ill, (age, sex), "gain-ratio", 2)
    id3 = changed(TREE, "decision_tree", criterion="id3", min_rows=7, max_depth=0, max_nodes=9)
    assert model_parameters(of(id3)) == TreeParameters(ill, (age, sex), "gain", 7, 0, 9)
    assert model_parameters(of(BAYES)) == NaiveBayesParameters(ill, (age, sex))
    years = Numeric("age", Decimal(0), Decimal(100), 1000)
    given = changed(GROUPS, "k_means", start=[["10"], [40.5]], fraction_bits=2)
    assert model_parameters(of(given)) == KMeansParameters((years,), ((Decimal(10),), (Decimal("40.5"),)), 100, 2)
    drawn = model_parameters(of(changed(GROUPS, "k_means", seed=4)))
    assert drawn == model_parameters(of(changed(GROUPS, "k_means", seed=4))) != model_parameters(of(GROUPS))


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("task", TASKS)
def test_a_job_crosses_the_wire_and_is_written_down_again(task: Task, partition: str, tmp_path: Path) -> None:
    spec = job(task, partition=partition)
    assert job_from_canonical(spec.canonical()) == spec
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    again = job_of(read_toml(tmp_path / "job.toml"), "job.toml", tmp_path)
    assert again.digest == spec.digest
    assert (kind_of(spec).finds, coordinator_learns(spec)) == ("model", True)


@pytest.mark.parametrize(
    "contents",
    [
        {**TREE, "decision_tree": None},
        {**TREE, "k_means": GROUPS["k_means"]},
        {**TREE, "itemsets": {"min_support": 2}},
        changed(TREE, "decision_tree", attributes=[]),
        changed(TREE, "decision_tree", attributes=["age", "ill"]),
        changed(TREE, "decision_tree", target="income"),
        changed(TREE, "decision_tree", min_rows=0),
        changed(TREE, "decision_tree", criterion="gini"),
        changed(TREE, "columns", town={"values": ["A"]}),
        changed(TREE, "columns", ill={"cuts": [1]}),
        changed(TREE, "columns", age={"low": 0, "high": 9}),
        changed(GROUPS, "columns", age={"cuts": [3]}),
        changed(TREE, "columns", age={}),
        changed(TREE, "columns", age={"cuts": [1], "low": 0}),
        changed(TREE, "columns", age={"low": 0}),
        changed(TREE, "columns", age={"cuts": [3, 3]}),
        changed(TREE, "columns", sex={"values": ["f", "f"]}),
        changed(TREE, "columns", sex={"values": ["f"], "steps": 3}),
        changed(GROUPS, "columns", age={"low": 5, "high": 5}),
        changed(GROUPS, "k_means", k=None),
        changed(GROUPS, "k_means", start=[[3]]),
        changed(GROUPS, "k_means", start=[[3], [101]]),
        changed(GROUPS, "k_means", start=[[3], [4]], seed=2),
        changed(changed(GROUPS, "columns", age={"low": 0, "high": 1, "steps": 2**31 - 1}), "k_means", fraction_bits=9),
        changed(BAYES, "naive_bayes", smoothing="-1"),
        changed(TREE, "union", bound=4),
        changed(TREE, "trust", compute=["south", "north"]),
        changed(TREE, "align", trim=True),
        changed(changed(TREE, "job", partition="vertical"), "align", mode="cardinality"),
        changed(changed(TREE, "job", partition="vertical"), "trust", compute=["south", "north"]),
        {**GROUPS, "job": {**GROUPS["job"], "task": "align", "partition": "vertical"}},
        {"job": {**GROUPS["job"], "task": "align", "partition": "vertical"}, "columns": GROUPS["columns"]},
    ],
)
def test_what_is_refused(contents: dict[str, Any]) -> None:
    with fails("E100"):
        of(contents)

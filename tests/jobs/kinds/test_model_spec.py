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
from link.errors import ConfigurationError
from mining.models.attributes import Categorical, Intervals, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters
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
    ("contents", "words"),
    [
        ({**TREE, "decision_tree": None}, 'task = "decision-tree" needs a [decision_tree] table; the table is missing'),
        ({**TREE, "k_means": GROUPS["k_means"]}, 'a [k_means] table means nothing with task = "decision-tree"'),
        ({**TREE, "itemsets": {"min_support": 2}}, 'an [itemsets] table means nothing with task = "decision-tree"'),
        (changed(TREE, "decision_tree", attributes=[]), "needs at least 1 entry"),
        (changed(TREE, "decision_tree", attributes=["age", "ill"]), "names the column 'ill' twice"),
        (changed(TREE, "decision_tree", target="income"), "names the column 'income', of which [columns] says nothing"),
        (changed(TREE, "decision_tree", min_rows=0), "[decision_tree] min_rows"),
        (changed(TREE, "decision_tree", criterion="gini"), "[decision_tree] criterion"),
        (changed(TREE, "columns", town={"values": ["A"]}), "[columns] describes 'town', which the model does not take"),
        (changed(TREE, "columns", ill={"cuts": [1]}), "[columns] ill: the class needs values"),
        (changed(TREE, "columns", age={"low": 0, "high": 9}), "[columns] age: a tree divides numbers at public cuts"),
        (changed(GROUPS, "columns", age={"cuts": [3]}), "[columns] age: k-means computes with numbers"),
        (changed(TREE, "columns", age={}), 'needs either values = ["no", "yes"], or cuts = [30, 50], or low = 0'),
        (changed(TREE, "columns", age={"cuts": [1], "low": 0}), "needs either values"),
        (changed(TREE, "columns", age={"low": 0}), "needs either values"),
        (changed(TREE, "columns", age={"cuts": [3, 3]}), "cuts must be numbers in ascending order"),
        (changed(TREE, "columns", sex={"values": ["f", "f"]}), "values names a value twice"),
        (changed(TREE, "columns", sex={"values": ["f"], "steps": 3}), "steps are those between low and high"),
        (changed(GROUPS, "columns", age={"low": 5, "high": 5}), "low must be below high"),
        (changed(GROUPS, "k_means", k=None), "[k_means] k: is missing"),
        (changed(GROUPS, "k_means", start=[[3]]), "start has 1 rows, and k is 2; give one row for each cluster"),
        (changed(GROUPS, "k_means", start=[[3], [101]]), "[k_means] every initial centroid must have a number"),
        (changed(GROUPS, "k_means", start=[[3], [4]], seed=2), "seed draws the first centroids, and start names them"),
        (
            changed(
                changed(GROUPS, "columns", age={"low": 0, "high": 1, "steps": 2**31 - 1}), "k_means", fraction_bits=9
            ),
            "[k_means] squared distances do not fit into 62 bits",
        ),
        (changed(BAYES, "naive_bayes", smoothing="-1"), "[naive_bayes] smoothing"),
        (changed(TREE, "union", bound=4), "[union] bound means nothing with task"),
        (changed(TREE, "trust", compute=["south", "north"]), "[trust] compute means nothing with task"),
        (
            changed(TREE, "align", trim=True),
            'an [align] table means nothing with task = "decision-tree" and',
        ),
        (
            changed(changed(GROUPS, "job", partition="vertical"), "align", mode="union"),
            'task = "k-means" shows all parties the cluster of every common row',
        ),
        (
            changed(changed(TREE, "job", partition="vertical"), "align", mode="cardinality"),
            'it needs task = "align"',
        ),
        (
            changed(changed(TREE, "job", partition="vertical"), "trust", compute=["south", "north"]),
            '[trust] compute means nothing with task = "decision-tree"',
        ),
        (
            {**GROUPS, "job": {**GROUPS["job"], "task": "align", "partition": "vertical"}},
            "a [k_means] table means nothing with task",
        ),
        (
            {"job": {**GROUPS["job"], "task": "align", "partition": "vertical"}, "columns": GROUPS["columns"]},
            'a [columns] table means nothing with task = "align"',
        ),
    ],
)
def test_what_is_refused(contents: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        of(contents)
    assert words in raised.value.message

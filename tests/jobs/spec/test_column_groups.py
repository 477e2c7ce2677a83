"""Groups of parties that hold the same columns of different rows: what a job may say, and what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.columns.parameters import vertical_mining
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.report.job_file import job_file
from jobs.spec.job import JobSpec
from jobs.spec.toml import read_toml
from jobs.statement import statement
from mining.joint.vertical.grouped.groups import ColumnGroup
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

PARTIES = ("north", "a", "south", "b")
GROUPS = {"labs": ["b", "a"], "clinics": ["south", "north"]}


def read(groups: Any = GROUPS, **tables: Any) -> JobSpec:
    contents: dict[str, Any] = {
        "job": {
            "name": "j",
            "task": "itemsets",
            "parties": list(PARTIES),
            "dataset": "people",
            "partition": "vertical",
        },
        "align": {"mode": "union"},
        "itemsets": {"min_support": "0.1"},
        "groups": groups,
    }
    for name, more in tables.items():
        contents[name] = contents.get(name, {}) | more
    return job_of({name: each for name, each in contents.items() if each is not None}, "job.toml", Path())


def test_groups_and_members_are_in_the_order_of_the_job() -> None:
    expected = (ColumnGroup("clinics", ("north", "south")), ColumnGroup("labs", ("a", "b")))
    spec = read()
    again = job_from_canonical(spec.canonical())  # whose tables are sorted
    assert vertical_mining(spec).groups == vertical_mining(again).groups == expected
    assert again == spec


def test_a_job_without_groups_has_the_bytes_that_it_had_before_there_were_any() -> None:
    spec = read(None)
    assert b"groups" not in spec.canonical()
    assert vertical_mining(spec).groups == ()
    assert job_from_canonical(spec.canonical()) == spec


def test_a_job_file_gives_the_groups_again(tmp_path: Path) -> None:
    spec, path = read(), tmp_path / "job.toml"
    path.write_text(job_file(spec))
    assert job_of(read_toml(path), "again", tmp_path).digest == spec.digest
    path.write_text(job_file(read(None)))
    assert "groups" not in path.read_text()


@pytest.mark.parametrize(
    ("groups", "tables"),
    [
        ({"all": ["north", "a", "south", "b"]}, {}),
        ({}, {}),
        ({"clinics": ["north", "south"], "labs": ["a", "b", "c"]}, {}),
        ({"clinics": ["north", "south"], "labs": ["a", "b", "north"]}, {}),
        ({"clinics": ["north", "south", "south"], "labs": ["a", "b"]}, {}),
        ({"clinics": ["north", "south"], "labs": ["a"]}, {}),
        ({"clinics": [], "labs": ["a", "b", "north", "south"]}, {}),
        ({"The clinics": ["north", "south"], "labs": ["a", "b"]}, {}),
        (["north"], {}),
        (GROUPS, {"align": {"mode": "intersection"}}),
        (GROUPS, {"itemsets": {"quantiles": {"age": 4}}}),
        (GROUPS, {"job": {"partition": "horizontal"}, "align": {"mode": "intersection"}}),
    ],
)
def test_what_is_wrong_is_said(groups: Any, tables: dict[str, Any]) -> None:
    with fails("E100"):
        read(groups, **tables)


def of_task(task: str, groups: Any = GROUPS, mode: str = "union") -> JobSpec:
    tables: dict[str, Any] = {"groups": groups, "align": {"mode": mode}, "itemsets": None}
    if task in ("naive-bayes", "decision-tree"):
        names = {"target": "c", "attributes": ["d"]}
        tables |= {task.replace("-", "_"): names, "columns": {name: {"values": ["x"]} for name in "cd"}}
    if task == "k-means":
        tables |= {"k_means": {"k": 2, "attributes": ["d"]}, "columns": {"d": {"low": 0, "high": 1}}}
    contents = read(None).model_dump(mode="json", by_alias=True, exclude_none=True) | tables
    contents["job"]["task"] = task
    return job_of({name: each for name, each in contents.items() if each}, "job.toml", Path())


@pytest.mark.parametrize("task", ["naive-bayes", "decision-tree", "k-means"])
def test_models_of_columns_have_groups(task: str) -> None:
    spec = of_task(task)
    assert ("column groups", "clinics: north and south; labs: a and b") in kind_of(spec).facts(spec, "products")
    assert kind_of(spec).facets(spec) == {"model", "column groups"}
    stated = statement(spec)
    assert {line.label for line in stated.declared} >= {"columns", "rows", "repeated"}
    prose = " ".join(stated.prose())
    assert "the number of rows that all groups have in common" in prose
    assert "whether some id is at two parties of one group" in prose
    plain = statement(of_task(task, None))
    assert {line.label for line in stated.declared} - {line.label for line in plain.declared} == {"repeated"}
    assert "groups" not in " ".join(plain.prose())
    with fails("E100"):
        of_task(task, mode="intersection")


def test_columns_of_models_are_those_of_groups() -> None:
    spec = of_task("naive-bayes")
    columns = {"north": ["c", "more"], "south": ["c"], "a": ["d"], "b": ["d"]}
    kind_of(spec).check_columns(spec, columns)  # others than the model's may differ
    for wrong in ({"south": ["more"]}, {"a": ["c", "d"], "b": ["c", "d"]}, {"north": [], "south": []}, {"b": []}):
        with fails("E100"):
            kind_of(spec).check_columns(spec, columns | wrong)


def test_an_alignment_alone_has_no_groups() -> None:
    with fails("E100"):
        of_task("align")


def test_a_report_shows_the_groups() -> None:
    spec = read()
    assert ("column groups", "clinics: north and south; labs: a and b") in kind_of(spec).facts(spec, "level-wise, ot")
    assert "column groups" not in dict(kind_of(read(None)).facts(read(None), "level-wise, ot"))


def test_nobody_is_said_to_learn_at_which_party_a_row_or_an_item_is() -> None:
    prose = " ".join(statement(read()).prose())
    assert "in which group each is, not at which party" in prose
    assert "but not who else has a row there" in prose
    assert "at which party each is" not in prose
    opened = {line.label: line.recipients for line in statement(read()).declared}
    assert opened["item_names/labs"] == opened["item_positions/labs"] == {"a", "b"}
    assert opened["repeated"] == set(PARTIES)


def test_what_the_coordinator_sees_of_unions_is_said() -> None:
    """Lists of items are filled up; of names bit by bit is asked for."""
    of_items = "size classes of numbers of items"
    for spec, has in (
        (read(), (True, True)),
        (read(None, align={"mode": "union"}), (False, False)),
        (read(None, align={"mode": "intersection"}), (False, False)),
    ):
        seen = " ".join(line.exact for line in statement(spec).learned if line.who == ("coordinator",))
        assert (of_items in seen, "of each union nearly how many elements it has" in seen) == has

"""What `comine party check` tells of tables."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from comine.command import run
from party.config import DatasetSection
from party.data import table_costs
from party.data.dataset_check import DatasetCheck, TableProfile, check_dataset
from party.data.table_costs import unfit_table
from tests.party.files import write_federation


def checked(folder: Path, text: str, **more: object) -> DatasetCheck:
    path = folder / "people.csv"
    path.write_text(text)
    section = {"name": "people", "kind": "table", "source": str(path), "format": "csv", **more}
    return check_dataset(DatasetSection.model_validate(section))


def rows(*columns: list[str]) -> str:
    """A table with ids and columns a, b, …"""
    names = ",".join(["id", *"abcdef"[: len(columns)]])
    return "\n".join(
        [names, *(",".join([f"p{place}", *cells]) for place, cells in enumerate(zip(*columns, strict=True)))]
    )


def test_sizes_are_those_of_the_table(tmp_path: Path) -> None:
    found = checked(tmp_path, rows(["x", "y"] * 20, ["?", "", "?", "z"] * 10))
    assert found.profile == TableProfile(
        rows=40, ids=("id",), columns=2, items=4, empty_cells=10, rare_items=0, longest_item=3
    )
    assert found.hints == ()
    assert [(cost.engine, cost.fits) for cost in found.costs] == [("memory", True), ("processes", True)]


def test_what_a_table_takes_with_each_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of few values takes a byte a row, and the alignment of its ids 78."""
    section = {"name": "people", "kind": "table", "source": str(tmp_path / "people.csv"), "format": "csv"}
    dataset = DatasetSection.model_validate(section)
    found = {}
    for number in (2_000, 20_000):
        found[number] = dict(_costs(checked(tmp_path, rows(["x", "y"] * (number // 2)))))
    assert found[20_000]["memory"] - found[2_000]["memory"] > 18_000 * 78
    with_blocks = checked(tmp_path, rows(["x", "y"] * 20), engine="processes")
    assert with_blocks.engine == "processes"
    assert dict(_costs(with_blocks)) == dict(_costs(checked(tmp_path, rows(["x", "y"] * 20))))
    assert unfit_table(dataset, Decimal("0.25"), tmp_path) == ""
    monkeypatch.setattr(table_costs, "memory_limit", lambda: 1 << 20)
    problem = unfit_table(dataset, Decimal("0.25"), tmp_path)
    assert "40 rows are expected to take" in problem
    assert "fewer rows or columns" in problem
    assert check_dataset(dataset).problem == problem


def _costs(found: DatasetCheck) -> list[tuple[str, int]]:
    return [(cost.engine, cost.memory) for cost in found.costs]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("id,a\n", "empty", "there is no row"),
        ("id\n1\n", "empty", "no cell with a value beside the ids"),
        (rows([str(n % 30) for n in range(90)]), "numbers", 'there is a column ("a") of numbers'),
        (
            rows([f"name {n}x" for n in range(90)]),
            "identifiers",
            'a column ("a") with another value in nearly every row',
        ),
        (rows(["Yes", "yes", "no"] * 10), "alike", "2 items differ from another one only by case"),
        (rows([" yes", "no"] * 10), "blanks", "in 1 of 2 items"),
        (rows(["y\u200bes", "no"] * 10), "invisible", "1 of 2 items hold tabs"),
        ("id,a\n p1,x\np2,x\n", "ids", "in 1 of 2 rows"),
    ],
)
def test_signs_of_mistakes(tmp_path: Path, text: str, kind: str, words: str) -> None:
    hints = {hint.kind: hint for hint in checked(tmp_path, text).hints}
    assert words in hints[kind].sentence
    assert "yes" not in hints[kind].sentence.lower()


@pytest.mark.parametrize(
    ("text", "more", "problem"),
    [
        ("id,a\n1,x\n1,y\n,z\n", {}, '1 row has no id in column "id"'),
        ("id,a\n1,x\n1,y\n", {}, '1 row has the id of an earlier row in column "id"; every row needs an id of its own'),
        ("id,a\n1,x\n", {"id": ["id", "b"]}, 'has no column named "b"'),
        ("id;a\n1;x\n", {}, "check the separator"),
        ("id,a\n1,x\n2\n", {}, "at line 3"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, more: dict[str, object], problem: str) -> None:
    found = checked(tmp_path, text, **more)
    assert problem in found.problem
    assert found.profile is None


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_federation(tmp_path, {name: [["x"]] for name in ("north", "south", "east")})
    toml = tmp_path / "north.toml"
    text = toml.read_text().replace('"transactions"', '"table"').replace('"basket"', '"csv"').replace(".dat", ".csv")
    toml.write_text(text)
    (tmp_path / "north.csv").write_text(rows(["Yes", "yes", "no", ""] * 10))
    assert run(["party", "check", str(toml)]) == 0
    shown = capsys.readouterr().out
    assert "40 rows with 1 columns and 3 distinct items" in shown
    assert "ids in id; empty cells: 10 of 40" in shown
    assert "with the memory of a job over columns:" in shown
    assert "processes" in shown
    assert "Yes" not in shown
    assert run(["party", "check", str(toml), "--json", "--show-items"]) == 0
    (people,) = json.loads(capsys.readouterr().out)["datasets"]
    assert people["profile"] == {
        "rows": 40,
        "items": 3,
        "ids": ["id"],
        "columns": 1,
        "empty_cells": 10,
        "rare_items": 0,
        "rare_share": 0.0,
        "longest_item_bytes": 5,
    }
    assert people["hints"][0]["examples"] == ["a=Yes", "a=yes"]


def test_columns_of_queries_are_checked(tmp_path: Path) -> None:
    queries = {"public": ["a"], "columns": {"b": ["sum"]}, "min_size": 2}
    good, bad = rows(["x", "y"] * 4, ["1", "2", "3", "4"] * 2), rows(["x", "y"] * 4, ["1", "2", "3", "?"] * 2)
    assert checked(tmp_path, good, queries=queries).problem == ""
    assert "the column 'b' holds cells that are no numbers" in checked(tmp_path, bad, queries=queries).problem
    assert "no column 'c'" in checked(tmp_path, good, queries=queries | {"public": ["c"]}).problem

"""Tables on a terminal and in pipes: the rows that people look for, ruled alike, and no formulas."""

from __future__ import annotations

import io
import re
import sys

import pyarrow as pa
import pytest
from rich.console import Console

import comine
from coordinator.cli.terminal.console import ruled, write_table
from coordinator.cli.terminal.present import present
from jobs.report.tables import most_useful
from tests.cli.conftest import ROWS


def test_itemsets_stand_by_support_the_longest_first_of_equals() -> None:
    table = pa.table({"itemset": [["a"], ["b"], ["a", "b"]], "length": [1, 1, 2], "count": [3, 5, 3]})
    assert most_useful(table)["itemset"].to_pylist() == [["b"], ["a", "b"], ["a"]]


def test_rules_stand_by_lift() -> None:
    rules = pa.table({"antecedent": [["a"], ["b"], ["c"]], "count": [9, 2, 3], "lift": [1.5, float("inf"), 1.5]})
    assert most_useful(rules)["antecedent"].to_pylist() == [["b"], ["a"], ["c"]]
    assert most_useful(rules.drop(["lift"]))["antecedent"].to_pylist() == [["a"], ["c"], ["b"]]


def test_without_counts_the_longest_come_first() -> None:
    table = pa.table({"itemset": [["a"], ["a", "b"]], "length": [1, 2], "count": pa.nulls(2, pa.int64())})
    assert most_useful(table)["itemset"].to_pylist() == [["a", "b"], ["a"]]


def drawn(rows: list[list[str]]) -> list[str]:
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(ruled(["item", "number"], rows))
    return console.export_text().splitlines()


def test_numbers_end_at_the_right() -> None:
    lines = drawn([["bread", "7"], ["milk", "1,234"], ["tea", "–"], ["jam", "0.25"]])
    assert [line.rindex("│") for line in lines[3:7]] == [len(lines[3]) - 1] * 4
    assert "│ bread │      7 │" in lines
    assert "│ jam   │   0.25 │" in lines


def test_a_table_without_rows() -> None:
    assert any("item" in line for line in drawn([]))


def test_a_pipe_gets_no_cell_that_a_spreadsheet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(["name", "change"], [["=1+1", "-5"], ["@SUM(A1)", "+3"], ["a\tb\n", ""]])
    assert capsys.readouterr().out == "name\tchange\n'=1+1\t-5\n'@SUM(A1)\t+3\na\ufffdb\ufffd\t\n"


def test_a_terminal_gets_the_first_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    items = [f"item-{number:02}" for number in range(25)]
    job = {
        "job": {"name": "w", "task": "itemsets", "parties": list(ROWS), "dataset": "baskets"},
        "itemsets": {"min_support": 1, "max_length": 1},
    }
    rows = [items[: 25 - number] for number in range(25)]
    result = comine.simulate(job, {"north": rows, "south": [["item-24"]], "east": [["item-24"]]}, seed=1)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    present(result, None, as_json=False)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0].strip() == "itemsets: the 20 most frequent of 25"
    assert [line.split("│")[1].strip() for line in lines[4:7]] == ["item-00", "item-01", "item-02"]

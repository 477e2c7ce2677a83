"""The result folder: whole or not at all, and only where it belongs."""

from __future__ import annotations

import csv
import errno
import io
import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

import jobs.results.folder
from jobs.results.destination import check_result_folder
from jobs.results.folder import write_result_folder
from jobs.schema import generate
from tests.errors import fails
from tests.jobs.results.made import made


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_in_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_result_folder(out, made(rules=True))
    assert names(out) == {
        "itemsets.csv",
        "itemsets.parquet",
        "rules.csv",
        "rules.parquet",
        "result.json",
        "report.html",
        "manifest.json",
    }
    contents = json.loads((out / "result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    assert contents["n_itemsets"] == len(pq.read_table(out / "itemsets.parquet")) == 7
    assert contents["parties"]["north"] == {"bytes_sent": 10, "bytes_received": 20, "rounds": 3, "seconds": 0.25}


@pytest.mark.parametrize("rules", [False, True])
def test_supports_that_are_not_disclosed_are_empty_cells(tmp_path: Path, rules: bool) -> None:
    write_result_folder(tmp_path / "known", made(rules=rules))
    write_result_folder(out := tmp_path / "out", made(rules=rules, counted=False))
    for name, sides in (("itemsets", 2), ("rules", 2)) if rules else (("itemsets", 2),):
        known, hidden = ((folder / f"{name}.csv").read_text() for folder in (tmp_path / "known", out))
        right = list(csv.DictReader(io.StringIO(known)))
        found = list(csv.DictReader(io.StringIO(hidden)))
        assert hidden.splitlines()[0] == known.splitlines()[0]
        columns = list(right[0])
        assert [[row[c] for c in columns[:sides]] for row in found] == [
            [row[c] for c in columns[:sides]] for row in right
        ]
        assert {row[c] for row in found for c in columns[sides:]} == {""}
        table, before = (pq.read_table(folder / f"{name}.parquet") for folder in (out, tmp_path / "known"))
        assert table.schema == before.schema
        assert {table[c].null_count for c in columns[sides:]} == {len(table)} == {len(before)}
    contents = json.loads((out / "result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    assert contents["counted"] is False
    assert (contents["n_itemsets"], contents["n_rules"] is None) == (7, not rules)
    assert json.loads((tmp_path / "known" / "result.json").read_text())["counted"] is True


def test_a_coordinator_that_is_no_recipient_gets_no_tables(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_result_folder(out, made(elsewhere=True))
    assert names(out) == {"result.json", "report.html", "manifest.json"}
    assert json.loads((out / "result.json").read_text())["n_itemsets"] is None


@pytest.mark.parametrize("writer", ["_write_csv", "_write_parquet", "_write_account"])
def test_a_full_disk_leaves_nothing_and_keeps_the_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    out = tmp_path / "out"
    write_result_folder(out, made())
    before = (out / "itemsets.csv").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jobs.results.folder, writer, full)
    for target in (out, tmp_path / "fresh"):
        with fails("E103"):
            write_result_folder(target, made(rules=True))
    assert names(tmp_path) == {"out"}
    assert (out / "itemsets.csv").read_bytes() == before


def test_a_swap_that_fails_puts_the_earlier_result_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_result_folder(out, made())
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with fails("E103"):
        write_result_folder(out, made(rules=True))
    assert names(tmp_path) == {"out"}
    assert "rules.csv" not in names(out)


def test_only_earlier_results_are_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_result_folder(out, made(rules=True))
    write_result_folder(out, made())
    assert "rules.csv" not in names(out)
    (out / "notes.txt").write_text("mine")
    for attempt in (lambda: write_result_folder(out, made()), lambda: check_result_folder(out)):
        with fails("E100"):
            attempt()
    assert (out / "notes.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_refused_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with fails("E100"):
        check_result_folder(tmp_path / "file")
    with fails("E103"):
        check_result_folder(tmp_path / "file" / "out")
    check_result_folder(tmp_path / "a" / "b")
    assert names(tmp_path) == {"file"}


def test_tables_as_frames() -> None:
    result = made(rules=True)
    frame = result.itemsets()
    assert list(frame.columns) == ["itemset", "length", "count", "support"]
    assert frame["itemset"][0] == ["<i>"]
    hidden = made(rules=True, counted=False)
    assert hidden.itemsets()["count"].isna().all()
    assert hidden.rules()["lift"].isna().all()
    assert list(result.rules().columns[:3]) == ["antecedent", "consequent", "count"]
    with fails("E100"):
        made().rules()
    with fails("E100"):
        made(elsewhere=True).itemsets()

"""`comine simulate`: results, formats, and one clear sentence with the right exit code for everything wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mining.reference.pooled import brute_force
from tests.cli.conftest import ROWS, Comine, write_job

pytestmark = pytest.mark.turn(3)

POOLED = [row for rows in ROWS.values() for row in rows]


def read_itemsets(text: str) -> dict[frozenset[str], int]:
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    return {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in rows}


def test_the_result_equals_pooled_mining(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *baskets, "--out", "out")
    assert (ran.code, ran.out) == (0, "")
    text = (tmp_path / "out/itemsets.csv").read_text()
    assert read_itemsets(text) == brute_force(POOLED, 2)
    rows = list(csv.DictReader(io.StringIO(text)))
    keys = [(int(row["length"]), [item.encode() for item in json.loads(row["itemset"])]) for row in rows]
    assert keys == sorted(keys)
    assert all(items == sorted(items) and len(items) == length for length, items in keys)
    assert all(float(row["support"]) == int(row["count"]) / 9 for row in rows)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "itemsets.csv",
        "itemsets.parquet",
        "result.json",
        "report.html",
        "manifest.json",
    }


def test_without_a_folder_the_result_goes_to_standard_output(comine: Comine, baskets: list[str]) -> None:
    ran = comine("simulate", "job.toml", *baskets)
    assert read_itemsets(ran.out) == brute_force(POOLED, 2)
    assert "frequent itemsets of 9 transactions of 3 parties" in ran.err


def test_json_holds_the_account_and_the_rows(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    write_job(tmp_path, task="rules", more="[rules]\nmin_confidence = 0.6")
    contents = json.loads(comine("simulate", "job.toml", *baskets, "--json").out)
    assert contents["schema"] == "comine.result/1"
    assert {frozenset(row["itemset"]): row["count"] for row in contents["itemsets"]} == brute_force(POOLED, 2)
    assert all(row["confidence"] >= 0.6 for row in contents["rules"])
    assert "itemsets" not in json.loads(comine("simulate", "job.toml", *baskets, "--json", "--out", "out").out)


def test_rows_in_blocks_give_the_same(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    for out, options in (("memory", ()), ("blocks", ("--engine", "auto", "--memory-share", "1e-9"))):
        assert comine("simulate", "job.toml", *baskets, "--out", out, "--seed", 1, *options).code == 0
    memory, blocks = ((tmp_path / out / "itemsets.csv").read_bytes() for out in ("memory", "blocks"))
    assert memory == blocks
    assert comine("simulate", "job.toml", *baskets, "--engine", "disk").code == 10
    assert comine("simulate", "job.toml", *baskets, "--memory-share", "half").code == 10


def test_a_pipe_gets_utf_8_whatever_the_locale(baskets: list[str], tmp_path: Path) -> None:
    for name in ROWS:
        (tmp_path / f"{name}.dat").write_text("pão 日本\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "comine", "simulate", "job.toml", *baskets],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert (ran.returncode, "日本" in ran.stdout.decode()) == (0, True)


def test_rules_meet_the_exact_confidence(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    write_job(tmp_path, task="rules", more="[rules]\nmin_confidence = 0.6")
    assert comine("simulate", "job.toml", *baskets, "--out", "out").code == 0
    counts = brute_force(POOLED, 2)
    with (tmp_path / "out/rules.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        left, right = frozenset(json.loads(row["antecedent"])), frozenset(json.loads(row["consequent"]))
        found[left, right] = int(row["count"])
        assert (int(row["antecedent_count"]), int(row["consequent_count"])) == (counts[left], counts[right])
    assert found == {
        (left, whole - left): count
        for whole, count in counts.items()
        for left in counts
        if left < whole and count >= Decimal("0.6") * counts[left]
    }


def test_rules_without_any_support_are_the_same_rules(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    sides = []
    for disclose in ("supports", "frequent"):
        write_job(tmp_path, task="rules", more=f'disclose = "{disclose}"\n[rules]\nmin_confidence = 0.6')
        ran = comine("simulate", "job.toml", *baskets, "--out", disclose)
        assert ran.code == 0
        with (tmp_path / disclose / "rules.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        sides.append([(row.pop("antecedent"), row.pop("consequent")) for row in rows])
    assert sides[0] == sides[1] != []
    assert {cell for row in rows for cell in row.values()} == {""}
    assert "rules, supports not disclosed, of 9 transactions" in ran.err


def test_a_seed_repeats_the_run(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    accounts = []
    for out in ("first", "second"):
        assert comine("simulate", "job.toml", *baskets, "--out", out, "--seed", 7).code == 0
        accounts.append(json.loads((tmp_path / out / "result.json").read_text()))
    first, second = accounts
    assert first["job_id"] == second["job_id"]
    assert first["session_id"] == second["session_id"]
    assert first["seed"] == 7
    assert first["simulated"] is True
    assert (tmp_path / "first/itemsets.csv").read_bytes() == (tmp_path / "second/itemsets.csv").read_bytes()
    assert comine("simulate", "job.toml", *baskets, "--out", "third").code == 0
    assert json.loads((tmp_path / "third/result.json").read_text())["job_id"] != first["job_id"]


def test_none_frequent_gives_the_header_only(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    write_job(tmp_path, min_support="1.0")
    assert comine("simulate", "job.toml", *baskets, "--out", "out").code == 0
    assert (tmp_path / "out/itemsets.csv").read_text() == "itemset,length,count,support\n"


@pytest.mark.parametrize("form", ["basket", "csv", "long", "wide", "parquet", "gz", "separator"])
def test_every_format_gives_the_same_itemsets(comine: Comine, baskets: list[str], tmp_path: Path, form: str) -> None:
    items = sorted({item for row in POOLED for item in row})
    options: list[str] = ["--format", form]
    for name, rows in ROWS.items():
        file = tmp_path / f"{name}.dat"
        match form:
            case "csv":
                file.write_text("".join(",".join(row) + "\n" for row in rows))
            case "long":
                lines = [f"{number},{item}" for number, row in enumerate(rows) for item in row]
                file.write_text("\n".join(["id,item", *lines]) + "\n")
            case "wide":
                lines = [",".join(str(int(item in row)) for item in items) for row in rows]
                file.write_text("\n".join([",".join(items), *lines]) + "\n")
            case "parquet":
                pq.write_table(pa.table({"items": rows}), file)
            case "gz":
                file.write_bytes(gzip.compress(file.read_bytes()))
                options = []
            case "separator":
                file.write_text("".join("; ".join(row).replace(" ", "") + "\n" for row in rows))
                options = ["--separator", ";"]
    ran = comine("simulate", "job.toml", *baskets, *options)
    assert ran.code == 0, ran.err
    assert read_itemsets(ran.out) == brute_force(POOLED, 2)


def test_items_of_any_text_come_back_unchanged(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    odd = ['say "hi"', "a,b", "[x]", "two\nlines", "Äpfel 🍎", "<script>alert(1)</script>", "007", "=1+1", "\\", " t "]
    rows = [odd, odd[:5], odd[5:]]
    for name in ROWS:
        with (tmp_path / f"{name}.dat").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    write_job(tmp_path, min_support="6", more="max_length = 2")
    assert comine("simulate", "job.toml", *baskets, "--format", "csv", "--out", "out").code == 0
    expected = brute_force(rows * 3, 6, 2)
    assert read_itemsets((tmp_path / "out/itemsets.csv").read_bytes().decode()) == expected
    table = pq.read_table(tmp_path / "out/itemsets.parquet").to_pylist()
    assert {frozenset(row["itemset"]): row["count"] for row in table} == expected
    report = (tmp_path / "out/report.html").read_text()
    assert "<script>alert" not in report
    assert "&lt;script&gt;alert" in report


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (None, "job.toml does not exist"),
        ("[job\n", "not valid TOML"),
        ("[itemsets]\nmin_support = 0.1\n", "is missing"),
        ("min_support = 0", "min_support"),
        ("min_support = -1", "min_support"),
        ("min_support = nan", "min_support"),
        ("min_support = 1e-999999999", "a number is too long"),
        ('min_support = "1e-999999999"', "a number of at most 40 digits"),
        ("min_support = 0.1\nlambda = 1e-999999999", "a number is too long"),
        ("min_support = 1.5", "min_support"),
        ("min_support = true", "min_support"),
        ('min_support = 0.1\ncolour = "red"', "[itemsets] colour: is not a known key"),
    ],
)
def test_a_wrong_job_file_exits_10(
    comine: Comine, baskets: list[str], tmp_path: Path, job: str | None, sentence: str
) -> None:
    file = tmp_path / "job.toml"
    if job is None:
        file.unlink()
    elif job.startswith("["):
        file.write_text(job)
    else:
        file.write_text(file.read_text().replace("min_support = 0.2", job))
    ran = comine("simulate", "job.toml", *baskets, "--out", "out")
    assert ran.code == 10
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("comine: ")
    assert ran.err.endswith("(E100; comine explain E100)\n")
    assert not (tmp_path / "out").exists()


def test_a_count_above_all_rows_exits_10(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    write_job(tmp_path, min_support="1000")
    ran = comine("simulate", "job.toml", *baskets, "--out", "out")
    assert ran.code == 10
    assert "1000" in ran.err
    assert not (tmp_path / "out").exists()


def test_wrong_parties_are_named(comine: Comine, baskets: list[str]) -> None:
    ran = comine("simulate", "job.toml", *baskets[:-2])
    assert (ran.code, "'east'" in ran.err) == (10, True)
    ran = comine("simulate", "job.toml", *baskets, "--party", "west=north.dat")
    assert (ran.code, "'west' is not a party" in ran.err) == (10, True)
    ran = comine("simulate", "job.toml", *baskets, "--party", "north=north.dat")
    assert (ran.code, "'north' twice" in ran.err) == (2, True)
    ran = comine("simulate", "job.toml", *baskets, "--party", "north.dat")
    assert (ran.code, "NAME=FILE" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "options", "exit_code"),
    [
        (None, [], 10),
        (b"\x1f\x8b\x08\x00broken", [], 10),
        (b"caf\xe9\n", [], 10),
        (b"bread\n", ["--format", "parquet"], 10),
        (b"bread\n", ["--format", "long"], 10),
        (b"bread\n", ["--format", "sideways"], 10),
    ],
)
def test_wrong_data_exits_10_and_leaves_nothing(
    comine: Comine, baskets: list[str], tmp_path: Path, content: bytes | None, options: list[str], exit_code: int
) -> None:
    if content is None:
        (tmp_path / "south.dat").unlink()
    else:
        for name in ROWS:
            (tmp_path / f"{name}.dat").write_bytes(content)
    before = {path.name for path in tmp_path.iterdir()}
    ran = comine("simulate", "job.toml", *baskets, *options, "--out", "out")
    assert ran.code == exit_code
    assert ran.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == before


def test_databases(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    parties = list[str]()
    for name, rows in ROWS.items():
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            connection.execute("CREATE TABLE sales (receipt, article)")
            pairs = [(number, item) for number, row in enumerate(rows) for item in row]
            connection.executemany("INSERT INTO sales VALUES (?, ?)", pairs)
            connection.commit()
        parties += ["--party", f"{name}=sqlite:///{name}.db"]
    query = ("--query", "SELECT receipt AS id, article AS item FROM sales")
    found = [comine("simulate", "job.toml", *given) for given in (baskets, [*parties, *query])]
    assert found[0].out == found[1].out
    ran = comine("simulate", "job.toml", *parties, "--format", "sql")
    assert (ran.code, ran.err.count("\n")) == (10, 1)
    assert "needs a query" in ran.err


def test_no_rows_anywhere_exits_10(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    for name in ROWS:
        (tmp_path / f"{name}.dat").write_text("\n\n")
    ran = comine("simulate", "job.toml", *baskets, "--out", "out")
    assert ran.code == 10, ran.err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_refused_and_kept(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("precious")
    ran = comine("simulate", "job.toml", *baskets, "--out", "out")
    assert (ran.code, "not an earlier result" in ran.err) == (10, True)
    assert (out / "thesis.txt").read_text() == "precious"
    assert comine("simulate", "job.toml", *baskets, "--out", "north.dat").code == 10


def test_an_earlier_result_is_replaced(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    write_job(tmp_path, task="rules", more="[rules]\nmin_confidence = 0.6")
    assert comine("simulate", "job.toml", *baskets, "--out", "deep/er/out").code == 0
    assert (tmp_path / "deep/er/out/rules.csv").is_file()
    write_job(tmp_path)
    assert comine("simulate", "job.toml", *baskets, "--out", "deep/er/out").code == 0
    assert not (tmp_path / "deep/er/out/rules.csv").exists()
    assert [path.name for path in (tmp_path / "deep/er").iterdir()] == ["out"]


def test_an_unforeseen_fault_shows_no_traceback(
    comine: Comine, baskets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a private value")

    monkeypatch.setattr("coordinator.jobs.simulation.party_files.load_files", broken)
    ran = comine("simulate", "job.toml", *baskets)
    assert ran.code == 70
    assert "KeyError (E700" in ran.err
    assert "private" not in ran.err


def test_files_that_were_misread_are_hinted_at(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.dat").write_text("".join(";".join(row) + "\n" for row in [*rows, ["bread", "milk"]]))
    ran = comine("simulate", "job.toml", *baskets)
    assert ran.code == 0
    assert ran.err.count("hint: the data of ") == 3
    assert 'most items hold a comma, semicolon, bar or tab; if that separates items, write --format "csv", ' in ran.err
    assert '--separator ";"' in ran.err


def test_a_file_in_another_format_is_told_with_that_format(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    for name in ROWS:
        (tmp_path / f"{name}.dat").write_text("receipt;article\n1;bread\n1;milk\n2;milk\n")
    ran = comine("simulate", "job.toml", *baskets, "--format", "long")
    assert ran.code == 10
    assert 'it looks like separator = ";", id = "receipt", item = "article", since' in ran.err

"""`comine simulate` of jobs whose parties hold columns of the same rows: tables in, and what does not fit refused."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comine as api
from mining.data.formats.table_readers import table_from_arrow
from tests.cli.conftest import Comine
from tests.errors import fails

PEOPLE = {
    "north": {
        "id": ["p1", "p2", "p3", "p4", "p5"],
        "age": ["17", "44", "70", "44", ""],
        "ward": ["a", "b", "b", "b", "a"],
    },
    "south": {"id": ["p5", "p4", "p2", "p1", "p9"], "drug": ["x", "?", "?", "x", "y"]},
}
JOB: dict[str, dict[str, Any]] = {
    "job": {
        "name": "columns",
        "task": "itemsets",
        "parties": ["north", "south"],
        "dataset": "people",
        "partition": "vertical",
    },
    "itemsets": {"min_support": 2, "cuts": {"age": [18, 65]}},
}
JOINED = [
    {"age=(-inf,18)", "ward=a", "drug=x"},
    {"age=[18,65)", "ward=b", "drug=?"},
    {"age=[18,65)", "ward=b", "drug=?"},
    {"ward=a", "drug=x"},
]


def expected() -> dict[frozenset[str], int]:
    found: dict[frozenset[str], int] = {}
    for row in JOINED:
        for length in range(1, len(row) + 1):
            for items in combinations(sorted(row), length):
                found[frozenset(items)] = found.get(frozenset(items), 0) + 1
    return {items: count for items, count in found.items() if count >= 2}


def write(folder: Path, *, more: str = "", cuts: str = "age = [18, 65]") -> list[str]:
    """Writes the tables and `job.toml`; the arguments that name the files."""
    (folder / "job.toml").write_text(
        '[job]\nname = "columns"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "people"\n'
        f'partition = "vertical"\n{more}\n[itemsets]\nmin_support = 2\n[itemsets.cuts]\n{cuts}\n'
    )
    for name, columns in PEOPLE.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return [word for name in PEOPLE for word in ("--party", f"{name}={name}.csv")]


def read(text: str) -> dict[frozenset[str], int]:
    return {
        frozenset(json.loads(row["itemset"])): int(row["count"])
        for row in csv.DictReader(io.StringIO(text, newline=""))
    }


@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_the_result_is_that_of_the_joined_tables(comine: Comine, tmp_path: Path, mode: str) -> None:
    parties = write(tmp_path, more=f'[align]\nmode = "{mode}"')
    ran = comine("simulate", "job.toml", *parties, "--format", "csv", "--id", "id", "--out", "out")
    assert ran.code == 0, ran.err
    assert read((tmp_path / "out/itemsets.csv").read_text()) == expected()
    assert json.loads((tmp_path / "out/result.json").read_text())["n_rows"] == len(JOINED)


def test_tables_of_every_kind_from_python(tmp_path: Path) -> None:
    pq.write_table(pa.table(PEOPLE["north"]), tmp_path / "north.parquet")
    for north in (tmp_path / "north.parquet", pd.DataFrame(PEOPLE["north"]), pa.table(PEOPLE["north"])):
        result = api.simulate(JOB, {"north": north, "south": pd.DataFrame(PEOPLE["south"])}, format="parquet")
        frame = result.itemsets()
        assert {
            frozenset(items): count for items, count in zip(frame["itemset"], frame["count"], strict=True)
        } == expected()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--format", "basket"], 'not from the format "basket"'),
        (["--id", "patient"], 'the data of north: north.csv has no column named "patient"'),
        (["--id", "id", "--id", "age"], 'the data of south: south.csv has no column named "age"'),
        (["--separator", ";"], "check the separator"),
    ],
)
def test_options_that_do_not_fit(comine: Comine, tmp_path: Path, given: list[str], sentence: str) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path), *given)
    assert ran.code == 10
    assert sentence in ran.err


def test_a_column_at_two_parties_is_refused(comine: Comine, tmp_path: Path) -> None:
    parties = write(tmp_path)
    (tmp_path / "south.csv").write_text("id,drug,ward\np1,x,a\n")
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert "north and south both have the column 'ward'; in a vertical job every column is at one party" in ran.err


def test_a_column_that_nobody_has_is_refused(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, cuts="agee = [18]"))
    assert ran.code == 10
    assert "the column 'agee' into intervals, and no party has that column" in ran.err


@pytest.mark.parametrize("rows", ["p1,y\np1,x\n", "p1,y\n,x\n"])
def test_rows_need_ids_of_their_own(comine: Comine, tmp_path: Path, rows: str) -> None:
    parties = write(tmp_path)
    (tmp_path / "south.csv").write_text(f"id,drug\n{rows}")
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert "1 row has" in ran.err
    assert "p1" not in ran.err


def test_transactions_are_not_for_a_vertical_job_and_tables_for_no_other() -> None:
    with fails("E100", party="north"):
        api.simulate(JOB, {"north": [["a"]], "south": [["b"]]})
    table = table_from_arrow(pa.table(PEOPLE["south"]), ["id"], "the data")
    horizontal = {"job": {**JOB["job"], "partition": "horizontal"}, "itemsets": {"min_support": 2}}
    with fails("E100"):
        api.simulate(horizontal, {"north": [["a"]], "south": table})

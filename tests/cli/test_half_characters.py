"""Half a character, which Python's texts can hold and UTF-8 cannot, and names that no file can have."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comine
from coordinator.cli.terminal.outlet import outlet
from jobs.loading import job_of, load_job
from jobs.spec.toml import read_toml
from link.errors import ComineError, ConfigurationError, InputDataError
from mining.data.copies import state_of
from mining.data.loading import load_table, load_transactions
from mining.data.source_options import PLAIN
from mining.data.transactions import Transactions
from party.config import DatasetSection
from tests.cli.conftest import ROWS, Comine
from tests.errors import fails

HALF = "\ud800x"
NO_NAMES = [HALF, "a\0b", "x" * 300]
JOB: dict[str, Any] = {
    "job": {"name": "weekly", "task": "itemsets", "parties": list(ROWS), "dataset": "baskets"},
    "itemsets": {"min_support": 0.2},
}


def job(table: str, key: str, value: object) -> dict[str, Any]:
    changed = deepcopy(JOB)
    changed.setdefault(table, {})[key] = value
    return changed


def test_in_an_item() -> None:
    with fails("E101", party="south"):
        comine.simulate(JOB, {**ROWS, "south": [["a"], ["b", HALF]]})


@given(st.lists(st.lists(st.text(st.characters(categories=["Cs", "Ll"]), max_size=3), max_size=3), max_size=4))
def test_rows_hold_text_or_are_refused(rows: list[list[str]]) -> None:
    items = [item for row in rows for item in row]
    try:
        "".join(items).encode()
        "\0".join(items).encode()
    except UnicodeEncodeError:
        with fails("E101"):
            Transactions.from_rows(rows)
        numbers = np.arange(len(set(items)))
        with fails("E101"):
            Transactions.from_occurrences(list(dict.fromkeys(items)), numbers, numbers, len(numbers))
    else:
        assert Transactions.from_rows(rows).n_rows == len(rows)


@pytest.mark.parametrize(
    "changed",
    [
        *(job("job", key, HALF) for key in ("name", "dataset", "task", HALF)),
        *(job("job", "parties", [*list(ROWS)[:2], HALF]), job("itemsets", "exclude", [HALF])),
        *(job("itemsets", "universe", name) for name in NO_NAMES),
        *(job("itemsets", "max_length", HALF), job(HALF, "x", 1)),
    ],
)
def test_in_a_job(changed: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        comine.simulate(changed, ROWS)


@pytest.mark.parametrize("place", ["cell", "id", "column"])
def test_in_a_table(place: str) -> None:
    def text(here: str, otherwise: str) -> str:
        return HALF if here == place else otherwise

    table = (
        pd.DataFrame(
            {
                "id": pd.Series(["1", text("id", "2")], dtype=object),
                text("column", "c"): pd.Series(["x", text("cell", "y")], dtype=object),
            },
        )
        if place != "column"
        else {"id": ["1"], HALF: ["x"]}
    )
    vertical = job("job", "partition", "vertical") | {"align": {"mode": "intersection"}}
    with pytest.raises(InputDataError):
        comine.simulate(vertical, dict.fromkeys(ROWS, table))


@pytest.mark.parametrize("name", NO_NAMES)
def test_in_the_name_of_a_file(name: str, tmp_path: Path) -> None:
    section = DatasetSection.model_construct(name="x", source=name, format="basket")
    for open_it in (
        lambda: comine.simulate(name, ROWS),
        lambda: comine.simulate(JOB, {**ROWS, "north": tmp_path / name}),
        lambda: comine.load_model(name),
        lambda: comine.anonymize(name),
        lambda: read_toml(tmp_path / name),
        lambda: load_job(tmp_path / name),
        lambda: load_transactions(tmp_path / name, "parquet"),
        lambda: load_transactions(f"duckdb:///{name}", "sql", query="SELECT 1"),
        lambda: load_transactions(f"sqlite:///{name}", "sql", query="SELECT 1"),
        lambda: load_table(tmp_path / name, "csv"),
        lambda: state_of(section.source, PLAIN),
    ):
        with pytest.raises(ComineError) as caught:
            open_it()
        assert caught.value.exit_code == 10


def test_a_file_whose_name_is_no_text_can_be_read(tmp_path: Path) -> None:
    """Linux allows any bytes; Arrow, SQLite and DuckDB need text, and say that they cannot read it."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.dat"))
    path.write_text("a b\n")
    assert load_transactions(path, "basket").items == ("a", "b")
    with pytest.raises(InputDataError):
        load_transactions(path, "parquet")
    with pytest.raises(InputDataError):
        load_table(path, "parquet")


def test_a_path_that_is_no_text_can_be_told(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="utf-8") as file:
        told = outlet(file)
        told.write(os.fsdecode(b"\xff.toml") + " \N{BAGUETTE BREAD}")
        told.flush()
    assert (tmp_path / "out").read_text(encoding="utf-8") == "\\udcff.toml \N{BAGUETTE BREAD}"


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0b", "\x1c", "\x0c"])
def test_only_ends_of_lines_end_items_of_a_catalogue(comine: Comine, tmp_path: Path, sign: str) -> None:
    (tmp_path / "items.txt").write_text(f"one{sign}two\nthree\n", encoding="utf-8")
    spec = job_of(job("itemsets", "universe", "items.txt"), "the job", tmp_path)
    assert spec.itemsets.catalogue == ("one" + sign + "two", "three")


@pytest.mark.parametrize("option", ["--original", "--separator"])
def test_a_name_that_is_too_long_is_told_by_any_command(comine: Comine, tmp_path: Path, option: str) -> None:
    name = "x" * 300
    for line in (
        ["anonymize", "verify", name, option, "," if option == "--separator" else name],
        ["anonymize", "risk", name],
        ["anonymize", "run", name],
        ["audit", "verify", name],
        ["job", "plan", name],
        ["frequency", "simulate", "--mechanism", "grr", "--epsilon", "1", "--input", name],
        ["party", "check", name],
        ["init", "north", "--source", name],
    ):
        ran = comine(*line)
        assert ran.code in (2, 10), (line, ran.err)
        assert "fault in comine" not in ran.err

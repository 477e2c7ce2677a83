"""`comine simulate` of jobs that mine perturbed records: tables with intervals, what it cost, and a report."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

import comine as api
from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets

pytestmark = pytest.mark.turn(3)

MODELS = {"local": 'model = "local"\nepsilon = 6', "shuffle": 'model = "shuffle"\nepsilon = 2.0\ndelta = 1e-6'}
COLUMNS = ["itemset", "length", "count", "support", "deviation", "low", "high"]
RULES = '[rules]\nmin_confidence = 0.3\nmeasures = ["confidence", "lift"]\n'


def write(folder: Path, model: str, task: str = "itemsets", itemsets: str = "top_k = 8", more: str = "") -> list[str]:
    """Baskets of all parties, the catalogue, and `job.toml`; the arguments that name the files."""
    (folder / "items.txt").write_text("".join(f"{item}\n" for item in ITEMS))
    (folder / "job.toml").write_text(
        f'[job]\nname = "private"\ntask = "{task}"\nparties = {json.dumps(PARTIES)}\ndataset = "baskets"\n'
        f'partition = "hybrid"\n[itemsets]\nuniverse = "items.txt"\n{itemsets}\n[privacy]\n{MODELS[model]}\n{more}'
    )
    for place, party in enumerate(PARTIES):
        rows = [row for row in baskets(900, place) if row]
        (folder / f"{party}.dat").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    return [word for name in PARTIES for word in ("--party", f"{name}={name}.dat")]


@pytest.mark.parametrize("search", ["privset", "wheel", "svim"])
def test_searches_that_cut_rows_say_so(comine: Comine, tmp_path: Path, search: str) -> None:
    named = write(tmp_path, "local", itemsets="top_k = 4\nmax_length = 1", more=f'search = "{search}"\n')
    ran = comine("simulate", "job.toml", *named, "--seed", "5")
    assert ran.code == 0, ran.err
    told = "cuts rows to 8 items: where many are longer, supports are too low by more than their intervals cover"
    assert (f"{search} {told}" in ran.err) == (search != "svim")


@pytest.mark.parametrize("model", MODELS)
def test_itemsets_with_intervals(comine: Comine, tmp_path: Path, model: str) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, model), "--out", "out", "--seed", "5")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert "8 itemsets, estimated with 95 % intervals, of " in ran.err
    out = tmp_path / "out"
    names = {"itemsets.csv", "itemsets.parquet", "estimates.json", "result.json", "report.html", "manifest.json"}
    assert {path.name for path in out.iterdir()} == names
    assert (out / "itemsets.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    table = pq.read_table(out / "itemsets.parquet")
    assert table.column_names == COLUMNS
    for row in table.to_pylist():
        assert 0 <= row["low"] <= row["support"] <= row["high"] <= 1
    contents = json.loads((out / "result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    assert (contents["estimated"], contents["counted"], contents["strategy"]) == (True, True, "svsm")
    privacy = contents["privacy"]
    assert privacy["model"] == model
    assert (privacy["epsilon"] <= 2 < privacy["local_epsilon"]) if model == "shuffle" else privacy["epsilon"] == 6
    page = (out / "report.html").read_text()
    assert "Each interval covers, with a confidence of 95 %, what the noise may have moved the support by" in page
    assert "privacy of a record" in page
    again = comine("simulate", "job.toml", *write(tmp_path, model), "--out", "again", "--seed", "5")
    assert again.code == 0
    assert (tmp_path / "again" / "estimates.json").read_bytes() == (out / "estimates.json").read_bytes()


@pytest.mark.parametrize("model", MODELS)
def test_rules_with_intervals(comine: Comine, tmp_path: Path, model: str) -> None:
    given = write(tmp_path, model, "rules", "top_k = 12", RULES)
    ran = comine("simulate", "job.toml", *given, "--out", "out", "--seed", "2")
    assert ran.code == 0, ran.err
    table = pq.read_table(tmp_path / "out" / "rules.parquet")
    assert table.column_names[-4:] == ["confidence", "lift", "low", "high"]
    assert table.num_rows
    for row in table.to_pylist():
        assert 0.3 <= row["confidence"] <= row["high"]
        assert row["low"] <= row["confidence"]
    assert "confidence low" in (tmp_path / "out" / "report.html").read_text()
    shown = comine("simulate", "job.toml", *given, "--seed", "2")
    assert shown.out == (tmp_path / "out" / "rules.csv").read_text()
    as_json = json.loads(comine("simulate", "job.toml", *given, "--seed", "2", "--json").out)
    jsonschema.validate(as_json, json.loads(generate("result")))
    assert as_json["itemsets"][0]["low"] <= as_json["itemsets"][0]["support"]


def test_a_least_support_alone(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, "local", itemsets="min_support = 0.4\nmax_length = 1")
    ran = comine("simulate", "job.toml", *given, "--out", "out", "--seed", "1")
    assert ran.code == 0, ran.err
    found = pq.read_table(tmp_path / "out" / "itemsets.parquet")
    assert all(row["support"] >= 0.4 for row in found.to_pylist())
    none = comine("simulate", "job.toml", *write(tmp_path, "local", itemsets="min_support = 1.0"), "--out", "none")
    assert none.code == 0, none.err
    assert len((tmp_path / "none" / "itemsets.csv").read_text().splitlines()) <= 2


def test_without_a_catalogue_it_says_what_to_do(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, "local")
    job = tmp_path / "job.toml"
    job.write_text(job.read_text().replace('universe = "items.txt"\n', ""))
    ran = comine("simulate", "job.toml", *given, "--out", "out")
    assert ran.code == 10
    assert "give [itemsets] universe the path of a file with one item a line" in ran.err


def test_from_python(tmp_path: Path) -> None:
    write(tmp_path, "shuffle", "rules", "top_k = 8", RULES)
    data = {party: tmp_path / f"{party}.dat" for party in PARTIES}
    result = api.simulate(tmp_path / "job.toml", data, seed=1)
    assert result.tables.get("itemsets") is not None
    assert result.tables["itemsets"].column_names == COLUMNS
    assert len(result.itemsets()) == 8
    assert len(result.rules())
    assert "itemsets, estimated" in result._repr_html_()

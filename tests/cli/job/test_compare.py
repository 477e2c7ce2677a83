"""`comine compare`: one job under several privacy models, in one process and against nodes."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets
from tests.mining.joint.oracle import pooled_supports

pytestmark = pytest.mark.turn(3)

JOB = """[job]
name = "four <models>"
task = "{task}"
parties = ["north", "south", "east"]
dataset = "baskets"
partition = "{partition}"
[itemsets]
min_support = 0.2
{itemsets}
universe = "items.txt"
[privacy]
model = "{model}"
{privacy}
{more}
"""
FILES = {"compare.json", "compare.csv", "itemsets.csv", "estimates.csv", "report.html", "manifest.json"}


def write(
    folder: Path,
    *,
    task: str = "itemsets",
    partition: str = "hybrid",
    model: str = "distributed",
    itemsets: str = "",
    privacy: str = "epsilon = 5\ndelta = 1e-6",
    more: str = "",
) -> list[str]:
    """Baskets of all parties, the catalogue, and `job.toml`; the arguments that name the files."""
    (folder / "items.txt").write_text("".join(f"{item}\n" for item in ITEMS))
    (folder / "job.toml").write_text(
        JOB.format(task=task, partition=partition, model=model, itemsets=itemsets, privacy=privacy, more=more)
    )
    for place, party in enumerate(PARTIES):
        rows = [row for row in baskets(700, place) if row]
        (folder / f"{party}.dat").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    return [word for name in PARTIES for word in ("--party", f"{name}={name}.dat")]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_four_models_side_by_side(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, model="shuffle", itemsets="top_k = 6")
    ran = comine("compare", "job.toml", *given, "--out", "out", "--epsilon", "2,6")
    assert ran.code == 0, ran.err
    assert "6 frequent itemsets in " in ran.err
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[:2] for line in lines[1:]] == [
        ["exact", ""],
        *([model, epsilon] for model in ("local", "shuffle", "distributed") for epsilon in ("2", "6")),
    ]
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES
    contents = json.loads((out / "compare.json").read_text())
    jsonschema.validate(contents, json.loads(generate("compare")))
    assert (contents["true_itemsets"], contents["seeds"], contents["not_run"]) == (6, [1], [])
    exact, *others = contents["models"]
    assert exact["accuracy"]["f1"] == exact["accuracy"]["ncr"] == 1
    assert (exact["privacy"], exact["accuracy"]["mean_absolute"], exact["accuracy"]["covered"]) == (None, 0, None)
    for each in others:
        assert each["privacy"]["model"] == each["model"]
        assert each["privacy"]["epsilon"] <= float(each["epsilon"])
        assert (each["privacy"]["local_epsilon"] is None) == (each["model"] == "distributed")
        assert each["bytes_sent"] > 0
        assert each["accuracy"]["found"] <= 6
    best = others[-1]
    assert (best["model"], best["accuracy"]["f1"]) == ("distributed", 1)
    rows = table(out / "compare.csv")
    assert [float(row["f1"]) for row in rows] == [each["accuracy"]["f1"] for each in contents["models"]]
    estimates = table(out / "estimates.csv")
    assert {(row["model"], row["epsilon"]) for row in estimates} == {(e["model"], e["epsilon"]) for e in others}
    page = (out / "report.html").read_text()
    assert "four &lt;models&gt;" in page
    assert "four <models>" not in page
    for part in (
        "accuracy-chart",
        "errors-chart",
        "shuffle, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2",
        "unbounded",
        "intervals hold",
    ):
        assert part in page, part


def test_the_truth_is_the_exact_top_k(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, itemsets="top_k = 5")
    ran = comine("compare", "job.toml", *given, "--models", "exact", "--out", "out")
    assert ran.code == 0, ran.err
    write(tmp_path, model="exact", itemsets="top_k = 5", privacy="")
    assert comine("simulate", "job.toml", *given, "--out", "alone").code == 0
    told = (tmp_path / "out/itemsets.csv").read_text()
    assert told == (tmp_path / "alone/itemsets.csv").read_text()
    data = {party: [row for row in baskets(700, place) if row] for place, party in enumerate(PARTIES)}
    pooled = {tuple(sorted(each)): count for each, count in pooled_supports(data, Decimal("0.2")).items()}
    first = sorted(pooled, key=lambda each: (-pooled[each], len(each), each))[:5]
    rows = table(tmp_path / "out/itemsets.csv")
    assert {tuple(json.loads(row["itemset"])): int(row["count"]) for row in rows} == {x: pooled[x] for x in first}
    assert "estimates.csv" not in {path.name for path in (tmp_path / "out").iterdir()}


def test_rules_of_the_exact_top_k_follow_from_it(comine: Comine, tmp_path: Path) -> None:
    given = write(
        tmp_path, task="rules", model="exact", itemsets="top_k = 4", privacy="", more="[rules]\nmin_confidence = 0.1\n"
    )
    assert comine("simulate", "job.toml", *given, "--out", "out").code == 0
    itemsets = {row["itemset"] for row in table(tmp_path / "out/itemsets.csv")}
    rules = table(tmp_path / "out/rules.csv")
    assert len(itemsets) == 4
    for row in rules:
        both = sorted(json.loads(row["antecedent"]) + json.loads(row["consequent"]))
        assert json.dumps(both) in itemsets


def test_top_k_needs_supports(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, model="exact", itemsets='top_k = 4\ndisclose = "frequent"', privacy="")
    ran = comine("simulate", "job.toml", *given)
    assert ran.code == 10
    assert "opens no supports, and top_k needs them" in ran.err


def test_models_that_cannot_run_are_named_and_the_others_run(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, partition="horizontal", model="exact", privacy="")
    ran = comine("compare", "job.toml", *given, "--epsilon", "4", "--out", "out")
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 2
    assert 'local, ε = 4: not run: [privacy] model = "local"' in ran.err
    assert 'needs partition = "hybrid"' in ran.err
    assert 'distributed, ε = 4: not run: [privacy] model = "distributed": ' in ran.err
    contents = json.loads((tmp_path / "out/compare.json").read_text())
    jsonschema.validate(contents, json.loads(generate("compare")))
    assert [each["model"] for each in contents["not_run"]] == ["local", "shuffle", "distributed"]
    assert "needs delta" in (tmp_path / "out/report.html").read_text()
    given = write(tmp_path)
    (tmp_path / "job.toml").write_text((tmp_path / "job.toml").read_text().replace('universe = "items.txt"', ""))
    ran = comine("compare", "job.toml", *given, "--models", "local,distributed", "--json")
    assert ran.code == 0, ran.err
    contents = json.loads(ran.out)
    assert [each["model"] for each in contents["models"]] == ["exact", "distributed"]
    assert "public catalogue" in contents["not_run"][0]["reason"]


def test_several_seeds_give_means_and_can_be_repeated(comine: Comine, tmp_path: Path) -> None:
    given = write(tmp_path, itemsets="max_length = 1")
    words = ("compare", "job.toml", *given, "--models", "distributed,local", "--seeds", "3", "--json")
    contents = json.loads(comine(*words).out)
    assert contents["seeds"] == [1, 2, 3]
    for each in contents["models"][1:]:
        assert each["runs"] == 3
        assert each["accuracy"]["f1_deviation"] is not None
    again = json.loads(comine(*words).out)
    for one, two in zip(contents["models"], again["models"], strict=True):
        assert one["accuracy"] == two["accuracy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the data of each party with --party, or the nodes with --federation"),
        (["--party", "north=north.dat", "--federation", "f.toml"], "with --party, or the nodes"),
        (["--party", "north=north.dat", "--models", "exact,magic"], "there is no model 'magic'"),
        (["--party", "north=north.dat", "--epsilon", "much"], "--epsilon much: the form is one number"),
        (["--party", "north=north.dat", "--epsilon", "0"], "above 0"),
        (["--federation", "f.toml", "--seeds", "2"], "--seeds and --format go with --party"),
    ],
)
def test_wrong_command_lines(comine: Comine, tmp_path: Path, words: list[str], said: str) -> None:
    write(tmp_path)
    ran = comine("compare", "job.toml", *words)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("min_support = 0.2", "top_k = 4"), "min_support is missing"),
        (("min_support = 0.2", 'min_support = 0.2\ndisclose = "frequent"'), "opens no supports"),
        (('dataset = "baskets"', 'dataset = "baskets"\nrecipients = ["south"]'), "needs the coordinator too"),
    ],
)
def test_jobs_that_cannot_be_compared(comine: Comine, tmp_path: Path, changed: tuple[str, str], said: str) -> None:
    given = write(tmp_path)
    path = tmp_path / "job.toml"
    path.write_text(path.read_text().replace(*changed))
    ran = comine("compare", "job.toml", *given)
    assert ran.code == 10
    assert said in ran.err


def test_the_federation_comes_from_the_environment(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the data are given they are taken, whatever the environment says for other commands."""
    parties = write(tmp_path)
    monkeypatch.setenv("COMINE_FEDERATION", "nowhere.toml")
    ran = comine("compare", "job.toml")
    assert ran.code == 10
    assert "nowhere.toml does not exist" in ran.err
    assert comine("compare", "job.toml", *parties, "--models", "exact", "--json").code == 0
    ran = comine("compare", "job.toml", *parties, "--federation", "nowhere.toml")
    assert ran.code == 2
    assert "with --party, or the nodes with --federation" in ran.err

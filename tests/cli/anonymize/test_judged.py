"""`comine anonymize risk|explore`: what a release, or a whole grid of them, is worth."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from jobs.schema import generate
from tests.cli.anonymize.patients import NUMBERS, ROWS, Configure, K, classes, rows
from tests.cli.conftest import Comine


def test_risk_of_a_release_and_of_the_original(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    ran = comine("anonymize", "risk", "out", "--config", config, "--population", "patients.csv", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    jsonschema.validate(told, json.loads(generate("anonymization-risk")))
    sizes = classes(rows(tmp_path / "out/release.csv"))
    assert told["prosecutor"]["highest"] == 1 / min(sizes.values())
    assert told["prosecutor"]["average"] == pytest.approx(len(sizes) / sum(sizes.values()))
    assert told["linkage"]["unique"] == 0
    assert told["linkage"]["targets"] == told["population"]["people"] == 120
    # the original against itself: everybody with a tuple of their own is found
    ran = comine("anonymize", "risk", "patients.csv", "--config", config, "--separator", ";", "--json")
    raw = json.loads(ran.out)
    alone = sum(n == 1 for n in Counter((str(r[1]), r[2], r[3]) for r in ROWS).values())
    assert (raw["linkage"]["unique"], raw["prosecutor"]["unique"]) == (alone, alone / 120)
    assert (
        "prosecutor highest\t1"
        in comine(*("anonymize", "risk", "patients.csv", "--config", config, "--separator", ";")).out
    )


def test_an_attacker_who_knows_some_columns(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    (tmp_path / "voters.csv").write_text("name;age;sex\nAnn;27;m\nBob;300;f\n")
    ran = comine("anonymize", "risk", "out", "--config", config, "--attacker", "voters.csv", "--json")
    linkage = json.loads(ran.out)["linkage"]
    assert (linkage["attacker"], linkage["columns"], linkage["targets"]) == ("voters.csv", ["age", "sex"], 2)
    assert 0 <= linkage["matched"] <= 2
    (tmp_path / "voters.csv").write_text("name\nAnn\n")
    ran = comine("anonymize", "risk", "out", "--config", config, "--attacker", "voters.csv")
    assert (ran.code, "lacks the quasi-identifier" in ran.err) == (10, True)
    (tmp_path / "few.csv").write_text("age;city;sex\n27;Oslo;m\n")
    ran = comine("anonymize", "risk", "out", "--config", config, "--population", "few.csv")
    assert (ran.code, "the population must hold everybody" in ran.err) == (10, True)
    assert comine("anonymize", "risk", "out", "--config", config, "--threshold", "0").code == 2
    assert comine("anonymize", "risk", "nowhere", "--config", config).code == 10


def test_risk_without_classes_links_by_distance(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    configure()
    (tmp_path / "n.toml").write_text(
        NUMBERS.format(
            algorithm="ppir", top='seed = 1\nrow_order = "input"', more="[anonymize.ppir]\nranges = { age = 0 }\n"
        )
    )
    assert comine("anonymize", "run", "n.toml", "--out", "out").code == 0
    told = json.loads(comine("anonymize", "risk", "out", "--config", "n.toml", "--json").out)
    sizes = Counter(row[1] for row in ROWS)
    assert (told["prosecutor"], told["linkage"], told["sensitive"]) == (None, None, {})
    assert told["distance"].pop("expected_links") == pytest.approx(len(sizes) / 120)
    assert told["distance"] == {"columns": ["age"], "right": 120}


def test_the_frontier_of_a_grid(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    ran = comine(
        "anonymize", "explore", configure(), "--k", "2,5,200", "--max-suppression", "0,0.05", "--out", "f", "--json"
    )
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    jsonschema.validate(told, json.loads(generate("anonymization-frontier")))
    assert told == json.loads((tmp_path / "f/frontier.json").read_text())
    points = {(each["parameters"]["k"], each["parameters"]["max_suppression"]): each for each in told["points"]}
    assert set(points) == {(2, 0), (2, 0.05), (5, 0), (5, 0.05)}
    assert [each["parameters"]["k"] for each in told["refused"]] == [200, 200]
    assert "refused: k = 200, max_suppression = 0: k = 200 cannot be met" in ran.err
    for k in (2, 5):
        assert points[k, 0.05]["loss"] <= points[k, 0]["loss"]
        assert points[k, 0]["risk"] <= 1 / k
    for each in told["points"]:
        beaten = any(
            o["risk"] <= each["risk"]
            and o["loss"] <= each["loss"]
            and (o["risk"], o["loss"]) != (each["risk"], each["loss"])
            for o in told["points"]
        )
        assert not (each["pareto"] and beaten)
    table = rows(tmp_path / "f/frontier.csv")
    assert [row["reason"] != "" for row in table] == [False] * 4 + [True] * 2


def test_exploring_needs_something_to_vary(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure()
    for words, code in (
        ([], 2),
        (["--k", "two"], 2),
        (["--k", "2.5"], 2),
        (["--k", "0"], 2),
        (["--max-suppression", "2"], 2),
        (["--max-suppression", "nan"], 2),
        (["--t", "0.2"], 10),
        (["--k", "300"], 10),
    ):
        ran = comine("anonymize", "explore", config, "--out", "f", *words)
        assert ran.code == code, words
    assert not (tmp_path / "f").exists()
    ran = comine(
        "anonymize", "explore", configure(model=K + "t = 0.9\nl = 2\n"), "--out", "f", "--t", "0.4,0.9", "--l", "2"
    )
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == "l\tt\trisk\tloss\tclasses\tsuppressed\tfrontier"
    ran = comine("anonymize", "explore", configure(), "--out", "f", "--l", "2")
    assert (ran.code, "--l varies [anonymize.model] l" in ran.err) == (10, True)

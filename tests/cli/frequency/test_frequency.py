"""`comine frequency simulate`: files in, estimates and a report out, and every wrong input one sentence."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from jobs.schema import generate, published
from ldp.consistency import METHODS
from ldp.registry import ORACLES
from tests.cli.conftest import Comine
from tests.jobs.report.pages import taken_apart

FILES = ["estimates.csv", "manifest.json", "report.html", "result.json"]
COUNTS = {"milk": 3000, "bread": 1500, "tea, green": 400, ' say "hi" ': 100}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Writes 5,000 values to `values.txt`; the arguments that all commands share."""
    (tmp_path / "values.txt").write_text("".join(f"{value}\n" * count for value, count in COUNTS.items()))
    return ["frequency", "simulate", "--epsilon", "2", "--input", "values.txt"]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tabled(out: str) -> list[dict[str, str]]:
    heads, *lines = (line.split("\t") for line in out.splitlines())
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_one_mechanism_writes_estimates_near_the_truth(comine: Comine, arguments: list[str], tmp_path: Path) -> None:
    ran = comine(*arguments, "--mechanism", "grr", "--out", "out", "--seed", 1)
    assert ran.code == 0, ran.err
    found = rows(tmp_path / "out/estimates.csv")
    assert list(found[0]) == ["value", "count", "estimate", "variance", "low", "high"]
    assert [row["value"] for row in found] == sorted(COUNTS, key=str.encode)
    assert {row["value"]: int(row["count"]) for row in found} == COUNTS
    for row in found:
        deviation = float(row["variance"]) ** 0.5
        assert abs(float(row["estimate"]) - int(row["count"])) < 5.5 * deviation
        assert float(row["low"]) <= max(float(row["estimate"]), 0) <= float(row["high"])
    contents = json.loads((tmp_path / "out/result.json").read_text())
    (mechanism,) = contents["mechanisms"]
    assert (contents["schema"], contents["n"], contents["d"]) == ("comine.frequency/1", 5000, 4)
    assert (mechanism["mechanism"], mechanism["report_bytes"]) == ("grr", 1)
    assert mechanism["parameters"] == {"domain": 4, "epsilon": 2.0}
    assert 1.999 < mechanism["exact_epsilon"] <= 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    (line,) = tabled(ran.out)
    assert list(line) == ["mechanism", "exact ε", "bytes/report", "RMSE", "theory RMSE", "ratio", "seconds"]
    assert "5,000 users, 4 values; written to out" in ran.err


def test_the_domain_is_what_was_seen_unless_a_file_names_it(
    comine: Comine, arguments: list[str], tmp_path: Path
) -> None:
    assert "a real collection needs a public one" in comine(*arguments, "--mechanism", "grr").err
    domain = ["tea, green", "milk", "jam", ' say "hi" ', "", "bread"]
    (tmp_path / "domain.txt").write_text("".join(f"{value}\n" for value in domain))
    ran = comine(*arguments, "--mechanism", "grr", "--domain", "domain.txt", "--out", "out")
    assert (ran.code, "public" in ran.err) == (0, False)
    assert [(row["value"], int(row["count"])) for row in rows(tmp_path / "out/estimates.csv")] == [
        (value, COUNTS.get(value, 0)) for value in domain
    ]
    assert json.loads((tmp_path / "out/result.json").read_text())["domain"] == "given"


def test_several_mechanisms_stand_side_by_side(comine: Comine, arguments: list[str], tmp_path: Path) -> None:
    several = [word for name in ("auto", "olh", "hr", "olh") for word in ("--mechanism", name)]
    ran = comine(*arguments, *several, "--out", "out", "--runs", 2, "--post-processing", "norm-sub")
    assert ran.code == 0, ran.err
    assert [line["mechanism"] for line in tabled(ran.out)] == ["grr", "olh", "hr"]
    assert "auto takes grr for 4 values" in ran.err
    names = [row["mechanism"] for row in rows(tmp_path / "out/comparison.csv")]
    assert names == ["grr", "olh", "hr"]
    for name in names:
        found = rows(tmp_path / f"out/{name}/estimates.csv")
        assert sum(float(row["post_processed"]) for row in found) == pytest.approx(5000)
        assert min(float(row["post_processed"]) for row in found) >= 0
    assert not (tmp_path / "out/estimates.csv").exists()


def test_a_seed_repeats_everything(comine: Comine, arguments: list[str], tmp_path: Path) -> None:
    for out, seed in (("one", ["--seed", 5]), ("two", ["--seed", 5]), ("three", [])):
        assert comine(*arguments, "--mechanism", "olh", "--out", out, *seed).code == 0
    one, two, three = ((tmp_path / out / "estimates.csv").read_bytes() for out in ("one", "two", "three"))
    assert one == two
    assert one != three


@pytest.mark.parametrize("name", ORACLES)
def test_every_oracle_can_be_simulated(comine: Comine, arguments: list[str], name: str) -> None:
    ran = comine(*arguments, "--mechanism", name, "--json")
    assert ran.code == 0, ran.err
    (mechanism,) = json.loads(ran.out)["mechanisms"]
    assert mechanism["mechanism"] == name
    assert mechanism["exact_epsilon"] <= 2
    assert 0.05 < mechanism["errors"]["ratio"] < 5


@pytest.mark.parametrize("method", METHODS)
def test_every_post_processing_can_be_asked_for(comine: Comine, arguments: list[str], method: str) -> None:
    ran = comine(*arguments, "--mechanism", "oue", "--post-processing", method, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["mechanisms"][0]["errors"]["post_processed_rmse"] >= 0


def test_the_report_holds_everything_and_loads_nothing(comine: Comine, arguments: list[str], tmp_path: Path) -> None:
    with (tmp_path / "values.txt").open("a") as file:
        file.write("</script><script>alert(1)</script>\n")
    several = ["--mechanism", "grr", "--mechanism", "she", "--post-processing", "power-ns"]
    assert comine(*arguments, *several, "--out", "out").code == 0
    html = (tmp_path / "out/report.html").read_text()
    assert "<script>alert" not in html
    page = taken_apart(html)
    assert page.unclosed == []
    assert "default-src 'none'" in page.policy
    assert not any("src" in attributes or name in ("link", "img") for name, attributes in page.elements)
    data: Any = page.data
    assert [each["name"] for each in data["mechanisms"]] == ["grr", "she"]
    assert (data["values"][0], data["counts"][0]) == ("milk", 3000)
    for each in data["mechanisms"]:
        assert {len(each[key]) for key in ("estimates", "low", "high", "processed")} == {5}
    for name in ("grr", "she", "alert(1)", "norm", "Errors against theory"):
        assert name in page.text


def test_lines_are_taken_byte_for_byte(comine: Comine, tmp_path: Path) -> None:
    odd = ["a", "A", " a", "a ", "007", "7", "\u2028x", "x\x0by", "Äpfel 🍎", "Äpfel 🍎".replace("Ä", "A\u0308"), ""]
    command = ["frequency", "simulate", "--mechanism", "grr", "--epsilon", 1, "--input", "values.txt", "--out", "out"]
    (tmp_path / "values.txt").write_bytes("\n".join(odd).encode() + b"\n")
    assert comine(*command).code == 0
    assert [row["value"] for row in rows(tmp_path / "out/estimates.csv")] == sorted(odd, key=str.encode)
    (tmp_path / "values.txt").write_bytes(b"one\r\ntwo\r\none")
    assert comine(*command).code == 0
    assert [(row["value"], row["count"]) for row in rows(tmp_path / "out/estimates.csv")] == [
        ("one", "2"),
        ("two", "1"),
    ]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--mechanism", "magic"], 10, "no frequency oracle 'magic'"),
        (["--mechanism", "grr", "--epsilon", "0"], 10, "epsilon"),
        (["--mechanism", "grr", "--epsilon", "nan"], 10, "epsilon"),
        (["--mechanism", "grr", "--epsilon", "much"], 2, "--epsilon"),
        (["--mechanism", "grr", "--input", "nowhere.txt"], 10, "nowhere.txt"),
        (["--mechanism", "grr", "--domain", "nowhere.txt"], 10, "nowhere.txt"),
        (["--mechanism", "grr", "--confidence", "1"], 10, "confidence"),
        (["--mechanism", "grr", "--confidence", "nan"], 10, "confidence"),
        (["--mechanism", "grr", "--runs", "0"], 10, "run"),
        (["--mechanism", "grr", "--top", "0"], 10, "most frequent"),
        (["--mechanism", "grr", "--post-processing", "magic"], 10, "no post-processing 'magic'"),
        (["--mechanism", "she", "--post-processing", "mle-apx"], 10, "mle-apx"),
        ([], 2, "--mechanism"),
    ],
)
def test_wrong_options_exit_as_documented(
    comine: Comine, arguments: list[str], tmp_path: Path, options: list[str], code: int, sentence: str
) -> None:
    ran = comine(*arguments, *options, "--out", "out")
    assert ran.code == code
    assert sentence in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("values", "domain", "sentence"),
    [
        (b"", None, "values.txt is empty"),
        (b"one\none\n", None, "the same value"),
        (b"one\ntwo\n\xff\n", None, "line 3 holds a byte that is not; re-encode it (E101"),  # no option takes others
        (b"one\nthree\n", b"one\ntwo\n", "line 2 of values.txt holds 'three', which is not in the domain"),
        (b"one\n\n", b"one\ntwo\n", "⟨empty⟩"),
        (b"one\n", b"one\n", "between 2 and"),
        (b"one\n", b"", "domain.txt is empty"),
        (b"one\n", b"one\ntwo\none\n", "line 1 of domain.txt names 'one', which comes again"),
    ],
)
def test_wrong_files_exit_10_and_leave_nothing(
    comine: Comine, arguments: list[str], tmp_path: Path, values: bytes, domain: bytes | None, sentence: str
) -> None:
    (tmp_path / "values.txt").write_bytes(values)
    more = []
    if domain is not None:
        (tmp_path / "domain.txt").write_bytes(domain)
        more = ["--domain", "domain.txt"]
    ran = comine(*arguments, "--mechanism", "grr", *more, "--out", "out")
    assert (ran.code, sentence in ran.err) == (10, True), ran.err
    assert re.search(r"\(E10[01]; comine explain E10[01]\)\n$", ran.err)
    assert not (tmp_path / "out").exists()


def test_an_earlier_simulation_is_replaced_and_nothing_else(
    comine: Comine, arguments: list[str], tmp_path: Path
) -> None:
    both = ["--mechanism", "grr", "--mechanism", "oue", "--out", "out"]
    assert comine(*arguments, *both).code == 0
    assert comine(*arguments, *both[2:]).code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert comine(*arguments, *both).code == 0
    (tmp_path / "out/grr/thesis.txt").write_text("precious")
    ran = comine(*arguments, *both)
    assert (ran.code, "not an earlier result" in ran.err) == (10, True)
    assert (tmp_path / "out/grr/thesis.txt").read_text() == "precious"
    assert comine(*arguments, "--mechanism", "grr", "--out", "values.txt").code == 10


def test_results_meet_their_published_schema(comine: Comine, arguments: list[str], tmp_path: Path) -> None:
    schema = json.loads(published("frequency"))
    assert published("frequency") == generate("frequency") == comine("schema", "frequency").out
    several = [word for name in ("auto", "flh", "l-grr", "hr") for word in ("--mechanism", name)]
    for more in ([], ["--seed", 3, "--runs", 2, "--post-processing", "norm-sub", "--parameter", "functions=64"]):
        ran = comine(*arguments, *several, *more, "--json", "--out", "out")
        assert ran.code == 0, ran.err
        jsonschema.validate(json.loads(ran.out), schema)
        jsonschema.validate(json.loads((tmp_path / "out/result.json").read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(ran.out) | {"more": 1}, schema)


def test_parameters_go_to_all_mechanisms_that_have_them(comine: Comine, arguments: list[str]) -> None:
    several = [word for name in ("cms", "flh", "l-grr", "grr") for word in ("--mechanism", name)]
    settings = [w for each in ("functions=32", "buckets=8", "permanent_epsilon=3.5") for w in ("--parameter", each)]
    ran = comine(*arguments, *several, *settings, "--json")
    assert ran.code == 0, ran.err
    found = {each["mechanism"]: each["parameters"] for each in json.loads(ran.out)["mechanisms"]}
    for sketch in ("cms", "flh"):
        assert (found[sketch]["functions"], found[sketch]["buckets"]) == (32, 8)
    assert found["l-grr"]["permanent_epsilon"] == 3.5
    assert found["grr"] == {"domain": 4, "epsilon": 2.0}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("functions", "NAME=NUMBER"),
        ("functions=many", "NAME=NUMBER"),
        ("functions=nan", "NAME=NUMBER"),
        ("=3", "NAME=NUMBER"),
        ("functions=2.5", "whole number"),
        ("functions=0", "functions"),
        ("buckets=3", "power of two"),
        ("g=4", "no parameter 'g'; of those that can be set, hcms has functions, buckets, salt; olh has none"),
        ("epsilon=4", "no parameter 'epsilon'"),
    ],
)
def test_wrong_parameters_are_one_sentence(comine: Comine, arguments: list[str], setting: str, words: str) -> None:
    ran = comine(*arguments, "--mechanism", "hcms", "--mechanism", "olh", "--parameter", setting)
    assert ran.code == 10
    assert words in " ".join(ran.err.split())


def test_a_parameter_given_twice_is_refused(comine: Comine, arguments: list[str]) -> None:
    ran = comine(*arguments, "--mechanism", "flh", "--parameter", "buckets=3", "--parameter", "buckets=4")
    assert (ran.code, "twice" in ran.err) == (10, True)

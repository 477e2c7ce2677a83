"""`comine anonymize run|verify`: every wrong input is told in one sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from jobs.schema import generate
from tests.cli.anonymize.patients import HIERARCHIES, LEVELS, Configure, K
from tests.cli.conftest import Comine

WRONG = {
    "unknown column": (('"age", "city"', '"aje", "city"'), 'The roles name column "aje", which the table lacks'),
    "column without a role": (('"city", "sex"', '"sex"'), "These columns have no role: city"),
    "column with two roles": (('"disease"', '"disease", "sex"'), 'Column "sex" is listed under'),
    "unknown key": (("k = 4", "kk = 4"), "kk: is not a known key"),
    "k of 0": (("k = 4", "k = 0"), "[anonymize.model] k:"),
    "k as text": (("k = 4", 'k = "4"'), "[anonymize.model] k:"),
    "k of true": (("k = 4", "k = true"), "[anonymize.model] k:"),
    "no model": (("k = 4", ""), "[anonymize.model] is missing"),
    "p beyond the values": (("k = 4", "k = 9\np = 5"), 'p = 5 cannot be met: column "disease" has 4 distinct values'),
    "l beyond the values": (("k = 4", "l = 5"), 'l = 5 cannot be met: column "disease" has 4 distinct values'),
    "entropy out of reach": (
        ("k = 4", 'l = { kind = "entropy", value = 4.1 }'),
        'Entropy l-diversity with l = 4.1 cannot be met: the values of column "disease" reach',
    ),
    "l that is not whole": (("k = 4", "l = 2.5"), "l is 2.5, which is not whole"),
    "recursive without c": (("k = 4", 'l = { kind = "recursive", value = 2 }'), "c belongs to recursive l-diversity"),
    "column of a model": (("k = 4", 't = { value = 0.2, column = "sex" }'), 'Column "sex" is not sensitive'),
    "H without levels": (("k = 4", "H = 2"), "H needs [anonymize.levels] values"),
    "unknown algorithm": (('"optimal"', '"best"'), "'best' is none of samarati, incognito, optimal"),
    "share above 1": (("0.05", "1.5"), "max_suppression:"),
    "share of nan": (("0.05", "nan"), "max_suppression:"),
    "ppir without ranges": (('"optimal"', '"ppir"'), "needs [anonymize.ppir] ranges"),
    "condensation with l": (('"optimal"', '"condensation"'), "has no moments"),
    "mdav on trees": (('"optimal"', '"mdav"'), "Column"),
    "maa-slie without levels": (('"optimal"', '"maa-slie"'), "needs [anonymize.levels] values"),
    "a table of another algorithm": (("k = 4", "k = 4\n[anonymize.mdav]"), "belongs to algorithm = "),
    "no such hierarchy": (('"city.csv"', '"town.csv"'), "town.csv cannot be read as CSV"),
    "no hierarchy": (('city = "city.csv"', ""), 'Quasi-identifier "city" has no generalisation hierarchy'),
    "hierarchy of nobody": (('city = "city.csv"', 'town = "city.csv"'), 'The table has no column "town"'),
    "hierarchy of an insensitive column": (('city = "city.csv"', 'visits = "city.csv"'), "which is neither a quasi-"),
    "unknown builder": (('"flat"', '"round"'), "sex: Input tag 'round'"),
    "intervals of text": (('builder = "flat"', 'builder = "intervals", widths = [2]'), "is built of intervals, but"),
    "dates of text": (('builder = "flat"', 'builder = "dates"'), "is built of dates, but"),
    "widths that do not nest": (("[5, 10, 20]", "[5, 7]"), "must be above 0 and a multiple of the one before"),
    "a range that is too small": (("[0, 99]", "[0, 30]"), 'The hierarchy of column "age" lacks'),
    "kind that does not suit": (('age = { kind = "numeric" }', 'city = { kind = "numeric" }'), "is declared numeric"),
    "ordinal without order": (('kind = "numeric"', 'kind = "ordinal"'), "belong together"),
    "no such source": (("patients.csv", "nobody.csv"), "nobody.csv cannot be read"),
    "another separator": (('separator = ";"', 'separator = ","'), "its columns are id;age;city"),
    "query of a file": (('separator = ";"', 'query = "select 1"'), "a query belongs to a source that is a database"),
    "database without query": (
        ('"patients.csv"', '"sqlite:///a.db"'),
        "a query belongs to a source that is a database",
    ),
    "not TOML": (("[anonymize]", "[anonymize"), "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_a_sentence(comine: Comine, configure: Configure, tmp_path: Path, case: str) -> None:
    (old, new), sentence = WRONG[case]
    config = configure()
    text = (tmp_path / config).read_text()
    assert old in text
    (tmp_path / config).write_text(text.replace(old, new, 1))
    ran = comine("anonymize", "run", config, "--out", "out")
    assert (ran.code, ran.out) == (10, ""), ran.err
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("", "is empty"),
        ("id;age;city;sex;disease;visits\n", "The table has no rows"),
        ("id;age;city;sex;disease;visits\np;30;Oslo;m;flu;1\n", "the table has 1 records only"),
        ("id;age;city;sex;disease;visits\np;;Oslo;m;flu;1\np;3;Oslo;m;flu;1\n", 'Column "age" lacks 1 of 2 values'),
        ("id;age;city;sex;disease;visits\np;NaN;Oslo;m;flu;1\n", 'Column "age" is declared numeric, but "NaN"'),
        ("id;age;city;sex;disease;visits\np;3;Oslo;m;flu\n", "is not proper CSV"),
        ("id;age;city;sex;disease;age\np;3;Oslo;m;flu;1\n", "age"),
        (b"id;age;city;sex;disease;visits\np;3;Osl\xff;m;flu;1\n", "UTF-8"),
        (
            "id;age;city;sex;disease;visits\n" + "".join(f"p{i};30;Lima;m;flu;1\n" for i in range(9)),
            'lacks 1 of its 1 values: "Lima"',
        ),
    ],
    ids=["empty file", "no rows", "one row", "missing", "nan", "short line", "twice", "not text", "no leaf"],
)
def test_bad_data_are_told_in_a_sentence(
    comine: Comine, configure: Configure, tmp_path: Path, case: str | bytes, sentence: str
) -> None:
    config = configure()
    (tmp_path / "patients.csv").write_bytes(case if isinstance(case, bytes) else case.encode())
    ran = comine("anonymize", "run", config, "--out", "out")
    assert (ran.code, ran.out) == (10, ""), ran.err
    assert sentence in ran.err


@pytest.mark.parametrize(
    ("hierarchy", "sentence"),
    [
        ("Oslo;A;*\nTurku;A;x\nRome;B;*\nPorto;B;*\nNice;B;*\n", "ends in several values at its top level"),
        ("Oslo;A;1;*\nTurku;A;2;*\nRome;B;1;*\nPorto;B;1;*\nNice;B;1;*\n", 'is not nested: "Oslo" and "Turku"'),
        ("Oslo;A;*\nTurku;A\n", "has 3 levels in row 1 but 2 in row 2"),
        ("Oslo;A;*\nOslo;A;*\n", 'has two rows for the leaf "Oslo"'),
        ("", "has no leaves"),
    ],
)
def test_bad_hierarchies_are_told_with_their_values(
    comine: Comine, configure: Configure, tmp_path: Path, hierarchy: str, sentence: str
) -> None:
    config = configure()
    (tmp_path / "city.csv").write_text(hierarchy)
    ran = comine("anonymize", "run", config, "--out", "out")
    assert ran.code == 10
    assert sentence in ran.err


def test_a_changed_release_does_not_verify(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    assert comine("anonymize", "run", configure(), "--out", "out").code == 0
    ran = comine("anonymize", "verify", "out", "--json")
    assert (ran.code, json.loads(ran.out)["ok"]) == (0, True)
    shutil.copytree(tmp_path / "out", tmp_path / "changed")
    path = tmp_path / "changed/release.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1].replace(re.split(",", lines[-1])[-2], "gout"))
    ran = comine("anonymize", "verify", "changed")
    assert ran.code == 10
    assert "does not hold what its certificate claims" in ran.err
    assert "SHA-256 of release.csv\tNO" in ran.out
    ran = comine("anonymize", "verify", "changed", "--json")
    assert (ran.code, json.loads(ran.out)["ok"]) == (10, False)


def test_verify_refuses_what_is_no_release(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    for folder in ("nowhere", "nothing"):
        assert comine("anonymize", "verify", folder).code == 10
    assert comine("anonymize", "verify", "nothing", "--separator", ";;").code == 2


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from comine.command import run; run(['anonymize', '--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "pyarrow", "rich", "scipy", "duckdb"} & set(loaded)


def test_configurations_meet_their_schema(configure: Configure, tmp_path: Path) -> None:
    schema = json.loads(generate("anonymization"))
    model = K + 'l = { kind = "entropy", value = 2 }\np = 2\nt = [{ value = 0.3, column = "disease" }]\nH = 2\n'
    path = tmp_path / configure(model=model, more=HIERARCHIES + LEVELS, top="seed = 3")
    jsonschema.validate(tomllib.loads(path.read_text()), schema)


@pytest.mark.parametrize(
    "command", [("query",), ("anonymize", "datasets", "--node", "north"), ("anonymize", "run", "a.toml", "--out", "o")]
)
def test_the_federation_may_be_named_by_the_environment(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COMINE_FEDERATION", str(tmp_path / "elsewhere.toml"))
    if "run" in command:
        (tmp_path / "a.toml").write_text(
            '[anonymize]\nsource = "patients"\nquasi_identifiers = ["age"]\nalgorithm = "mondrian"\n'
            "[anonymize.model]\nk = 2\n"
        )
        command = (*command, "--node", "north")
    ran = comine(*command)
    assert ran.code == 10
    assert "elsewhere.toml does not exist" in ran.err

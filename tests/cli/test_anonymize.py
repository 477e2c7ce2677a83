"""`comine anonymize run|verify|risk|explore`: files in, releases that hold, and every wrong input one sentence."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.schema import generate
from tests.cli.conftest import Comine, Ran

DISEASES = ("flu", "cancer", "fever", "HIV")
CITIES = {"North": ("Oslo", "Turku"), "South": ("Rome", "Porto", "Nice")}
NAMES = [city for cities in CITIES.values() for city in cities]
ROWS = [
    (f"p{i}", 20 + i * 7 % 45, NAMES[i * i % 5], "mf"[i // 3 % 2], DISEASES[(i * 5 + i // 4) % 4], i % 3)
    for i in range(120)
]
HEADER = ("id", "age", "city", "sex", "disease", "visits")
CONFIG = """[anonymize]
source = "patients.csv"
separator = ";"
identifiers = ["id"]
quasi_identifiers = ["age", "city", "sex"]
sensitive = ["disease"]
insensitive = ["visits"]
algorithm = "{algorithm}"
max_suppression = 0.05
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
{model}
{more}
"""
HIERARCHIES = """[anonymize.hierarchies]
age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }
city = "city.csv"
sex = { builder = "flat" }
disease = { builder = "grouping", groups = [{ mild = ["flu", "fever"], grave = ["cancer", "HIV"] }] }
"""
LEVELS = '[anonymize.levels]\nvalues = [["flu", "fever"], ["cancer"], ["HIV"]]\nweights = [0.1, 0.4, 0.8]\n'
K = "[anonymize.model]\nk = 4\n"

Configure = Callable[..., str]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Writes the patients, their hierarchy, and a configuration; gives the name of its file."""
    with (tmp_path / "patients.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows([HEADER, *ROWS])
    lines = [f"{city};{region};*" for region, cities in CITIES.items() for city in cities]
    (tmp_path / "city.csv").write_text("\n".join(lines) + "\n")

    def write(
        algorithm: str = "optimal", model: str = K, more: str = HIERARCHIES, top: str = "", name: str = "a.toml"
    ) -> str:
        (tmp_path / name).write_text(CONFIG.format(algorithm=algorithm, model=model, more=more, top=top))
        return name

    return write


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def certificate(folder: Path) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    return contents


def tabled(out: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in out.splitlines()[1:])


def classes(published: list[dict[str, str]]) -> Counter[tuple[str, ...]]:
    return Counter((row["age"], row["city"], row["sex"]) for row in published)


def verified(comine: Comine, folder: str = "out") -> Ran:
    return comine("anonymize", "verify", folder, "--original", "patients.csv", "--separator", ";")


# -- run --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        *((name, HIERARCHIES) for name in ("samarati", "incognito", "optimal", "datafly", "local-recoding")),
        ("mondrian", HIERARCHIES),
        ("mondrian", HIERARCHIES + '[anonymize.mondrian]\nmode = "relaxed"\n'),
        ("mondrian", '[anonymize.mondrian]\nmode = "hierarchical"\nrelease = "centres"\n' + HIERARCHIES),
    ],
)
def test_generalising_algorithms_release_classes_of_k(
    comine: Comine, configure: Configure, tmp_path: Path, algorithm: str, more: str
) -> None:
    ran = comine("anonymize", "run", configure(algorithm, more=more), "--out", "out")
    assert ran.code == 0, ran.err
    found, told = rows(tmp_path / "out/release.csv"), certificate(tmp_path / "out")
    private = [] if told["hashes"]["labels"] is None else ["labels.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("certificate.json", *private, "manifest.json", "release.csv", "release.parquet", "report.html")
    ]
    assert bool(private) == ("labels.json" in ran.err)
    assert list(found[0]) == [name for name in HEADER if name != "id"]
    assert told["algorithm"] == algorithm
    assert (told["rows"], told["published"]) == (120, len(found))
    assert told["suppressed"] == 120 - len(found) <= 6
    assert (told["classes"], min(classes(found).values())) == (len(classes(found)), told["metrics"]["smallest_class"])
    assert min(classes(found).values()) >= 4
    assert tabled(ran.out)["classes"] == str(told["classes"])
    jsonschema.validate(told, json.loads(generate("anonymization-certificate")))
    assert pq.read_table(tmp_path / "out/release.parquet").num_rows == len(found)
    assert verified(comine).code == 0


def test_the_certificate_tells_levels_and_no_secret(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    ran = comine("anonymize", "run", configure(top="seed = 4711"), "--out", "out", "--json")
    told = json.loads(ran.out)
    assert told == certificate(tmp_path / "out")
    assert set(told["node"]) == {"age", "city", "sex"}
    assert told["heights"] == {"age": 4, "city": 2, "sex": 1}
    assert told["parameters"]["max_suppression"] == "0.05"
    assert set(told["hashes"]["hierarchies"]) == {"city"}
    written = json.dumps(told)
    assert "4711" not in written.replace(told["digest"], "")
    assert "patients.csv" not in written


def test_several_models_hold_together(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    model = (
        '[anonymize.model]\nk = 4\nl = { kind = "entropy", value = 2.5 }\n'
        't = { distance = "hierarchical", value = 0.3 }\np = 3\nalpha = { value = 0.5, values = ["HIV"] }\n'
        "H = 2\nbeta = 3\n"
    )
    ran = comine("anonymize", "run", configure(model=model, more=HIERARCHIES + LEVELS), "--out", "out")
    assert ran.code == 0, ran.err
    found = rows(tmp_path / "out/release.csv")
    by_class: dict[tuple[str, ...], set[str]] = {}
    for row in found:
        by_class.setdefault((row["age"], row["city"], row["sex"]), set()).add(row["disease"])
    assert all(len(values) >= 3 for values in by_class.values())
    claims = certificate(tmp_path / "out")["model"]
    assert (claims["k"], claims["p"][0]["value"], claims["H"][0]["value"]) == (4, 3, 2)
    assert claims["l"] == [{"kind": "entropy", "value": 2.5, "column": "disease", "c": None}]
    assert verified(comine).code == 0


@pytest.mark.parametrize(("suppressed", "published"), [("drop", None), ("blank", 122)])
def test_what_becomes_of_suppressed_rows(
    comine: Comine, configure: Configure, tmp_path: Path, suppressed: str, published: int | None
) -> None:
    config = configure(model="[anonymize.model]\nk = 2\n", top=f'suppressed = "{suppressed}"')
    with (tmp_path / "patients.csv").open("a") as file:
        file.write("x;97;Oslo;m;flu;1\ny;98;Turku;f;HIV;1\n")
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    told = certificate(tmp_path / "out")
    assert told["suppressed"] > 0
    assert told["published"] == (published or 122 - told["suppressed"])
    assert verified(comine).code == 0


@pytest.mark.parametrize("algorithm", ["maa-slie", "gpkc"])
def test_clustering_gives_classes_of_k_p_and_h(
    comine: Comine, configure: Configure, tmp_path: Path, algorithm: str
) -> None:
    model = "[anonymize.model]\nk = 5\np = 3\nH = 2\n"
    config = configure(algorithm, model=model, more=HIERARCHIES + LEVELS, top="seed = 1")
    ran = comine("anonymize", "run", config, "--out", "out")
    assert ran.code == 0, ran.err
    assert "anyone who knows or guesses it can repeat them" in ran.err
    found = rows(tmp_path / "out/release.csv")
    assert min(classes(found).values()) >= 5
    first = (tmp_path / "out/release.csv").read_bytes()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    assert (tmp_path / "out/release.csv").read_bytes() == first
    assert verified(comine).code == 0


NUMBERS = """[anonymize]
source = "patients.csv"
separator = ";"
identifiers = ["id"]
quasi_identifiers = ["age"]
sensitive = ["visits"]
insensitive = ["city", "sex", "disease"]
algorithm = "{algorithm}"
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
visits = {{ kind = "numeric" }}
{more}
"""


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("mdav", K + '[anonymize.mdav]\nscaling = "range"\n'),
        ("condensation", K + '[anonymize.condensation]\nfactor = 2\ngrouping = "mdav"\n'),
        ("distributions", K + '[anonymize.distributions]\nscaling = "range"\n'),
        (
            "ppir",
            "[anonymize.ppir]\nranges = { age = 5 }\nalpha_max = 0.99\nalpha_min = 0.7\nch_max = 0.5\ntries = 200\n",
        ),
    ],
)
def test_algorithms_of_numbers(comine: Comine, configure: Configure, tmp_path: Path, algorithm: str, more: str) -> None:
    configure()
    top = 'row_order = "input"' if algorithm == "ppir" else ""  # which is verified row by row only so
    (tmp_path / "n.toml").write_text(NUMBERS.format(algorithm=algorithm, more=more, top=top))
    ran = comine("anonymize", "run", "n.toml", "--out", "out")
    assert ran.code == 0, ran.err
    told = certificate(tmp_path / "out")
    assert told["published"] == (240 if algorithm == "condensation" else 120)
    assert (told["classes"] is None) == (algorithm != "mdav")
    assert (told["model"]["k"], told["groups"] is None) == (
        None if algorithm in ("distributions", "ppir") else 4,
        algorithm != "condensation",
    )
    assert verified(comine).code == 0
    assert (tmp_path / "out/moments.json").exists() == ("moments.json" in ran.err) == (algorithm == "condensation")
    if algorithm == "ppir":
        ages = [int(row["age"]) for row in rows(tmp_path / "out/release.csv")]
        assert all(0 < abs(new - old[1]) <= 5 for new, old in zip(ages, ROWS, strict=True))


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("optimal", HIERARCHIES),
        ("mondrian", '[anonymize.mondrian]\nrelease = "centres"\n' + HIERARCHIES),
        ("gpkc", HIERARCHIES),
    ],
)
def test_sorted_rows_do_not_tell_the_order_of_the_input(
    comine: Comine, configure: Configure, tmp_path: Path, algorithm: str, more: str
) -> None:
    orders = ("input", "sorted")
    for order in orders:
        top = f'row_order = "{order}"\nseed = 1' + ('\nsuppressed = "blank"' if algorithm == "optimal" else "")
        configure(algorithm, top=top, more=more)
        assert comine("anonymize", "run", "a.toml", "--out", order).code == 0
        assert verified(comine, order).code == 0
        assert comine("anonymize", "risk", order, "--config", "a.toml").code == 0
    given, found = (rows(tmp_path / order / "release.csv") for order in orders)
    assert found != given
    assert Counter(map(str, found)) == Counter(map(str, given))
    shown = pq.read_table(tmp_path / "sorted/release.parquet")
    assert shown.equals(shown.sort_by([(name, "ascending") for name in shown.column_names]))


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("optimal", HIERARCHIES),
        ("samarati", HIERARCHIES),
        ("datafly", HIERARCHIES),
        ("local-recoding", HIERARCHIES),
        ("mondrian", HIERARCHIES),
        ("ppir", "[anonymize.ppir]\nranges = { age = 5, city = 0, sex = 0 }\n"),
    ],
)
def test_no_rows_place_tells_of_the_input_unless_that_is_asked_for(
    comine: Comine, configure: Configure, tmp_path: Path, algorithm: str, more: str
) -> None:
    configure(algorithm, more=more, model="" if algorithm == "ppir" else K)
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 0, ran.err
    shown = pq.read_table(tmp_path / "out/release.parquet")
    assert shown.equals(shown.sort_by([(name, "ascending") for name in shown.column_names]))
    assert certificate(tmp_path / "out")["parameters"]["row_order"] == "sorted"
    assert verified(comine).code == 0
    if algorithm == "ppir":
        return
    before = (tmp_path / "out/release.csv").read_bytes()
    lines = (tmp_path / "patients.csv").read_text().splitlines(keepends=True)
    if algorithm in ("optimal", "samarati"):  # of which ties do not follow the order of rows
        (tmp_path / "patients.csv").write_text(lines[0] + "".join(reversed(lines[1:])))
        assert comine("anonymize", "run", "a.toml", "--out", "out").code == 0
        assert (tmp_path / "out/release.csv").read_bytes() == before


def test_hashes_that_would_confirm_guesses_can_be_left_out(
    comine: Comine, configure: Configure, tmp_path: Path
) -> None:
    configure()
    comine("anonymize", "run", "a.toml", "--out", "out")
    assert all(certificate(tmp_path / "out")["hashes"][name] for name in ("input", "configuration"))
    configure(top="hash_input = false\nseed = 7")
    comine("anonymize", "run", "a.toml", "--out", "out")
    assert not any(certificate(tmp_path / "out")["hashes"][name] for name in ("input", "configuration"))
    assert verified(comine).code == 0


def test_cells_cannot_forge_lines_of_a_verification(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('q,s\n"a\nforged\tyes\tx\ty",u\n"a\nforged\tyes\tx\ty",v\n')
    (tmp_path / "a.toml").write_text(
        '[anonymize]\nsource = "t.csv"\nquasi_identifiers = ["q"]\nsensitive = ["s"]\nalgorithm = "mondrian"\n'
        + K.replace("4", "2")
    )
    assert comine("anonymize", "run", "a.toml", "--out", "out").code == 0
    ran = comine("anonymize", "verify", "out")
    assert ran.code == 0
    assert "forged" in ran.out
    assert all(len(line.split("\t")) == 4 and not line.startswith("forged") for line in ran.out.splitlines())


def test_parquet_and_a_database_give_what_csv_gives(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure()
    assert comine("anonymize", "run", config, "--out", "csv").code == 0
    columns = {name: [row[place] for row in ROWS] for place, name in enumerate(HEADER)}
    pq.write_table(pa.table(columns), tmp_path / "patients.parquet")
    with sqlite3.connect(tmp_path / "patients.db") as database:
        database.execute("create table patients (id, age integer, city, sex, disease, visits integer)")
        database.executemany("insert into patients values (?, ?, ?, ?, ?, ?)", ROWS)
    database.close()
    text = (tmp_path / config).read_text()
    (tmp_path / "p.toml").write_text(text.replace("patients.csv", "patients.parquet"))
    query = 'source = "sqlite:///patients.db"\nquery = "select * from patients"'
    (tmp_path / "s.toml").write_text(text.replace('source = "patients.csv"', query))
    for name in ("p", "s"):
        ran = comine("anonymize", "run", f"{name}.toml", "--out", name)
        assert ran.code == 0, ran.err
        assert (tmp_path / name / "release.csv").read_bytes() == (tmp_path / "csv/release.csv").read_bytes()


def test_a_folder_is_written_whole_or_not_at_all(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    before = (tmp_path / "out/certificate.json").read_bytes()
    failing = configure(model="[anonymize.model]\nk = 121\n", name="b.toml")
    ran = comine("anonymize", "run", failing, "--out", "out")
    assert ran.code == 10
    assert "k = 121 cannot be met: the table has 120 records only" in ran.err
    assert (tmp_path / "out/certificate.json").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    ran = comine("anonymize", "run", config, "--out", "mine")
    assert (ran.code, (tmp_path / "mine/notes.txt").read_text()) == (10, "keep")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


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


def test_a_model_that_an_algorithm_does_not_aim_at_is_checked(
    comine: Comine, configure: Configure, tmp_path: Path
) -> None:
    configure()
    for limit, code in (("0.99", 0), ("0.01", 10)):
        text = NUMBERS.format(algorithm="mdav", top="", more=K + f"t = {limit}\n")
        (tmp_path / "n.toml").write_text(text)
        ran = comine("anonymize", "run", "n.toml", "--out", f"out{code}")
        assert ran.code == code, ran.err
    assert 'algorithm = "mdav" does not aim at t-closeness' in ran.err
    assert not (tmp_path / "out10").exists()
    assert verified(comine, "out0").code == 0


def test_rows_that_lack_values_may_be_dropped(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    config = configure(top='missing = "drop"')
    with (tmp_path / "patients.csv").open("a") as file:
        file.write("x;;Oslo;m;flu;1\ny;30;Oslo;m;;1\n")
    ran = comine("anonymize", "run", config, "--out", "out")
    assert ran.code == 0
    assert "2 rows that lack values were left out" in ran.err
    assert certificate(tmp_path / "out")["rows"] == 120
    assert verified(comine).code == 0


# -- verify -----------------------------------------------------------------------------------------------------------
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


# -- risk -------------------------------------------------------------------------------------------------------------
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


# -- explore ----------------------------------------------------------------------------------------------------------
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


def test_the_same_from_python(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    import comine as package

    config = configure()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    found = package.anonymize(config)
    assert found.save("again").model_dump() == package.anonymize(tmp_path / config).save("again").model_dump()
    assert found.table.num_rows == certificate(tmp_path / "out")["published"]
    for name in ("release.csv", "release.parquet", "certificate.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


# -- all --------------------------------------------------------------------------------------------------------------
def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from comine.command import run; run(['anonymize', '--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "pyarrow", "rich", "scipy", "duckdb"} & set(loaded)


def test_configurations_meet_their_schema(configure: Configure, tmp_path: Path) -> None:
    schema = json.loads(generate("anonymization"))
    model = K + 'l = { kind = "entropy", value = 2 }\np = 2\nt = [{ value = 0.3, column = "disease" }]\nH = 2\n'
    path = tmp_path / configure(model=model, more=HIERARCHIES + LEVELS, top="seed = 3")
    jsonschema.validate(tomllib.loads(path.read_text()), schema)


ADULT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")


@pytest.mark.data
@pytest.mark.parametrize(
    ("share", "node", "told"),
    [
        ("0", (0, 4, 1, 2, 3, 2, 0, 0), (26, 0, 0.6250)),
        ("0.02", (0, 3, 0, 2, 2, 1, 1, 0), (222, 506, 0.2772)),
    ],
)
def test_adult_gives_the_node_of_arx(
    comine: Comine,
    shared_data: pathlib.Path,
    tmp_path: Path,
    share: str,
    node: tuple[int, ...],
    told: tuple[int, int, float],
) -> None:
    folder = shared_data / "adult"
    lines = [f'{name} = "{folder}/adult_hierarchy_{name}.csv"' for name in ADULT]
    (tmp_path / "adult.toml").write_text(
        f'[anonymize]\nsource = "{folder}/adult.csv"\nseparator = ";"\nquasi_identifiers = {json.dumps(ADULT)}\n'
        f'sensitive = ["occupation"]\nmax_suppression = {share}\n[anonymize.model]\nk = 5\n'
        '[anonymize.columns]\nage = { kind = "numeric" }\n[anonymize.hierarchies]\n' + "\n".join(lines)
    )
    found = json.loads(comine("anonymize", "run", "adult.toml", "--out", "out", "--json").out)
    assert tuple(found["node"].values()) == node
    assert (found["classes"], found["suppressed"], round(found["metrics"]["gcp"], 4)) == told
    ran = comine("anonymize", "verify", "out", "--original", folder / "adult.csv", "--separator", ";")
    assert ran.code == 0, ran.err


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

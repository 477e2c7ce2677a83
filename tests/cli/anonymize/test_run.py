"""`comine anonymize run`: files in, releases that hold."""

from __future__ import annotations

import json
import pathlib
import sqlite3
from collections import Counter
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.schema import generate
from tests.cli.anonymize.patients import (
    HEADER,
    HIERARCHIES,
    LEVELS,
    NUMBERS,
    ROWS,
    Configure,
    K,
    certificate,
    classes,
    rows,
)
from tests.cli.conftest import Comine, Ran

pytestmark = pytest.mark.turn(3)


def tabled(out: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in out.splitlines()[1:])


def verified(comine: Comine, folder: str = "out") -> Ran:
    return comine("anonymize", "verify", folder, "--original", "patients.csv", "--separator", ";")


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


def test_the_same_from_python(comine: Comine, configure: Configure, tmp_path: Path) -> None:
    import comine as package

    config = configure()
    assert comine("anonymize", "run", config, "--out", "out").code == 0
    found = package.anonymize(config)
    assert found.save("again").model_dump() == package.anonymize(tmp_path / config).save("again").model_dump()
    assert found.table.num_rows == certificate(tmp_path / "out")["published"]
    for name in ("release.csv", "release.parquet", "certificate.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


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

"""The verifier against honest releases and against releases that somebody has tampered with."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymize.certificate import Certificate, sha256_of
from anonymize.certifying import Sources, publish_folder
from anonymize.fulldomain.datafly import datafly
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import DistinctDiversity, KAnonymity, Requirements, TCloseness
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verification.rows import read_csv
from anonymize.verifier import verify

pytestmark = pytest.mark.turn(6)

TWO = Requirements((KAnonymity(2),))


@pytest.fixture
def folder(toy: Table, toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> Path:
    """A release of the toy table, and the original beside it."""
    pa.csv.write_csv(toy.data, tmp_path / "patients.csv")
    models = Requirements((KAnonymity(2), DistinctDiversity(2, "disease"), TCloseness(0.8, "disease")))
    release = optimal(toy, toy_hierarchies, models)
    sources = Sources(input=tmp_path / "patients.csv")
    publish_folder(tmp_path / "out", release, toy, models, hierarchies=toy_hierarchies, sources=sources)
    return tmp_path / "out"


def failed(folder: Path, original: Path | None = None) -> set[str]:
    return {finding.check for finding in verify(folder, original).failures}


def reseal(folder: Path, edit: Callable[[dict[str, Any]], None] = lambda document: None) -> None:
    """Edits a certificate and makes hashes and digest agree again: what a liar who knows the code would do."""
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    edit(document)
    document["hashes"]["release"] = {name: sha256_of(folder / name) for name in document["hashes"]["release"]}
    Certificate.model_validate(document).sealed().write(path)


def rewrite(folder: Path, change: Callable[[list[dict[str, str]]], list[dict[str, str]]]) -> None:
    """Changes rows in both files, and reseals the certificate with nothing else changed."""
    rows = change(read_csv(folder / "release.csv").to_pylist())
    table = pa.Table.from_pylist(rows)
    pa.csv.write_csv(table, folder / "release.csv")
    pyarrow.parquet.write_table(table, folder / "release.parquet")
    reseal(folder)


def test_an_honest_release_verifies(folder: Path) -> None:
    found = verify(folder)
    assert found.ok
    assert not found.failures
    assert not found.unchecked
    assert len(found.findings) > 15
    assert json.dumps(found.document())
    assert verify(folder, folder.parent / "patients.csv").ok


@pytest.mark.parametrize("name", ["release.csv", "release.parquet"])
def test_one_file_is_enough(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert failed(folder) == {f"SHA-256 of {name}"}  # the certificate names it
    reseal_without = json.loads((folder / "certificate.json").read_text())
    del reseal_without["hashes"]["release"][name]
    Certificate.model_validate(reseal_without).sealed().write(folder / "certificate.json")
    assert verify(folder).ok


def test_a_changed_cell_is_found(folder: Path) -> None:
    path = folder / "release.csv"
    path.write_text(path.read_text().replace("HIV", "Flu", 1))
    assert {"SHA-256 of release.csv", "release.csv and release.parquet"} <= failed(folder)


def test_a_changed_cell_is_found_when_all_hashes_were_made_anew(folder: Path) -> None:
    def change(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{**rows[0], "zip": "114***"}, *rows[1:]]

    rewrite(folder, change)
    assert {"classes", "k-anonymity, k = 2"} <= failed(folder)


def test_a_changed_sensitive_cell_is_found_by_the_counts(folder: Path) -> None:
    rewrite(folder, lambda rows: [{**row, "disease": "HIV"} for row in rows])
    assert {"published disease", "distinct ℓ-diversity of disease, ℓ = 2"} <= failed(folder)


def test_an_added_row_is_found(folder: Path) -> None:
    rewrite(folder, lambda rows: [*rows, rows[0]])
    assert {"published rows", "rows that are not suppressed"} <= failed(folder)


def test_a_removed_row_is_found(folder: Path) -> None:
    rewrite(folder, lambda rows: rows[1:])
    assert "published rows" in failed(folder)


def test_a_small_class_is_found_whatever_else_agrees(folder: Path) -> None:
    """The liar moves a row into a class of its own and corrects every number of the certificate that follows."""

    def change(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{**rows[0], "age": "0-19"}, *rows[1:]]

    def lie(document: dict[str, Any]) -> None:
        document["classes"] += 1
        document["metrics"] = {}

    rewrite(folder, change)
    reseal(folder, lie)
    assert "k-anonymity, k = 2" in failed(folder)


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (lambda d: d.update(classes=d["classes"] + 1), "classes"),
        (lambda d: d["model"].update(k=7), "k-anonymity, k = 7"),
        (lambda d: d["model"]["l"][0].update(value=9), "distinct ℓ-diversity of disease, ℓ = 9"),
        (lambda d: d["model"]["t"][0].update(value=0), "t-closeness of disease (equal), t = 0"),
        (lambda d: d.update(suppressed=d["suppressed"] + 1), "rows that are not suppressed"),
        (lambda d: d.update(rows=d["rows"] + 1), "input's rows by disease"),
        (lambda d: d["metrics"].update(gcp=0.01), "metric gcp"),
        (lambda d: d["metrics"].update(dm=1), "metric dm"),
        (lambda d: d["metrics"].update(prec=0.99), "metric prec"),
        (lambda d: d["metrics"].update(c_avg=1), "metric c_avg"),
        (lambda d: d["node"].update(age=d["heights"]["age"] + 1), "levels"),
        (lambda d: d["node"].update(age=-1), "levels"),
        (lambda d: d["sensitive_counts"]["disease"].update(HIV=1, Flu=3), "published disease"),
        (lambda d: d["sensitive_counts"].clear(), "sensitive columns with counts"),
        (lambda d: d["sensitive_counts"].update(disease=None), "counts of disease withheld"),
        (lambda d: d["columns"].pop("age"), "columns"),
    ],
)
def test_a_certificate_that_lies_is_found(folder: Path, edit: Callable[[dict[str, Any]], None], check: str) -> None:
    reseal(folder, edit)
    assert check in failed(folder)


def test_an_edit_without_a_new_digest_is_found(folder: Path) -> None:
    path = folder / "certificate.json"
    path.write_text(path.read_text().replace('"parameters": {}', '"parameters": {"k": 100}'))
    assert failed(folder) == {"digest of the certificate"}


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON document."""
    yield path
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, (*path, key))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_certificate_makes_the_verifier_stumble(folder: Path, data: st.DataObject) -> None:
    path = folder / "certificate.json"
    honest = path.read_bytes()
    document = json.loads(honest)
    place = data.draw(st.sampled_from([each for each in places(document) if each]))
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    values = [None, True, 0, -1, 3, 1e308, 0.5, "x", "1/3", "HIV", [], ["HIV"], {}, {"HIV": 1}]
    parent[place[-1]] = data.draw(st.sampled_from(values))
    try:
        Certificate.model_validate(document).sealed().write(path)
    except ValidationError:
        path.write_text(json.dumps(document))
    found = verify(folder, folder.parent / "patients.csv")
    assert found.findings
    path.write_bytes(honest)


def test_a_published_identifier_is_found(folder: Path) -> None:
    rewrite(folder, lambda rows: [{"name": "Ann", **row} for row in rows])
    assert "columns" in failed(folder)


def test_another_original_is_found(folder: Path) -> None:
    other = folder.parent / "other.csv"
    other.write_text((folder.parent / "patients.csv").read_text().replace("Cancer", "Asthma"))
    found = failed(folder, other)
    assert {"SHA-256 of the original", "sensitive counts of disease"} <= found
    other.write_text("age,zip\n1,2\n")
    assert "columns of the original" in failed(folder, other)
    assert "original" in failed(folder, folder.parent / "nothing.csv")


def test_missing_files_are_findings(folder: Path, tmp_path: Path) -> None:
    assert failed(tmp_path / "nowhere") == {"certificate"}
    for name in ("release.csv", "release.parquet"):
        (folder / name).unlink()
    assert "release" in failed(folder)
    (folder / "release.csv").write_bytes(b"\xff\xfe\x00")
    assert "release" in failed(folder)


def test_files_outside_the_folder_are_not_looked_at(folder: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["hashes"]["release"] = {"../patients.csv": sha256_of(folder.parent / "patients.csv")}

    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    edit(document)
    Certificate.model_validate(document).sealed().write(path)
    assert "SHA-256 of ../patients.csv" in failed(folder)


@pytest.mark.parametrize("suppressed", ["drop", "blank", "keep"])
def test_suppressed_rows_in_every_form(toy_hierarchies: dict[str, Hierarchy], tmp_path: Path, suppressed: str) -> None:
    rng = np.random.default_rng(2)
    ages, diseases = rng.integers(20, 60, 40).tolist(), rng.choice(["a", "b", "c"], 40).tolist()
    zips = rng.choice(toy_hierarchies["zip"].leaves, 40).tolist()
    roles = Roles(quasi_identifiers=("age", "zip"), sensitive=("disease",))
    table = Table.of({"age": ages, "zip": zips, "disease": diseases}, roles, {"zip": "code"})
    release = optimal(table, toy_hierarchies, TWO, max_suppression=0.5, suppressed=suppressed)  # type: ignore[arg-type]
    assert len(release.suppressed) > 1
    made = publish_folder(tmp_path, release, table, TWO, hierarchies=toy_hierarchies)
    assert made.suppression == suppressed
    found = verify(tmp_path)
    assert found.ok, found.failures
    assert not found.unchecked


@pytest.mark.parametrize("suppressed", ["drop", "blank"])
def test_a_release_of_nothing_verifies(toy_hierarchies: dict[str, Hierarchy], tmp_path: Path, suppressed: str) -> None:
    roles = Roles(quasi_identifiers=("age",), sensitive=("disease",))
    table = Table.of({"age": [21, 55, 38], "disease": ["a", "b", "c"]}, roles)
    release = datafly(table, toy_hierarchies, TWO, max_suppression=1, suppressed=suppressed)  # type: ignore[arg-type]
    assert len(release.suppressed) == 3
    made = publish_folder(tmp_path, release, table, TWO, hierarchies=toy_hierarchies)
    assert made.classes == 0
    found = verify(tmp_path)
    assert found.ok, found.failures


def test_typed_columns_verify(tmp_path: Path) -> None:
    """Numbers, truth, dates, missing cells, and text with commas, quotes and line breaks."""
    data = pa.table(
        {
            "age": pa.array([1.5, 1.5, 2.0, 2.0]),
            "member": pa.array([True, True, False, False]),
            "since": pa.array(["2020-01-01", "2020-01-01", "2021-01-01", "2021-01-01"]).cast(pa.date32()),
            "salary": pa.array([10.0, 12.5, 1e20, 12.5]),
            "note": pa.array(['a,"b"', None, "c\nd", "ü"]),
            "seen": pa.array([0, 1, None, 3], pa.timestamp("s")),
        }
    )
    roles = Roles(quasi_identifiers=("age", "member", "since"), sensitive=("salary",), insensitive=("note", "seen"))
    table = Table.of(data, roles)
    levels = {c.name: Hierarchy.of(c.name, [(text, "*") for text in c.texts]) for c in table.quasi_identifiers}
    models = Requirements((KAnonymity(2), TCloseness(0.6, "salary", "ordered", "value")))
    release = optimal(table, levels, models)
    publish_folder(tmp_path, release, table, models, hierarchies=levels)
    pyarrow.parquet.write_table(data, tmp_path / "original.parquet")
    found = verify(tmp_path, tmp_path / "original.parquet")
    assert found.ok, found.failures


def test_the_verifier_imports_none_of_what_it_checks() -> None:
    program = "import sys, anonymize.verifier; print(*(m for m in sys.modules if m.startswith('anonymize')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    parts = {module.split(".")[1] for module in done.stdout.split() if "." in module}
    assert parts == {"certificate", "verification", "verifier"}


@pytest.mark.data
def test_adult_verifies(shared_data: Path, tmp_path: Path) -> None:
    from anonymize.hierarchies.files import from_csv

    adult = shared_data / "adult"
    data = read_csv(adult / "adult.csv", ";")
    quasi = [name for name in data.column_names if name != "occupation"]
    levels = {name: from_csv(adult / f"adult_hierarchy_{name}.csv", ";", name=name) for name in quasi}
    table = Table.of(data, Roles(quasi_identifiers=tuple(quasi), sensitive=("occupation",)))
    models = Requirements((KAnonymity(5), DistinctDiversity(3, "occupation")))
    release = optimal(table, levels, models, max_suppression=0.02)
    made = publish_folder(
        tmp_path, release, table, models, hierarchies=levels, sources=Sources(input=adult / "adult.csv")
    )
    assert (made.classes, made.suppressed) == (219, 522)
    assert made.metrics["gcp"] == pytest.approx(0.2776, abs=5e-5)
    found = verify(tmp_path, adult / "adult.csv", ";")
    assert found.ok, found.failures
    assert not found.unchecked


def test_the_original_may_be_compressed_and_begin_with_a_byte_order_mark(folder: Path) -> None:
    plain = (folder.parent / "patients.csv").read_bytes()
    for name, contents in (("a.csv.gz", gzip.compress(plain)), ("b.csv", b"\xef\xbb\xbf" + plain)):
        (folder.parent / name).write_bytes(contents)
        assert failed(folder, folder.parent / name) == {"SHA-256 of the original"}
    (folder.parent / "c.csv.gz").write_bytes(gzip.compress(plain)[:-9])
    assert "original" in failed(folder, folder.parent / "c.csv.gz")


def test_models_of_classes_are_not_claimed_without_classes(folder: Path) -> None:
    def deny(document: dict[str, Any]) -> None:
        document.update(classes=None, sensitive_counts={})
        document["model"]["k"] = 1000

    reseal(folder, deny)
    assert failed(folder) == {"claims about classes"}

"""Certificates: their form, their digest, what they hold and what they do not."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from anonymize.certificate import SCHEMA, Certificate, json_schema
from anonymize.certifying import Sources, publish_folder
from anonymize.claims import claims_of
from anonymize.evidence import sensitive_counts
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import DistinctDiversity, KAnonymity, Requirements, TCloseness
from anonymize.models.rationals import written
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verifier import verify
from tests.errors import fails

TWO = Requirements((KAnonymity(2),))


def published(toy: Table, hierarchies: dict[str, Hierarchy], folder: Path) -> Certificate:
    release = optimal(toy, hierarchies, TWO, max_suppression=0.125)
    return publish_folder(folder, release, toy, TWO, hierarchies=hierarchies)


def test_what_a_certificate_says(toy: Table, toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> None:
    published(toy, toy_hierarchies, tmp_path)
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert document["schema"] == SCHEMA
    assert document["algorithm"] == "optimal"
    assert document["model"]["k"] == 2
    assert document["node"].keys() == {"age", "zip"}
    assert document["suppressed"] == document["rows"] - document["published"] <= 1
    assert document["sensitive_counts"] == {"disease": None}
    assert document["metrics"].keys() >= {"gcp", "prec", "dm", "c_avg", "aecs"}
    assert document["hashes"]["release"].keys() == {"release.csv", "release.parquet"}
    assert document["hashes"]["input"] is None
    assert document["columns"]["zip"] == {"role": "quasi_identifiers", "kind": "code", "added": False}
    jsonschema.validate(document, json_schema())


def test_counts_of_the_input_are_told_unless_they_disclose_the_suppressed_row(
    toy: Table, toy_hierarchies: dict[str, Hierarchy]
) -> None:
    """With one suppressed row, input less release is that patient's disease; of two it is a class like any other."""
    everything = optimal(toy, toy_hierarchies, TWO)
    told = {"Cancer": 1, "Diabetes": 1, "Fever": 1, "Flu": 2, "HIV": 2, "Hepatitis": 1}
    assert sensitive_counts(everything, toy, TWO) == {"disease": told}
    release = optimal(toy, toy_hierarchies, TWO, max_suppression=0.125)
    assert len(release.suppressed) == 1
    assert sensitive_counts(release, toy, TWO) == {"disease": None}

    def without(*rows: int) -> Release:
        return replace(release, suppressed=np.array(rows), rows=np.setdiff1d(np.arange(8), rows))

    diverse = Requirements((KAnonymity(2), DistinctDiversity(2, "disease")))
    assert sensitive_counts(without(0, 1), toy, TWO) == {"disease": told}  # both have HIV, but no model minds that
    assert sensitive_counts(without(0, 3), toy, diverse) == {"disease": told}
    assert sensitive_counts(without(0, 1), toy, diverse) == {"disease": None}
    assert sensitive_counts(replace(release, classes=None), toy, TWO) == {}


def test_no_value_of_a_quasi_identifier_that_is_not_published(
    toy: Table, toy_hierarchies: dict[str, Hierarchy], tmp_path: Path
) -> None:
    published(toy, toy_hierarchies, tmp_path)
    text = (tmp_path / "certificate.json").read_text()
    assert not any(zip_code in text for zip_code in toy.columns["zip"].texts)


def test_identifiers_are_in_neither_file(toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> None:
    names = ["Ann", "Bob", "Cy", "Dan", "Eve", "Flo", "Gus", "Hal"]
    ages = [21, 26, 25, 48, 32, 45, 35, 50]
    roles = Roles(identifiers=("name",), quasi_identifiers=("age",), sensitive=("disease",))
    table = Table.of({"name": names, "age": ages, "disease": ["a", "b"] * 4}, roles)
    release = optimal(table, toy_hierarchies, TWO)
    publish_folder(tmp_path, release, table, TWO, hierarchies=toy_hierarchies)
    for file in tmp_path.iterdir():
        assert not any(name.encode() in file.read_bytes() for name in names)


def test_files_hold_nothing_of_rows_that_were_left_out(toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> None:
    """Dictionaries of Arrow columns and metadata of frames keep values that no row has any more."""
    notes = pa.array(["a", "b", "only of the old man"]).dictionary_encode()
    data = pa.table({"age": [21, 25, 58], "note": notes}).replace_schema_metadata({"pandas": "only of the old man"})
    table = Table.of(data, Roles(quasi_identifiers=("age",), insensitive=("note",)))
    release = optimal(table, toy_hierarchies, TWO, max_suppression=0.4)
    assert release.suppressed.tolist() == [2]
    publish_folder(tmp_path, release, table, TWO, hierarchies=toy_hierarchies)
    assert verify(tmp_path).ok
    for file in tmp_path.iterdir():
        assert b"old man" not in file.read_bytes()


def test_digest_shows_any_edit(toy: Table, toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> None:
    made = published(toy, toy_hierarchies, tmp_path)
    path = tmp_path / "certificate.json"
    read = Certificate.read(path)
    assert read == made
    assert read.digest == read.computed_digest()
    path.write_text(path.read_text().replace('"optimal"', '"samarati"'))
    assert Certificate.read(path).digest != Certificate.read(path).computed_digest()


def test_sources_are_hashed(toy: Table, toy_hierarchies: dict[str, Hierarchy], tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("1,*\n")
    sources = Sources(tmp_path / "age.csv", {"age": tmp_path / "age.csv"}, tmp_path / "age.csv", {"seed": 1})
    release = optimal(toy, toy_hierarchies, TWO)
    made = publish_folder(tmp_path / "out", release, toy, TWO, hierarchies=toy_hierarchies, sources=sources)
    assert made.hashes.input == made.hashes.configuration == made.hashes.hierarchies["age"]
    assert made.parameters == {"seed": 1}


@pytest.mark.parametrize("contents", ["", "{}", '{"schema": "comine.anonymization-certificate/2"}', "[1"])
def test_other_documents_are_refused(tmp_path: Path, contents: str) -> None:
    (tmp_path / "certificate.json").write_text(contents)
    with fails("E101"):
        Certificate.read(tmp_path / "certificate.json")
    with fails("E101"):
        Certificate.read(tmp_path / "nothing.json")


def test_parameters_stay_as_they_were_written() -> None:
    assert written(2) == written("2") == written(2.0) == 2
    assert written(0.1) == written("0.1") == 0.1
    assert written(Fraction(1, 3)) == "1/3"
    assert written("0.10000000000000000000001") == "10000000000000000000001/100000000000000000000000"


def test_k_is_the_one_given_or_what_follows(toy: Table) -> None:
    diverse = DistinctDiversity(3, "disease")
    assert claims_of(Requirements((KAnonymity(2), diverse)), toy).k == 2
    assert claims_of(Requirements((diverse,)), toy).k == 3
    assert claims_of(None, toy).k is None
    assert claims_of(Requirements((TCloseness("0.3", "disease"),)), toy).t[0].value == 0.3

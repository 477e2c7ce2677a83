"""Jobs that anonymise: their result folder, what verifies it, and job files that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comine
from anonymize.hierarchies.files import rows_of
from anonymize.verifier import verify
from jobs.kinds.release import checks
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.statement import statement
from mining.data.tables import Table
from tests.errors import fails
from tests.examples import slowly
from tests.mining.joint.anonymisation.anonymisation_jobs_world import certified, job
from tests.mining.joint.anonymisation.anonymisation_world import ILLS, PARTIES, hierarchies, parted, people

pytestmark = pytest.mark.turn(6)

CELLS = people(60, 3)
OWNERS = np.random.default_rng(1).integers(0, 3, 60)
DATA = parted(CELLS, OWNERS, PARTIES[:3])


@pytest.mark.parametrize(
    "changes",
    slowly(
        [
            {"max_suppression": "0.1", "insider_k": 2},
            {"max_suppression": "0.1", "algorithm": "samarati"},
            {"model": {"k": 3, "p": 2, "alpha": "0.6"}},
            {"origin": "shown", "k_site": 2, "max_suppression": "0.2"},
            {"algorithm": "mondrian", "insider_k": 2, "model": {"k": 3, "t": {"value": "0.6", "column": "ill"}}},
        ],
        now=[0, 3],
        ids=["insiders", "samarati", "p and alpha", "shown", "mondrian and t"],
    ),
)
def test_the_folder_of_a_release_passes_the_independent_verifier(tmp_path: Path, changes: dict[str, Any]) -> None:
    spec = job(**changes)
    result = comine.simulate(spec, DATA)
    result.save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert not verified.unchecked
    assert {
        "release.csv",
        "release.parquet",
        "certificate.json",
        "release.json",
        "result.json",
        "report.html",
        "manifest.json",
    } == {path.name for path in (tmp_path / "out").iterdir()}
    assert pq.read_table(tmp_path / "out" / "release.parquet").equals(result.release().table)
    result.save(tmp_path / "out")  # an earlier result is replaced
    assert "60 rows" in repr(result)
    assert "Anonymised rows" in (tmp_path / "out" / "report.html").read_text()


def test_a_sensitive_column_may_have_a_tree(tmp_path: Path) -> None:
    trees = {name: list(map(list, rows_of(each))) for name, each in hierarchies().items()}
    trees["ill"] = [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "gut", "*"], ["", "none", "*"]]
    closeness = {"value": "0.5", "column": "ill", "distance": "hierarchical"}
    spec = job(hierarchies=trees, model={"k": 3, "t": closeness})
    comine.simulate(spec, DATA).save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    trees["ill"] = trees["ill"][:2]
    with fails("E100"):
        joint_anonymisation(job(hierarchies=trees, model={"k": 3, "t": closeness}))


def test_the_certificate_tells_the_loss_of_the_pooled_release(tmp_path: Path) -> None:
    spec = job(max_suppression="0.1")
    comine.simulate(spec, DATA).save(tmp_path / "out")
    told = certified(tmp_path / "out", spec, CELLS)
    assert told["sensitive_counts"] == {"ill": None}
    assert told["hashes"]["configuration"] == spec.digest.hex()


def test_all_learners_sign_the_same_release_and_others_none() -> None:
    result = comine.simulate(job(recipients=("coordinator", "south")), DATA)
    assert result.release().table.num_rows == 60
    elsewhere = replace(comine.simulate(job(recipients=("south",)), DATA), finding=None)
    with fails("E100"):
        elsewhere.release()
    with fails("E100"):
        result.itemsets()


def test_a_release_is_read_back_and_nothing_else_is() -> None:
    release = comine.simulate(job(max_suppression="0.1"), DATA).release()
    packed = release.pack()
    again = Anonymized.unpack(packed)
    assert again.pack() == packed
    assert again.table.equals(release.table)
    assert again.node == release.node
    assert again.fits(joint_anonymisation(job()))
    assert not again.fits(joint_anonymisation(job(origin="shown", k_site=2)))
    told = json.loads(packed)
    changes: tuple[dict[str, Any], ...] = (
        {"published": 3},
        {"columns": {}},
        {"order": []},
        {"n_rows": "many"},
    )
    for change in changes:
        with pytest.raises(ValueError, match=r"joint release|length|invalid literal"):
            Anonymized.unpack(json.dumps({**told, **change}, sort_keys=True, separators=(",", ":")).encode())
    other = json.dumps({**told, "node": {"age": 0}}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert not Anonymized.unpack(other.encode()).fits(joint_anonymisation(job()))
    for rubbish in (b"", b"[]", b"\xff", packed[:-1], packed + b" "):
        with pytest.raises(ValueError):  # noqa: PT011 - json's own words
            Anonymized.unpack(rubbish)


def test_the_statement_names_all_that_is_opened() -> None:
    labels = {line.label for line in statement(job(max_suppression="0.1")).declared}
    assert labels == {
        *("rows", "size classes", "open levels", "losses"),
        *("verdicts", "improvements", "bounds", "classes", "reports", "release", "steps_kept"),
    }
    plain = statement(job(union={"bound": 100}, recipients=("south",)))
    assert {line.label for line in plain.declared} == {
        *("rows", "size classes", "open levels", "losses", "verdicts", "classes", "reports", "steps_kept")
    }
    assert all(line.recipients == {"south"} for line in plain.declared if line.label == "reports")
    assert "no count of any class" in " ".join(plain.exact_prose())


def test_hierarchies_are_read_from_files_and_belong_to_the_digest(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("f,*\nm,*\n")
    given = {"age": {"builder": "intervals", "widths": [2, 10], "range": [0, 9]}, "town": "town.csv", "sex": "sex.csv"}
    (tmp_path / "town.csv").write_text("A,left,*\nB,left,*\nC,right,*\n")
    contents = json.loads(job().canonical())
    contents = {
        "job": contents["job"],
        "anonymize": {
            **{key: contents["anonymize"][key] for key in ("quasi_identifiers", "sensitive", "columns")},
            "columns": {"age": {"kind": "numeric"}},
            "model": {"k": 3},
            "hierarchies": given,
        },
    }
    spec = job_of(contents, "the test", tmp_path)
    assert spec.anonymization.hierarchies["sex"] == (("f", "*"), ("m", "*"))
    assert job_from_canonical(spec.canonical()) == spec
    assert comine.simulate(spec, DATA).release().node["age"] in range(4)
    (tmp_path / "sex.csv").write_text("f,any\nm,any\n")
    assert job_of(contents, "the test", tmp_path).digest != spec.digest
    given["sex"] = "none.csv"
    with fails("E100"):
        job_of(contents, "the test", tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "shown"},
        {"origin": "shown", "k_site": 1},
        {"model": {"p": 2}},
        {"model": {"k": 3, "l": {"kind": "entropy", "value": 2}}},
        {"model": {"k": 3, "t": {"distance": "kl", "value": "0.2"}}},
        {"model": {"k": 3, "p": 2}, "columns": {}},
        {"model": {"k": 3, "l": {"value": 2, "column": "note"}}},
        {"hierarchies": {}},
        {"quasi_identifiers": ["age", "age"]},
        {"columns": {"weight": {}}},
        {"columns": {"age": {"values": ["1"]}}},
        {"max_suppression": "1.5"},
        {"insider_k": 0},
        {"algorithm": "mondrian", "max_suppression": "0.1"},
        {"privacy": {"model": "exact"}},
    ],
)
def test_job_files_that_are_refused(changes: dict[str, Any]) -> None:
    with fails("E100"):
        job(**changes)


def test_a_hierarchy_that_is_not_nested_is_refused() -> None:
    rows = [["A", "x", "p", "*"], ["B", "x", "q", "*"], ["C", "y", "q", "*"]]
    given = json.loads(job().canonical())["anonymize"]["hierarchies"]
    with fails("E100"):
        job(hierarchies={**given, "town": rows})


def test_a_lattice_that_is_too_large_is_refused_unless_regions_are_cut() -> None:
    levels = [[str(leaf), *(str(leaf >> shift) for shift in (1, 2, 3)), "*"] for leaf in range(16)]
    names = [f"q{number}" for number in range(8)]
    changes: dict[str, Any] = {"quasi_identifiers": names, "hierarchies": dict.fromkeys(names, levels)}
    with fails("E100"):
        job(**changes, columns={"ill": {"values": list(ILLS)}})
    assert job(**changes, columns={"ill": {"values": list(ILLS)}}, algorithm="mondrian")


def test_other_tasks_have_no_such_table() -> None:
    contents = {
        "job": {"name": "test", "task": "itemsets", "parties": ["a", "b"], "dataset": "d"},
        "itemsets": {"min_support": 2},
        "anonymize": json.loads(job().canonical())["anonymize"],
    }
    with fails("E100"):
        job_of(contents, "the test", Path())


def test_values_that_nobody_named_are_told_without_them() -> None:
    spec = job(columns={"age": {"kind": "numeric"}, "ill": {"values": list(ILLS[:2])}})
    with fails("E101"):
        comine.simulate(spec, DATA)


# -- columns and rows that tell persons apart --------------------------------------------------------------------------
def _table(note: list[str], ids: list[str] | None = None) -> Table:
    columns = {"id": ids or [f"p{row}" for row in range(len(note))], "note": note}
    cells = [pa.chunked_array([pa.array(values, pa.string())]) for values in columns.values()]
    return Table.of(tuple(columns), cells, ("id",), "the test")


@pytest.mark.parametrize("note", ["{row}", "n{row:03}", "{most}"])
def test_a_party_publishes_no_column_that_tells_its_rows_apart(note: str) -> None:
    cells = [note.format(row=row, most=row if row % 5 > 1 else "") for row in range(40)]
    with fails("E101"):
        checks.check_insensitive(job(allow_unique=[]), _table(cells), "north")
    checks.check_insensitive(job(allow_unique=["note"]), _table(cells), "north")
    checks.check_insensitive(job(sensitive=["ill", "note"], insensitive=[]), _table(cells), "north")
    checks.check_insensitive(job(allow_unique=[]), _table(cells[:19]), "north")
    checks.check_insensitive(job(allow_unique=[]), _table([f"{row // 2}" for row in range(40)]), "north")


def test_a_party_publishes_no_two_rows_of_one_id() -> None:
    ids = [f"p{min(row, 38)}" for row in range(40)]
    with fails("E101"):
        checks.check_persons(_table(["x"] * 40, ids), "north")
    checks.check_persons(_table(["x"] * 40), "north")


def test_what_may_be_unique_is_insensitive() -> None:
    with fails("E100"):
        job(allow_unique=["ill"])

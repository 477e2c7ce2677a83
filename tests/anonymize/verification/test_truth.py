"""Released rows must be true: tampering that a certificate made anew would hide is found beside the original."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from anonymize.certificate import Certificate, sha256_of
from anonymize.certifying import Sources, publish_folder, write_csv
from anonymize.clustering.mdav import mdav
from anonymize.fulldomain.local_recoding import local_recode
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.builders import grouping, intervals, prefix
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verification.labels import Labels
from anonymize.verification.rows import read_csv
from anonymize.verifier import verify
from tests.examples import crossed, examples

pytestmark = pytest.mark.turn(3)

JOBS = ("clerk", "teacher", "smith", "miner")
GROUPS = {"clerk": "white", "teacher": "white", "smith": "blue", "miner": "blue"}
THREE = Requirements((KAnonymity(3),))
Rows = list[dict[str, str]]

HIERARCHIES: dict[str, Hierarchy] = {
    "age": intervals(range(20, 60), (10, 20), name="age"),
    "job": grouping(JOBS, GROUPS, name="job"),
    "zip": prefix([f"{zip_code}" for zip_code in range(1000, 1100)], (1, 2), name="zip"),
}


def people(n: int, seed: int = 0, *, insensitive: bool = True) -> Table:
    draw = np.random.default_rng(seed)
    data = {
        "age": draw.integers(20, 60, n).tolist(),
        "job": [JOBS[i] for i in draw.integers(0, 4, n)],
        "zip": [str(1000 + i) for i in draw.integers(0, 100, n)],
        "disease": [f"d{i}" for i in draw.integers(0, 4, n)],
    }
    data |= {"visits": draw.integers(0, 5, n).tolist()} if insensitive else {}
    roles = Roles((), ("age", "job", "zip"), ("disease",), ("visits",) if insensitive else ())
    return Table.of(data, roles, {"zip": "code"})


def _full_domain(table: Table) -> Release:
    return optimal(table, HIERARCHIES, THREE, max_suppression="0.3")


MAKERS: dict[str, Callable[[Table], Release]] = {
    "full domain": _full_domain,
    "blank": lambda table: optimal(table, HIERARCHIES, THREE, max_suppression="0.3", suppressed="blank"),
    "keep": lambda table: optimal(table, HIERARCHIES, THREE, max_suppression="0.3", suppressed="keep"),
    "cells": lambda table: optimal(table, HIERARCHIES, THREE, max_suppression="0.3", suppression="cell"),
    "local recoding": lambda table: local_recode(table, HIERARCHIES, THREE, max_suppression="0.1"),
    "mondrian": lambda table: mondrian(table, THREE, hierarchies=HIERARCHIES),
    "relaxed mondrian": lambda table: mondrian(table, THREE, mode="relaxed"),
}


def publish(table: Table, release: Release, place: Path) -> tuple[Path, Path]:
    """A release folder, and the original beside it."""
    original = place / "original.csv"
    place.mkdir(exist_ok=True)
    write_csv(original, table.data)
    used = HIERARCHIES
    if release.algorithm == "mondrian":  # which cuts numbers by value
        used = {} if release.details["mode"] == "relaxed" else {name: HIERARCHIES[name] for name in ("job", "zip")}
    sources = Sources(input=original)
    publish_folder(place / "out", release, table, THREE, hierarchies=used, sources=sources)
    return place / "out", original


def tamper(folder: Path, change: Callable[[Rows], Rows]) -> None:
    """Changes rows, and makes every figure of the certificate that follows from them agree again."""
    rows = change(read_csv(folder / "release.csv").to_pylist())
    table = pa.Table.from_pylist(rows)
    write_csv(folder / "release.csv", table)
    pyarrow.parquet.write_table(table, folder / "release.parquet")
    certificate = Certificate.read(folder / "certificate.json")
    hashes = {name: sha256_of(folder / name) for name in certificate.hashes.release}
    changed = {"hashes": certificate.hashes.model_copy(update={"release": hashes}), "metrics": {}}
    for _ in range(2):
        certificate = certificate.model_copy(update=changed).sealed()
        certificate.write(folder / "certificate.json")
        for failure in verify(folder).failures:
            if failure.check == "classes":
                changed["classes"] = int(failure.found)
            if failure.check == "published rows":
                changed |= {"published": int(failure.found), "suppressed": certificate.rows - int(failure.found)}


@pytest.mark.parametrize(("name", "insensitive", "seed"), crossed(MAKERS, product([True, False], [1, 2])))
def test_honest_releases_are_true(name: str, insensitive: bool, seed: int, tmp_path: Path) -> None:
    table = people(60, seed, insensitive=insensitive)
    folder, original = publish(table, MAKERS[name](table), tmp_path)
    found = verify(folder, original)
    assert found.ok, found.failures
    assert not found.unchecked


def swapped(rows: Rows, first: int, second: int, names: tuple[str, ...]) -> Rows:
    changed = [dict(row) for row in rows]
    for name in names:
        changed[first][name], changed[second][name] = rows[second][name], rows[first][name]
    return changed


@examples(3, 40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["full domain", "mondrian", "local recoding"]), st.data())
def test_swapped_cells_are_found(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    """Any swap that makes two rows untrue is found: each row here has a number of its own, which does not change."""
    table = people(40, data.draw(st.integers(0, 5)))
    own = table.data.set_column(4, "visits", pa.array(range(40)))
    table = Table.of(own, table.roles, {"zip": "code"})
    folder, original = publish(table, MAKERS[name](table), tmp_path_factory.mktemp("swap"))
    before = verify(folder, original)
    assert before.ok, before.failures
    columns = data.draw(st.lists(st.sampled_from(["age", "job", "zip", "disease"]), min_size=1, unique=True))
    rows = read_csv(folder / "release.csv").to_pylist()
    first, second = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=2, max_size=2, unique=True))
    after = swapped(rows, first, second, tuple(columns))
    given_rows = {row["visits"]: row for row in read_csv(original).to_pylist()}
    true = all(_covers(row, given_rows[row["visits"]]) for row in (after[first], after[second]))
    tamper(folder, lambda _: after)
    found = {failure.check for failure in verify(folder, original).failures}
    wrong = {"rows that cover original ones", "sensitive and insensitive cells"} & found
    assert bool(wrong) is not true, (found, after[first], after[second])


def _covers(row: dict[str, str], given_row: dict[str, str]) -> bool:
    """Whether a published row is true of an original one; written apart from the verifier."""
    if row["disease"] != given_row["disease"]:
        return False
    for name in ("age", "job", "zip"):
        cell, value = row[name], given_row[name]
        hierarchy = HIERARCHIES[name]
        labels = {hierarchy.label(level, hierarchy.leaves.index(value)) for level in range(hierarchy.height + 1)}
        low, _, high = cell.strip("[]").partition(", ")
        if not (cell in labels or (name == "age" and cell != "*" and int(low) <= int(value) <= int(high or low))):
            return False
    return True


def _permuted(rows: Rows) -> Rows:
    order = np.random.default_rng(3).permutation(len(rows))
    return [{**row, **{q: rows[i][q] for q in HIERARCHIES}} for row, i in zip(rows, order, strict=True)]


TAMPERINGS: dict[str, Callable[[Rows], Rows]] = {
    "quasi-identifiers dealt out anew": _permuted,
    "a row twice, another gone": lambda rows: [rows[0], rows[0], *rows[2:]],
    "a row more": lambda rows: [*rows, rows[0]],
    "a row gone": lambda rows: rows[1:],
    "another disease": lambda rows: [{**rows[0], "disease": rows[0]["disease"] + "0"}, *rows[1:]],
    "labels exchanged": lambda rows: [
        {**r, "job": {"white": "blue", "blue": "white"}.get(r["job"], r["job"])} for r in rows
    ],
    "a blank after a label": lambda rows: [{**rows[0], "job": rows[0]["job"] + " "}, *rows[1:]],
    "a finer interval": lambda rows: [{**r, "age": "[20, 21]"} for r in rows],
    "an insensitive cell": lambda rows: [{**rows[0], "visits": "77"}, *rows[1:]],
    "suppressed after all": lambda rows: [{**rows[0], **dict.fromkeys(HIERARCHIES, "*")}, *rows[1:]],
}


@pytest.mark.parametrize("name", list(TAMPERINGS))
def test_untrue_rows_are_found_when_the_certificate_was_made_anew(name: str, tmp_path: Path) -> None:
    table = people(200, 5)
    folder, original = publish(table, _full_domain(table), tmp_path)
    rows = read_csv(folder / "release.csv").to_pylist()
    assert {row["job"] for row in rows} == {"white", "blue"}
    assert verify(folder, original).ok
    tamper(folder, TAMPERINGS[name])
    assert not verify(folder, original).ok


WIDENED: dict[str, Callable[[dict[str, list[str]]], dict[str, list[str]]]] = {
    "all stand for all": lambda told: dict.fromkeys(told, sorted({v for values in told.values() for v in values})),
    "each for one more": lambda told: {
        label: sorted({*values, other[0]})
        for (label, values), other in zip(
            told.items(), [*list(told.values())[1:], next(iter(told.values()))], strict=True
        )
    },
}


@pytest.mark.parametrize("how", WIDENED)
@pytest.mark.parametrize("maker", ["full domain", "mondrian"])
def test_labels_that_were_widened_to_make_rows_true_are_found(tmp_path: Path, how: str, maker: str) -> None:
    """Whoever exchanges labels may write `labels.json` and the certificate anew, too."""
    table = people(200, 5)
    folder, original = publish(table, MAKERS[maker](table), tmp_path)
    assert verify(folder, original).ok
    tamper(folder, TAMPERINGS["labels exchanged"])
    path = folder / "labels.json"
    labels = Labels.read(path)
    assert {len(values) for values in labels.columns["job"].values()} == {2}
    changed = labels.columns | {"job": WIDENED[how](labels.columns["job"])}
    labels.model_copy(update={"columns": changed}).write(path)
    given = Certificate.read(folder / "certificate.json")
    hashes = given.hashes.model_copy(update={"labels": sha256_of(path)})
    given.model_copy(update={"hashes": hashes}).sealed().write(folder / "certificate.json")
    assert "labels of job" in {finding.check for finding in verify(folder, original).failures}


def test_without_the_labels_nothing_is_said_of_them(tmp_path: Path) -> None:
    table = people(60, 1)
    folder, original = publish(table, MAKERS["mondrian"](table), tmp_path)
    assert (folder / "labels.json").exists()
    (folder / "labels.json").unlink()
    found = verify(folder, original)
    assert found.ok
    assert [finding.check for finding in found.unchecked] == ["labels"]


def test_other_labels_than_the_certified_are_found(tmp_path: Path) -> None:
    table = people(60, 1)
    folder, original = publish(table, MAKERS["mondrian"](table), tmp_path)
    path = folder / "labels.json"
    path.write_text(path.read_text().replace('"clerk"', '"miner"', 1))
    assert "SHA-256 of labels.json" in {finding.check for finding in verify(folder, original).failures}


def test_labels_name_no_value_in_what_is_published(tmp_path: Path) -> None:
    """`labels.json` is salted, and the certificate holds its digest alone."""
    table = people(60, 1)
    release = MAKERS["mondrian"](table)
    digests = set()
    for place in ("one", "two"):
        folder, _ = publish(table, release, tmp_path / place)
        certificate = (folder / "certificate.json").read_text()
        assert "clerk" not in certificate
        digests.add(Certificate.read(folder / "certificate.json").hashes.labels)
    assert len(digests) == 2


def test_centres_add_up(tmp_path: Path) -> None:
    table = Table.of({"age": [20, 30, 40, 50, 60, 70], "disease": list("abcabc")}, Roles((), ("age",), ("disease",)))
    write_csv(tmp_path / "original.csv", table.data)
    publish_folder(tmp_path / "out", mdav(table, 3), table, THREE)
    assert verify(tmp_path / "out", tmp_path / "original.csv").ok
    tamper(tmp_path / "out", lambda rows: [{**row, "age": "31" if row["age"] == "30" else row["age"]} for row in rows])
    assert "centres of age" in {f.check for f in verify(tmp_path / "out", tmp_path / "original.csv").failures}

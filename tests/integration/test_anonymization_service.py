"""Releases of a node's tables as people ask for them: a node and `comine anonymize run --node` over mutual TLS."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from anonymize.verifier import verify
from coordinator.anonymization_client import ReleasingNode, request_of
from coordinator.member import load_federation
from jobs.anonymization.spec import read_spec
from jobs.audit.entry import read
from link.errors import MalformedMessage
from link.grpc_channel import dial
from party.anonymization.service import ReleaseService
from party.config import PartyConfig
from party.logs import open_log
from party.server import Node
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub
from tests.integration.processes import Organisations, Process, Ran, command
from tests.unit.party.nodes import refused

DISEASES = ("flu", "cold", "fever", "cancer")
PATIENTS = "id,name,age,sex,disease\n" + "".join(
    f"p{i},Secret{i},{20 + i * 7 % 40},{'fm'[i % 2]},{DISEASES[i * 5 % 4]}\n" for i in range(200)
)
DATASET = """
[[dataset]]
name = "patients"
kind = "table"
source = "patients.csv"
format = "csv"
[dataset.anonymization]
columns = { age = ["quasi_identifiers"], sex = ["quasi_identifiers"], disease = ["sensitive"] }
min_k = 5
algorithms = ["optimal", "mondrian"]
max_suppression = 0.02
models = ["l"]
max_releases = 3
[dataset.anonymization.kinds]
age = { kind = "numeric" }
[dataset.anonymization.hierarchies]
age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }
sex = "sex.csv"
"""
CONFIG = """
[anonymize]
source = "patients"
identifiers = ["id", "name"]
quasi_identifiers = ["age", "sex"]
sensitive = ["disease"]
algorithm = "optimal"
max_suppression = 0.02
[anonymize.model]
k = 5
"""
FILES = {"release.csv", "release.parquet", "certificate.json"}


def write(folder: Path, dataset: str = DATASET, patients: str = PATIENTS) -> Organisations:
    """A node with the table of patients; not started."""
    organisations = Organisations.create(folder, {"north": [["milk"]]})
    (folder / "patients.csv").write_text(patients)
    (folder / "sex.csv").write_text("f,*\nm,*\n")
    file = folder / "north.toml"
    file.write_text(file.read_text() + dataset)
    (folder / "anonymize.toml").write_text(CONFIG)
    return organisations


@pytest.fixture
def north(tmp_path: Path) -> Iterator[Organisations]:
    organisations = write(tmp_path)
    try:
        yield organisations
    finally:
        organisations.stop()


def run_at(at: Organisations, *more: str, out: str = "out") -> Ran:
    return command("anonymize", "run", "anonymize.toml", "--out", out, "--node", "north", *more, cwd=at.folder)


def events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    entries = map(read, (folder / "state/north/audit.log").read_bytes().splitlines())
    return [(each.event, dict(each.fields)) for each in entries if each.event in ("table-released", "release-refused")]


def left_over(folder: Path) -> list[Path]:
    """Folders of runs that are still there."""
    place = folder / "state/north/anonymization"
    return [path for path in place.iterdir() if path.is_dir()]


def config(folder: Path, old: str, new: str) -> None:
    assert CONFIG.count(old) == 1
    (folder / "anonymize.toml").write_text(CONFIG.replace(old, new))


def test_a_release_from_the_command_line(north: Organisations) -> None:
    north.start()
    folder = north.folder
    ran = command("anonymize", "datasets", "--node", "north", cwd=folder)
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "dataset\tcolumn\tmay leave as\tkind\thierarchy",
            "patients\tage\tquasi_identifiers\tnumeric\tyes",
            "patients\tsex\tquasi_identifiers\t\tyes",
            "patients\tdisease\tsensitive\t\t",
        ],
    )
    assert ran.err == (
        "patients: k of at least 5; beside it l; algorithms optimal, mondrian; max_suppression up to 0.02; 3 different "
        "releases in all\n"
    )
    (listed,) = json.loads(command("anonymize", "datasets", "--node", "north", "--json", cwd=folder).out)["datasets"]
    assert (listed["min_k"], listed["report"], listed["columns"]["age"]["kind"]) == (5, False, "numeric")
    assert command("query", cwd=folder).out.splitlines()[1:] == []  # which this dataset does not answer

    ran = run_at(north, "--json")
    assert ran.code == 0, ran.err
    certificate = json.loads(ran.out)
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    assert verify(folder / "out").ok
    assert (certificate["rows"], certificate["hashes"]["input"]) == (200, None)
    assert set(certificate["columns"]) == {"age", "sex", "disease"}
    assert b"Secret" not in b"".join(path.read_bytes() for path in (folder / "out").iterdir())
    # The same rows as the same configuration gives beside the data.
    local = CONFIG.replace('source = "patients"', 'source = "patients.csv"') + (
        '[anonymize.columns]\nage = { kind = "numeric" }\n[anonymize.hierarchies]\nsex = "sex.csv"\n'
        'age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }\n'
    )
    (folder / "local.toml").write_text(local)
    assert command("anonymize", "run", "local.toml", "--out", "local", cwd=folder).code == 0
    assert (folder / "local/release.csv").read_bytes() == (folder / "out/release.csv").read_bytes()

    (logged,) = events(folder)
    assert logged[0] == "table-released"
    assert logged[1] | {"request": None} == {
        "dataset": "patients",
        "coordinator": "hub",
        "request": None,
        "algorithm": "optimal",
        "k": 5,
        "columns": ["age", "sex", "disease"],
        "rows": certificate["published"],
        "certificate": certificate["digest"],
        "report": False,
    }
    assert left_over(folder) == []
    assert (folder / "state/north/releases.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("k = 5", "k = 4", 30, "asks for k of at least 5 (rule min_k), and the request has k = 4"),
        ('["age", "sex"]', '["age", "name"]', 30, "lets only 'age' and 'sex' and 'disease' leave, not 'name'"),
        (
            'quasi_identifiers = ["age", "sex"]',
            'quasi_identifiers = ["age"]\ninsensitive = ["sex"]',
            30,
            "lets 'sex' leave as quasi_identifiers only, not as insensitive (rule columns)",
        ),
        ('"optimal"', '"datafly"', 30, "allows algorithm = 'optimal' and 'mondrian' only, not 'datafly'"),
        ("k = 5", "k = 5\nalpha = 0.5", 30, "allows the models 'k' and 'l' only, not 'alpha' (rule models)"),
        ("0.02", "0.03", 30, "max_suppression of at most 0.02 (rule max_suppression), and the request has 0.03"),
        ("0.02", '0.02\nsuppressed = "blank"', 30, "allows suppressed = 'drop' only, not 'blank' (rule suppressed)"),
        (
            "k = 5",
            'k = 5\n[anonymize.columns]\nage = { kind = "code" }',
            30,
            "says itself what the columns of this dataset are (rule describe); leave 'age' out of [anonymize.columns]",
        ),
        (
            "k = 5",
            'k = 5\n[anonymize.hierarchies]\nsex = "other.csv"',
            30,
            "(rule describe); leave 'sex' out of [anonymize.hierarchies]",
        ),
        ('"patients"', '"baskets"', 30, "lets no release of a dataset 'baskets' leave for 'hub'"),
        ("k = 5", "k = 200", 10, "algorithm = \"optimal\" makes no release of the dataset 'patients' of north"),
        ("0.02", "0.02\nseed = 1", 10, "a node lets nobody choose the draws"),
    ],
)
def test_refusals_say_what_would_be_allowed(shared: Organisations, old: str, new: str, code: int, words: str) -> None:
    config(shared.folder, old, new)
    (shared.folder / "other.csv").write_text("f,x,*\nm,x,*\n")
    ran = run_at(shared, out=f"refused-{code}")
    assert ran.code == code, ran.err
    assert words in ran.sentence
    assert not (shared.folder / f"refused-{code}").exists()
    assert left_over(shared.folder) == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    """A running node for tests that leave it as it is: k = 200 of 200 rows is refused by the rows alone."""
    made = write(tmp_path_factory.mktemp("shared"), DATASET.replace("max_suppression = 0.02", "max_suppression = 0.02"))
    (made.folder / "patients.csv").write_text("\n".join(PATIENTS.splitlines()[:200]) + "\n")
    try:
        made.start()
        yield made
    finally:
        made.stop()

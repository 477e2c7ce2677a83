"""Releases of a node's tables as people ask for them: a node and `comine anonymize run --node` over mutual TLS."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anonymize.verifier import verify
from coordinator.anonymisation.releases import ReleasingNode
from coordinator.member import load_federation
from crypto.primitives.randomness import Randomness
from jobs.audit.checks.verification import verification
from link.pki.trust import Trust
from party.config import PartyConfig
from party.data.dataset_check import check_dataset
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub
from tests.integration.anonymization.patients import (
    CONFIG,
    DATASET,
    FILES,
    PATIENTS,
    config,
    ended,
    events,
    left_over,
    patients_of,
    running,
    stalled,
    write,
    written,
)
from tests.integration.preloaded import Preloaded
from tests.integration.processes import Organisations, Process, Ran, command
from tests.party.nodes import refused

pytestmark = pytest.mark.turn(3)


def run_at(at: Organisations, *more: str, out: str = "out") -> Ran:
    return command("anonymize", "run", "anonymize.toml", "--out", out, "--node", "north", *more, cwd=at.folder)


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
    sealed = verification([], [folder / "out"], Trust(north.authority.certificate_pem))
    assert (sealed.good, sealed.sealed[0].name, sealed.sealed[0].files) == (True, "hub", len(FILES) - 1)
    assert (certificate["rows"], certificate["hashes"]["input"]) == (200, None)
    assert set(certificate["columns"]) == {"age", "sex", "disease"}
    assert b"Secret" not in b"".join(path.read_bytes() for path in (folder / "out").iterdir())
    # The same rows as the same configuration gives beside the data, in an order that tells nothing.
    local = CONFIG.replace('source = "patients"', 'source = "patients.csv"\nrow_order = "sorted"') + (
        '[anonymize.columns]\nage = { kind = "numeric" }\n[anonymize.hierarchies]\nsex = "sex.csv"\n'
        'age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }\n'
    )
    (folder / "local.toml").write_text(local)
    assert command("anonymize", "run", "local.toml", "--out", "local", cwd=folder).code == 0
    assert (folder / "local/release.csv").read_bytes() == (folder / "out/release.csv").read_bytes()

    (logged,) = events(folder)
    assert logged[0] == "table-released"
    assert logged[1] | {"request": None, "number": None} == {
        "dataset": "patients",
        "coordinator": "hub",
        "request": None,
        "number": None,
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
    """A running node for tests that leave it as it is; of its 199 rows, k = 200 asks too much."""
    made = write(tmp_path_factory.mktemp("shared"), patients="\n".join(PATIENTS.splitlines()[:200]) + "\n")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"hierarchies": {"sex": "/etc/passwd"}}, "the request names files of hierarchies"),
        ({"hierarchies": {"sex": {"file": "/etc/passwd"}}}, "the request names files of hierarchies"),
        ({"hierarchies": {"sex": {"builder": "file", "file": "x"}}}, "the request names files of hierarchies"),
        ({"hierarchies": [1]}, "the request names files of hierarchies"),
        ({"source": "/etc/passwd"}, "the request has 'source', which the node knows itself"),
        ({"query": "select 1"}, "the request has 'query', which the node knows itself"),
        ({"identifiers": ["id"]}, "the request has 'identifiers', which the node knows itself"),
        ({"seed": 1}, "lets nobody choose the draws"),
        ({"row_order": "input"}, "sorts the rows of releases"),
        ({"algorithm": "guess"}, "'guess' is none of samarati"),
        ({"unknown": 1}, "unknown: is not a known key"),
        ({"columns": {"disease": {"kind": "tree"}}}, "says itself what the columns of this dataset are"),
        (
            {"sensitive": ["disease"], "model": {"k": 5, "l": {"value": 2, "column": "age"}}},
            "l protects 'age', which the request does not take as sensitive",
        ),
    ],
)
def test_what_a_stranger_writes_is_not_believed(shared: Organisations, more: dict[str, Any], words: str) -> None:
    async def test() -> None:
        federation, identity = load_federation(shared.folder / "federation.toml")
        node = ReleasingNode(identity, "north", federation.addresses["north"])
        contents = {"quasi_identifiers": ["age", "sex"], "model": {"k": 5}}
        request = pb.AnonymizeRequest(dataset="patients", configuration=json.dumps(contents | more))
        found = await refused(ended(AnonymizationStub(node.channel).Anonymize(request)))
        assert found.code in ("E100", "E300")
        assert words in found.sentence
        request.configuration = "[" * 100_000
        assert "is no JSON" in (await refused(ended(AnonymizationStub(node.channel).Anonymize(request)))).sentence
        await node.close()

    asyncio.run(test())


def test_the_owner_is_told_what_does_not_fit(tmp_path: Path) -> None:
    write(tmp_path)
    (_, dataset) = PartyConfig.load(tmp_path / "north.toml").dataset
    assert check_dataset(dataset).problem == ""
    for patients, words in (
        (PATIENTS.replace("sex,", "gender,", 1), "columns names 'sex', which 'patients' does not have, only id, name"),
        (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,777"), 'hierarchy of column "age" lacks 1'),
        (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,ancient"), "ancient"),
    ):
        (tmp_path / "patients.csv").write_text(patients)
        assert words in check_dataset(dataset).problem


@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_other_sources(tmp_path: Path, form: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    rows: pa.Table = pa_csv.read_csv(io.BytesIO(PATIENTS.encode()))
    if form == "parquet":
        pq.write_table(rows, tmp_path / "patients.parquet")
        source = 'source = "patients.parquet"\nformat = "parquet"'
    else:
        with closing(sqlite3.connect(tmp_path / "patients.db")) as base:
            base.execute("CREATE TABLE patients (id, name, age, sex, disease)")
            base.executemany(
                "INSERT INTO patients VALUES (?, ?, ?, ?, ?)", [list(r.values()) for r in rows.to_pylist()]
            )
            base.commit()
        source = 'source = "sqlite:///patients.db"\nformat = "sql"\nquery = "SELECT * FROM patients"'

    async def test() -> None:
        dataset = DATASET.replace('source = "patients.csv"\nformat = "csv"', source)
        async with running(tmp_path, dataset) as world:
            certificate = await world.hub.fetch(world.request(algorithm="mondrian"), tmp_path / "out")
            assert certificate.rows == 200
            section = patients_of(tmp_path)
            assert check_dataset(section).problem == ""

    asyncio.run(test())


@pytest.mark.slow
def test_many_rows_arrive_in_many_pieces(tmp_path: Path) -> None:
    noise = Randomness.from_seed(1).bytes(16 * 100_000).hex()
    lines = "".join(f"p{i},{noise[32 * i : 32 * i + 32]},{i % 60},{'fm'[i % 2]},flu\n" for i in range(100_000))
    dataset = DATASET.replace("columns = {", 'allow_unique = ["name"]\ncolumns = { name = ["insensitive"],')
    keys = {"algorithm": "mondrian", "insensitive": ["name"]}

    async def test() -> None:
        async with running(tmp_path, dataset, "id,name,age,sex,disease\n" + lines) as world:
            parts = await ended(world.stub("hub").Anonymize(world.request(**keys)))
            assert sum(part.file == pb.PARQUET for part in parts) > 1
            assert max(part.ByteSize() for part in parts) < 2 << 20
            assert (await world.hub.fetch(world.request(**keys), tmp_path / "out")).published == 100_000

    asyncio.run(test())


def children(process: Preloaded | subprocess.Popen[str]) -> list[int]:
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are read from /proc")
def test_a_node_that_is_killed_leaves_nothing_behind(north: Organisations) -> None:
    north.start()
    stalled(north.folder)
    node = north.nodes["north"]
    asker = Process(
        *("anonymize", "run", "anonymize.toml", "--node", "north", "--out", "out"),
        cwd=north.folder,
    )
    try:
        end = time.monotonic() + 60
        while not (found := children(node.popen)):
            assert time.monotonic() < end
            time.sleep(0.02)
        node.send(signal.SIGKILL)
        ran = asker.end()
    finally:
        asker.kill()
    assert ran.code == 20, ran.err
    while any(Path(f"/proc/{pid}").exists() for pid in found):  # none outlives its node
        assert time.monotonic() < end + 60
        time.sleep(0.02)
    assert written(north.folder) == set()
    assert len(left_over(north.folder)) == 1
    node.kill()
    (north.folder / "patients.csv").unlink()
    (north.folder / "patients.csv").write_text(PATIENTS)
    north.start()
    assert left_over(north.folder) == []
    assert run_at(north).code == 0


def test_a_client_that_is_interrupted_writes_nothing(north: Organisations) -> None:
    north.start()
    stalled(north.folder)
    asker = Process(
        *("anonymize", "run", "anonymize.toml", "--node", "north", "--out", "out"),
        cwd=north.folder,
    )
    try:
        end = time.monotonic() + 60
        while not left_over(north.folder):
            assert time.monotonic() < end
            time.sleep(0.02)
        asker.send(signal.SIGINT)
        ran = asker.end()
    finally:
        asker.kill()
    assert ran.code == 50, ran.err
    assert written(north.folder) == set()

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
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from anonymize.verifier import verify
from coordinator.anonymisation.releases import ReleasingNode, listing_as_data, request_of
from coordinator.member import load_federation
from crypto.primitives.randomness import Randomness
from jobs.anonymization.spec import read_spec
from jobs.audit.entry import read
from jobs.audit.verification import verification
from link.errors import MalformedMessage, PeerError
from link.pki.trust import Trust
from link.transports.grpc_channel import dial
from party.config import DatasetSection, PartyConfig
from party.data.dataset_check import check_dataset
from party.node.logs import open_log
from party.server import Node
from party.services.anonymization.request import spec_of
from party.services.anonymization.service import ReleaseService
from party.services.anonymization.worker import outcome_of
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub
from tests.errors import fails
from tests.integration.preloaded import Preloaded
from tests.integration.processes import Organisations, Process, Ran, command
from tests.party.nodes import refused

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
FILES = {"release.csv", "release.parquet", "certificate.json", "manifest.json"}


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


def patients_of(folder: Path) -> DatasetSection:
    return next(each for each in PartyConfig.load(folder / "north.toml").dataset if each.name == "patients")


def left_over(folder: Path) -> list[Path]:
    """Folders of runs that are still there."""
    place = folder / "state/north/anonymization"
    return [path for path in place.iterdir() if path.is_dir()]


def written(folder: Path) -> set[str]:
    """What is left of the result folder and its drafts."""
    return {path.name for path in folder.iterdir() if path.name.startswith((".out", "out"))}


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


# -- nodes within the process of the test ------------------------------------------------------------------------------
class World:
    """A node and its coordinator."""

    def __init__(self, organisations: Organisations) -> None:
        self.folder, self.authority = organisations.folder, organisations.authority
        self.node = Node(PartyConfig.load(self.folder / "north.toml"), open_log("north", io.StringIO()))
        self._clients: list[Any] = []

    async def start(self) -> None:
        self.address = await self.node.start()
        federation, identity = load_federation(self.folder / "federation.toml")
        self.hub = ReleasingNode(identity, "north", federation.addresses["north"])

    def stub(self, name: str, role: Any = "coordinator") -> Any:
        self._clients.append(dial(self.authority.issue(name, role), "north", self.address))
        return AnonymizationStub(self._clients[-1])

    def request(self, **more: Any) -> pb.AnonymizeRequest:
        """The configuration, with other values of some keys."""
        found = request_of(read_spec(self.folder / "anonymize.toml"), self.folder)
        told = json.loads(found.configuration) | more
        found.configuration = json.dumps(told)
        return found

    async def stop(self) -> None:
        await self.node.stop()
        await self.hub.close()
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def running(folder: Path, dataset: str = DATASET, patients: str = PATIENTS) -> AsyncIterator[World]:
    world = World(write(folder, dataset, patients))
    await world.start()
    try:
        yield world
    finally:
        await world.stop()


class _NoProcess:
    """In the place of a run's process."""

    returncode = 0

    def kill(self) -> None:
        """Nothing runs."""

    async def wait(self) -> int:
        return self.returncode


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are in the test's process, for tests of what releases tell: each spares the start of an interpreter."""

    async def started(*_: Any, **__: Any) -> _NoProcess:
        return _NoProcess()

    async def outcome(_: _NoProcess, task: Any) -> bytes:
        made = await asyncio.to_thread(outcome_of, json.loads(json.dumps(task)))
        return json.dumps(made).encode()

    monkeypatch.setattr("party.services.anonymization.runs.asyncio.create_subprocess_exec", started)
    monkeypatch.setattr("party.services.anonymization.runs.last_output", outcome)


async def ended(call: Any) -> list[pb.ReleasePart]:
    return [part async for part in call]


def files(parts: list[pb.ReleasePart]) -> list[int]:
    return list(dict.fromkeys(part.file for part in parts))


async def until(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(60):
        while not (value := found()):  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.02)
    return value


@pytest.mark.usefixtures("here")
def test_who_may_not_ask_is_told_so_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        only = DATASET.replace("min_k", 'coordinators = ["analyst"]\nmin_k')
        async with running(tmp_path, only) as world:
            hub = world.stub("hub")
            assert not (await hub.ListDatasets(pb.ListDatasetsRequest())).datasets
            for dataset in ("patients", "baskets", "nothing"):
                request = world.request()
                request.dataset = dataset
                found = await refused(ended(hub.Anonymize(request)))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E300")
                assert found.sentence.startswith(
                    f"the policy of north lets no release of a dataset '{dataset}' leave for 'hub'"
                )
            for name, role in (("phone", "client"), ("south", "party")):
                found = await refused(ended(world.stub(name, role).Anonymize(world.request())))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E201")
            parts = await ended(world.stub("analyst").Anonymize(world.request()))
            assert files(parts) == [pb.ROWS, pb.PARQUET, pb.CERTIFICATE]
            assert [event for event, _ in events(tmp_path)] == [*["release-refused"] * 3, "table-released"]

    asyncio.run(test())


def test_requests_are_judged_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One may have 7 MiB: meanwhile the node answers others."""
    judging: list[threading.Thread] = []

    def judged(*arguments: Any) -> Any:
        judging.append(threading.current_thread())
        return spec_of(*arguments)

    async def test() -> None:
        async with running(tmp_path) as world:
            request = world.request()
            configuration = json.loads(request.configuration)
            request.configuration = json.dumps(configuration | {"sensitive": ["disease"] * 300})
            await refused(ended(world.stub("hub").Anonymize(request)))
            assert judging
            assert threading.main_thread() not in judging

    monkeypatch.setattr("party.services.anonymization.service.spec_of", judged)
    asyncio.run(test())


def test_a_node_without_the_table_releases_nothing_and_keeps_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.partition("[dataset.anonymization]")[0]) as world:
            assert await world.hub.datasets() == []
            assert "lets no release" in (await refused(ended(world.stub("hub").Anonymize(world.request())))).sentence
            assert not (tmp_path / "state/north/anonymization").exists()

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_the_report_leaves_where_the_policy_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.replace("min_k", "report = true\nmin_k")) as world:
            await world.hub.fetch(world.request(), tmp_path / "out")
            assert {path.name for path in (tmp_path / "out").iterdir()} == FILES | {"report.html"}
            assert events(tmp_path)[-1][1]["report"] is True

    asyncio.run(test())


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "ppir"])
@pytest.mark.usefixtures("here")
def test_the_order_of_the_table_does_not_leave(tmp_path: Path, algorithm: str) -> None:
    """Neither by place nor by two releases side by side can a row be told from others that show the same."""

    async def test() -> None:
        theirs = DATASET.replace('"mondrian"]', '"mondrian", "ppir"]')
        async with running(tmp_path, theirs) as world:
            request = world.request(algorithm=algorithm)
            if algorithm == "ppir":
                told = json.loads(request.configuration)
                told |= {"quasi_identifiers": ["age"], "max_suppression": "0", "ppir": {"ranges": {"age": 5}}}
                request.configuration = json.dumps(told | {"model": {}})
            await world.hub.fetch(request, tmp_path / "out")
            rows = (tmp_path / "out/release.csv").read_text().splitlines()[1:]
            cells = [tuple(row.rsplit(",", 1)) for row in rows]
            assert [own for own, _ in cells] == sorted(own for own, _ in cells)
            for own in {own for own, _ in cells}:
                diseases = [disease for each, disease in cells if each == own]
                assert diseases == sorted(diseases)

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_different_releases_are_counted_and_equal_ones_are_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.replace("max_releases = 3", "max_releases = 2")) as world:
            first = await world.hub.fetch(world.request(), tmp_path / "out")
            assert await world.hub.fetch(world.request(), tmp_path / "out") == first
            await world.hub.fetch(world.request(model={"k": 20}), tmp_path / "other")
            found = await refused(ended(world.stub("analyst").Anonymize(world.request(model={"k": 10}))))
            assert found.code == "E300"
            assert "2 different releases of the rows of 'patients' leave in all (rule max_releases)" in found.sentence
            assert await world.hub.fetch(world.request(), tmp_path / "out") == first
            # A known request on other rows is another release.
            (tmp_path / "patients.csv").write_text(PATIENTS.replace("p0,Secret0,20", "p0,Secret0,59"))
            found = await refused(ended(world.stub("hub").Anonymize(world.request())))
            assert "(rule max_releases)" in found.sentence
        again = World(Organisations(tmp_path, {}, world.authority))
        await again.start()
        try:
            found = await refused(ended(again.stub("hub").Anonymize(again.request(model={"k": 10}))))
            assert "(rule max_releases)" in found.sentence
        finally:
            await again.stop()

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_requests_that_come_to_nothing_are_counted(tmp_path: Path) -> None:
    """Else who asks for ever smaller k would learn the greatest that the rows allow."""

    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 2")
        async with running(tmp_path, dataset) as world:
            hub, analyst = world.stub("hub"), world.stub("analyst")
            await world.hub.fetch(world.request(), tmp_path / "out")
            for stub, k in ((hub, 400), (hub, 400), (analyst, 300)):
                assert (await refused(ended(stub.Anonymize(world.request(model={"k": k}))))).code == "E100"
            for k in (400, 299, 10):
                found = await refused(ended(hub.Anonymize(world.request(model={"k": k}))))
                assert found.code == "E300"
                assert "lets 2 requests for releases of 'patients' come to nothing" in found.sentence
            await world.hub.fetch(world.request(), tmp_path / "out")

    asyncio.run(test())


def test_who_hangs_up_on_a_run_has_used_it_up(tmp_path: Path) -> None:
    """Else whoever sees that a run lasts longer than failing ones would learn for nothing that the rows suffice."""

    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 2")
        async with running(tmp_path, dataset) as world:
            analyst = world.stub("analyst")
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            for k in (20, 21):
                asking = analyst.Anonymize(world.request(model={"k": k}))
                await until(lambda: runs.processes)
                asking.cancel()
                await until(lambda: not runs.processes)
            found = await refused(ended(analyst.Anonymize(world.request(model={"k": 22}))))
            assert (found.code, "rule max_failures" in found.sentence) == ("E300", True)

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_run_that_succeeds_is_no_failure(tmp_path: Path) -> None:
    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 1")
        async with running(tmp_path, dataset) as world:
            hub = world.stub("hub")
            for k in (10, 5, 10, 5):
                await ended(hub.Anonymize(world.request(model={"k": k})))
            assert (await refused(ended(hub.Anonymize(world.request(model={"k": 400}))))).code == "E100"

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_requests_at_once_do_not_fail_more_often_than_they_may(tmp_path: Path) -> None:
    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 1")
        async with running(tmp_path, dataset) as world:
            hub = world.stub("hub")
            asking = [refused(ended(hub.Anonymize(world.request(model={"k": k})))) for k in (300, 301, 302)]
            assert sorted(found.code for found in await asyncio.gather(*asking)) == ["E100", "E300", "E300"]

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_who_asks_may_describe_columns_where_the_policy_lets_him(tmp_path: Path) -> None:
    async def test() -> None:
        theirs = DATASET.replace("min_k", 'describe = "request"\nmin_k')
        async with running(tmp_path, theirs) as world:
            (tmp_path / "rows.csv").write_text("m;any\nf;any\n")
            config(tmp_path, "k = 5", 'k = 5\n[anonymize.hierarchies]\nsex = { file = "rows.csv", separator = ";" }')
            await world.hub.fetch(world.request(), tmp_path / "out")
            request = world.request()
            request.hierarchies["sex"] = "m,any\nx,any\n"
            found = await refused(ended(world.stub("hub").Anonymize(request)))
            assert found.code == "E100"
            assert found.sentence.startswith("the hierarchy of 'sex' does not fit the dataset 'patients' of north")
            assert "'f'" not in found.sentence
            reason = tmp_path / "state/north/anonymization/patients.reason"
            assert '"f"' in reason.read_text()
            assert reason.stat().st_mode & 0o077 == 0
            reason.unlink()
            request = world.request()
            request.hierarchies["name"] = "Secret1,any\n"
            found = await refused(ended(world.stub("hub").Anonymize(request)))
            assert "[anonymize.hierarchies] describes 'name', which the request does not take" in found.sentence
            assert not reason.exists()  # the data were not looked at

    asyncio.run(test())


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


@pytest.mark.usefixtures("here")
def test_wrong_data_are_told_without_their_values(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            hub = world.stub("hub")
            for patients, code, words in (
                (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,ancient"), "E101", "does not fit the configuration"),
                (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,777"), "E100", "the hierarchy of 'age' does not fit"),
                (PATIENTS.replace("sex,", "gender,", 1), "E100", "has no column 'sex', of which its policy speaks"),
                ('"' + PATIENTS, "E101", "the dataset 'patients' of north cannot be read"),
            ):
                (tmp_path / "patients.csv").write_text(patients)
                found = await refused(ended(hub.Anonymize(world.request())))
                assert (found.code, words in found.sentence) == (code, True), found.sentence
                for secret in ("ancient", "777", "Secret", str(tmp_path)):
                    assert secret not in found.sentence
                assert events(tmp_path)[-1][1]["reason"] == found.sentence
            (tmp_path / "patients.csv").unlink()
            assert (await refused(ended(hub.Anonymize(world.request())))).code == "E101"

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


@pytest.mark.parametrize(
    ("patients", "more"),
    [
        (PATIENTS, {}),
        (PATIENTS.replace("\np1,", "\np0,"), {"insensitive": []}),
    ],
    ids=["a name for each row", "two rows of one id"],
)
@pytest.mark.usefixtures("here")
def test_no_release_leaves_that_tells_persons_apart_whatever_k_is(
    tmp_path: Path, patients: str, more: dict[str, Any]
) -> None:
    """Nor does whoever asks have the word that allows it: the owner alone does."""
    dataset = DATASET.replace("columns = {", 'columns = { name = ["insensitive"],')
    keys = {"algorithm": "mondrian", "insensitive": ["name"], **more}

    async def test() -> None:
        async with running(tmp_path, dataset, patients) as world:
            found = await refused(ended(world.stub("hub").Anonymize(world.request(**keys))))
            assert (found.code, "distinguish persons that no k hides" in found.sentence) == ("E101", True)
            for word in ("allow_unique", "allow_repeated"):
                found = await refused(ended(world.stub("hub").Anonymize(world.request(**keys, **{word: ["name"]}))))
                assert f"the request has '{word}', which the node knows itself" in found.sentence
            section = patients_of(tmp_path)
            assert check_dataset(section).problem != ""

    asyncio.run(test())


LEVELS: Any = {"values": [["flu", "cold"], ["fever"], ["cancer"]], "weights": ["0.1", "0.3", "1"]}
ALGORITHMS: list[dict[str, Any]] = [
    {"algorithm": name} for name in ("samarati", "incognito", "optimal", "datafly", "local-recoding", "mondrian")
] + [
    {"algorithm": "mdav", "quasi_identifiers": ["age"]},
    {"algorithm": "condensation", "quasi_identifiers": ["age"], "sensitive": [], "max_suppression": 0},
    {"algorithm": "gpkc", "model": {"k": 5, "p": 2}},
    {"algorithm": "maa-slie", "model": {"k": 5, "p": 2}, "levels": LEVELS},
    {
        "algorithm": "ppir",
        "model": {},
        "quasi_identifiers": ["age"],
        "ppir": {"ranges": {"age": 3}},
    },
    {"model": {"k": 5, "l": [{"kind": "entropy", "value": 2}], "alpha": 0.6, "H": 2, "delta": 9}, "levels": LEVELS},
    {"model": {"k": 5, "t": [{"distance": "hierarchical", "value": 0.5}], "beta": 9}},
]


@pytest.mark.slow
def test_all_algorithms_and_models_arrive_and_are_what_was_asked(tmp_path: Path) -> None:
    names = [each["algorithm"] for each in ALGORITHMS if "algorithm" in each]
    dataset = (
        DATASET.replace('["optimal", "mondrian"]', json.dumps(names))
        .replace('["l"]', '["l", "t", "p", "alpha", "H", "beta", "delta"]')
        .replace("max_releases = 3", "max_releases = 99")
        + 'disease = { builder = "grouping", groups = [{ mild = ["flu", "cold", "fever"], bad = ["cancer"] }] }\n'
        '[dataset.anonymization.levels]\nvalues = [["flu", "cold"], ["fever"], ["cancer"]]\nweights = [0.1, 0.3, 1]\n'
    )
    # A hierarchy ends in one value.
    dataset = dataset.replace('bad = ["cancer"] }]', 'bad = ["cancer"] }, { "*" = ["mild", "bad"] }]')

    async def test() -> None:
        async with running(tmp_path, dataset) as world:
            (listed,) = listing_as_data("north", await world.hub.datasets())["datasets"]
            assert listed["levels"] == LEVELS
            for keys in ALGORITHMS:
                certificate = await world.hub.fetch(world.request(**keys), tmp_path / "out")
                assert certificate.algorithm == keys.get("algorithm", "optimal")
                assert certificate.hashes.input is None
                assert certificate.replacement is None or certificate.replacement.omitted is None

    asyncio.run(test())


# -- what goes wrong under way -----------------------------------------------------------------------------------------
def stalled(folder: Path) -> None:
    """Runs that read the table wait for ever."""
    (folder / "patients.csv").unlink()
    os.mkfifo(folder / "patients.csv")


def test_who_hangs_up_ends_the_run(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            call = world.stub("hub").Anonymize(world.request())
            waiting = asyncio.ensure_future(ended(call))
            (process,) = await until(lambda: list(runs.processes))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: process.returncode is not None and not runs.processes)
            assert process.returncode == -signal.SIGKILL
            await until(lambda: not left_over(tmp_path))
            (tmp_path / "patients.csv").unlink()
            (tmp_path / "patients.csv").write_text(PATIENTS)
            await world.hub.fetch(world.request(), tmp_path / "out")

    asyncio.run(test())


def test_a_dataset_has_one_run_at_a_time_and_a_coordinator_few(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            hub = world.stub("hub")
            calls = [hub.Anonymize(world.request()) for _ in range(4)]
            waiting = [asyncio.ensure_future(ended(call)) for call in calls]
            await until(lambda: len(left_over(tmp_path)) == 4 and runs.processes)
            assert len(runs.processes) == 1
            found = await refused(ended(hub.Anonymize(world.request())))
            assert (found.code, "as many as it may" in found.sentence) == ("E403", True)
            for call in calls:
                call.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await until(lambda: not left_over(tmp_path) and not runs.processes)

    asyncio.run(test())


def test_runs_are_bounded_in_time_and_memory(tmp_path: Path) -> None:
    lines = "".join(f"p{i},n,{i % 60},{'fm'[i % 2]},{'d' * 200}{i}\n" for i in range(250_000))

    async def test() -> None:
        bounded = DATASET.replace("min_k", 'max_memory = 256\nmax_time = "30s"\nmin_k')
        async with running(tmp_path, bounded, "id,name,age,sex,disease\n" + lines) as world:
            found = await refused(ended(world.stub("hub").Anonymize(world.request())))
            assert (found.code, "memory" in found.sentence) == ("E103", True)
        (tmp_path / "north.toml").write_text((tmp_path / "north.toml").read_text().replace('"30s"', '"1s"'))
        stalled(tmp_path)
        again = World(Organisations(tmp_path, {}, world.authority))
        await again.start()
        try:
            found = await refused(ended(again.stub("hub").Anonymize(again.request())))
            assert (found.status, found.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "E600")
        finally:
            await again.stop()

    asyncio.run(test())


def test_a_node_that_stops_ends_its_runs_and_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            waiting = asyncio.ensure_future(refused(ended(world.stub("hub").Anonymize(world.request()))))
            await until(lambda: world.node.anonymization.releases.runs.processes)
            await world.node.anonymization.stop()
            found = await waiting
            assert (found.code, "is being stopped" in found.sentence) == ("E200", True)

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


def _cut(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    parts[0].data = parts[0].data[: len(parts[0].data) // 2]
    return parts


def _other_rows(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    import pyarrow as pa

    with pa.ipc.open_stream(parts[0].data) as stream:
        rows = stream.read_all()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.slice(1))
    parts[0].data = sink.getvalue()
    return parts


def _other_types(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    import pyarrow as pa

    rows = pa.table({"age": [[1, 2]], "sex": [{"of": "whom"}]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    parts[0].data = sink.getvalue()
    return parts


def _contents(at: int, data: bytes) -> Callable[[list[pb.ReleasePart]], list[pb.ReleasePart]]:
    def changed(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
        parts[at].data = data
        return parts

    return changed


def _claims(old: bytes, new: bytes) -> Callable[[list[pb.ReleasePart]], list[pb.ReleasePart]]:
    def changed(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
        assert old in parts[2].data
        parts[2].data = parts[2].data.replace(old, new)
        return parts

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_cut, "rows that are no Arrow stream"),
        (_other_rows, "does not hold what its certificate claims: SHA-256 of release.csv"),
        (_claims(b'"k": 5', b'"k": 50'), "does not hold what its certificate claims: digest"),
        (lambda parts: [parts[1], parts[0], parts[2]], "files in an order of its own"),
        (lambda parts: parts[:2], "a release that lacks a file"),
        (_other_types, "rows that are no table of single cells"),
        (_contents(1, b"PAR1"), "does not hold what its certificate claims: SHA-256 of release.parquet"),
        (_contents(2, b'{"schema": "\xff"}'), "does not hold what its certificate claims: certificate"),
        (lambda parts: [*parts, pb.ReleasePart(file=9, data=b"x")], "files in an order of its own"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.usefixtures("here")
def test_a_node_that_sends_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., list[pb.ReleasePart]], words: str
) -> None:
    honest = ReleaseService.anonymize

    async def other(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        for part in change([part async for part in honest(self, request, coordinator)]):
            yield part

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", other)
        async with running(tmp_path) as world:
            with pytest.raises(MalformedMessage) as found:
                await world.hub.fetch(world.request(), tmp_path / "out")
            assert (found.value.party, words in found.value.message) == ("north", True), found.value.message

    asyncio.run(test())
    assert written(tmp_path) == set()


def test_rules_that_cannot_be_read_name_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            for rules in (pb.AnonymizationRules(require="{"), pb.AnonymizationRules(require="{}", levels="[" * 10**5)):
                monkeypatch.setattr(ReleaseService, "rules", lambda _, __, told=rules: {"patients": told})
                with fails("E402") as found:
                    await world.hub.datasets()
                assert found.value.party == "north"

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_weaker_release_than_asked_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReleaseService.anonymize

    async def weaker(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        told = json.loads(request.configuration)
        request.configuration = json.dumps(told | {"model": {"k": 5}})
        async for part in honest(self, request, coordinator):
            yield part

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", weaker)
        async with running(tmp_path) as world:
            with fails("E402"):
                await world.hub.fetch(world.request(model={"k": 6}), tmp_path / "out")

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_connection_that_breaks_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReleaseService.anonymize

    async def stalling(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        async for part in honest(self, request, coordinator):
            yield part
            await asyncio.Event().wait()

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", stalling)
        async with running(tmp_path) as world:
            fetching = asyncio.ensure_future(world.hub.fetch(world.request(), tmp_path / "out"))
            await until(lambda: list(tmp_path.glob(".out.*/rows.arrow")))
            await world.node.stop()
            monkeypatch.setattr(world.node, "stop", lambda: asyncio.sleep(0))
            with pytest.raises(PeerError) as found:
                await fetching
            assert found.value.party == "north"

    asyncio.run(test())
    assert written(tmp_path) == set()

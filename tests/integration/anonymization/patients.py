"""A node with a table of patients, in the test's process or in its own, and those who ask it for releases."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.anonymisation.releases import ReleasingNode, request_of
from coordinator.member import load_federation
from jobs.anonymization.spec import read_spec
from jobs.audit.entry import read
from link.transports.grpc_channel import dial
from party.config import DatasetSection, PartyConfig
from party.node.logs import open_log
from party.server import Node
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub
from tests.integration.processes import Organisations

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


class NoProcess:
    """In the place of a run's process."""

    returncode = 0

    def kill(self) -> None:
        """Nothing runs."""

    async def wait(self) -> int:
        return self.returncode


async def ended(call: Any) -> list[pb.ReleasePart]:
    return [part async for part in call]


def files(parts: list[pb.ReleasePart]) -> list[int]:
    return list(dict.fromkeys(part.file for part in parts))


async def until(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(60):
        while not (value := found()):  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.02)
    return value


def stalled(folder: Path) -> None:
    """Runs that read the table wait for ever."""
    (folder / "patients.csv").unlink()
    os.mkfifo(folder / "patients.csv")

"""A running node with the frequency service, and the callers of it, inside one test."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.pseudonym import pseudonyms
from crypto.primitives.randomness import Randomness
from jobs.collections.spec import CollectionSpec
from jobs.federation import Federation
from ldp.documents import mechanism_of
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from link.pki.authority import Authority
from link.pki.identity import Identity, Role
from link.transports.grpc_channel import dial
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from protos.v1 import frequency_pb2 as pb
from protos.v1.frequency_pb2_grpc import FrequencyEstimationStub
from tests.party.files import write_federation

POLICY = "max_epsilon = 8.0"


class Caller:
    """Somebody who calls the service."""

    def __init__(self, identity: Identity, address: str) -> None:
        self.identity = identity
        self.channel = dial(identity, "north", address)
        self.stub: Any = FrequencyEstimationStub(self.channel)

    # -- coordinators
    async def create(self, spec: CollectionSpec, labels: bytes = b"") -> pb.Collection:
        """A new collection."""
        created: pb.Collection = await self.stub.Create(
            iter([pb.CreateCollectionRequest(spec=spec.canonical(), labels=labels)])
        )
        return created

    async def describe(self, name: str = "homepages") -> pb.Collection:
        """How a collection stands."""
        found: pb.Collection = await self.stub.Describe(pb.DescribeCollectionRequest(collection=name))
        return found

    async def estimate(self, name: str = "homepages", **what: Any) -> Estimated:
        """The estimates of a round."""
        call = self.stub.Estimate(pb.FrequencyRequest(collection=name, **what))
        return Estimated([part async for part in call])

    async def close(self, name: str = "homepages") -> pb.Collection:
        """Closes a collection."""
        closed: pb.Collection = await self.stub.Close(pb.CloseCollectionRequest(collection=name))
        return closed

    async def delete(self, name: str = "homepages") -> None:
        """Deletes a closed collection."""
        await self.stub.Delete(pb.DeleteCollectionRequest(collection=name))

    async def export(self, name: str = "homepages", *, states: bool = False) -> dict[str, bytes]:
        """The files of a collection."""
        files: dict[str, bytes] = {}
        async for part in self.stub.Export(pb.ExportRequest(collection=name, states=states)):
            files[part.file] = files.get(part.file, b"") + part.data
        return files

    # -- clients
    async def submit(self, *batches: pb.ReportBatch) -> list[pb.BatchReceipt]:
        """The receipts for batches on one stream."""
        call = self.stub.Submit(iter(batches))
        return [receipt async for receipt in call]


class Estimated:
    """Estimates, put together from their parts."""

    def __init__(self, parts: Sequence[pb.EstimatePart]) -> None:
        self.head, self.last = parts[0].head, [part.last for part in parts]
        self.codes = np.frombuffer(b"".join(part.codes for part in parts), "<u4")
        self.counts = np.frombuffer(b"".join(part.counts for part in parts), "<f8")
        self.variances = np.frombuffer(b"".join(part.variances for part in parts), "<f8")
        self.found = [(each.value, each.frequency, each.deviation) for part in parts for each in part.found]


@dataclass
class World:
    """A node, and whoever calls it."""

    folder: Path
    authority: Authority
    node: Node
    log: io.StringIO
    address: str
    now: Callable[[], float] | None = None
    callers: list[Caller] = field(default_factory=list)

    def caller(self, name: str, role: Role = "client") -> Caller:
        """Somebody with a good certificate."""
        self.callers.append(Caller(self.authority.issue(name, role), self.address))
        return self.callers[-1]

    @property
    def analyst(self) -> Caller:
        """The coordinator."""
        return self.caller("analyst", "coordinator")

    async def restart(self) -> None:
        """The node stops, and starts again."""
        await self.node.stop()
        self.node = Node(PartyConfig.load(self.folder / "north.toml"), open_log("north", self.log))
        set_clock(self.node, self.now)
        await self.node.start()


def set_clock(node: Node, now: Callable[[], float] | None) -> None:
    """Gives a node that has not started a clock of the test's, where there is one."""
    if now is not None:
        assert node.frequency.running is not None
        node.frequency.now = now
        for part in (node.frequency.running.collections, node.frequency.running.submissions):
            part.now = now


@asynccontextmanager
async def running(
    folder: Path,
    policy: str | None = POLICY,
    *,
    now: Callable[[], float] | None = None,
    prepare: Callable[[Authority], None] = lambda authority: None,
) -> AsyncIterator[World]:
    """A node whose `[frequency]` table holds `policy`; None: it has none. `prepare` may change its files."""
    authority = write_federation(folder, {"north": [["milk"]]})
    prepare(authority)
    if policy is not None:
        file = folder / "north.toml"
        file.write_text(file.read_text() + f"[frequency]\n{policy}\n")
    log = io.StringIO()
    node = Node(PartyConfig.load(folder / "north.toml"), open_log("north", log))
    address = Federation.load(folder / "federation.toml").addresses["north"]
    set_clock(node, now)
    world = World(folder, authority, node, log, address, now)
    try:
        await node.start()
        yield world
    finally:
        await world.node.stop()
        for caller in world.callers:
            await caller.channel.close()


def mechanism(round_: pb.Round, domain: Domain | None = None) -> Mechanism[Any]:
    """By which a round takes reports, checked as clients check it."""
    found = mechanism_of(round_.mechanism, domain)
    assert found.fingerprint == round_.fingerprint
    return found


def secrets(n: int, seed: int = 0) -> NDArray[np.uint8]:
    """Of n clients."""
    return np.frombuffer(Randomness.from_seed(seed).bytes(32 * n), np.uint8).reshape(n, 32)


def batch(
    collection: pb.Collection,
    values: Any,
    *,
    round_: int = 0,
    sequence: int = 1,
    seed: int = 0,
    domain: Domain | None = None,
    clients: NDArray[np.uint8] | None = None,
) -> pb.ReportBatch:
    """Honest reports of new clients, or of those that are given."""
    which = collection.rounds[round_]
    rng = Randomness.from_seed(seed)
    reports = mechanism(which, domain).privatise(values, rng)
    own = secrets(len(values), seed) if clients is None else clients
    return pb.ReportBatch(
        sequence=sequence,
        collection=collection.name,
        round=which.number,
        pseudonyms=pseudonyms(own, collection.id, which.period).tobytes(),
        reports=reports.to_bytes(),
    )

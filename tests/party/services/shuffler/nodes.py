"""Running shufflers, the senders of reports and the collector, inside one test."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import OVERHEAD, new_private_key, public_key_of
from jobs.federation import Federation
from ldp.shuffling.collecting import Collected, Collecting
from ldp.shuffling.onion import wrap
from ldp.shuffling.route import Route
from ldp.shuffling.statement import read_key
from link.pki.authority import Authority
from link.pki.identity import Identity, Role
from link.transports.grpc_channel import dial
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from protos.v1 import shuffle_pb2 as pb
from protos.v1.shuffle_pb2_grpc import ShufflerStub
from tests.party.files import write_federation

SHUFFLERS = ("north", "south")
POLICY = 'min_batch = 2\ngateways = ["client/fleet"]'
SIZE = 8
INNERMOST = SIZE + OVERHEAD
COLLECTOR_KEY = new_private_key(Randomness.from_seed(b"collector"))


def route_for(shufflers: Sequence[str] = SHUFFLERS, **changes: Any) -> Route:
    """A route whose batches leave when the analyst says so; `fleet` is a gateway."""
    fields: dict[str, Any] = {
        "name": "weekly",
        "id": bytes(range(16)),
        "shufflers": tuple(shufflers),
        "collector": "coordinator/analyst",
        "collector_key": public_key_of(COLLECTOR_KEY),
        "size": SIZE,
        "minimum": 5,
        "gateways": (("client/fleet", 1_000_000),),
    }
    return Route(**{**fields, **changes})


def numbered(numbers: Iterable[int]) -> NDArray[np.uint8]:
    """Reports that say their number, shape (n, 8)."""
    return np.fromiter(numbers, "<u8").view(np.uint8).reshape(-1, 8)


def numbers(reports: NDArray[np.uint8]) -> list[int]:
    """What they say, in their order."""
    return np.ascontiguousarray(reports).view("<u8").reshape(-1).tolist()


class Caller:
    """Somebody who calls one shuffler."""

    def __init__(self, identity: Identity, node: str, address: str) -> None:
        self.identity, self.channel = identity, dial(identity, node, address)
        self.stub: Any = ShufflerStub(self.channel)

    async def create(self, route: Route) -> pb.ShuffleRoute:
        created: pb.ShuffleRoute = await self.stub.Create(pb.CreateRouteRequest(document=route.document()))
        return created

    async def describe(self, name: str = "weekly") -> pb.ShuffleRoute:
        found: pb.ShuffleRoute = await self.stub.Describe(pb.DescribeRouteRequest(route=name))
        return found

    async def flush(self, name: str = "weekly") -> pb.ShuffleRoute:
        found: pb.ShuffleRoute = await self.stub.Flush(pb.FlushRequest(route=name))
        return found

    async def retire(self, name: str = "weekly") -> pb.ShuffleRoute:
        found: pb.ShuffleRoute = await self.stub.Retire(pb.RetireRouteRequest(route=name))
        return found

    async def submit(self, reports: Iterable[Any], name: str = "weekly", *, step: int = 10_000) -> list[int]:
        """The fate of each report."""
        sealed = [bytes(report) for report in reports]
        messages = [
            pb.SealedReports(sequence=start, route=name, reports=sealed[start : start + step])
            for start in range(0, len(sealed), step)
        ]
        fates: list[int] = []
        receipts = [receipt async for receipt in self.stub.Submit(iter(messages))]
        for message, receipt in zip(messages, receipts, strict=True):
            assert receipt.sequence == message.sequence
            fates += receipt.fates or [receipt.fate] * len(message.reports)
            assert receipt.taken == sum(fate == pb.TAKEN for fate in fates[message.sequence :])
        return fates

    async def collect(self, after: int = 0, name: str = "weekly") -> list[tuple[pb.BatchHead, NDArray[np.uint8]]]:
        """The batches that have passed all shufflers."""
        batches: list[tuple[pb.BatchHead, bytes]] = []
        async for part in self.stub.Collect(pb.CollectRequest(route=name, after=after)):
            if part.HasField("head"):
                batches.append((part.head, b""))
            batches[-1] = (batches[-1][0], batches[-1][1] + part.reports)
        return [(head, np.frombuffer(data, np.uint8).reshape(-1, INNERMOST)) for head, data in batches]

    async def forward(self, *parts: pb.BatchPart) -> list[pb.ForwardReceipt]:
        """The receipt for a batch."""
        return [receipt async for receipt in self.stub.Forward(iter(parts))]


@dataclass
class World:
    """Nodes, and whoever calls them."""

    folder: Path
    authority: Authority
    nodes: dict[str, Node]
    logs: dict[str, io.StringIO]
    addresses: dict[str, str]
    callers: list[Caller] = field(default_factory=list)

    def caller(self, name: str, role: Role = "client", node: str = "north") -> Caller:
        """Somebody with a good certificate."""
        self.callers.append(Caller(self.authority.issue(name, role), node, self.addresses[node]))
        return self.callers[-1]

    def analyst(self, node: str = "north") -> Caller:
        """The coordinator, who is the collector too."""
        return self.caller("analyst", "coordinator", node)

    async def create(self, route: Route) -> list[bytes]:
        """Creates a route at all its shufflers; their public keys, checked."""
        keys = []
        for hop, name in enumerate(route.shufflers):
            created = await self.analyst(name).create(route)
            keys.append(read_key(created.key, route, hop, self.authority.issue("reader", "client").trust))
        return keys

    async def sealed(self, route: Route, reports: Iterable[int]) -> NDArray[np.uint8]:
        """Reports for a route that there is."""
        return wrap(numbered(reports), route, await self.create(route))

    async def batches(self, route: Route, number: int) -> list[tuple[pb.BatchHead, NDArray[np.uint8]]]:
        """Waits until so many batches have passed all shufflers."""
        analyst = self.analyst(route.shufflers[-1])
        while True:
            if len(found := await analyst.collect(name=route.name)) >= number:
                return found
            await asyncio.sleep(0.05)

    async def opened(self, route: Route, number: int) -> list[Collected]:
        """Waits for batches, and opens them."""
        collecting = Collecting(route, COLLECTOR_KEY, self.authority.issue("reader", "client").trust)
        batches = await self.batches(route, number)
        return [collecting.open(head.batch, reports, head.statements) for head, reports in batches]

    async def restart(self, name: str) -> None:
        """A node stops, and starts again."""
        await self.nodes[name].stop()
        await self.start(name)

    async def start(self, name: str) -> None:
        """A node starts again."""
        self.nodes[name] = Node(PartyConfig.load(self.folder / f"{name}.toml"), open_log(name, self.logs[name]))
        await self.nodes[name].start()


@asynccontextmanager
async def running(
    folder: Path,
    names: Sequence[str] = SHUFFLERS,
    *,
    policy: str | None = POLICY,
    prepare: Callable[[Authority], None] = lambda authority: None,
) -> AsyncIterator[World]:
    """Nodes whose `[shuffler]` tables hold `policy`; None: they have none. `prepare` may change their files."""
    authority = write_federation(folder, {name: [["milk"]] for name in names})
    prepare(authority)
    for name in names:
        file = folder / f"{name}.toml"
        if policy is not None:
            file.write_text(file.read_text() + f"[shuffler]\n{policy}\n")
    addresses = Federation.load(folder / "federation.toml").addresses
    world = World(folder, authority, {}, {name: io.StringIO() for name in names}, dict(addresses))
    try:
        for name in names:
            await world.start(name)
        yield world
    finally:
        for node in world.nodes.values():
            await node.stop()
        for caller in world.callers:
            await caller.channel.close()

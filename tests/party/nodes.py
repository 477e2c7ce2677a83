"""A federation of running nodes inside one test, and a coordinator that calls them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from jobs.consent import approve, propose
from jobs.federation import Federation
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.transports.grpc_channel import dial
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlStub
from tests.party.files import PARTIES, write_federation

Rows = list[list[str]]

BEREFT_S = 0.2


def random_rows(seed: int, number: int = 60) -> Rows:
    """Baskets of up to eight items, the first ones common and the last ones rare."""
    random = np.random.default_rng(seed)
    return [[f"item{i}" for i in range(8) if random.random() < 0.9 / (1 + i / 3)] or ["item0"] for _ in range(number)]


DATA = {name: random_rows(seed) for seed, name in enumerate(PARTIES)}


def weekly(*, itemsets: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    """A job for all parties."""
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": list(DATA), "dataset": "baskets", **changes},
        "itemsets": {"min_support": "0.2", **(itemsets or {})},
    }
    return job_of(contents, "job.toml", Path())


def brief(*, itemsets: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    """A job for all parties of few steps, for tests of what happens around them: which of the items are frequent."""
    few = {"universe": "items", "catalogue": [f"item{i}" for i in range(8)], "max_length": 1, "disclose": "supports"}
    return weekly(itemsets={**few, **(itemsets or {})}, **changes)


@dataclass
class Refusal:
    """A refused call, as a client sees it."""

    status: grpc.StatusCode
    code: str
    party: str
    sentence: str


async def refused(call: Awaitable[Any]) -> Refusal:
    """Awaits a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    metadata = dict(caught.value.trailing_metadata() or ())
    code, party = (str(metadata.get(key, "")) for key in ("comine-code", "comine-party"))
    return Refusal(caught.value.code(), code, party, str(caught.value.details()))


class Client:
    """What a coordinator does with one node."""

    def __init__(self, identity: Identity, name: str, address: str) -> None:
        self.identity, self.name = identity, name
        self.channel = dial(identity, name, address)
        self.stub = ControlStub(self.channel)

    def signed(self, spec: JobSpec, nonce: bytes = bytes(16), expiry: int = 0) -> control.SignedProposal:
        """The proposal of a job."""
        return propose(spec, self.identity, nonce=nonce, expiry=expiry or int(time.time()) + 600)

    async def decide(
        self, spec: JobSpec, nonce: bytes = bytes(16), expiry: int = 0
    ) -> tuple[bytes, control.SignedApproval | None]:
        """Proposes a job; its id, and the approval where it came at once."""
        decision = await self.stub.Propose(self.signed(spec, nonce, expiry))
        return decision.job_id, decision.approval if decision.HasField("approval") else None

    async def propose(self, spec: JobSpec, nonce: bytes = bytes(16), expiry: int = 0) -> bytes:
        return (await self.decide(spec, nonce, expiry))[0]

    async def start(self, job_id: bytes, approvals: Sequence[control.SignedApproval], attempt: int = 1) -> None:
        await self.stub.Start(control.StartRequest(job_id=job_id, attempt=attempt, approvals=approvals))

    async def watch(self, job_id: bytes) -> list[control.JobEvent]:
        return [event async for event in self.stub.Watch(control.WatchRequest(job_id=job_id))]

    async def result(self, job_id: bytes) -> tuple[control.ResultHeader, bytes]:
        first, *rest = [part async for part in self.stub.Result(control.ResultRequest(job_id=job_id))]
        return first.header, b"".join(part.table for part in rest)

    async def cancel(self, job_id: bytes, reason: str = "") -> None:
        await self.stub.Cancel(control.CancelRequest(job_id=job_id, reason=reason))


def audited(folder: Path, name: str) -> list[dict[str, Any]]:
    """The entries of a node's audit log."""
    lines = (folder / "state" / name / "audit.log").read_text().splitlines()
    return [json.loads(line) for line in lines]


@dataclass
class Nodes:
    """Running nodes and a coordinator."""

    folder: Path
    authority: Authority
    nodes: dict[str, Node]
    logs: dict[str, io.StringIO]
    clients: dict[str, Client]
    addresses: dict[str, str]
    others: list[Client] = field(default_factory=list)

    def client(self, identity: Identity, name: str = "north") -> Client:
        """Another caller."""
        self.others.append(Client(identity, name, self.addresses[name]))
        return self.others[-1]

    async def all(self, action: Callable[[Client], Awaitable[Any]]) -> list[Any]:
        """Does the same with every node at once."""
        return list(await asyncio.gather(*(action(client) for client in self.clients.values())))

    async def agree(self, spec: JobSpec, expiry: int = 0) -> tuple[bytes, list[control.SignedApproval]]:
        """Proposes a job everywhere; its id and all approvals, which no person is asked for."""
        nonce, expiry = os.urandom(16), expiry or int(time.time()) + 600
        decisions = await self.all(lambda client: client.decide(spec, nonce, expiry))
        (job_id,) = {decided for decided, _ in decisions}
        return bytes(job_id), [approval for _, approval in decisions]

    async def begin(self, spec: JobSpec) -> bytes:
        """Proposes and starts a job everywhere."""
        job_id, approvals = await self.agree(spec)
        await self.all(lambda client: client.start(job_id, approvals))
        return job_id

    def forged(self, job_id: bytes, spec: JobSpec, coordinator: str = "analyst") -> list[control.SignedApproval]:
        """The approvals of all parties of a job, signed with their own keys whether or not their nodes would."""
        return [
            approve(job_id, coordinator, self.authority.issue(name), decided=1, by="policy")
            for name in spec.job.parties
        ]

    async def restart(self, name: str) -> Node:
        """A new node in the place of one that was stopped or has crashed."""
        folder = self.folder
        self.nodes[name] = Node(PartyConfig.load(folder / f"{name}.toml"), open_log(name, self.logs[name]))
        await self.nodes[name].start()
        return self.nodes[name]

    async def crash(self, name: str) -> None:
        """Ends a node as the death of its process would; the others lose it soon in the jobs that they have begun."""
        await crash(self.nodes[name])
        for job_id in {job_id for node in self.nodes.values() for job_id in node.link.jobs}:
            self.bereave(name, job_id)

    def bereave(self, name: str, job_id: bytes) -> bool:
        """Lets the others soon lose a party that has died, for which they would wait for long; whether all can."""
        others = [node for other, node in self.nodes.items() if other != name]
        jobs = [node.link.jobs[job_id] for node in others if job_id in node.link.jobs]
        for conversation in (job.conversations[name] for job in jobs if job.conversations):
            conversation.be_patient(BEREFT_S)
        return len(jobs) == len(others)

    async def ends(self, job_id: bytes) -> dict[str, control.JobEvent]:
        """Each party's last event of a job."""
        events = await self.all(lambda client: client.watch(job_id))
        return {name: event[-1] for name, event in zip(self.clients, events, strict=True)}

    async def run(self, spec: JobSpec) -> tuple[bytes, dict[str, control.JobEvent]]:
        """Runs a job to its end; its id and each party's last event."""
        job_id = await self.begin(spec)
        return job_id, await self.ends(job_id)


@asynccontextmanager
async def running(
    folder: Path,
    *,
    policy: str = "",
    party: str = "",
    data: Mapping[str, Rows] = DATA,
    prepare: Callable[[Authority], None] = lambda authority: None,
    patience_s: float = 60.0,
) -> AsyncIterator[Nodes]:
    """A node for each party of `data`, stopped at the end; `prepare` may change the files before they are read.

    The nodes are patient, as a busy machine needs it; see `bereave` for those whose peer dies.
    """
    authority = write_federation(folder, dict(data), policy=policy, party=party)
    prepare(authority)
    addresses = Federation.load(folder / "federation.toml").addresses
    coordinator = authority.issue("analyst", "coordinator")
    logs = {name: io.StringIO() for name in data}
    nodes = {
        name: Node(PartyConfig.load(folder / f"{name}.toml"), open_log(name, logs[name]), patience_s=patience_s)
        for name in data
    }
    clients = {name: Client(coordinator, name, addresses[name]) for name in data}
    federation = Nodes(folder, authority, nodes, logs, clients, addresses)
    try:
        for node in nodes.values():
            await node.start()
        yield federation
    finally:
        await asyncio.gather(*(node.stop() for node in federation.nodes.values()))
        for client in (*clients.values(), *federation.others):
            await client.channel.close()


def hold(node: Node) -> asyncio.Event:
    """Keeps a node from reading its data until the event is set; returns the event."""
    release, load = asyncio.Event(), node.sources.load

    async def held(name: str, **how: Any) -> Any:
        await release.wait()
        return await load(name, **how)

    node.sources.load = held  # type: ignore[method-assign]
    return release


def expire(node: Node, job_id: bytes) -> None:
    """Lets the time of an open proposal be over at a node."""
    job = node.host.jobs.get(job_id)
    assert job is not None
    node.host.keep_open(job, 0.0)


async def crash(node: Node) -> None:
    """Ends a node as the death of its process would."""

    node.audit.close()
    node.store.close()
    node.ledger.close()
    node.unlock()
    for transport in list(node.link.jobs.values()):
        await transport.crash()
    assert node.server is not None
    await node.server.stop(None)
    await node.host.transitions.close()

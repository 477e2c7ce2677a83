"""Nodes with real certificates on real ports: in one event loop, and as processes of their own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import party.session_host
from crypto.primitives.randomness import Randomness
from jobs.federation import Federation
from jobs.release import verify
from jobs.result import digest, unpack
from jobs.run import PartyRun
from jobs.spec import JobSpec
from link.authority import Authority
from link.errors import ConfigurationError, IdentityError, ResourceError
from link.grpc_transport import dial
from link.identity import Identity
from mining.reference.pooled import frequent_itemsets
from mining.transactions import Transactions
from party.config import PartyConfig
from party.logs import open_log
from party.server import Node
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlStub
from tests.unit.party.files import party_toml, write_federation

Rows = list[list[str]]


def random_rows(seed: int, number: int = 60) -> Rows:
    random = np.random.default_rng(seed)
    return [[f"item{i}" for i in range(8) if random.random() < 0.9 / (1 + i / 3)] or ["item0"] for _ in range(number)]


DATA = {name: random_rows(seed) for seed, name in enumerate(("north", "south", "east"))}


def job(**changes: Any) -> JobSpec:
    itemsets = {"min_support": "0.2", **changes.pop("itemsets", {})}
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": list(DATA), "dataset": "baskets", **changes},
        "itemsets": itemsets,
    }
    return JobSpec.of(contents, "job.toml", Path())


@dataclass
class Failure:
    """A refused call, as a client sees it."""

    status: grpc.StatusCode
    code: str
    party: str
    sentence: str


async def refused(call: Awaitable[Any]) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    metadata = dict(caught.value.trailing_metadata() or ())
    return Failure(
        caught.value.code(),
        str(metadata.get("comine-code", "")),
        str(metadata.get("comine-party", "")),
        str(caught.value.details()),
    )


class Client:
    """What a coordinator does with one node."""

    def __init__(self, identity: Identity, name: str, address: str) -> None:
        self.name = name
        self.channel = dial(identity, name, address)
        self.stub = ControlStub(self.channel)

    async def propose(self, spec: JobSpec, nonce: bytes = bytes(16), expiry: int = 0) -> bytes:
        proposal = control.Proposal(spec=spec.canonical(), nonce=nonce, expiry=expiry or int(time.time()) + 600)
        return (await self.stub.Propose(proposal)).job_id

    async def start(self, job_id: bytes, attempt: int = 1) -> None:
        await self.stub.Start(control.StartRequest(job_id=job_id, attempt=attempt))

    async def watch(self, job_id: bytes) -> list[control.JobEvent]:
        return [event async for event in self.stub.Watch(control.WatchRequest(job_id=job_id))]

    async def result(self, job_id: bytes) -> tuple[control.ResultHeader, bytes]:
        first, *rest = [part async for part in self.stub.Result(control.ResultRequest(job_id=job_id))]
        return first.header, b"".join(part.table for part in rest)

    async def cancel(self, job_id: bytes, reason: str = "") -> None:
        await self.stub.Cancel(control.CancelRequest(job_id=job_id, reason=reason))


@dataclass
class World:
    """Running nodes and a coordinator."""

    folder: Path
    authority: Authority
    nodes: dict[str, Node]
    logs: dict[str, io.StringIO]
    clients: dict[str, Client]
    addresses: dict[str, str]
    others: list[Client] = field(default_factory=list)

    def client(self, identity: Identity, name: str = "north") -> Client:
        self.others.append(Client(identity, name, self.addresses[name]))
        return self.others[-1]

    async def all(self, action: Callable[[Client], Awaitable[Any]]) -> list[Any]:
        return list(await asyncio.gather(*(action(client) for client in self.clients.values())))

    async def run(self, spec: JobSpec) -> tuple[bytes, dict[str, control.JobEvent]]:
        """Proposes, starts and watches a job; its id and last events by party."""
        expiry = int(time.time()) + 600
        (job_id,) = set(await self.all(lambda client: client.propose(spec, os.urandom(0) + bytes(16), expiry)))
        await self.all(lambda client: client.start(job_id))
        events = await self.all(lambda client: client.watch(job_id))
        return job_id, {name: event[-1] for name, event in zip(self.clients, events, strict=True)}


@asynccontextmanager
async def world(folder: Path, **options: str) -> AsyncIterator[World]:
    authority = write_federation(folder, DATA, **options)
    addresses = Federation.load(folder / "federation.toml").addresses
    coordinator = authority.issue("analyst", "coordinator")
    logs = {name: io.StringIO() for name in DATA}
    nodes = {
        name: Node(PartyConfig.load(folder / f"{name}.toml"), open_log(name, logs[name]), patience_s=1.0)
        for name in DATA
    }
    clients = {name: Client(coordinator, name, addresses[name]) for name in DATA}
    running = World(folder, authority, nodes, logs, clients, addresses)
    try:
        for node in nodes.values():
            await node.start()
        yield running
    finally:
        await asyncio.gather(*(node.stop() for node in nodes.values()))
        for client in (*clients.values(), *running.others):
            await client.channel.close()


def oracle(spec: JobSpec) -> Any:
    pooled = Transactions.from_rows(row for rows in DATA.values() for row in rows)
    return frequent_itemsets(pooled, 36, max_length=spec.itemsets.max_length)


@dataclass
class Stuck:
    """Stands for a job that computes until it is ended."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)


@pytest.mark.parametrize("recipients", [["coordinator"], ["all"], ["south"]])
def test_a_job_gives_the_pooled_result_to_its_recipients_alone(tmp_path: Path, recipients: list[str]) -> None:
    spec = job(recipients=recipients)

    async def test() -> None:
        async with world(tmp_path) as nodes:
            job_id, ends = await nodes.run(spec)
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
            found = {}
            for name, client in nodes.clients.items():
                header, table = await client.result(job_id)
                release = verify(header, ca_pem=nodes.authority.certificate_pem, party=name, job_id=job_id)
                assert release.n_rows == 180
                assert set(release.receipts_from) == set(DATA) - {name}
                assert bool(table) == spec.to_coordinator
                assert bool(release.result_digest) == (name in spec.learners)
                assert ends[name].bytes_sent == release.bytes_sent > 0
                if table:
                    assert digest(table) == release.result_digest
                    found[name] = dict(unpack(table))
                folder = tmp_path / "state" / name / "results" / job_id.hex()
                assert (folder / "itemsets.csv").is_file() == (name in recipients or "all" in recipients)
            expected = {tuple(sorted(items)): count for items, count in oracle(spec)}
            assert all({tuple(sorted(items)): n for items, n in got.items()} == expected for got in found.values())

    asyncio.run(test())

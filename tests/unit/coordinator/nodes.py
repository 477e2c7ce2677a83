"""Nodes that play a script: the control service over real TLS, with answers that a test decides."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from crypto.params import STANDARD_128
from jobs.release import sign
from jobs.result import digest, pack
from jobs.spec import JobSpec
from link.authority import Authority
from link.errors import ComineError
from link.grpc_channel import SERVER_OPTIONS, server_credentials
from link.identity import Identity
from link.version import WIRE_VERSION
from mining.itemsets import Itemsets
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlServicer, add_ControlServicer_to_server

TABLE = pack(Itemsets(("bread", "milk"), [(np.array([[0], [1]], np.int32), np.array([5, 4]))], 9))
SPEC = JobSpec.of(
    {
        "job": {"name": "weekly", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"},
        "itemsets": {"min_support": 2},
    },
    "the test",
    Path(),
)


@dataclass
class Script(ControlServicer):
    """One node. A test overrides what it wants to go wrong.

    Attributes:
        identity: Who answers.
        refuse: Errors by method.
        events: What a watcher is told.
        release: Changes the release before it is signed.
        table: What is sent as the result.
        clock: Unix seconds, as the node believes.
        hold: Whether the job runs until it is cancelled.
        calls: Methods that were called.
    """

    identity: Identity
    refuse: dict[str, ComineError] = field(default_factory=dict)
    events: list[control.JobEvent] = field(default_factory=lambda: [control.JobEvent(state=control.SUCCEEDED)])
    release: Callable[[control.Release], None] = lambda release: None
    signer: Identity | None = None
    table: bytes = TABLE
    wire: str = WIRE_VERSION
    software: str = "1.0"
    clock: Callable[[], float] = time.time
    hold: bool = False
    calls: list[str] = field(default_factory=list)
    watched: asyncio.Event = field(default_factory=asyncio.Event)
    job_id: bytes = b""

    async def _note(self, method: str, context: Any) -> None:
        self.calls.append(method)
        if method in self.refuse:
            error = self.refuse[method]
            metadata = (("comine-code", error.code), ("comine-party", error.party or self.identity.name))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, error.message, metadata)

    async def Describe(self, request: Any, context: Any) -> control.Description:  # noqa: N802
        await self._note("Describe", context)
        return control.Description(
            name=self.identity.name,
            software=self.software,
            wire=self.wire,
            suite=STANDARD_128.suite,
            now=int(self.clock()),
        )

    async def Propose(self, request: Any, context: Any) -> control.Decision:  # noqa: N802
        await self._note("Propose", context)
        self.job_id = JobSpec.from_canonical(request.spec).job_id(request.nonce, request.expiry)
        return control.Decision(job_id=self.job_id)

    async def Start(self, request: Any, context: Any) -> control.Started:  # noqa: N802
        await self._note("Start", context)
        return control.Started()

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[control.JobEvent]:  # noqa: N802
        await self._note("Watch", context)
        self.watched.set()
        yield control.JobEvent(state=control.RUNNING, step="sum", done=1, total=2, bytes_sent=3)
        if self.hold:
            await asyncio.Event().wait()
        for event in self.events:
            yield event

    async def Result(self, request: Any, context: Any) -> AsyncIterator[control.ResultPart]:  # noqa: N802
        await self._note("Result", context)
        release = control.Release(
            job_id=self.job_id,
            session=bytes(32),
            party=self.identity.name,
            result_digest=digest(TABLE),
            n_rows=9,
            receipts_from=["peer"],
        )
        self.release(release)
        yield control.ResultPart(header=sign(release, self.signer or self.identity))
        half = len(self.table) // 2
        yield control.ResultPart(table=self.table[:half])
        yield control.ResultPart(table=self.table[half:])

    async def Cancel(self, request: Any, context: Any) -> control.Cancelled:  # noqa: N802
        await self._note("Cancel", context)
        return control.Cancelled()


@dataclass
class World:
    """Scripted nodes that listen, and who may call them."""

    authority: Authority
    coordinator: Identity
    nodes: dict[str, Script]
    addresses: dict[str, str] = field(default_factory=dict)
    servers: dict[str, grpc.aio.Server] = field(default_factory=dict)


@asynccontextmanager
async def world(**changes: dict[str, Any]) -> AsyncIterator[World]:
    """The nodes `north` and `south`; `changes` are attributes of a node's script, by name."""
    authority = Authority.create()
    nodes = {name: Script(authority.issue(name), **changes.get(name, {})) for name in ("north", "south")}
    made = World(authority, authority.issue("hub", "coordinator"), nodes)
    for name, node in nodes.items():
        server = made.servers[name] = grpc.aio.server(options=SERVER_OPTIONS)
        add_ControlServicer_to_server(node, server)
        watch = health.HealthServicer()
        await watch.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(watch, server)
        port = server.add_secure_port("127.0.0.1:0", server_credentials(node.identity))
        made.addresses[name] = f"127.0.0.1:{port}"
        await server.start()
    try:
        yield made
    finally:
        for server in made.servers.values():
            await server.stop(0)

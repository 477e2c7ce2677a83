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
from jobs.consent import approve, read_proposal
from jobs.description import sign as sign_description
from jobs.kinds.packed_itemsets import digest, pack
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.results.release import sign
from link.errors import ComineError, PolicyDenied, UnexpectedMessage
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.transports.grpc_channel import SERVER_OPTIONS, server_credentials
from link.transports.serving import Serving
from link.version import WIRE_VERSION
from mining.itemsets import Itemsets
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlServicer, add_ControlServicer_to_server

TABLE = pack(Itemsets(("bread", "milk"), [(np.array([[0], [1]], np.int32), np.array([5, 4]))], 9))
SPEC = job_of(
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
        revocations: Number of the list of revoked certificates that it applies.
        hold: Whether the job runs until `go` is set.
        manual: Whether a person has to decide, which `approve` and `deny` do.
        approves: The id of the job that an approval names, where it is not the right one.
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
    revocations: int = 0
    hold: bool = False
    manual: bool = False
    approves: bytes | None = None
    calls: list[str] = field(default_factory=list)
    watched: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    denied: ComineError | None = None
    job_id: bytes = b""
    approval: control.SignedApproval | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def approve(self) -> None:
        """The person at this node says yes."""
        self.approval = approve(self.approves or self.job_id, "hub", self.identity, decided=int(self.clock()), by="ann")
        self.decided.set()

    def deny(self, why: str) -> None:
        """The person at this node says no."""
        self.denied = PolicyDenied(why, party=self.identity.name)
        self.decided.set()

    async def _note(self, method: str, context: Any) -> None:
        self.calls.append(method)
        if method in self.refuse:
            error = self.refuse[method]
            metadata = (("comine-code", error.code), ("comine-party", error.party or self.identity.name))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, error.message, metadata)

    async def Describe(self, request: Any, context: Any) -> control.SignedDescription:  # noqa: N802
        await self._note("Describe", context)
        description = control.Description(
            name=self.identity.name,
            software=self.software,
            wire=self.wire,
            suite=STANDARD_128.suite,
            now=int(self.clock()),
            revocations=self.revocations,
        )
        return sign_description(description, request.challenge, self.identity)

    async def Propose(self, request: Any, context: Any) -> control.Decision:  # noqa: N802
        await self._note("Propose", context)
        proposal = read_proposal(request, self.identity.trust, "hub")
        self.job_id = job_from_canonical(proposal.spec).job_id(proposal.nonce, proposal.expiry)
        if not self.manual:
            self.approve()
        return control.Decision(job_id=self.job_id, approval=self.approval)

    async def Start(self, request: Any, context: Any) -> control.Started:  # noqa: N802
        await self._note("Start", context)
        self.begun.set()
        return control.Started()

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[control.JobEvent]:  # noqa: N802
        await self._note("Watch", context)
        self.watched.set()
        if request.job_id != self.job_id:
            error = UnexpectedMessage(f"{self.identity.name} has no such job", party=self.identity.name)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, error.message, (("comine-code", error.code),))
        if not self.begun.is_set():
            if self.approval is None:
                yield control.JobEvent(state=control.AWAITING_APPROVAL)
            await self.decided.wait()
            if self.denied is not None:
                yield control.JobEvent(
                    state=control.DENIED,
                    error_code=self.denied.code,
                    error_message=self.denied.message,
                    error_party=self.identity.name,
                )
                return
            yield control.JobEvent(state=control.APPROVED, approval=self.approval)
            await self.begun.wait()
        yield control.JobEvent(state=control.RUNNING, step="sum", done=1, total=2, bytes_sent=3)
        if self.hold:
            await self.go.wait()
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
    servers: dict[str, Serving] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop | None = None

    async def start(self, name: str) -> None:
        """Makes a node listen, again at the address that it had."""
        node = self.nodes[name]
        server = grpc.aio.server(options=SERVER_OPTIONS)
        add_ControlServicer_to_server(node, server)
        watch = health.HealthServicer()
        await watch.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(watch, server)
        wanted = self.addresses.get(name, "127.0.0.1:0")
        port = server.add_secure_port(wanted, server_credentials(node.identity))
        self.addresses[name] = f"127.0.0.1:{port}"
        self.servers[name] = Serving(server)
        await self.servers[name].start()

    async def stop(self, name: str) -> None:
        """Ends a node as the death of its process would."""
        await self.servers[name].stop(0)


@asynccontextmanager
async def world(**changes: dict[str, Any]) -> AsyncIterator[World]:
    """The nodes `north` and `south`; `changes` are attributes of a node's script, by name."""
    authority = Authority.create()
    nodes = {name: Script(authority.issue(name), **changes.get(name, {})) for name in ("north", "south")}
    made = World(authority, authority.issue("hub", "coordinator"), nodes)
    made.loop = asyncio.get_running_loop()
    try:
        for name in nodes:
            await made.start(name)
        yield made
    finally:
        for server in made.servers.values():
            await server.stop(0)

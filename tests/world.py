"""Runs a joint computation of several parties inside one test."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import grpc

from crypto.primitives.randomness import Randomness
from link.core import MAX_BUFFERED_BYTES, Terms, Transport
from link.disclosure import Declared
from link.executor import Executor
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.session import Session
from link.transports.grpc_channel import SERVER_OPTIONS, server_credentials
from link.transports.grpc_transport import NodeLink
from link.transports.memory import Hub
from link.transports.serving import Serving
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor

T = TypeVar("T")

Role = Callable[[Session], Awaitable[T]]
Observer = Callable[[Frame], None]
SUITE = "test-suite"
NAMES = ("north", "south", "east", "west", "centre", "isle", "coast")


def terms(parties: Sequence[str], seed: int = 0, attempt: int = 1) -> Terms:
    """The terms of a test job; equal arguments give equal terms."""
    job_id = hashlib.sha256(b"job %d" % seed).digest()
    return Terms(job_id, attempt, hashlib.sha256(b"spec").digest(), tuple(parties), SUITE)


def below(lane: str, frames: list[Frame] | None) -> Observer | None:
    """Keeps the frames of a lane and of all below it; without a list nobody looks."""
    if frames is None:
        return None

    def observe(frame: Frame) -> None:
        if frame.lane.startswith(lane):
            frames.append(frame)

    return observe


def run_parties(
    parties: Sequence[str],
    role: Role[T] | Mapping[str, Role[T]],
    *,
    declared: Iterable[Declared] = (),
    seed: int = 0,
    observe: Observer | None = None,
    deadline_s: float = 120,
    ahead_bytes: Mapping[str, int] | None = None,
    transport: Literal["memory", "grpc"] = "memory",
    executor: Executor | None = None,
    attempt: int = 1,
) -> dict[str, T]:
    """Runs one coroutine per party to its end and returns the results by party.

    Args:
        parties: Names in the order of the job.
        role: What each party does with its session; one for all, or one by name.
        declared: The labels that may be opened, as in the job's statement.
        seed: Repeats all random draws.
        observe: Told of every frame before it is delivered (memory only).
        deadline_s: Deadline of the sessions.
        ahead_bytes: By party, the most memory that what one peer has sent ahead may take, if not as usual.
        transport: "memory", or "grpc" for real streams under mutual TLS on the loopback.
        executor: Does the local work; this thread, if absent.
        attempt: Which of the job this is.

    Raises:
        BaseException: The first error that any party met; the others are cancelled.
    """
    declared = tuple(declared)
    agreed = terms(parties, seed, attempt)
    executor = executor or InlineExecutor()
    source = Randomness.from_seed(seed)
    failures: list[BaseException] = []

    async def run(name: str, carrier: Transport) -> T:
        try:
            session = await Session.establish(
                agreed,
                name,
                carrier,
                random=source.derive(name),
                executor=executor,
                declared=declared,
                deadline_s=deadline_s,
                ahead_bytes=(ahead_bytes or {}).get(name, MAX_BUFFERED_BYTES),
            )
            return await (role[name] if isinstance(role, Mapping) else role)(session)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failures.append(error)
            raise

    async def main() -> dict[str, T]:
        async with transports(parties, transport, agreed.job_id, observe) as carriers:
            tasks = {name: asyncio.create_task(run(name, carriers[name])) for name in parties}
            try:
                await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for task in tasks.values():
                    task.cancel()
                await asyncio.gather(*tasks.values(), return_exceptions=True)
            if failures:
                raise failures[0]
            return {name: task.result() for name, task in tasks.items()}

    try:
        return asyncio.run(main())
    finally:
        executor.close()


@asynccontextmanager
async def transports(
    parties: Sequence[str],
    kind: Literal["memory", "grpc"],
    job_id: bytes,
    observe: Observer | None = None,
    *,
    patience_s: float = 20,
) -> AsyncIterator[dict[str, Transport]]:
    """One transport per party, joined for one job and closed at the end."""
    if kind == "memory":
        hub = Hub(observe) if observe is not None else Hub()
        yield {name: hub.endpoint(name) for name in parties}
        return
    authority = Authority.create()
    async with nodes({name: authority.issue(name) for name in parties}, patience_s=patience_s) as links:
        opened: dict[str, Transport] = {name: links[name].open(job_id, parties) for name in parties}
        try:
            yield opened
        finally:
            await asyncio.gather(*(transport.close() for transport in opened.values()))


@asynccontextmanager
async def nodes(identities: Mapping[str, Identity], *, patience_s: float = 20) -> AsyncIterator[dict[str, NodeLink]]:
    """A gRPC server and a link per party, which know each other's addresses on the loopback.

    Args:
        identities: By the name under which the others expect to find the node.
        patience_s: As in `NodeLink`.
    """
    servers: dict[str, Serving] = {}
    links = {name: NodeLink(identity, {}, patience_s=patience_s) for name, identity in identities.items()}
    addresses: dict[str, str] = {}
    try:
        for name, link in links.items():
            server = grpc.aio.server(options=SERVER_OPTIONS)
            link.register(server)
            port = server.add_secure_port("127.0.0.1:0", server_credentials(link.identity))
            servers[name] = Serving(server)
            addresses[name] = f"127.0.0.1:{port}"
            await servers[name].start()
        for link in links.values():
            link.addresses.update(addresses)
        yield links
    finally:
        await asyncio.gather(*(link.close() for link in links.values()))
        await asyncio.gather(*(server.stop(None) for server in servers.values()))

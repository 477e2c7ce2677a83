"""The transports under test, and sessions over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from crypto.primitives.randomness import Randomness
from link.core import MAX_BUFFERED_BYTES, Terms, Transport
from link.disclosure import Declared
from link.executor import ThreadExecutor
from link.pki.identity import Identity
from link.session import Session
from link.transports.conformance.kit import ABC, Kit
from link.transports.faulty import FaultyTransport, Schedule
from protos.v1.link_pb2 import Frame
from tests.world import terms, transports

T = TypeVar("T")
LIMIT_S = 30

BENIGN = Schedule(delay=0.1, delay_s=0.002, duplicate=0.3, reorder=0.3)
KITS: dict[str, tuple[str, Schedule | None]] = {
    "memory": ("memory", None),
    "grpc": ("grpc", None),
    "faulty-memory": ("memory", replace(BENIGN, cut=0.05, cut_s=0.002)),
    "faulty-grpc": ("grpc", replace(BENIGN, cut=0.02)),
}


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a test's coroutine; a hang is a failure."""

    async def bounded() -> T:
        async with asyncio.timeout(LIMIT_S):
            return await work

    return asyncio.run(bounded())


@asynccontextmanager
async def carriers(
    kit: str, parties: Sequence[str], job_id: bytes | None = None
) -> AsyncIterator[dict[str, Transport]]:
    """One transport of a kit per party."""
    kind, schedule = KITS[kit]
    async with transports(parties, kind, job_id or terms(parties).job_id) as opened:
        if schedule is None:
            yield opened
            return
        faulty = {
            name: FaultyTransport(inner, replace(schedule, seed=i)) for i, (name, inner) in enumerate(opened.items())
        }
        try:
            yield dict(faulty)
        finally:
            await asyncio.gather(*(transport.close() for transport in faulty.values()))


async def greet(
    name: str,
    transport: Transport,
    agreed: Terms,
    *,
    declared: Iterable[Declared] = (),
    deadline_s: float = 20,
    seed: int = 0,
    ahead_bytes: int = MAX_BUFFERED_BYTES,
    identity: Identity | None = None,
) -> Session:
    """Establishes one party's session."""
    return await Session.establish(
        agreed,
        name,
        transport,
        random=Randomness.from_seed(seed).derive(name),
        executor=ThreadExecutor(1),
        declared=declared,
        deadline_s=deadline_s,
        ahead_bytes=ahead_bytes,
        identity=identity,
    )


@asynccontextmanager
async def sessions(
    kit: str, parties: Sequence[str] = ABC, *, deadline_s: float = 20, seed: int = 0
) -> AsyncIterator[dict[str, Session]]:
    """Established sessions over one kit, by party."""
    opened = Kit(lambda names, job_id: carriers(kit, names, job_id), Randomness.from_seed(seed))
    async with opened.sessions(parties, deadline_s=deadline_s) as world:
        yield world


class Wire:
    """A transport that only records, for a party whose peers are played by the test."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.receiver: Any = None
        self.attached = asyncio.Event()

    def attach(self, receiver: Any) -> None:
        self.receiver = receiver
        self.attached.set()

    async def send(self, to: str, frame: Frame) -> None:
        self.sent.append(frame)

    async def close(self, *, hurried: bool = False) -> None:
        pass

"""Runs a joint computation of several parties inside one test."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

from crypto.primitives.randomness import Randomness
from link.disclosure import Declared
from link.executor import ThreadExecutor
from link.memory import Hub
from link.session import Session, Terms, Transport
from protos.v1.link_pb2 import Frame

T = TypeVar("T")

Role = Callable[[Session], Awaitable[T]]
Observer = Callable[[Frame], None]
SUITE = "test-suite"


def terms(parties: Sequence[str], seed: int = 0, attempt: int = 1) -> Terms:
    """The terms of a test job; equal arguments give equal terms."""
    job_id = hashlib.sha256(b"job %d" % seed).digest()
    return Terms(job_id, attempt, hashlib.sha256(b"spec").digest(), tuple(parties), SUITE)


def run_parties(
    parties: Sequence[str],
    role: Role[T] | Mapping[str, Role[T]],
    *,
    declared: Iterable[Declared] = (),
    seed: int = 0,
    observe: Observer | None = None,
    deadline_s: float = 30,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, T]:
    """Runs one coroutine per party to its end and returns the results by party.

    Args:
        parties: Names in the order of the job.
        role: What each party does with its session; one for all, or one by name.
        declared: The labels that may be opened, as in the job's statement.
        seed: Repeats all random draws.
        observe: Told of every frame before it is delivered (memory only).
        deadline_s: Deadline of the sessions.
        transport: "memory", or "grpc" for real streams under mutual TLS on the loopback.

    Raises:
        BaseException: The first error that any party met; the others are cancelled.
    """
    return asyncio.run(
        run_parties_async(
            parties, role, declared=declared, seed=seed, observe=observe, deadline_s=deadline_s, transport=transport
        )
    )


async def run_parties_async(
    parties: Sequence[str],
    role: Role[T] | Mapping[str, Role[T]],
    *,
    declared: Iterable[Declared] = (),
    seed: int = 0,
    observe: Observer | None = None,
    deadline_s: float = 30,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, T]:
    """`run_parties` for callers that have an event loop already."""
    declared = tuple(declared)
    agreed = terms(parties, seed)
    executor = ThreadExecutor(2)
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
            )
            return await (role[name] if isinstance(role, Mapping) else role)(session)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failures.append(error)
            raise

    try:
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
    finally:
        executor.close()


@asynccontextmanager
async def transports(
    parties: Sequence[str], kind: Literal["memory", "grpc"], job_id: bytes, observe: Observer | None = None
) -> AsyncIterator[dict[str, Transport]]:
    """One transport per party, joined for one job and closed at the end."""
    if kind == "memory":
        hub = Hub(observe) if observe is not None else Hub()
        yield {name: hub.endpoint(name) for name in parties}
        return
    raise NotImplementedError(kind)

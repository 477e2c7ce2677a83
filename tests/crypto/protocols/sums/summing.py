"""Secure sums of both forms, with and without deviating, repeating and dying parties."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.sums import secure_sum as protocol
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import declared, secure_sum, shared_sum
from link.errors import ComineError
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub, MemoryTransport
from protos.v1.link_pb2 import Frame
from tests.world import run_parties, terms

Words = NDArray[np.uint64]
Role = Callable[[Session], Awaitable[Any]]

THREE = ("p0", "p1", "p2")
FORMS = ("direct", "sliced")
Form = Literal["direct", "sliced"]


@contextmanager
def form(name: Form) -> Iterator[None]:
    """Makes vectors of any length take one of the two forms."""
    with patch.object(protocol, "DIRECT_BYTES", 1 << 40 if name == "direct" else -1):
        yield


def names(n: int) -> tuple[str, ...]:
    return tuple(f"p{i}" for i in range(n))


def draw(n: int, m: int, seed: int = 0) -> dict[str, Words]:
    generator = np.random.default_rng(seed)
    return {name: generator.integers(0, 2**64 - 1, m, dtype=np.uint64, endpoint=True) for name in names(n)}


def added(vectors: Mapping[str, Words]) -> list[int]:
    """The oracle: integers of any size."""
    return [sum(column) % 2**64 for column in zip(*(v.tolist() for v in vectors.values()), strict=True)]


def summing(vectors: Mapping[str, Words], to: tuple[str, ...] | None = None) -> Role:
    async def role(session: Session) -> Words | None:
        return await secure_sum(session, await agree(session), vectors[session.me], label="sum", to=to)

    return role


def sharing(vectors: Mapping[str, Words], holders: tuple[str, str]) -> Role:
    async def role(session: Session) -> AdditiveShare | None:
        return await shared_sum(session, await agree(session), vectors[session.me], holders)

    return role


def run(
    role: Role | Mapping[str, Role],
    n: int = 3,
    *,
    seed: int = 0,
    frames: list[Frame] | None = None,
    transport: Literal["memory", "grpc"] = "memory",
    maximum: int = 10**7,
) -> dict[str, Any]:
    statement = [declared("sum", names(n), maximum, what="test", when="test")]
    observe = None if frames is None else frames.append
    return run_parties(names(n), role, declared=statement, seed=seed, observe=observe, transport=transport)


class Twice(MemoryTransport):
    """Delivers every frame two times."""

    async def send(self, to: str, frame: Frame) -> None:
        await super().send(to, frame)
        await super().send(to, frame)


def outcomes(
    role: Role | Mapping[str, Role],
    n: int = 3,
    *,
    crash: tuple[str, int] | None = None,
    tell: bool = False,
    transport: type[MemoryTransport] = MemoryTransport,
) -> dict[str, Any]:
    """What each party ends with, a result or an error.

    `crash` takes a party away as its k-th frame leaves; `tell` aborts at all parties when one meets an error.
    """

    async def main() -> dict[str, Any]:
        sent: Counter[str] = Counter()

        def observe(frame: Frame) -> None:
            if frame.lane == "hello":
                return
            sent[frame.sender] += 1
            if (frame.sender, sent[frame.sender]) == crash:
                hub.crash(frame.sender)
                tasks[frame.sender].cancel()

        async def party(name: str) -> Any:
            session = await Session.establish(
                terms(names(n)),
                name,
                transport(hub, name),
                random=Randomness.from_seed(name.encode()),
                executor=executor,
                declared=[declared("sum", names(n), 10**6, what="test", when="test")],
                deadline_s=20,
            )
            try:
                return await (role[name] if isinstance(role, Mapping) else role)(session)
            except ComineError as error:
                if tell:
                    await session.abort(error)
                return error

        hub, executor = Hub(observe), ThreadExecutor(1)
        tasks = {name: asyncio.create_task(party(name)) for name in names(n)}
        ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
        executor.close()
        return dict(zip(tasks, ended, strict=True))

    return asyncio.run(main())


def after_agreement(frames: list[Frame]) -> list[Frame]:
    return [f for f in frames if f.lane not in ("hello", "/pairwise")]

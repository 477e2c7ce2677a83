"""Runs unions for the tests: with recorded frames, with parties that crash, with frames that are changed on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import Message

from crypto.primitives.randomness import Randomness
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union.disclosure import declared
from crypto.protocols.union.set_union import set_union
from link.costs import Costs
from link.errors import ComineError
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub
from protos.v1 import link_pb2, set_union_pb2
from protos.v1.link_pb2 import Frame
from tests.world import run_parties, terms

NAMES = ("north", "south", "east", "west", "centre", "isle", "coast")
FEW = 200.0  # an ε at which every pair has exactly one common fake, so that small tests stay small and exact

Sets = Mapping[str, Collection[bytes]]
Rewrite = Callable[[Frame], Frame]


@dataclass
class Run:
    """What came of one union."""

    unions: dict[str, list[bytes]]
    costs: dict[str, Costs]
    frames: list[Frame] = field(default_factory=list)
    opened: dict[str, list[tuple[str, tuple[str, ...], int]]] = field(default_factory=dict)


def sets_of(*sets: Collection[str]) -> dict[str, set[bytes]]:
    return {name: {item.encode() for item in items} for name, items in zip(NAMES, sets, strict=False)}


def options_with(options: dict[str, Any]) -> dict[str, Any]:
    return {"epsilon_dup": FEW, "max_element_bytes": 300} | options


def run_union(
    sets: Sets,
    *,
    merger: str,
    seed: int = 0,
    transport: Any = "memory",
    **options: Any,
) -> Run:
    """One union of `sets`, every frame recorded."""
    run = Run({}, {})

    async def role(session: Session) -> None:
        secrets = await agree(session)
        run.unions[session.me] = await set_union(
            session, secrets, sets[session.me], merger=merger, **options_with(options)
        )
        run.costs[session.me] = session.costs
        run.opened[session.me] = [(o.label, o.recipients, o.number) for o in session.ledger.record]

    run_parties(
        tuple(sets),
        role,
        declared=declared(tuple(sets), merger, 1 << 20, options.get("label", "union"), options.get("to")),
        seed=seed,
        observe=run.frames.append if transport == "memory" else None,
        deadline_s=240,
        transport=transport,
    )
    return run


class FaultyHub(Hub):
    """Rewrites frames on their way, and takes a party away before its k-th frame."""

    def __init__(self, rewrite: Rewrite, crash: tuple[str, int] | None) -> None:
        super().__init__()
        self.rewrite, self.crashing = rewrite, crash
        self.sent = dict.fromkeys(NAMES, 0)
        self.dead: set[str] = set()

    def carry(self, frm: str, to: str, frame: Frame) -> None:
        if self.crashing == (frm, self.sent[frm]):
            self.dead.add(frm)
            self.crash(frm)
        self.sent[frm] += 1
        if frm not in self.dead and to not in self.dead:
            super().carry(frm, to, self.rewrite(frame))


def run_faulty(
    sets: Sets,
    *,
    merger: str,
    rewrite: Rewrite = lambda frame: frame,
    crash: tuple[str, int] | None = None,
    **options: Any,
) -> tuple[dict[str, BaseException | list[bytes]], FaultyHub]:
    """How the union ends at each party, which tells its peers of its errors as the host of a session does."""
    hub = FaultyHub(rewrite, crash)
    executor = ThreadExecutor(2)
    lines = declared(tuple(sets), merger, 1 << 20)

    async def party(name: str) -> list[bytes]:
        session = await Session.establish(
            terms(tuple(sets)),
            name,
            hub.endpoint(name),
            random=Randomness.from_seed(0).derive(name),
            executor=executor,
            declared=lines,
            deadline_s=20,
        )
        try:
            return await set_union(session, await agree(session), sets[name], merger=merger, **options_with(options))
        except ComineError as error:
            await session.abort(error)
            raise

    async def everyone() -> list[BaseException | list[bytes]]:
        tasks = {name: asyncio.create_task(party(name)) for name in sets}
        alive = [task for name, task in tasks.items() if crash is None or name != crash[0]]
        await asyncio.wait(alive)
        for task in tasks.values():
            task.cancel()
        return await asyncio.gather(*tasks.values(), return_exceptions=True)

    try:
        return dict(zip(sets, asyncio.run(everyone()), strict=True)), hub
    finally:
        executor.close()


# -- reading recorded frames -----------------------------------------------------------------------------------------
def message_of(frame: Frame) -> Message:
    name = frame.type.rpartition(".")[2]
    kind = getattr(set_union_pb2, name, None) or getattr(link_pb2, name)
    message = kind()
    message.ParseFromString(frame.body)
    return message


def in_union(frame: Frame) -> bool:
    return "/union/" in frame.lane


def data_of(frame: Frame) -> bytes:
    """The ciphertexts in a frame; empty where it carries none."""
    return getattr(message_of(frame), "data", b"") if in_union(frame) else b""


def points_of(frames: Collection[Frame]) -> list[bytes]:
    """All points of some frames of whole points, in order."""
    data = b"".join(map(data_of, frames))
    return [data[start : start + 32] for start in range(0, len(data), 32)]


def tuples_of(frames: Collection[Frame], width: int) -> np.ndarray:
    data = b"".join(map(data_of, frames))
    return np.frombuffer(data, np.uint8).reshape(-1, width, 32)

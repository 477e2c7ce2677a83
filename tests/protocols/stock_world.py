"""Stocks in memory, sessions that lease from them, and ends that crash or are restored from a copy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crypto.protocols.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.ot_stock import Reason, Role, Stock, lease_receiving, lease_sending
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.world import run_parties_async

SENDER, RECEIVER = ENDS = ("s", "r")
TRANSFERS = 256


class Crash(Exception):
    """The process of an end dies here."""


class MemoryStock:
    """What a disk would hold; it tells the numbers that were spent, and dies on demand.

    Attributes:
        kept: The stocks.
        spent: Every (stock, number) whose lease was made durable, in order.
        dropped: Why stocks were dropped.
        dies: (n, after): the n-th writing call from now raises `Crash`, before or after it has taken effect.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[str, Role], Stock] = {}
        self.spent: list[tuple[bytes, int]] = []
        self.dropped: list[Reason] = []
        self.dies: tuple[int, bool] | None = None
        self._lock = threading.Lock()

    def copy(self) -> dict[tuple[str, Role], Stock]:
        return dict(self.kept)

    def restored(self) -> MemoryStock:
        """Another store that holds what this one does."""
        other = MemoryStock()
        other.kept = self.copy()
        return other

    def get(self, peer: str, role: Role) -> Stock | None:
        return self.kept.get((peer, role))

    def put(self, peer: str, role: Role, stock: Stock) -> None:
        def write() -> None:
            kept = self.kept.get((peer, role))
            if kept is None or kept.id < stock.id:
                self.kept[peer, role] = stock

        self._write(write)

    def advance(self, peer: str, role: Role, before: Stock, after: Stock) -> bool:
        def write() -> bool:
            kept = self.kept.get((peer, role))
            if kept is None or (kept.id, kept.next, kept.heard) != (before.id, before.next, before.heard):
                return False
            self.kept[peer, role] = after
            if after.next > before.next:
                self.spent.append((after.id, after.next - 1))
            return True

        return self._write(write)

    def drop(self, peer: str, role: Role, stock_id: bytes, why: Reason) -> None:
        def write() -> None:
            kept = self.kept.get((peer, role))
            if kept is not None and kept.id == stock_id:
                del self.kept[peer, role]
                self.dropped.append(why)

        self._write(write)

    def _write(self, write: Callable[[], Any]) -> Any:
        with self._lock:
            if self.dies is None:
                return write()
            calls, after = self.dies
            self.dies = (calls - 1, after) if calls else None
            if calls:
                return write()
            if after:
                write()
            raise Crash


@dataclass(frozen=True)
class Leased:
    """What a session came to: the lease's number, the stock, Δ, the sender's rows, and the receiver's over zeros."""

    number: int
    delta: bytes
    rows: bytes
    domain: int


class World:
    """Two ends whose sessions follow one another or run side by side."""

    def __init__(self, *, field_bits: int = DEFAULT_FIELD_BITS) -> None:
        self.stores = {end: MemoryStock() for end in ENDS}
        self.field_bits = field_bits
        self.sessions = 0

    @property
    def sender(self) -> Stock | None:
        return self.stores[SENDER].get(RECEIVER, "sender")

    @property
    def receiver(self) -> Stock | None:
        return self.stores[RECEIVER].get(SENDER, "receiver")

    @property
    def agreed(self) -> bool:
        """Whether the ends hold the same stock."""
        return self.sender is not None and self.receiver is not None and self.sender.id == self.receiver.id

    def run(self, **options: Any) -> Leased:
        """One session to its end."""
        return asyncio.run(self.session(**options))

    def run_beside(self, number: int) -> list[Leased]:
        """Sessions side by side."""

        async def all_of_them() -> list[Leased]:
            return list(await asyncio.gather(*(self.session() for _ in range(number))))

        return asyncio.run(all_of_them())

    async def session(self, frames: list[Frame] | None = None, before_use: str = "") -> Leased:
        """Leases and uses streams; their rows must fit. `before_use` names an end that dies when it holds its lease."""
        self.sessions += 1

        async def sending(session: Session) -> Any:
            lane = session.lane("seeds")
            seeds = await lease_sending(lane, RECEIVER, self.stores[SENDER], field_bits=self.field_bits)
            return used(session, seeds)

        async def receiving(session: Session) -> Any:
            lane = session.lane("seeds")
            seeds = await lease_receiving(lane, SENDER, self.stores[RECEIVER], field_bits=self.field_bits)
            return used(session, seeds)

        def used(session: Session, seeds: Any) -> Any:
            if session.me == before_use:
                raise Crash
            return seeds.domain >> 48, seeds.fork(b"work" + session.id)

        out = await run_parties_async(
            ENDS,
            {SENDER: sending, RECEIVER: receiving},
            seed=self.sessions,
            observe=frames.append if frames is not None else lambda frame: None,
        )
        (number, sender), (other, receiver) = out[SENDER], out[RECEIVER]
        assert number == other
        assert sender.domain == receiver.domain
        corrections, t = receiver.expand(np.zeros(TRANSFERS // 8, np.uint8))
        assert (sender.expand(corrections) == t).all()  # all choices are 0
        choices = np.random.default_rng(self.sessions).integers(0, 256, TRANSFERS // 8, np.uint8)
        corrections, t = receiver.expand(choices)
        picked = np.unpackbits(choices, bitorder="little")[:, None] == 1
        q = sender.expand(corrections)
        assert (t == np.where(picked, q ^ sender.delta, q)).all()
        return Leased(number, sender.delta.tobytes(), t.tobytes(), sender.domain)

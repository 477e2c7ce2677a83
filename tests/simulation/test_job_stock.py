"""Stocks of extension seeds over several jobs: the pooled result each time; a peer that was caught loses its stock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal

from jobs.run import PartyRun
from link.core import Receiver, Transport
from link.errors import ProtocolViolation
from link.executor import ThreadExecutor
from protos.v1.link_pb2 import Frame
from tests.joint.oracle import pooled_supports
from tests.protocols.stock_world import MemoryStock
from tests.simulation.whole_job import DATA, job, run_job, supports

NORTH, SOUTH = PARTIES = tuple(DATA)[:2]
ROWS = {party: DATA[party] for party in PARTIES}


class Cutting:
    """Cuts the last byte off the first message of a type."""

    def __init__(self, inner: Transport, kind: str) -> None:
        self._inner, self._kind, self.done = inner, kind, False

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        if not self.done and frame.type.endswith(self._kind):
            frame.body, self.done = frame.body[:-1], True
        await self._inner.send(to, frame)

    async def close(self) -> None:
        await self._inner.close()


def run_jobs(stocks: dict[str, MemoryStock], cut: Sequence[str]) -> list[dict[str, PartyRun | BaseException]]:
    """One job for each entry: the type of the message that the second party spoils, or none."""

    async def all_of_them() -> list[dict[str, PartyRun | BaseException]]:
        executor = ThreadExecutor(2)
        try:
            return [
                await run_job(
                    job(ROWS, disclose="supports"),
                    ROWS,
                    executor,
                    seed=seed,
                    stocks=stocks,
                    wrap=lambda party, inner, kind=kind: Cutting(inner, kind) if kind and party == SOUTH else inner,
                )
                for seed, kind in enumerate(cut)
            ]
        finally:
            executor.close()

    return asyncio.run(all_of_them())


def ids(stock: MemoryStock) -> set[bytes]:
    return {one.id for one in stock.kept.values()}


def test_jobs_lease_from_one_stock() -> None:
    stocks = {party: MemoryStock() for party in PARTIES}
    for ends in run_jobs(stocks, ["", "", ""]):
        for end in ends.values():
            assert isinstance(end, PartyRun)
            assert supports(end) == pooled_supports(ROWS, Decimal("0.2"))
    assert ids(stocks[NORTH]) == ids(stocks[SOUTH])
    assert [one.next for one in stocks[NORTH].kept.values()] == [3, 3]


def test_a_peer_that_is_caught_loses_the_stock_and_the_next_job_makes_another() -> None:
    stocks = {party: MemoryStock() for party in PARTIES}
    before, caught, after = run_jobs(stocks, ["", "ExtensionRows", ""])
    assert all(isinstance(end, PartyRun) for end in (*before.values(), *after.values()))
    assert isinstance(caught[NORTH], ProtocolViolation)
    assert caught[NORTH].party == SOUTH
    assert stocks[NORTH].dropped == ["the peer broke the protocol"] * 2
    assert stocks[SOUTH].dropped == ["unknown to the peer"] * 2
    assert ids(stocks[NORTH]) == ids(stocks[SOUTH])
    assert [one.next for one in stocks[NORTH].kept.values()] == [1, 1]

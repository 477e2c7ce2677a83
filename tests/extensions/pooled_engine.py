"""An engine of another distribution: all parties send their columns to the first computing party, which counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crypto.primitives.columns import Columns
from crypto.protocols.products.chains import Itemset
from link.disclosure import Learned
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, Engine, EngineCosts, EngineSpeed, Setup
from mining.joint.vertical.engines.products import Addends, Naming, Products
from mining.joint.vertical.parameters import VerticalMining, in_job_order
from protos.v1.products_pb2 import MaskedColumns


class Pooled(Engine):
    """No protection at all between the parties and the one that counts."""

    name = "pooled"

    def start(self, setup: Setup) -> Products:
        return PooledProducts(_counter(setup.task, setup.session.parties))

    def costs(self, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
        return PooledCosts(_counter(task, parties))

    def trust(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return f"{_counter(task, parties)}, who sees the columns of all parties"

    def learned(self, task: VerticalMining, parties: Sequence[str]) -> list[Learned]:
        return [Learned((_counter(task, parties),), "membership", "which rows hold which items of all parties")]

    def agreements(self, task: VerticalMining, parties: Sequence[str]) -> list[tuple[str, str]]:
        return [in_job_order(parties, task.compute)]  # for comparisons of sums, which are no engine's

    def collusion(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return f"{_counter(task, parties)} alone can read the columns of all parties"

    def worst(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return self.collusion(task, parties)


class PooledProducts:
    def __init__(self, counter: str) -> None:
        self._counter = counter

    async def prepare(self, rows: int) -> None:
        """Nothing is needed."""

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        total = np.zeros(len(itemsets), np.uint64)
        used = _used(itemsets, session.parties)
        if session.me != self._counter:
            if used[session.me]:
                await session.send_array(self._counter, MaskedColumns, columns[used[session.me]])
            return total
        bits = dict[tuple[str, int], Columns]()
        for party, numbers in used.items():
            if party == session.me:
                held = columns[numbers]
            elif numbers:
                held = await session.recv_array(party, MaskedColumns, np.uint8, (len(numbers), columns.shape[1]))
            bits |= {(party, number): held[place] for place, number in enumerate(numbers)}
        for place, itemset in enumerate(itemsets):
            rows_of_all = np.bitwise_and.reduce([bits[part] for part in itemset.items()])
            total[place] = np.unpackbits(rows_of_all).sum()
        return total

    def close(self) -> None:
        """Nothing is kept."""


class PooledCosts(EngineCosts):
    def __init__(self, counter: str) -> None:
        self._counter = counter

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        for party, numbers in _used(itemsets, traffic.parties).items():
            if party != self._counter and numbers:
                traffic.send(party, [self._counter], len(numbers) * 8 * -(-rows // 64))
        traffic.rounds += 1

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        return rows * len(itemsets) * speed.flop_s


def _counter(task: VerticalMining, parties: Sequence[str]) -> str:
    return in_job_order(parties, task.compute)[0]


def _used(itemsets: Sequence[Itemset], parties: Sequence[str]) -> dict[str, list[int]]:
    return {party: sorted({each[party] for each in itemsets if party in each}) for party in parties}

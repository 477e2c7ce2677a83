"""Shufflers that are killed while reports come and batches leave: nothing acknowledged is lost, nothing comes twice.

The sender sends again what had no receipt, and the analyst asks for batches all the time. Every report is different, so
one that was lost, or forwarded twice, is seen at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from ldp.shuffling.collecting import Collecting
from ldp.shuffling.onion import wrap
from ldp.shuffling.statement import read_key
from protos.v1 import shuffle_pb2 as pb
from tests.integration.processes import Organisations
from tests.party.services.shuffler.nodes import COLLECTOR_KEY, POLICY, SHUFFLERS, Caller, numbered, numbers, route_for

REPORTS = 400
STEP = 20
ROUTE = route_for(minimum=40)
VICTIMS = ("north", "south", "north", "north", "south")


class Callers:
    """The coordinator at both nodes, and the gateway at the first one."""

    def __init__(self, made: Organisations) -> None:
        analyst, fleet = made.authority.issue("analyst", "coordinator"), made.authority.issue("fleet", "client")
        self.analysts = [Caller(analyst, name, made.addresses[name]) for name in SHUFFLERS]
        self.fleet = Caller(fleet, SHUFFLERS[0], made.addresses[SHUFFLERS[0]])
        self.trust = analyst.trust

    async def keys(self) -> list[bytes]:
        made = [await analyst.create(ROUTE) for analyst in self.analysts]
        return [read_key(each.key, ROUTE, hop, self.trust) for hop, each in enumerate(made)]

    async def send(self, sealed: NDArray[np.uint8], begun: asyncio.Event) -> None:
        """Sends until every report was acknowledged, each message until it has a receipt."""
        for start in range(0, len(sealed), STEP):
            while True:
                try:
                    fates = await self.fleet.submit(sealed[start : start + STEP])
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.05)
                    continue
                assert set(fates) <= {pb.TAKEN, pb.REPLAYED}
                begun.set()
                break

    async def flush_always(self) -> None:
        while True:
            try:
                await self.analysts[0].flush()
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        for caller in (*self.analysts, self.fleet):
            await caller.channel.close()


async def kills(made: Organisations, victims: Sequence[str], pauses: Sequence[float]) -> list[Any]:
    callers = Callers(made)
    keys = await callers.keys()
    flushing = asyncio.create_task(callers.flush_always())
    for i, (victim, pause_s) in enumerate(zip(victims, pauses, strict=True)):
        sealed = wrap(numbered(range(REPORTS * i, REPORTS * (i + 1))), ROUTE, keys)
        begun = asyncio.Event()
        sending = asyncio.create_task(callers.send(sealed, begun))
        await begun.wait()
        await asyncio.sleep(pause_s)
        await asyncio.to_thread(made.nodes[victim].kill)
        await asyncio.to_thread(made.start, victim)
        await sending
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    # What is left is too few for a batch by itself: more reports come, and the last batch leaves.
    total = REPORTS * len(victims)
    await callers.send(wrap(numbered(range(total, total + ROUTE.minimum)), ROUTE, keys), asyncio.Event())
    last = (await callers.analysts[0].flush()).next_batch - 1
    while True:
        if (await callers.analysts[1].describe()).next_batch > last:
            break
        await asyncio.sleep(0.05)
    batches = await callers.analysts[1].collect()
    collecting = Collecting(ROUTE, COLLECTOR_KEY, callers.trust)
    found = [collecting.open(head.batch, reports, head.statements) for head, reports in batches]
    await callers.close()
    assert [head.batch for head, _ in batches] == list(range(1, last + 1))
    assert [(each.unreadable, each.replayed) for each in found] == [(0, 0)] * last
    assert all(each.statements[1].received == each.statements[1].forwarded for each in found)
    assert sorted(n for each in found for n in numbers(each.reports)) == list(range(total + ROUTE.minimum))
    return found


@pytest.mark.slow
def test_kills_lose_nothing_and_forward_nothing_twice(tmp_path: Path) -> None:
    pauses = np.random.default_rng(2).uniform(0, 0.15, len(VICTIMS)).tolist()
    made = Organisations.create(tmp_path, {name: [["a"]] for name in SHUFFLERS}, policy=f"[shuffler]\n{POLICY}\n")
    try:
        made.start()
        assert len(asyncio.run(kills(made, VICTIMS, pauses))) > 1
    finally:
        made.stop()

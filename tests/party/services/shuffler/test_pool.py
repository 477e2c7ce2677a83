"""A pool against a plain model: whatever comes in whatever order, and whenever the node starts anew."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import new_private_key, public_key_of
from jobs.audit.events import Event
from jobs.audit.service_events import BatchClosed
from ldp.shuffling.batch import digest
from ldp.shuffling.onion import peel, wrap
from ldp.shuffling.statement import check_chain
from link.errors import PolicyDenied
from link.executor import ThreadExecutor
from link.pki.authority import Authority
from party.services.shuffler.opening import opened
from party.services.shuffler.pool import Pool
from party.services.shuffler.store import FILE, ShufflerStore, StoredRoute
from protos.v1 import shuffle_pb2 as pb
from tests.party.services.shuffler.nodes import COLLECTOR_KEY, numbered, numbers, route_for

REPORTS, DAMAGED = 24, 4
ROUTE = route_for(["north"], minimum=3, gateways=(("client/fleet", 8),))
KEY = new_private_key(Randomness.from_seed(1))
SEALED = [bytes(row) for row in wrap(numbered(range(REPORTS)), ROUTE, [public_key_of(KEY)])]
for _i in range(REPORTS - DAMAGED, REPORTS):  # the last ones cannot be read
    SEALED[_i] = SEALED[_i][:-1] + bytes([SEALED[_i][-1] ^ 1])
SHORT, LONG = SEALED[0][:-1], SEALED[0] + b"\0"
IDENTITY = Authority.create().issue("north")


class Told:
    """An audit log that nobody reads."""

    async def record(self, *events: Event) -> None:
        assert all(isinstance(event, BatchClosed) for event in events)


class Node:
    """One pool on disk, which can start anew."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        store = ShufflerStore.open(self._path)
        store.add(StoredRoute("weekly", ROUTE.document(), KEY, bytes(32), "analyst", 0.0))
        store.close()

    async def open(self) -> None:
        self.store = ShufflerStore.open(self._path)
        self.executor = ThreadExecutor(1)

        async def disk(work: Any, /, *args: Any, **kwargs: Any) -> Any:
            return work(*args, **kwargs)

        (stored,) = self.store.routes()
        self.pool = Pool(stored, self.store, IDENTITY, self.executor, disk, Told())
        await self.pool.recover()

    async def close(self) -> None:
        await self.pool.settle()
        self.executor.close()
        self.store.close()


class Model:
    """What a pool should do."""

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        self.waiting: list[int] = []
        self.senders: Counter[str] = Counter()
        self.drops: Counter[int] = Counter()

    def take(self, sender: str, reports: list[bytes]) -> list[int]:
        fates, seen, looked_at = [], set(self.known), 0
        left = ROUTE.share(sender) - self.senders[sender]
        for report in reports:
            if len(report) != len(SEALED[0]):
                fates.append(pb.WRONG_SIZE)
            elif report in seen:
                fates.append(pb.REPLAYED)
            else:
                seen.add(report)
                looked_at += 1
                readable = SEALED.index(report) < REPORTS - DAMAGED
                fates.append(pb.OVER_SHARE if looked_at > left else pb.TAKEN if readable else pb.UNREADABLE)
        taken = [report for report, fate in zip(reports, fates, strict=True) if fate == pb.TAKEN]
        self.known.update(taken)
        self.waiting += map(SEALED.index, taken)
        self.senders[sender] += len(taken)
        self.drops.update(fate for fate in fates if fate != pb.TAKEN)
        return list(fates)


SUBMISSIONS = st.tuples(
    st.sampled_from(["client/a", "client/b", "client/c", "client/fleet"]),
    st.lists(st.sampled_from([*SEALED, SHORT, LONG, b""]), max_size=10),
)
STEPS = st.lists(st.one_of(SUBMISSIONS, st.just("restart"), st.just("depart")), max_size=12)


async def check(folder: Path, steps: list[Any]) -> None:
    node, model, batches = Node(folder), Model(), 0
    await node.open()
    for step in steps:
        if step == "restart":
            await node.close()
            await node.open()
        elif step == "depart":
            left = await node.pool.depart()
            assert left == (len(model.waiting) >= ROUTE.minimum)
            if left:
                batches += 1
                check_batch(node.store, model, batches)
                model.waiting, model.senders, model.drops = [], Counter(), Counter()
        else:
            fates = (await node.pool.take(*step)).tolist()
            assert fates == model.take(*step)
        assert (node.pool.waiting, node.pool.batch) == (len(model.waiting), batches + 1)
    assert await node.pool.unsent() == list(range(1, batches + 1))
    await node.close()


def check_batch(store: ShufflerStore, model: Model, batch: int) -> None:
    head, data = store.head(1, batch), store.part(1, batch, 0)
    assert head is not None
    assert data is not None
    reports = np.frombuffer(data, np.uint8).reshape(head.reports, -1)
    (said,) = check_chain(head.statements, ROUTE, batch, len(reports), digest(reports), IDENTITY.trust)
    read, readable = peel(reports, ROUTE, 1, COLLECTOR_KEY)
    assert readable.all()
    assert sorted(numbers(read)) == sorted(model.waiting)
    assert (said.senders, said.largest) == (len(+model.senders), max(model.senders.values()))
    told = {pb.REPLAYED: said.replayed, pb.WRONG_SIZE: said.wrong_size, pb.UNREADABLE: said.unreadable}
    assert {**told, pb.OVER_SHARE: said.over_share} == {fate: model.drops[fate] for fate in (*told, pb.OVER_SHARE)}


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_pool_does_as_its_model(steps: list[Any]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        asyncio.run(check(folder, steps))
    finally:
        shutil.rmtree(folder)


def test_whoever_goes_away_leaves_disk_and_memory_in_agreement(tmp_path: Path) -> None:
    """Senders are cut off at every moment of a submission; then all is sent again."""

    async def test() -> None:
        node = Node(tmp_path)
        await node.open()
        for turns in range(12):
            sending = asyncio.create_task(node.pool.take("client/fleet", SEALED[turns % 7 : turns % 7 + 2]))
            for _ in range(turns):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        await node.pool.settle()
        assert node.store.waiting(1).senders.total() == node.pool.waiting
        assert len(node.store.tags(1)) == node.pool.waiting
        fates = await node.pool.take("client/fleet", SEALED[:8])
        assert set(fates.tolist()) <= {pb.TAKEN, pb.REPLAYED}
        assert node.pool.waiting == 8
        with pytest.raises(PolicyDenied):
            await node.pool.take("party/north", SEALED[:1])
        await node.close()

    asyncio.run(test())


def test_a_flood_costs_no_more_than_an_honest_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening is what costs; a certificate gets no more reports opened than it may put into the batch."""
    sizes: list[int] = []

    async def counted(sealed: Any, *rest: Any) -> Any:
        sizes.append(len(sealed))
        return await opened(sealed, *rest)

    monkeypatch.setattr("party.services.shuffler.pool.opened", counted)

    async def test() -> None:
        node = Node(tmp_path)
        await node.open()
        fates = (await node.pool.take("client/a", SEALED)).tolist()
        assert fates == [pb.TAKEN] + [pb.OVER_SHARE] * (REPORTS - 1)
        await node.pool.take("client/a", SEALED)
        await node.pool.take("client/b", SEALED[:1] * 50)
        assert sizes == [1, 0, 0]
        await node.close()

    asyncio.run(test())

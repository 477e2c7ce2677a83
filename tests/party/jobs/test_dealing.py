from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from crypto.protocols.products.outside_dealer import Wanted
from party.jobs.dealing import CoordinatorDealings
from protos.v1.control_pb2 import DealRequest, DealtPart
from tests.errors import fails

WANTED = Wanted(b"l" * 32, 10, (2, 3))
ANSWER = np.arange(6, dtype="<u4").reshape(2, 3)


class Party:
    """Keeps the request that stands in the job's events."""

    def __init__(self, *, deadline_s: int = 600) -> None:
        self.asked: DealRequest | None = None
        self.dealings = CoordinatorDealings(bytes(32), "south", self._ask, deadline_s)

    def _ask(self, request: DealRequest | None) -> None:
        self.asked = request

    async def begin(self) -> asyncio.Task[Any]:
        task = asyncio.create_task(self.dealings.products(WANTED))
        await asyncio.sleep(0)
        return task

    def take(self, offset: int, data: bytes, label: bytes = WANTED.label) -> None:
        self.dealings.take(DealtPart(label=label, offset=offset, data=data))


def test_an_answer_comes_in_pieces_and_perhaps_once_more() -> None:
    async def test() -> None:
        south, data = Party(), ANSWER.tobytes()
        task = await south.begin()
        assert south.asked == DealRequest(label=WANTED.label, rows=10, first=2, second=3)
        south.take(0, data[:8])
        south.take(0, data[:10])
        south.take(10, data[10:])
        assert (await task == ANSWER).all()
        assert south.asked is None
        with fails("E401", party="south"):
            south.take(0, data)

    asyncio.run(test())


def test_pieces_that_do_not_fit_are_refused_and_the_answer_still_awaited() -> None:
    async def test() -> None:
        south, data = Party(), ANSWER.tobytes()
        task = await south.begin()
        with fails("E401", party="south"):
            south.take(0, data, b"m" * 32)
        with fails("E402", party="south"):
            south.take(4, data[4:])
        with fails("E402", party="south"):
            south.take(0, data + b"\0")
        south.take(0, data)
        assert (await task == ANSWER).all()

    asyncio.run(test())


def test_a_coordinator_is_waited_for_until_the_deadline() -> None:
    async def test() -> None:
        south = Party(deadline_s=1)
        with fails("E600", party="south"):
            await south.dealings.products(WANTED)
        assert south.asked is None

    asyncio.run(test())


def test_a_start_without_a_seed_is_refused() -> None:
    with fails("E402", party="south"):
        CoordinatorDealings(b"", "south", lambda request: None, 600)

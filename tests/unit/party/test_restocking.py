from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.protocols.fake_stock import FakeStock
from party import server
from party.restocking import Restocking
from tests.unit.party.nodes import running, weekly


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def wanted(number: int) -> FakeStock:
    stock = FakeStock()
    stock.take(number, 1)
    return stock


def test_an_idle_node_fills_its_stock_up() -> None:
    async def test() -> None:
        stock = wanted(600)
        restocking = Restocking(stock, lambda: True)
        restocking.resume()
        restocking.resume()  # once more, which changes nothing
        await until(lambda: stock.full)
        await restocking.close()
        assert len(stock.take(1000, 1)) == 600

    asyncio.run(test())


def test_a_job_makes_it_pause_and_the_end_of_the_job_go_on() -> None:
    async def test() -> None:
        stock, idle = wanted(600), False
        restocking = Restocking(stock, lambda: idle)
        restocking.resume()
        await asyncio.sleep(0.1)
        assert not len(stock.take(1000, 1))
        idle = True
        restocking.resume()
        await until(lambda: stock.full)
        await restocking.close()

    asyncio.run(test())


def test_closing_leaves_the_stock_as_it_is() -> None:
    async def test() -> None:
        stock = wanted(1 << 14)
        restocking = Restocking(stock, lambda: True)
        restocking.resume()
        await until(lambda: len(stock._ready[1]) > 0)
        await restocking.close()
        assert not stock.full

    asyncio.run(test())


def test_a_node_makes_fakes_after_a_job_and_spends_them_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[int, int]] = []

    class Watched(FakeStock):
        def take(self, number: int, width: int) -> NDArray[np.uint8]:
            points = super().take(number, width)
            taken.append((number, len(points)))
            return points

    monkeypatch.setattr(server, "FakeStock", Watched)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            await nodes.run(weekly())
            stocks = [node.host._room.fakes for node in nodes.nodes.values()]
            await until(lambda: all(stock.full for stock in stocks))
            assert taken
            assert all(number > ready == 0 for number, ready in taken)
            taken.clear()
            await nodes.run(weekly())
            assert len(taken) == len(stocks)
            assert all(ready > 0 for _, ready in taken)

    asyncio.run(test())

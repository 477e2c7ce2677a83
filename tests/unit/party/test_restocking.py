from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crypto.primitives.commutative import CommutativeKey
from crypto.protocols.list_stock import ListStock, PreparedList
from party import server
from party.logs import Log, open_log
from party.restocking import REST_S, Restocking
from tests.unit.party.nodes import running, weekly


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def wanted(capacity: int) -> ListStock:
    stock = ListStock()
    assert stock.take([b"milk"], capacity, 1) is None
    return stock


def log(to: io.StringIO | None = None) -> Log:
    return open_log("north", to or io.StringIO())


def made(stock: ListStock) -> int:
    return sum(len(shelf.points) + len(shelf.fakes) for shelf in stock._shelves.values())


def test_an_idle_node_fills_its_stock_up() -> None:
    async def test() -> None:
        stock = wanted(600)
        restocking = Restocking(stock, lambda: True, log())
        restocking.resume()
        restocking.resume()  # once more, which changes nothing
        await until(lambda: not stock._lacking())
        await restocking.close()
        assert stock.take([b"milk"], 600, 1) is not None

    asyncio.run(test())


def test_a_job_makes_it_pause_and_the_end_of_the_job_go_on() -> None:
    async def test() -> None:
        stock, idle = wanted(600), False
        restocking = Restocking(stock, lambda: idle, log())
        restocking.resume()
        await asyncio.sleep(0.1)
        assert not made(stock)
        idle = True
        restocking.resume()
        await until(lambda: not stock._lacking())
        await restocking.close()

    asyncio.run(test())


def test_closing_leaves_the_stock_as_it_is() -> None:
    async def test() -> None:
        stock = wanted(1 << 14)
        restocking = Restocking(stock, lambda: True, log())
        restocking.resume()
        await until(lambda: made(stock) > 0)
        await restocking.close()
        assert stock._lacking()

    asyncio.run(test())


def test_a_job_that_ends_with_its_event_loop_leaves_no_work_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        restocking = Restocking(wanted(600), lambda: True, log())
        job = asyncio.create_task(asyncio.sleep(60))
        job.add_done_callback(lambda _: restocking.resume())
        await asyncio.sleep(0)

    asyncio.run(test())  # cancels the job, and so calls `resume` when no task is waited for any more
    gc.collect()
    assert "destroyed" not in caplog.text


def test_a_closed_one_begins_nothing() -> None:
    async def test() -> None:
        stock = wanted(600)
        restocking = Restocking(stock, lambda: True, log())
        await restocking.close()
        restocking.resume()
        await asyncio.sleep(2 * REST_S)
        assert not made(stock)

    asyncio.run(test())


def test_what_goes_wrong_is_told_and_tried_again_after_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        stock, told = wanted(600), io.StringIO()
        restocking = Restocking(stock, lambda: True, log(told))
        with monkeypatch.context() as failing:
            failing.setattr(CommutativeKey, "encrypt_blocks", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
            restocking.resume()
            await until(lambda: "lists not made" in told.getvalue())
        assert "MemoryError" in told.getvalue()
        restocking.resume()
        await until(lambda: not stock._lacking())
        await restocking.close()

    asyncio.run(test())


def test_a_node_makes_lists_after_a_job_and_spends_them_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[PreparedList | None] = []

    class Watched(ListStock):
        def take(self, elements: Sequence[bytes], capacity: int, width: int) -> PreparedList | None:
            taken.append(super().take(elements, capacity, width))
            return taken[-1]

    monkeypatch.setattr(server, "ListStock", Watched)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            await nodes.run(weekly())
            stocks = [node.host._room.lists for node in nodes.nodes.values()]
            await until(lambda: all(not stock._lacking() for stock in stocks))
            assert taken == [None] * len(stocks)
            taken.clear()
            await nodes.run(weekly())
            assert len(taken) == len(stocks)
            assert None not in taken

    asyncio.run(test())

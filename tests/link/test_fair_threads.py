"""Jobs share the threads of a node by chunks, and none waits for the end of another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from link.executor import FairThreads


class Gate:
    """Chunks that are held until somebody opens it; it knows how many are at work."""

    def __init__(self) -> None:
        self.open, self.begun = threading.Event(), threading.Semaphore(0)

    def pass_through(self, chunk: int) -> int:
        self.begun.release()
        assert self.open.wait(60)
        return chunk

    async def has_begun(self, number: int) -> None:
        for _ in range(number):
            assert await asyncio.to_thread(self.begun.acquire, timeout=60)


def refuse(chunk: int) -> int:
    raise ValueError(f"{chunk} is refused")


def test_results_come_in_order_and_errors_are_handed_on() -> None:
    async def run() -> None:
        threads = FairThreads(2)
        share = threads.share()
        assert share.workers == 2
        assert await share.map(lambda n: n * n, range(9)) == [n * n for n in range(9)]
        assert await share.map(refuse, []) == []
        with pytest.raises(ValueError, match="3 is refused"):
            await share.map(refuse, [3])
        assert await threads.map(abs, [-1]) == [1]
        share.close()
        threads.close()

    asyncio.run(run())


def test_work_of_others_goes_on_while_one_job_holds_all_threads() -> None:
    async def run() -> None:
        threads, gate = FairThreads(2), Gate()
        large, small = threads.share(), threads.share()
        held = asyncio.create_task(run_large(large, gate))
        await gate.has_begun(2)
        assert await small.map(abs, range(-20, 0)) == list(range(20, 0, -1))
        assert not gate.begun.acquire(blocking=False)  # the large one has no more threads than there are
        assert not held.done()
        gate.open.set()
        assert await held == list(range(50))
        threads.close()

    asyncio.run(run())


async def run_large(share: Any, gate: Gate) -> Sequence[int]:
    found: Sequence[int] = await share.map(gate.pass_through, range(50))
    return found


def test_threads_come_to_be_divided_evenly() -> None:
    async def run() -> None:
        threads, large, small = FairThreads(2), [Gate() for _ in range(6)], [Gate() for _ in range(6)]
        both = [
            asyncio.create_task(threads.share().map(lambda each: each.pass_through(0), gates))
            for gates in (large, small)
        ]
        for gate in (large[0], large[1], small[0]):
            await gate.has_begun(1)
        large[0].open.set()
        large[1].open.set()
        await large[2].has_begun(1)
        small[0].open.set()
        await small[1].has_begun(1)
        assert not any(gate.begun.acquire(blocking=False) for gate in (*large[3:], *small[2:]))
        for gate in (*large, *small):
            gate.open.set()
        await asyncio.gather(*both)
        threads.close()

    asyncio.run(run())


def test_after_many_jobs_at_once_there_are_no_more_threads_than_workers() -> None:
    before = set(threading.enumerate())

    async def run() -> None:
        threads, gates = FairThreads(2), [Gate() for _ in range(20)]
        at_once = [asyncio.create_task(threads.share().map(gate.pass_through, [1, 2, 3])) for gate in gates]
        for gate in gates:
            await gate.has_begun(1)
        assert len(added(before)) == len(gates) + 1  # the first has both workers
        for gate in gates:
            gate.open.set()
        await asyncio.gather(*at_once)
        for each in added(before):
            if each.name == "comine-more":
                await asyncio.to_thread(each.join)
        assert len(added(before)) <= threads.workers
        for number in range(100):  # each by a thread that has just told a result
            assert await threads.map(abs, [-number]) == [number]
            assert len(added(before)) <= threads.workers
        threads.close()

    asyncio.run(run())


def added(before: set[threading.Thread]) -> list[threading.Thread]:
    return [each for each in set(threading.enumerate()) - before if each.name.startswith("comine")]


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    begun: list[int] = []

    async def run() -> None:
        threads, gate = FairThreads(1), Gate()
        share = threads.share()
        held = asyncio.create_task(run_large(share, gate))
        await gate.has_begun(1)
        waits = asyncio.create_task(share.map(begun.append, [1]))
        await asyncio.sleep(0)
        waits.cancel()
        held.cancel()
        await asyncio.gather(waits, held, return_exceptions=True)
        gate.open.set()
        assert await share.map(abs, [-2]) == [2]
        assert not begun

        gate.open.clear()
        held = asyncio.create_task(run_large(share, gate))
        await gate.has_begun(1)
        threads.close()
        gate.open.set()
        with pytest.raises(asyncio.CancelledError):
            await held

    asyncio.run(run())

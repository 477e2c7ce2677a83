"""Worker processes keep the order of results, hand on errors, and inherit nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from link.errors import ResourceError
from link.runtime.process_executor import ProcessExecutor
from tests.errors import fails


def square(number: int) -> int:
    return number * number


def where(_: int) -> tuple[int, bool]:
    return os.getpid(), MARK


def refuse(number: int) -> int:
    raise ValueError(f"{number} is refused")


def die(_: int) -> int:
    os._exit(3)


MARK = False  # set in this process, never in a spawned one


def mapped(kernel: Callable[[int], Any], chunks: Sequence[int]) -> Sequence[Any]:
    executor = ProcessExecutor(1)

    async def run() -> Sequence[Any]:
        return await executor.map(kernel, chunks)

    try:
        return asyncio.run(run())
    finally:
        executor.close()


def test_results_come_in_order_from_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.MARK", True, raising=True)
    executor = ProcessExecutor(1)

    async def run() -> tuple[Sequence[int], Sequence[tuple[int, bool]]]:
        return await executor.map(square, range(5)), await executor.map(where, [0])

    try:
        squares, ((process, marked),) = asyncio.run(run())
    finally:
        executor.close()
    assert list(squares) == [0, 1, 4, 9, 16]
    assert process != os.getpid()
    assert not marked


def test_errors_come_back() -> None:
    with pytest.raises(ValueError, match="7 is refused"):
        mapped(refuse, [7])


def test_a_dead_worker_is_told() -> None:
    with fails("E103"):
        mapped(die, [1])


def test_work_after_the_death_of_a_worker_is_done_by_others() -> None:
    executor = ProcessExecutor(1)

    async def run() -> Sequence[int]:
        with fails("E103"):
            await executor.map(die, [1])
        return await executor.map(square, [3])

    try:
        assert list(asyncio.run(run())) == [9]
    finally:
        executor.close()


def test_a_worker_that_dies_between_two_pieces_of_work_is_told() -> None:
    executor = ProcessExecutor(1)

    async def run() -> Sequence[int]:
        ((worker, _),) = await executor.map(where, [0])
        os.kill(worker, signal.SIGKILL)
        for _attempt in range(1000):  # the pool finds out by itself
            try:
                await executor.map(square, [2])
            except ResourceError:
                return await executor.map(square, [3])
        raise AssertionError("the death was not noticed")

    try:
        assert list(asyncio.run(run())) == [9]
    finally:
        executor.close()


def test_there_is_a_worker_for_every_core() -> None:
    executor = ProcessExecutor()
    assert executor.workers >= 1
    executor.close()


def interrupted(_: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return os.getpid()


def test_an_interrupt_is_for_the_parent_to_heed() -> None:
    assert mapped(interrupted, [0]) != [os.getpid()]


def test_workers_end_with_a_parent_that_is_killed() -> None:
    """Its standard output, which workers inherit, ends once all of them have."""
    script = (
        "import asyncio, os, time\n"
        "from link.runtime.process_executor import ProcessExecutor\n"
        "executor = ProcessExecutor(1)\n"
        "asyncio.run(executor.map(abs, [-1]))\n"
        "print('worked', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "worked\n"
        process.kill()
        assert process.communicate()[0] == ""

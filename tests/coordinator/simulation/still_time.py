"""An event loop without clocks: time stands still while there is work and jumps to the next timer when there is none.

So a job that must end at its deadline does so at once and for the same reason on every machine, and a job that would
wait for ever is found out: nothing is left to do and no timer runs.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Hang(BaseException):
    """Everybody waits and nothing will ever wake anybody."""


class _Jumping(selectors.SelectSelector):
    """Waits for nobody; adds up for how long it was told to."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Hang
            self.passed += max(timeout, 0.0)
        return ready


class StillLoop(asyncio.SelectorEventLoop):
    """The loop; nothing in it may wait for threads or sockets."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.passed


class InlineExecutor:
    """Local work on the loop itself, between two turns of other tasks."""

    workers = 2

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        results = []
        for chunk in chunks:
            await asyncio.sleep(0)
            results.append(kernel(chunk))
        return results

    def close(self) -> None:
        pass


def run_still(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end while time stands still.

    Raises:
        Hang: It would never end.
    """
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(work)

"""The threads on which the frequency service does what would hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from link.executor import available_cores

P = ParamSpec("P")
T = TypeVar("T")

INLINE_BYTES: Final = 1 << 14  # a batch that is this short is read sooner than a thread is woken


class Workers:
    """Pools of threads, one for each kind of work, so that a flood of one never holds up another.

    Batches are read on as many threads as there are cores. Quick estimates have threads of their own; slow ones
    (post-processing, decoding) wait for each other, and so do beginnings and ends of rounds. What waits for the disk
    waits by itself.
    """

    def __init__(self) -> None:
        self._reading = ThreadPoolExecutor(available_cores(), thread_name_prefix="frequency-read")
        self._quick = ThreadPoolExecutor(2, thread_name_prefix="frequency-estimate")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="frequency-decode")
        self._turning = ThreadPoolExecutor(1, thread_name_prefix="frequency-round")
        self._disk = ThreadPoolExecutor(4, thread_name_prefix="frequency-disk")

    async def read(self, nbytes: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Reads a batch of so many bytes."""
        if nbytes <= INLINE_BYTES:
            return function(*args, **kwargs)
        return await self._run(self._reading, lambda: function(*args, **kwargs))

    async def quick(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does what takes milliseconds."""
        return await self._run(self._quick, lambda: function(*args, **kwargs))

    async def slow(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does what may take seconds."""
        return await self._run(self._slow, lambda: function(*args, **kwargs))

    async def turn(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Works out how a round begins or ends."""
        return await self._run(self._turning, lambda: function(*args, **kwargs))

    async def disk(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Waits for the disk."""
        return await self._run(self._disk, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Ends the threads, once what they do is done; what has not begun is dropped."""
        for pool in (self._reading, self._quick, self._slow, self._turning, self._disk):
            pool.shutdown(wait=True, cancel_futures=True)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

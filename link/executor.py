"""The one seam through which a party does heavy local work off the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> int:
    """Cores that this process may use, where the system says so; else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Executor(Protocol):
    """Maps a kernel over chunks of local data; the kernels release the GIL or are cheap."""

    @property
    def workers(self) -> int:
        """How many chunks run at once."""

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order."""

    def close(self) -> None:
        """Ends the workers."""


class ThreadExecutor:
    """Threads of this process: numpy, hashing and group operations release the GIL."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="comine")

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order, `workers` at a time."""
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(self._pool, kernel, chunk) for chunk in chunks))

    def close(self) -> None:
        """Ends the workers; work that has not begun is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

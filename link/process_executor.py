"""Processes for heavy local work that holds the interpreter's lock, such as arithmetic on large integers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import TypeVar

from link.errors import ResourceError
from link.executor import available_cores

T = TypeVar("T")
R = TypeVar("R")


class ProcessExecutor:
    """An `Executor` of processes. Kernels, chunks and results are pickled: a kernel is a function of a module.

    Processes are spawned, so that they inherit no keys, streams or sockets. They start with the first piece of work,
    which takes some tenths of a second, and end with this process, however it ends. A script that uses them keeps its
    work behind `if __name__ == "__main__":`, as `multiprocessing` asks for.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_begin)

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order, `workers` at a time.

        Raises:
            ResourceError: A worker has died.
        """
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.gather(*(loop.run_in_executor(self._pool, kernel, chunk) for chunk in chunks))
        except BrokenProcessPool:
            raise ResourceError(
                "a worker process of this node has died, perhaps for lack of memory; free some, or use fewer workers"
            ) from None

    def close(self) -> None:
        """Ends the workers; work that has not begun is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """In a worker: leaves it to the parent what an interrupt means, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

"""Processes for heavy local work that holds the interpreter's lock, such as arithmetic on large integers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import TypeVar

from link.errors import ResourceError
from link.executor import available_cores

T = TypeVar("T")
R = TypeVar("R")


class ProcessExecutor:
    """An `Executor` of processes. Kernels, chunks and results are pickled: a kernel is a function of a module.

    Processes are spawned, so that they inherit no keys, streams or sockets. They start with the first piece of work,
    which takes some tenths of a second, and end when this is closed, or with this process, however it ends. A script
    that uses them keeps its work behind `if __name__ == "__main__":`, as `multiprocessing` asks for.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self._needed, self._need = get_context("spawn").Pipe(duplex=False)
        self._pool: ProcessPoolExecutor | None = None

    def _ready(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers, get_context("spawn"), initializer=begin, initargs=(self._needed,)
            )
        return self._pool

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order, `workers` at a time.

        Raises:
            ResourceError: A worker has died, or none can be started; later work has new ones.
        """
        loop, all_chunks, pool = asyncio.get_running_loop(), [*chunks], self._ready()
        try:
            try:
                with undisturbed():
                    results = [loop.run_in_executor(pool, kernel, chunk) for chunk in all_chunks]
            except OSError as error:
                raise ResourceError(
                    f"no worker process can be started ({error.strerror}); end others, or use fewer workers"
                ) from None
            return await asyncio.gather(*results)
        except BrokenProcessPool:  # a pool that has lost a worker takes no work ever again
            if self._pool is pool:
                self._pool = None
            await asyncio.to_thread(pool.shutdown)  # else its semaphores outlive this process
            raise ResourceError(
                "a worker process has died, perhaps for lack of memory; free some, or use fewer workers"
            ) from None

    def close(self) -> None:
        """Ends the workers, whatever they are at; when it returns, nothing of them is left."""
        self._need.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Processes that start inside never see Ctrl-C, which reaches all of a terminal's, not even before `begin`."""
    resource_tracker.ensure_running()  # which starts a process of its own with the first worker, and lets Ctrl-C in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin(needed: Connection) -> None:
    """In a worker: leaves it to the parent what an interrupt means, and ends when that does not need it any more.

    Args:
        needed: Ends where the parent closes its other end, or ends itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_in_time, args=(needed,), daemon=True).start()


def _end_in_time(needed: Connection) -> None:
    parent = parent_process()
    assert parent is not None
    wait([needed, parent.sentinel])
    os._exit(1)

"""The one seam through which a party does heavy local work off the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST_AT_ONCE: Final = 1024  # threads beyond the workers, each the only one of its share


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


class FairThreads:
    """Threads that several jobs share, so that none waits for the end of another's work.

    Free threads take the work of the shares in turn, a chunk each. All threads may be at long chunks of one share: a
    share that has no thread gets one more at once, and the system divides the cores among them. One more ends where
    there is no work for it: a thread keeps memory for what it computes, and many jobs at once happen now and then.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="comine")
        self._lock = threading.Lock()
        self._running = self._in_pool = 0
        self._waiting: deque[_Share] = deque()  # shares that have work, the next one first

    def share(self) -> Executor:
        """One user's share, as of a job: its chunks run `workers` at a time at most."""
        return _Share(self)

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order, by a share of their own."""
        return await self.share().map(kernel, chunks)

    def close(self) -> None:
        """Ends the workers; work that has not begun is dropped."""
        with self._lock:
            for share in self._waiting:
                for chunk in share.work:
                    chunk.result.cancel()
            self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def add(self, share: _Share, work: Sequence[_Chunk]) -> None:
        """Puts work into a share, some at least, and begins what can begin."""
        with self._lock:
            if not share.work:
                self._waiting.append(share)
            share.work.extend(work)
            while (chunk := self._next()) is not None:
                if self._in_pool < self.workers:
                    self._in_pool += 1
                    self._pool.submit(self._run, chunk, in_pool=True)
                else:
                    threading.Thread(target=self._run, args=(chunk,), name="comine-more").start()

    def _next(self) -> _Chunk | None:
        """The chunk whose turn it is, counted as running; to be called with the lock."""
        if self._running >= self.workers + MOST_AT_ONCE:
            return None
        for _ in range(len(self._waiting)):
            share = self._waiting.popleft()
            if share.running and self._running >= self.workers:
                self._waiting.append(share)
                continue
            chunk = share.work.popleft()
            if share.work:
                self._waiting.append(share)
            share.running += 1
            self._running += 1
            return chunk
        return None

    def _run(self, chunk: _Chunk | None, *, in_pool: bool = False) -> None:
        while chunk is not None:
            tell = chunk.run()
            with self._lock:  # before the result is known, so that what follows from it finds the thread free
                chunk.share.running -= 1
                self._running -= 1
                chunk = self._next()
                if chunk is None:
                    self._in_pool -= in_pool
            tell()
            del tell


class _Chunk(NamedTuple):
    """A piece of work, and its result for who waits for that."""

    share: _Share
    kernel: Callable[[Any], Any]
    chunk: Any
    result: Future[Any]

    def run(self) -> Callable[[], None]:
        """Computes the result; what tells it to who waits."""
        if not self.result.set_running_or_notify_cancel():
            return lambda: None
        try:
            return partial(self.result.set_result, self.kernel(self.chunk))
        except BaseException as error:
            told = self.result.set_exception
            del self  # which the error's traceback would keep with all its data, and the other way round
            return partial(told, error)


class _Share:
    """What one user of shared threads has waiting and running."""

    def __init__(self, threads: FairThreads) -> None:
        self._threads, self.workers = threads, threads.workers
        self.work: deque[_Chunk] = deque()
        self.running = 0

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order."""
        work = [_Chunk(self, kernel, chunk, Future()) for chunk in chunks]
        if work:
            self._threads.add(self, work)
        found: list[R] = await asyncio.gather(*(asyncio.wrap_future(each.result) for each in work))
        return found

    def close(self) -> None:
        """Leaves the threads to the others."""

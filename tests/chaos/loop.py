"""An event loop in which time passes only while nobody has anything to do, so that a run repeats exactly.

It has no threads, no files and no signals. What a program would do in a thread is done on the loop after a moment that
the seed decides. What became of a process that was killed is never run, and never tidied up.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tests.chaos import clock
from tests.chaos.machines import HERE

T = TypeVar("T")

THREAD_S: Final = 0.002  # the longest that work in a thread takes
MOST_STEPS: Final = 3_000_000


class Stuck(Exception):
    """Nothing will ever happen again, or the simulation takes too long."""


class _Handle(asyncio.TimerHandle):
    """A callback to come, in few words: they are most of what the loop itself does."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, context: contextvars.Context | None
    ) -> None:
        self._when, self._callback, self._args, self._cancelled = when, callback, args, False
        self._context = contextvars.copy_context() if context is None else context

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class _Future(asyncio.Future):  # type: ignore[type-arg]
    """A future with a place of its own in sets, which does not hang on where it lies in memory."""

    _number: int

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task):  # type: ignore[type-arg]
    """A task with such a place."""

    def __init__(self, number: int, coroutine: Any, **named: Any) -> None:
        self._number = number  # before the task is put into sets
        super().__init__(coroutine, **named)

    def __hash__(self) -> int:
        return self._number


class Loop(asyncio.AbstractEventLoop):
    """The loop of one simulation.

    Args:
        seed: Decides how long work in threads takes.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"threads {seed}")
        self.now, self.steps, self.faults = 0.0, 0, list[dict[str, Any]]()
        self.tasks: list[asyncio.Task[Any]] = []
        self._ready: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._numbers = itertools.count(1)
        self.closed = False

    def run(self, coroutine: Coroutine[Any, Any, T], until: float) -> T:
        """What a coroutine comes to.

        Args:
            coroutine: Of the one who looks on.
            until: Seconds of simulated time.

        Raises:
            Stuck: It has not ended then, or nothing can happen any more.
        """
        clock.set_elapsed(0.0)
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(coroutine)
            while not task.done():
                self._step(until)
            return task.result()
        finally:
            asyncio._set_running_loop(before)

    def _step(self, until: float) -> None:
        if self._ready:
            handle = self._ready.popleft()
            if handle._cancelled:
                return
        elif self._timers:
            when, _, handle = heapq.heappop(self._timers)
            if handle._cancelled:
                return
            if when > until:
                raise Stuck(f"after {until:g} s of simulated time it has not ended")
            if when > self.now:
                self.now = when
                clock.set_elapsed(when)
        else:
            raise Stuck("everybody waits for somebody")
        process = handle._context.get(HERE)
        if process is not None and (process.dead or process.stopped):
            if not process.dead:
                process.waiting.append(handle)
            return
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Stuck(f"it takes more than {MOST_STEPS} steps")
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.call_exception_handler({"message": "a callback failed", "exception": error})

    def again(self, handles: list[_Handle]) -> None:
        """Runs what a process would have done while it stood still."""
        self._ready.extend(handles)

    # -- what asyncio and programs ask for -----------------------------------------------------------------------------
    def time(self) -> float:
        return self.now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(self.now, callback, args, context)
        if not self.closed:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _Handle(when, callback, args, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future(loop=self)
        future._number = next(self._numbers)
        return future

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        task = _Task(next(self._numbers), coro, loop=self, name=name, context=context)
        self.tasks.append(task)  # one that was killed is not to be collected, which would tidy up after it
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        future = self.create_future()
        begins_at_once = self.random.random() < 0.5

        def work() -> None:
            if future.cancelled() and not begins_at_once:
                return
            try:
                result = func(*args)
            except BaseException as error:
                if not future.cancelled():
                    future.set_exception(error)
            else:
                if not future.cancelled():
                    future.set_result(result)

        self.call_later(self.random.random() * THREAD_S, work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.faults.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self.closed

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    async def shutdown_asyncgens(self) -> None:
        pass

    def dispose(self) -> None:
        """Lets go of all that was left, without a word."""
        self.closed = True
        self._ready.clear()
        self._timers.clear()
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while self.tasks:  # what is closed may begin others
                task = self.tasks.pop()
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                if not task.done():
                    with contextlib.suppress(BaseException):
                        task.get_coro().close()  # type: ignore[union-attr]
                elif not task.cancelled():
                    task.exception()
        finally:
            asyncio._set_running_loop(before)

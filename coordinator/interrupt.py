"""Runs work so that Ctrl-C and other signals end it in good order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from link.errors import JobCancelled

T = TypeVar("T")


def run_interruptibly(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, whether or not this thread runs an event loop already, as notebooks do.

    Raises:
        JobCancelled: A signal came; the coroutine was cancelled and has cleaned up.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_guarded(coroutine))
    return _elsewhere(coroutine)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """While it lasts, SIGTERM and SIGHUP end the work as Ctrl-C does, so that what was started is stopped."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise KeyboardInterrupt  # SIGINT itself may be ignored, as in a shell's background


async def _guarded(coroutine: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(coroutine)
    with _cancelled_by_signals(task):
        try:
            return await task
        except asyncio.CancelledError:
            raise JobCancelled("the job was cancelled; all parties that could be reached have been told") from None


@contextmanager
def _cancelled_by_signals(task: asyncio.Future[Any]) -> Iterator[None]:
    """While it lasts, signals cancel the task and raise nothing, which gRPC's code could not bear in its midst."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, before = asyncio.get_running_loop(), {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = signal.getsignal(number)
        if number != signal.SIGHUP or handler is _interrupt:
            before[number] = handler
            loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _elsewhere(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine on an event loop of its own, in a thread of its own."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(_guarded(coroutine))
    thread = threading.Thread(target=loop.run_until_complete, args=(asyncio.wait([task]),), name="comine-job")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
    loop.close()
    return task.result()

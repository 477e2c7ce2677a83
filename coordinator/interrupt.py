"""Runs a coroutine so that Ctrl-C and SIGTERM end it in good order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
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


async def _guarded(coroutine: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(coroutine)
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise JobCancelled("the job was cancelled; all parties that could be reached have been told") from None


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

"""Streams of requests that are answered in their order, several being worked on at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


async def answered(requests: AsyncIterator[Q], answer: Callable[[Q], Awaitable[A]], in_flight: int) -> AsyncIterator[A]:
    """Yields the answer to each request.

    No more is read while as many requests are under way as may be, or their answers are not taken; so a sender holds up
    nobody but itself.

    Args:
        requests: What comes.
        answer: Works one out.
        in_flight: How many are worked on at once.

    Raises:
        Exception: What a request or its answer raised; all answers before it were yielded.
    """
    under_way: asyncio.Queue[asyncio.Future[A] | None] = asyncio.Queue()
    free = asyncio.Semaphore(in_flight)

    async def read() -> None:
        try:
            async for request in requests:
                await free.acquire()
                under_way.put_nowait(asyncio.ensure_future(answer(request)))
        finally:
            under_way.put_nowait(None)

    reading = asyncio.create_task(read())
    try:
        while (one := await under_way.get()) is not None:
            yield await one
            free.release()
        await reading  # raises what ended the stream
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await reading
        while not under_way.empty():
            left = under_way.get_nowait()
            if left is not None:
                left.cancel()

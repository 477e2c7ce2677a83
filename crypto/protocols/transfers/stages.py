"""Pieces of a long computation that follow one another through its steps, several under way at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from link.tasks import together

T = TypeVar("T")


async def in_stages(pieces: Iterable[T], stages: Sequence[Callable[[T], Awaitable[None]]], at_once: int) -> None:
    """Takes each piece through all stages; in every stage the pieces keep their order, one at a time.

    Args:
        pieces: In order.
        stages: In order.
        at_once: How many pieces may be under way, so that what they keep stays bounded.

    Raises:
        Exception: The first error of a stage; the others are ended.
    """
    slots = asyncio.Semaphore(at_once)
    turns = [asyncio.Lock() for _ in range(len(stages) + 1)]  # locks are fair: who comes first goes first

    async def go(piece: T) -> None:
        async with turns[0]:
            await slots.acquire()
        for stage, turn in zip(stages, turns[1:], strict=True):
            async with turn:
                await stage(piece)
        slots.release()

    await together(go(piece) for piece in pieces)

"""Room for requests: who gives up waiting stands in nobody's way, and leaves nothing behind."""

from __future__ import annotations

import asyncio

from party.node.limits import MemoryLimit


def test_who_waits_behind_one_that_gives_up_gets_the_room_that_is_there() -> None:
    async def test() -> None:
        room = MemoryLimit(10)
        held = await room.take(6)
        large, small = asyncio.create_task(room.take(10)), asyncio.create_task(room.take(4))
        await asyncio.sleep(0)
        assert not small.done()  # in turn
        large.cancel()
        assert await small == 4
        room.give(4)
        room.give(held)
        assert room.idle

    asyncio.run(test())


def test_nothing_is_kept_of_those_who_gave_up() -> None:
    async def test() -> None:
        room = MemoryLimit(10)
        held = await room.take(6)
        first = asyncio.create_task(room.take(10))
        others = [asyncio.create_task(room.take(5)) for _ in range(100)]
        await asyncio.sleep(0)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert len(room.waiting) == 1
        room.give(held)
        assert await first == 10

    asyncio.run(test())

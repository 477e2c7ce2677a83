"""Streams that are answered in order, several requests at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from link.errors import InputDataError
from party.services.shuffler.streaming import answered


async def numbers(n: int, read: list[int]) -> AsyncIterator[int]:
    for i in range(n):
        read.append(i)
        yield i


def test_answers_come_in_order_and_reading_waits_for_them() -> None:
    async def test() -> None:
        read: list[int] = []
        under_way, most = 0, 0

        async def answer(i: int) -> int:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            for _ in range(10 - i % 10):  # later ones are ready before earlier ones
                await asyncio.sleep(0)
            under_way -= 1
            return i * i

        got = []
        async for each in answered(numbers(50, read), answer, 4):
            got.append(each)
            assert len(read) <= len(got) + 5
        assert got == [i * i for i in range(50)]
        assert most == 4

    asyncio.run(test())


def test_an_answer_comes_while_the_sender_waits_for_it() -> None:
    async def test() -> None:
        asked: asyncio.Queue[int] = asyncio.Queue()

        async def coming() -> AsyncIterator[int]:
            while (one := await asked.get()) >= 0:
                yield one

        async def answer(i: int) -> int:
            return i

        asked.put_nowait(0)
        async for each in answered(coming(), answer, 8):
            asked.put_nowait(each + 1 if each < 5 else -1)
        assert asked.empty()

    asyncio.run(test())


@pytest.mark.parametrize("where", ["request", "answer"])
def test_what_is_raised_comes_after_the_answers_before_it(where: str) -> None:
    async def test() -> None:
        async def coming() -> AsyncIterator[int]:
            for i in range(3):
                yield i
            if where == "request":
                raise InputDataError(where)
            yield 3
            await asyncio.Event().wait()

        async def answer(i: int) -> int:
            if i == 3:
                raise InputDataError(where)
            return i

        got: list[int] = []

        async def collect() -> None:
            async for each in answered(coming(), answer, 8):
                got.append(each)

        with pytest.raises(InputDataError) as raised:
            await collect()
        assert raised.value.message == where
        assert got == [0, 1, 2]
        assert len(asyncio.all_tasks()) == 1  # nothing is left behind

    asyncio.run(test())

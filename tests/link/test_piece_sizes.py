"""Streams whose messages are many and small: refused, since they cost a receiver more than the bytes they hold."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from link.disclosure import Declared
from link.encoding.bytes_field import message_of
from link.session import Session
from protos.v1.link_pb2 import Acknowledge, Opening
from protos.v1.verified_pb2 import DealtBits
from tests.errors import fails
from tests.world import run_parties

PARTIES = ("north", "south")
SIZE = 2_000
Role = Callable[[Session], Coroutine[Any, Any, None]]


async def array(session: Session) -> None:
    await session.recv_array("north", DealtBits, np.uint8, (SIZE,))


async def pieces(session: Session) -> None:
    async for _ in session.recv_pieces("north", DealtBits, SIZE // 2, 2):
        pass


async def opened(session: Session) -> None:
    await session.receive_opened("north", "bits", np.uint8, (SIZE,))


@pytest.mark.parametrize("receive", [array, pieces, opened])
@pytest.mark.parametrize("size", [0, 1, 1_999])
def test_pieces_of_another_size_are_refused_at_the_first(receive: Role, size: int) -> None:
    kind = Opening if receive is opened else DealtBits
    body = message_of(DealtBits, bytes(size))
    if receive is opened:
        body = Opening(label="bits", number=SIZE, values=bytes(size)).SerializeToString()

    async def north(session: Session) -> None:
        for _ in range(SIZE):
            await session.core.transmit("south", session.path, kind, body, last=False, round_=1)

    declared = [Declared("bits", frozenset(PARTIES), "", SIZE, "")]
    with fails("E402", party="north"):
        run_parties(PARTIES, {"north": north, "south": receive}, declared=declared)


def test_empty_messages_count_against_the_limit_of_a_stream() -> None:
    read = 0

    async def north(session: Session) -> None:
        await session.send_stream("south", [Acknowledge() for _ in range(SIZE)])

    async def south(session: Session) -> None:
        nonlocal read
        async for _ in session.recv_stream("north", Acknowledge, limit=9):
            read += 1

    with fails("E403", party="north"):
        run_parties(PARTIES, {"north": north, "south": south})
    assert read == 9

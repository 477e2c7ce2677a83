"""A server whose event loop is torn down, as `asyncio.run` does after an exception out of the loop itself."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import grpc
import pytest

from link.pki.authority import Authority
from link.transports import serving
from link.transports.serving import Serving
from tests.coordinator.nodes import world
from tests.world import nodes

AUTHORITY = Authority.create()


@asynccontextmanager
async def links() -> AsyncIterator[None]:
    async with nodes({name: AUTHORITY.issue(name) for name in ("a", "b")}):
        yield


@asynccontextmanager
async def scripted() -> AsyncIterator[None]:
    async with world():
        yield


@pytest.mark.parametrize("servers", [links, scripted])
def test_nothing_is_written_into_what_is_freed(servers: Callable[[], AbstractAsyncContextManager[None]]) -> None:
    took_their_place: list[bytes] = []

    async def test() -> None:
        async with servers():
            loop = asyncio.get_running_loop()
            loop.call_later(0.1, exit)  # as the time limit of a test, which ends the loop anywhere
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.1)
                took_their_place.extend(b"\xff" * (size - 33) for size in range(176, 281, 8) for _ in range(2000))

    with pytest.raises(SystemExit):
        asyncio.run(test())
    gc.collect()  # which would stop the servers
    assert took_their_place
    assert not [each for each in took_their_place if each.strip(b"\xff")]


@pytest.mark.parametrize("after_s", [0, 0.001, 0.003, 0.01, 0.03])
def test_a_loop_may_end_while_a_server_starts(after_s: float) -> None:
    async def test() -> None:
        asyncio.get_running_loop().call_later(after_s, exit)
        async with links():
            await asyncio.Event().wait()

    with pytest.raises(SystemExit):
        asyncio.run(test())
    gc.collect()  # a server that stopped itself would fail, since its loop is closed


def test_a_server_may_be_stopped_twice_and_before_it_starts() -> None:
    async def test() -> None:
        server = Serving(grpc.aio.server())
        await server.stop(None)
        server = Serving(grpc.aio.server())
        await server.start()
        await server.stop(None)
        await server.stop(0.1)

    left = len(serving.LEFT)
    asyncio.run(test())
    assert len(serving.LEFT) == left

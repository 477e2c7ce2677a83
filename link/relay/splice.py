"""Carries the bytes of a local connection over a connection to a relay, in both directions, until one of them ends."""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.connection import Connection
from websockets.exceptions import WebSocketException

from link.relay.handshake import CHUNK_BYTES


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
    """Carries bytes both ways; each direction waits where the other end does not read. Both are closed at the end."""
    ways = asyncio.create_task(_out(reader, connection)), asyncio.create_task(_in(connection, writer))
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await close(writer)
        with contextlib.suppress(OSError, WebSocketException):
            await connection.close()


async def close(writer: asyncio.StreamWriter) -> None:
    """Ends a local connection."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _out(reader: asyncio.StreamReader, connection: Connection) -> None:
    with contextlib.suppress(OSError, WebSocketException):
        while data := await reader.read(CHUNK_BYTES):
            await connection.send(data)


async def _in(connection: Connection, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, WebSocketException):
        async for data in connection:
            if not isinstance(data, bytes):
                return
            writer.write(data)
            await writer.drain()

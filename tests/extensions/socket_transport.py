"""A transport that comine does not have: a pair of sockets between any two parties, and frames behind their lengths."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import combinations

from link.core import Receiver, Transport
from protos.v1.link_pb2 import Frame

_LENGTH_BYTES = 4
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class SocketTransport:
    """One party's ends.

    Args:
        ends: By peer.
    """

    def __init__(self, ends: Mapping[str, Ends]) -> None:
        self._ends, self._reading = ends, list[asyncio.Task[None]]()

    def attach(self, receiver: Receiver) -> None:
        """Names who takes inbound frames."""
        self._reading = [asyncio.create_task(_deliver(peer, ends[0], receiver)) for peer, ends in self._ends.items()]

    async def send(self, to: str, frame: Frame) -> None:
        """Waits while too much is under way."""
        writer, packed = self._ends[to][1], frame.SerializeToString()
        writer.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)
        await writer.drain()

    async def close(self, *, hurried: bool = False) -> None:
        """Flushes and ends."""
        for _, writer in self._ends.values():
            writer.close()
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)


async def _deliver(peer: str, reader: asyncio.StreamReader, receiver: Receiver) -> None:
    while True:
        try:
            length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
            packed = await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        receiver.deliver(peer, Frame.FromString(packed))


@asynccontextmanager
async def opened(parties: Sequence[str], job_id: bytes) -> AsyncIterator[dict[str, Transport]]:
    """A transport for each party."""
    ends: dict[str, dict[str, Ends]] = {party: {} for party in parties}
    for one, other in combinations(parties, 2):
        here, there = socket.socketpair()
        ends[one][other] = await asyncio.open_connection(sock=here)
        ends[other][one] = await asyncio.open_connection(sock=there)
    transports = {party: SocketTransport(of_party) for party, of_party in ends.items()}
    try:
        yield dict(transports)
    finally:
        await asyncio.gather(*(transport.close() for transport in transports.values()))

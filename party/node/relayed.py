"""A node's end of its relay, where nobody can call the node: it dials out, and takes what callers the relay announces.

One connection stays open, on which the relay says who wants to be connected. For each caller the node dials out once
more and carries the bytes to its own port at the loopback, where the caller has to prove who it is as all others do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Never

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from crypto.primitives.randomness import Randomness
from link.errors import ComineError
from link.logs.structured import Log
from link.pki.identity import Identity
from link.relay.address import RelayAddress
from link.relay.calling import Displaced, RelayFault, call, refused
from link.relay.handshake import CHUNK_BYTES, read, read_incoming
from link.relay.splice import carry
from party.node.connections import Connections
from protos.v1.relay_pb2 import RelayAccept, RelayAnswer, RelayIncoming, RelayListen

FIRST_PAUSE_S: Final = 0.1  # before the relay is dialled again; doubled each time
MOST_PAUSE_S: Final = 3.0  # so that streams resume within the patience of peers
DISPLACED_S: Final = 60.0  # after another node of the same name has taken the place: the two would take turns for ever
MOST_CARRIED: Final = 1024  # callers at once


class Relayed:
    """Keeps a node connected to its relay; `start` it, and `stop` it in the same event loop.

    Args:
        identity: Who the node is by now.
        relay: Where the relay is.
        port: At which the node listens, at the loopback.
        connections: Of the node, which learn whose a connection from the loopback is.
        log: The node's log.
        tell: Called with whether the node is connected.
    """

    def __init__(
        self,
        identity: Callable[[], Identity],
        relay: RelayAddress,
        port: int,
        connections: Connections,
        log: Log,
        tell: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._identity, self._relay, self._port = identity, relay, port
        self._connections, self._log, self._tell = connections, log, tell
        self._listening: asyncio.Task[None] | None = None
        self._current: ClientConnection | None = None
        self._carried: set[asyncio.Task[None]] = set()
        self._said = ""

    def start(self) -> None:
        """Begins to dial."""
        self._listening = asyncio.create_task(self._listen_for_ever())

    async def renew(self) -> None:
        """Connects anew, under the certificate that the node has by now; what is carried goes on."""
        if self._current is not None:
            await self._current.close()

    async def stop(self) -> None:
        """Leaves the relay, and ends what is carried."""
        tasks = [*self._carried, *([] if self._listening is None else [self._listening])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen_for_ever(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._listen()
            except Exception as error:  # whatever it is, a node that nobody can call must dial again
                await self._tell(False)
                if str(error) != self._said:  # the same again says nothing new
                    self._said = str(error)
                    self._log.warning("relay lost", error=error)
                if isinstance(error, Displaced):
                    pause_s = DISPLACED_S
                elif asyncio.get_running_loop().time() - began > MOST_PAUSE_S:
                    pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s * (0.5 + Randomness.from_os().below(1000) / 2000))
            pause_s = min(2 * pause_s, MOST_PAUSE_S)

    async def _listen(self) -> Never:
        """One connection, from the first message to its end, if it came to be.

        Raises:
            ComineError: It did not come to be, or the relay ended it with a reason.
        """
        identity = self._identity()
        self._current = connection = await call(identity, self._relay, RelayListen())
        try:
            self._said = ""
            self._log.info("relay connected")
            await self._tell(True)
            with contextlib.suppress(ConnectionClosed):
                async for data in connection:
                    answer = read(RelayAnswer, data)
                    if answer.WhichOneof("content") == "refusal":
                        raise refused(answer.refusal, self._relay, identity, "")
                    self._take(identity, read_incoming(data))
        finally:
            self._current = None
            with contextlib.suppress(OSError, WebSocketException):
                await connection.close()
        raise RelayFault(f"{self._relay} has closed the connection; it is dialled again")

    def _take(self, identity: Identity, incoming: RelayIncoming) -> None:
        if len(self._carried) < MOST_CARRIED:  # else the relay tells the caller that nobody came
            task = asyncio.create_task(self._carry(identity, incoming))
            self._carried.add(task)
            task.add_done_callback(self._carried.discard)

    async def _carry(self, identity: Identity, incoming: RelayIncoming) -> None:
        try:
            connection = await call(identity, self._relay, RelayAccept(token=incoming.token))
        except ComineError:
            return  # the caller has left, or the relay; whoever still wants something dials again
        with contextlib.suppress(OSError, ConnectionClosed):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=CHUNK_BYTES)
            own = writer.get_extra_info("sockname")[:2]
            with self._connections.relayed(own, f"{incoming.role}:{incoming.name}"):
                await carry(reader, writer, connection)
        with contextlib.suppress(OSError, WebSocketException):
            await connection.close()

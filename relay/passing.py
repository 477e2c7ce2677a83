"""Passes bytes on between a caller and a party, which are TLS between these two and mean nothing to the relay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from relay.limits import Refused, Use


class Flow:
    """What one end sends to the other.

    Args:
        use: Of who sends.
        count: Called with the bytes of each message.

    Attributes:
        size: Bytes so far.
    """

    def __init__(self, use: Use, count: Callable[[int], None]) -> None:
        self._use, self._count, self.size = use, count, 0

    async def run(self, source: ServerConnection, target: ServerConnection, alive: Callable[[], None]) -> None:
        """Passes messages on as they come, until one end leaves; who sends waits where the other end does not read.

        Raises:
            Refused: The sender has sent as much today as it may.
        """
        try:
            async for data in source:
                if not isinstance(data, bytes):
                    return
                alive()
                await self._use.send(len(data))
                self.size += len(data)
                self._count(len(data))
                await target.send(data)
                alive()
        except ConnectionClosed:
            return


async def both_ways(
    caller: ServerConnection, sent: Flow, party: ServerConnection, received: Flow, idle_s: float
) -> str:
    """Passes bytes on in both directions until one end leaves, or may send no more, or nothing comes; says which."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(idle_s) as silence:

            def alive() -> None:
                silence.reschedule(loop.time() + idle_s)

            ways = (
                asyncio.create_task(sent.run(caller, party, alive)),
                asyncio.create_task(received.run(party, caller, alive)),
            )
            try:
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        for way in done:
            way.result()
    except TimeoutError:
        return "idle"
    except Refused as refused:
        return refused.why
    return "ended"

"""A TCP proxy whose path can be cut, or swallow what passes, as networks do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal, Self


class Proxy:
    """Forwards connections to an address, unless its path is broken.

    Attributes:
        address: HOST:PORT at which it listens.
    """

    def __init__(self, target: str, *, delay_s: float = 0.0) -> None:
        self._host, _, port = target.rpartition(":")
        self._port, self._delay_s = int(port), delay_s
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        self.mend()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Resets all connections, and every new one."""
        self._refuses = True
        for writer in list(self._writers):
            writer.transport.abort()

    def swallow(self) -> None:
        """Lets nothing pass any more, and says so to nobody."""
        self._whole.clear()

    def mend(self) -> None:
        """Lets everything pass again."""
        self._refuses = False
        self._whole.set()

    def breaks(self, how: Literal["cut", "swallow"], seconds: float) -> None:
        """Breaks the path for a while."""
        getattr(self, how)()
        asyncio.get_running_loop().call_later(seconds, self.mend)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        try:
            onward, back = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        self._writers |= {writer, back}
        pumps = [asyncio.create_task(self._pump(*ends)) for ends in ((reader, back), (onward, writer))]
        self._tasks |= set(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (writer, back):
                each.transport.abort()
                self._writers.discard(each)
            for pump in pumps:
                pump.cancel()
                self._tasks.discard(pump)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on each piece when its time has come, however many are under way."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(4096)

        async def arrive() -> None:
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
                if not data:
                    return

        arriving = asyncio.create_task(arrive())
        with contextlib.suppress(OSError):
            try:
                while data := await reader.read(1 << 16):
                    await under_way.put((loop.time() + self._delay_s, data))
                await under_way.put((loop.time() + self._delay_s, b""))
                await arriving
            finally:
                arriving.cancel()

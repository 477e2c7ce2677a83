"""Makes private fakes for unions to come, while no job runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from crypto.protocols.fake_stock import FakeStock
from link.executor import yield_to_others


class Restocking:
    """Fills a stock up where the node is idle, a moment's work at a time. To be used on the event loop only.

    Args:
        stock: The stock.
        idle: Whether the node has nothing else to do.
    """

    def __init__(self, stock: FakeStock, idle: Callable[[], bool]) -> None:
        self._stock, self._idle = stock, idle
        self._own = ThreadPoolExecutor(1, thread_name_prefix="stock", initializer=yield_to_others)
        self._filling: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Goes on until the stock is full or the node has something to do."""
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(self._fill())

    async def close(self) -> None:
        """Ends the work."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        self._own.shutdown(wait=False, cancel_futures=True)

    async def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        while self._idle() and not self._stock.full:
            await loop.run_in_executor(self._own, self._stock.make)

"""Makes lists for unions to come, while no job runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from crypto.protocols.list_stock import ListStock
from party.logs import Log

REST_S: Final = 0.1  # after a job, in which its result is fetched


class Restocking:
    """Fills a stock up where the node is idle, a moment's work at a time. To be used on the event loop only.

    Args:
        stock: The stock.
        idle: Whether the node has nothing else to do.
        log: Where failures are told; unions do without a stock.
    """

    def __init__(self, stock: ListStock, idle: Callable[[], bool], log: Log) -> None:
        self._stock, self._idle, self._log = stock, idle, log
        self._resting: asyncio.TimerHandle | None = None
        self._filling: asyncio.Task[None] | None = None
        self._closed = False

    def resume(self) -> None:
        """Goes on, after a rest, until the stock is full or the node has something to do."""
        if self._closed or self._resting is not None or (self._filling is not None and not self._filling.done()):
            return
        # A timer, no task: jobs also end while their event loop does, which then waits for no new task.
        self._resting = asyncio.get_running_loop().call_later(REST_S, self._begin)

    async def close(self) -> None:
        """Ends the work for good."""
        self._closed = True
        if self._resting is not None:
            self._resting.cancel()
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)

    def _begin(self) -> None:
        self._resting = None
        self._filling = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        try:
            while self._idle() and await asyncio.to_thread(self._stock.make):
                pass
        except Exception as error:  # the node goes on, and so does the stock after the next job
            self._log.error("lists not made", error=error)

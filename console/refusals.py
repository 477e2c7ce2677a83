"""Logins that failed, counted for a while and recorded together: whoever tries fills no audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from jobs.audit.console_events import ConsoleRefused

PERIOD_S: Final = 60.0


class Refusals:
    """Counts them. To be used on the event loop only.

    Args:
        record: Records them.
    """

    def __init__(self, record: Callable[[ConsoleRefused], Awaitable[None]]) -> None:
        self._record = record
        self._number = self._waited = 0
        self._writing: asyncio.Task[None] | None = None

    def count(self, *, waited: bool = False) -> None:
        """Counts one.

        Args:
            waited: Whether it came too often, and was not looked at.
        """
        self._number += 1
        self._waited += waited
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._later())

    async def close(self) -> None:
        """Records at once what was counted."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self._write()

    async def _later(self) -> None:
        await asyncio.sleep(PERIOD_S)
        await asyncio.shield(asyncio.ensure_future(self._write()))

    async def _write(self) -> None:
        if self._number:
            event = ConsoleRefused(number=self._number, waited=self._waited)
            self._number = self._waited = 0
            await self._record(event)

"""Connections to a console, which end if the head of a request takes too long to come."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 10.0


class Connection(H11Protocol):
    """One of them: whoever sends a head byte by byte holds none for long.

    uvicorn has a limit for the time between two requests, and none for the time that the head of one takes.
    """

    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first head."""
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        self._calm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Begins to wait where a head begins, and ends where it is whole."""
        if self.cycle is None or self.cycle.response_complete:
            self._hurry()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._calm()

    def _hurry(self) -> None:
        if self._ending is None:
            self._ending = self.loop.call_later(HEAD_S, self.transport.abort)

    def _calm(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

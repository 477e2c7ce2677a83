"""A gRPC server that answers, and how it is stopped without harm."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import grpc

LEFT: Final[list[object]] = []  # what servers are made of that end with the process


class Serving:
    """A server that answers; `stop` it in the event loop in which it was started.

    gRPC keeps a task for each method, in which it waits for the next call. An event loop that ends by an exception
    cancels all tasks, those too. What they hold is freed, and a server that is to stop would still write there:
    the interpreter dies of it, or another object does. Where that has begun the server ends with the process.
    """

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server
        self._witness: asyncio.Task[Literal[True]] | None = None  # of the loop's end

    async def start(self) -> None:
        """Lets the server answer."""
        self._witness = asyncio.create_task(asyncio.Event().wait())
        try:
            await self._server.start()
        except asyncio.CancelledError:
            self._leave()
            raise

    async def stop(self, grace_s: float | None) -> None:
        """Stops the server, unless the event loop is being torn down under it.

        Args:
            grace_s: Seconds for calls that are under way; none at all if None.
        """
        if self._witness is not None and self._witness.cancelling():
            self._leave()
            return
        await self._server.stop(grace_s)
        if self._witness is not None:
            self._witness.cancel()
            self._witness = None

    def _leave(self) -> None:
        LEFT.append(vars(self._server).pop("_server", None))  # with it, a server that is collected stops itself

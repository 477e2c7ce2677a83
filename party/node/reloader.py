"""Has a running node read its files anew where people ask for it: by `comine party reload`, or by SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from link.errors import ComineError, ConfigurationError
from link.logs.structured import Log
from party.state.reloads import Answer, Reloads

LOOK_S: Final = 0.5  # between two looks for requests


class Reloader:
    """Looks for requests as long as it is open. To be used on the event loop only.

    Args:
        reload: Reads the node's file anew; what has changed.
        path: The node's file.
        requests: Where people ask.
        hung_up: Set at SIGHUP.
        log: Where the node reports what it does.
    """

    def __init__(
        self,
        reload: Callable[[Path], Awaitable[tuple[str, ...]]],
        path: Path,
        requests: Reloads,
        hung_up: asyncio.Event,
        log: Log,
    ) -> None:
        self._reload, self._path, self._hung_up, self._log = reload, path.absolute(), hung_up, log
        self._requests = requests

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._hung_up.wait()
            try:
                await self._once()
            except ComineError as error:
                self._log.error("requests unreadable", error=error)

    async def _once(self) -> None:
        asked = await asyncio.to_thread(self._requests.asked)
        other = [each.number for each in asked if Path(each.file) != self._path]
        own = [each.number for each in asked if Path(each.file) == self._path]
        if other:
            error = ConfigurationError(f"the node was started with {self._path}; reload that, or start it with another")
            await asyncio.to_thread(self._requests.answer, other, Answer((), error.code, error.message))
        if own or self._hung_up.is_set():
            self._hung_up.clear()
            await asyncio.to_thread(self._requests.answer, own, await self._answer())

    async def _answer(self) -> Answer:
        try:
            return Answer(await self._reload(self._path))
        except ComineError as error:
            self._log.error("settings kept", error=error)
            return Answer((), error.code, error.message)

"""A job's turn at all its parties, before it is started at any.

A node runs so many jobs at a time; others wait there, in a fair order (`party.jobs.turns`). A job that held its turn
at one party while it waits at another, and a second job the other way round, would wait for ever. So nobody waits
while others hold what comes earlier: a job takes its turns at all parties at once if all are free, and otherwise one
after the other, in the order of the parties' names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Final

from coordinator.jobs.client import PartyClient
from coordinator.jobs.progress import Absence, Watcher
from link.tasks import together
from link.transports.grpc_errors import UNREACHED

RETRY_S: Final = 1.0


@asynccontextmanager
async def turns(
    clients: Mapping[str, PartyClient], job_id: bytes, away: Absence, watcher: Watcher
) -> AsyncIterator[None]:
    """Waits until it is the job's turn at every party; inside, it is.

    Args:
        clients: The parties.
        job_id: The job, which all of them have approved.
        away: Called when a party is lost, and when it is back.
        watcher: Called with the job's places.

    Raises:
        ComineError: The job has ended at a party, or a party takes none that wait.
    """
    waited = False
    while True:
        async with AsyncExitStack() as held:
            turns = [_Turn(client, job_id, away, watcher) for client in clients.values()]
            for turn in turns:
                held.push_async_callback(turn.give_back)
            if waited or not all(await together(turn.take(wait=False) for turn in turns)):
                waited = True
                await asyncio.gather(*(turn.give_back() for turn in turns))
                for turn in sorted(turns, key=lambda turn: turn.party):
                    await turn.take(wait=True)
            if not any(turn.lost for turn in turns):
                yield
                return
        await asyncio.sleep(RETRY_S)


class _Turn:
    """A job's turn at one party, held by an open call."""

    def __init__(self, client: PartyClient, job_id: bytes, away: Absence, watcher: Watcher) -> None:
        self.party, self._client, self._job_id = client.party, client, job_id
        self._away, self._watcher = away, watcher
        self._places: AsyncGenerator[int] | None = None
        self._holding: asyncio.Task[None] | None = None
        self.lost = False

    async def take(self, *, wait: bool) -> bool:
        """Takes the turn; whether that was possible. Who waits does so for a party that is lost, too."""
        while True:
            try:
                if await self._ask(wait=wait):
                    self._holding = asyncio.ensure_future(self._hold())
                    return True
            except UNREACHED as error:
                await self.give_back()
                self._away(self.party, error)
            if not wait:
                return False
            await asyncio.sleep(RETRY_S)

    async def _ask(self, *, wait: bool) -> bool:
        self._places = self._client.queue(self._job_id, wait=wait)
        async for place in self._places:
            self._away(self.party, None)
            if not place:
                return True
            if wait:
                self._watcher(self.party, f"waits for its turn: place {place}", 0, 0, 0, 0)
            else:
                return False
        return False

    async def _hold(self) -> None:
        """Notices when the call ends, and the turn with it."""
        assert self._places is not None
        try:
            async for _ in self._places:
                pass
        finally:
            self.lost = True

    async def give_back(self) -> None:
        """Ends the call; of a job that has begun the party keeps the turn."""
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)
            self._holding = None
        if self._places is not None:
            async with aclosing(self._places):
                self._places = None
        self.lost = False

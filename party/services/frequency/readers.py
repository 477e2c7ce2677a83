"""What a coordinator sees of a collection: its creator all rounds as they stand, other readers those that have ended.

Who sees an open round before and after a report comes knows from the difference when it came, and what it says as its
client perturbed it. So other readers learn of a round once, from all its reports together. Not even about how many have
come: anyone who sends reports of its own, too, could bring that number to where one report more changes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from link.errors import PolicyDenied
from party.services.frequency.access import check_reader
from party.services.frequency.collection import Collection, Snapshot, UnreadableRound
from party.services.frequency.storage.records import Counters
from party.services.frequency.storage.store import FrequencyStore
from party.services.frequency.workers import Workers

LOOK_BACK: Final = 1000  # rounds: further back, no round is looked for unasked


class Reader:
    """A coordinator who may read a collection.

    Args:
        collection: The collection.
        coordinator: The name in the certificate.
        me: This party.
        store: Where rounds are kept.
        workers: Threads.

    Raises:
        PolicyDenied: It may not read.
    """

    def __init__(
        self, collection: Collection, coordinator: str, me: str, store: FrequencyStore, workers: Workers
    ) -> None:
        check_reader(collection.spec, collection.stored.creator, coordinator, me)
        self.collection, self.name = collection, coordinator
        self._created = coordinator == collection.stored.creator
        self._me, self._store, self._workers = me, store, workers

    async def snapshot(self, number: int) -> Snapshot | None:
        """A round, as far as this reader may see it; None where there is no such round, or it is forgotten.

        Raises:
            PolicyDenied: It is open, and another coordinator's.
        """
        found = await self._seen(number)
        if found is None and number in self.collection.open:
            creator, name = self.collection.stored.creator, self.collection.name
            raise PolicyDenied(
                f"round {number} of the collection '{name}' at {self._me} goes on, and until it has ended only "
                f"{creator}, who created the collection, may read it; read it then, or another round",
                party=self._me,
            )
        return found

    async def latest(self) -> int | None:
        """The round that is meant where none is named: the last release, or the latest round that has reports."""
        collection, continual = self.collection, self.collection.spec.continual is not None
        going_on = self._going_on()
        if going_on and not continual:
            return going_on[-1]
        after = (-1 if collection.latest_ended is None else collection.latest_ended) - LOOK_BACK
        latest = await self._workers.disk(self._store.latest_round, collection.name, after=after, released=continual)
        if latest is not None:
            return latest
        return going_on[-1] if going_on else None

    async def news(self, chosen: int | None, final: int) -> AsyncIterator[Snapshot]:
        """What a watch shows now: the chosen round; or the rounds that have ended since, and the one that goes on.

        Under continual release it is what the ends of rounds released, and nothing in between.

        Args:
            chosen: A round, or None.
            final: The last round whose end was shown.
        """
        collection, continual = self.collection, self.collection.spec.continual is not None
        latest = -1 if collection.latest_ended is None else collection.latest_ended
        numbers = [chosen] if chosen is not None else list(range(max(final + 1, latest - LOOK_BACK), latest + 1))
        if chosen is None and not continual:
            numbers += self._going_on()[-1:]
        for number in numbers:
            found = await self._readable(number)
            if found is not None and (chosen is not None or found.stored.result or not continual):
                yield found

    async def rounds(self) -> AsyncIterator[Snapshot]:
        """All rounds, the first first."""
        for stored in await self._workers.disk(self._store.rounds, self.collection.name, states=False):
            found = await self._readable(stored.number)
            if found is not None:
                yield found

    async def counters(self) -> Counters:
        """What became of all reports."""
        if self._created:
            return await self.collection.counters()
        return Counters(counted=await self._workers.disk(self._store.counted, self.collection.name))

    def _going_on(self) -> list[int]:
        """Open rounds that have reports, where this reader may see any."""
        open_ = self.collection.open if self._created else {}
        return [number for number in sorted(open_) if open_[number].intake.counters.counted]

    async def _readable(self, number: int) -> Snapshot | None:
        """A round among others, of which none that cannot be read hinders the rest."""
        with suppress(UnreadableRound):
            return await self._seen(number)
        return None

    async def _seen(self, number: int) -> Snapshot | None:
        """A round, unless this reader may not see it."""
        if self._created:
            return await self.collection.snapshot(number)
        found = await self.collection.ended_snapshot(number)
        # Reports are refused after the end, too: what came late, and when, is nobody else's business.
        return found and replace(found, counters=Counters(counted=found.counters.counted))

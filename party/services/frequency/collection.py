"""One collection as it runs: its open rounds, and what happens to them by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from jobs.audit.service_events import CollectionClosed, CollectionDeleted, RoundEnded
from jobs.collections.spec import CollectionSpec, digest_of
from jobs.collections.tables import AccessSection
from ldp.aggregator import Aggregator
from ldp.documents import document, mechanism_of
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from link.errors import ConfigurationError, InputDataError
from party.services.frequency.intake import Intake
from party.services.frequency.policy import memory_of
from party.services.frequency.schedule import Plan, schedule_of
from party.services.frequency.storage.reading import FrequencyRecords
from party.services.frequency.storage.records import Counters, StoredCollection, StoredRound
from party.services.frequency.storage.store import FrequencyStore
from party.services.frequency.workers import Workers
from party.state.node_audit import NodeAudit

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL_S: Final = 1.0  # between two looks whether there is room on the disk again
SCHEDULE: Final = "schedule"  # who closes a collection whose periods are over


@dataclass(slots=True)
class OpenRound:
    """A round that takes reports.

    Attributes:
        stored: As it is on disk.
        mechanism: By which it takes reports.
        intake: Where they go.
        is_ending: Whether it takes no further ones.
    """

    stored: StoredRound
    mechanism: Mechanism[Any]
    intake: Intake
    is_ending: bool = False
    _under_way: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a batch is on its way to the disk, the round cannot end."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._idle.set()

    async def drained(self) -> None:
        """Returns when no batch is under way any more; none must begin meanwhile."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The reports of a round at one moment.

    Attributes:
        stored: The round.
        mechanism: By which it takes reports.
        aggregator: The sums over them.
        counters: What became of all reports for the round.
        at: Unix seconds.
    """

    stored: StoredRound
    mechanism: Mechanism[Any]
    aggregator: Aggregator[Any]
    counters: Counters
    at: float

    @property
    def final(self) -> bool:
        """Whether the round has ended."""
        return self.stored.ended is not None


class UnreadableRound(ConfigurationError):
    """A round that has ended is of another version of comine."""


def ended_snapshot(records: FrequencyRecords, name: str, number: int, domain: Domain | None) -> Snapshot | None:
    """The reports of a round of a collection that has ended, from the disk; None where there is none.

    Raises:
        UnreadableRound: It is of another version of comine.
    """
    stored = records.round(name, number)
    if stored is None or stored.ended is None:
        return None
    try:
        mechanism = mechanism_of(stored.mechanism, domain)
        aggregator = Aggregator.from_bytes(stored.tally, mechanism) if stored.tally else Aggregator(mechanism)
    except InputDataError:
        raise UnreadableRound(
            f"round {number} of the collection '{name}' is of another version of comine, which read its reports "
            "otherwise; only that version can read it, and rounds of this version are not affected"
        ) from None
    return Snapshot(stored, mechanism, aggregator, stored.counters, stored.ended)


class Changes:
    """Notifies those who watch that something has changed; who is slow misses steps, and never the last one."""

    def __init__(self) -> None:
        self.version = 0
        self.over = asyncio.Event()  # once there will be no further change
        self._news: asyncio.Event = asyncio.Event()

    def notify(self) -> None:
        """Something has changed."""
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()

    async def beyond(self, version: int) -> int:
        """The present version, once it is another one than was seen."""
        while self.version == version:
            await self._news.wait()
        return self.version


class Collection:
    """A collection of reports.

    Args:
        stored: As it is on disk.
        store: Where it is kept.
        audit: The node's audit log.
        workers: Threads.
        now: Unix seconds.
    """

    def __init__(
        self,
        stored: StoredCollection,
        store: FrequencyStore,
        audit: NodeAudit,
        workers: Workers,
        now: Callable[[], float],
    ) -> None:
        self.stored, self.spec = stored, CollectionSpec.from_canonical(stored.spec)
        self.domain = self.spec.domain(stored.labels)
        self.domain_digest = digest_of(stored.labels)
        self.schedule = schedule_of(self.spec, self.domain, stored.created)
        self.open: dict[int, OpenRound] = {}
        self.changes = Changes()
        self.closed, self.deleted = stored.closed is not None, False
        self.ended = 0
        self.latest_ended: int | None = None
        self._state = stored.state
        self._store, self._audit, self._workers, self._now = store, audit, workers, now
        self._lock = asyncio.Lock()
        self._wake = 0.0

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.stored.name

    @property
    def memory(self) -> int:
        """About how many bytes it takes of the node's memory."""
        return memory_of(self.spec, len(self.stored.spec), len(self.stored.labels), closed=self.closed)

    @cached_property
    def public_spec(self) -> bytes:
        """The specification as clients get it: whom `[access]` names is none of their business."""
        return self.spec.model_copy(update={"access": AccessSection()}).canonical()

    @property
    def next_number(self) -> int:
        """From which number on rounds are still to come."""
        return self.schedule.next_number(self._state)

    async def recover(self) -> None:
        """Takes up the rounds that were open when the node stopped.

        Raises:
            InputDataError: The reports of one are of another version of comine, by which they mean something else.
        """
        rounds = await self._workers.disk(self._store.rounds, self.name, states=False)
        for stored in rounds:
            if stored.ended is None:
                mechanism = await self._workers.turn(mechanism_of, stored.mechanism, self.domain)
                self.open[stored.number] = await self._taking(stored, mechanism)
            else:
                self.ended += 1
                self.latest_ended = stored.number

    async def advance(self) -> float:
        """Ends and begins the rounds whose time has come.

        Returns:
            When to look again, Unix seconds.
        """
        if not self.closed and self._now() >= self._wake:
            async with self._lock:
                if not self.closed:
                    await self._advance()
        return self._wake

    async def close(self, by: str) -> None:
        """Ends all open rounds; no report is taken any more."""
        async with self._lock:
            if not self.closed:
                await self._close(by)

    async def delete(self, by: str) -> None:
        """Forgets all that is kept of it; it must be closed."""
        async with self._lock:
            self.deleted = True  # from here on the log says nothing else about it
            try:
                await self._audit.record(CollectionDeleted(collection=self.name, by=by))
                await self._workers.disk(self._store.delete_collection, self.name)
            except BaseException:
                self.deleted = False
                raise

    async def discard(self, by: str) -> None:
        """Forgets a collection that could not be taken up, together with its open rounds."""
        for each in self.open.values():
            await self._workers.disk(each.intake.stop)
        self.open.clear()
        for stored in await self._workers.disk(self._store.rounds, self.name, states=False):
            if stored.ended is None:
                ended = (self.name, stored.number, self._now(), b"", b"", self._state)
                await self._workers.disk(self._store.end_round, *ended)
        await self._workers.disk(self._store.close_collection, self.name, self._now())
        await self.delete(by)

    async def stop(self) -> None:
        """Waits for the batches that are under way."""
        async with self._lock:
            for each in self.open.values():
                each.is_ending = True
            for each in self.open.values():
                await each.drained()

    async def counters(self) -> Counters:
        """What became of all reports."""
        return await self._workers.disk(self._store.counters, self.name)

    async def snapshot(self, number: int) -> Snapshot | None:
        """The reports of a round as they stand; None where there is no such round, or it is forgotten.

        Raises:
            UnreadableRound: It has ended, and is of another version of comine.
        """
        found = self.open.get(number)
        if found is not None:
            at, counters = self._now(), found.intake.counters
            aggregator = await self._workers.quick(found.intake.aggregator)
            return Snapshot(found.stored, found.mechanism, aggregator, counters, at)
        return await self.ended_snapshot(number)

    async def ended_snapshot(self, number: int) -> Snapshot | None:
        """The reports of a round that has ended; None where there is none.

        Raises:
            UnreadableRound: It is of another version of comine.
        """
        if number >= self.next_number:  # however large it is
            return None
        ended = await self._workers.disk(ended_snapshot, self._store, self.name, number, self.domain)
        return None if self.deleted else ended  # then it may be of another collection of that name

    async def _advance(self) -> None:
        now = self._now()
        for number, each in sorted(self.open.items()):
            if each.stored.closes and each.stored.closes <= now:
                await self._end(number)
        await self._forget(now)
        while not self._store.is_full:  # or rounds that nobody can report to would fill the disk further
            plan = await self._workers.turn(self.schedule.begin, self._state, bool(self.open), now)
            if plan is None:
                break
            await self._open(plan)
        if not self.open and self.schedule.is_over(self._state, now):
            await self._close(SCHEDULE)
        closes = [each.stored.closes for each in self.open.values() if each.stored.closes]
        wake = self.schedule.wake(self._state, closes, now)
        self._wake = now + FULL_S if self._store.is_full else wake

    async def _open(self, plan: Plan) -> None:
        stored = StoredRound(
            number=plan.number,
            period=plan.period,
            step=plan.step,
            opens=plan.opens,
            closes=plan.closes,
            mechanism=document(plan.mechanism),
            purpose=plan.purpose,
            share=plan.share,
        )
        await self._workers.disk(self._store.open_round, self.name, stored, plan.state)
        self._state = plan.state
        self.open[plan.number] = await self._taking(stored, plan.mechanism)
        self.changes.notify()

    async def _taking(self, stored: StoredRound, mechanism: Mechanism[Any]) -> OpenRound:
        intake = await self._workers.disk(Intake, self._store, self.name, stored.number, stored.period, mechanism)
        return OpenRound(stored, mechanism, intake)

    async def _end(self, number: int, *, last: bool = False) -> None:
        """Ends a round; `last` where the collection is closed, so that no other round of its period follows."""
        found = self.open[number]
        found.is_ending = True
        await found.drained()
        await self._workers.disk(found.intake.stop)
        aggregator = await self._workers.turn(found.intake.aggregator)
        outcome = await self._workers.turn(self.schedule.end, self._state, number, aggregator)
        await self._audit.record(RoundEnded(collection=self.name, round=number, reports=len(aggregator)))
        await self._workers.disk(
            self._store.end_round,
            self.name,
            number,
            self._now(),
            aggregator.to_bytes() if len(aggregator) else b"",  # or rounds without reports would fill the disk
            outcome.result,
            outcome.state,
            keep_tags_for_period=not (outcome.period_over or last),
        )
        self._state = outcome.state
        del self.open[number]
        self.ended, self.latest_ended = self.ended + 1, max(number, self.latest_ended or 0)
        self.changes.notify()

    async def _close(self, by: str) -> None:
        for number in sorted(self.open):
            await self._end(number, last=True)
        await self._audit.record(CollectionClosed(collection=self.name, by=by))
        await self._workers.disk(self._store.close_collection, self.name, self._now())
        self.closed = True
        self.changes.over.set()
        self.changes.notify()

    async def _forget(self, now: float) -> None:
        window = self.spec.window
        if window is not None and window.retention_s is not None and self.ended:
            await self._workers.disk(self._store.forget_rounds, self.name, now - window.retention_s)

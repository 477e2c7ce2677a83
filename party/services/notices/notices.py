"""What a node tells the people who run it: never more than their own inbox and budget show, nothing of rows."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from jobs.spec.job import JobSpec
from link.logs.structured import Log
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from party.policy.inbox import clock, line
from party.policy.judge import Judge
from party.services.notices.delivery import Delivery, Notice, nothing
from party.services.notices.pushes import Pushes
from party.services.notices.settings import NotifySection, Occasion, Occasions
from party.state.kept_notices import KeptNotices
from party.state.store import Record, Store
from protos.v1.control_pb2 import EXPIRED, JobState

SCHEMA: Final = "comine.notice/1"
MOST_OF_ONE: Final = 60  # notices about one coordinator's jobs within an hour
HOUR_S: Final = 3600.0
LOOK_S: Final = 24 * HOUR_S  # between two looks at the certificate
_ALL: Final = Occasions()


class Notices:
    """Tells people. To be used on the event loop only; no method waits.

    Args:
        settings: The `[notify]` table; browsers alone are told anything without.
        identity: This party.
        store: Its jobs.
        judge: Its policy.
        kept: What is yet to be delivered.
        log: The node's log.
        pushes: Tells people's browsers, where they may ask for it.
        now: Unix seconds.
    """

    def __init__(
        self,
        settings: NotifySection | None,
        identity: Identity,
        store: Store,
        judge: Judge,
        kept: KeptNotices,
        log: Log,
        pushes: Pushes | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._identity, self._store, self._judge, self.now = identity, store, judge, now
        self._pushes = pushes
        self._delivery = Delivery(settings, kept, log) if pushes is None else Delivery(settings, kept, log, pushes.put)
        self._told: dict[str, deque[float]] = {}
        self._used: set[tuple[str, str]] = set()  # limits of datasets that are used up so far that people know
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look at the certificate, and at what was not delivered before."""
        self._looking = asyncio.create_task(self._look())

    def renew(self, settings: NotifySection | None, identity: Identity, judge: Judge) -> None:
        """Goes on with other settings."""
        self._delivery.settings, self._identity, self._judge = settings, identity, judge
        self.certificate()

    async def stop(self) -> None:
        """Tells what waits, as far as there is time."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._delivery.close()
        if self._pushes is not None:
            await self._pushes.close()

    def awaits(self, record: Record) -> None:
        """A proposal awaits a decision."""
        self._about("inbox", record.coordinator, record.job_id, record.state)

    def held(self, job_id: bytes, coordinator: str, state: JobState.ValueType) -> None:
        """What a job has found is held until people release it."""
        self._about("held", coordinator, job_id, state)

    def ended(self, job_id: bytes, coordinator: str, state: JobState.ValueType) -> None:
        """A job has ended, or its proposal has expired."""
        self._about("expiry" if state == EXPIRED else "end", coordinator, job_id, state)

    def charged(self, spec: JobSpec) -> None:
        """A job has begun, and counts."""
        if self._wants("budget"):
            self._delivery.put(lambda: self._budget(spec))

    def certificate(self) -> None:
        """Tells where the party's own certificate ends soon."""
        if self._wants("expiry"):
            self._delivery.put(self._expiring)

    # -- what is told ------------------------------------------------------------------------------------------------
    @property
    def _occasions(self) -> Occasions | None:
        """What somebody is told of; None where nobody is told anything."""
        settings = self._delivery.settings
        return _ALL if settings is None and self._pushes is not None else settings

    def _wants(self, occasion: Occasion) -> bool:
        occasions = self._occasions
        return occasions is not None and occasion in occasions.events

    def _about(self, occasion: Occasion, coordinator: str, job_id: bytes, state: JobState.ValueType) -> None:
        if not self._wants(occasion):
            return
        now, times = time.monotonic(), self._told.setdefault(coordinator, deque())
        while times and times[0] < now - HOUR_S:
            times.popleft()
        if len(times) < MOST_OF_ONE:
            times.append(now)
            self._delivery.put(lambda: self._job(occasion, job_id, state))

    async def _job(self, occasion: Occasion, job_id: bytes, state: JobState.ValueType) -> Sequence[Notice]:
        record = await asyncio.to_thread(self._store.get, job_id)
        if record is None:
            return ()
        return (self._notice(occasion, job=line(replace(record, state=state), self.now())),)

    async def _budget(self, spec: JobSpec) -> Sequence[Notice]:
        occasions, dataset = self._occasions, spec.job.dataset
        if occasions is None:
            return ()
        share = occasions.budget_share
        used = await asyncio.to_thread(self._judge.used, dataset)
        far = {(dataset, limit) for limit, part in used.items() if part >= share}
        new = sorted(far - self._used)
        self._used = {each for each in self._used if each[0] != dataset} | far
        return [self._notice("budget", dataset=dataset, limit=limit, share=str(share)) for _, limit in new]

    async def _expiring(self) -> Sequence[Notice]:
        occasions = self._occasions
        until = read_certificate(self._identity.certificate_pem).not_valid_after_utc
        left = until - dt.datetime.fromtimestamp(self.now(), dt.UTC)
        if occasions is None or left.days >= occasions.certificate_days:
            return ()
        about = {"valid_until": clock(until.timestamp()), "days_left": left.days}
        return (self._notice("expiry", certificate=about),)

    def _notice(self, occasion: Occasion, **about: Any) -> Notice:
        return {"schema": SCHEMA, "event": occasion, "party": self._identity.name, "time": clock(self.now()), **about}

    async def _look(self) -> None:
        while True:
            self._delivery.put(nothing)
            self.certificate()
            await asyncio.sleep(LOOK_S)

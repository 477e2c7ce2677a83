"""What a node does to its job database now and then: it forgets what is old and keeps the rest safe."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from jobs.audit.tail import Mark
from link.errors import ComineError
from link.files.quantities import seconds
from link.logs.structured import Log
from party.config import PartyConfig
from party.data.shared_sources import alike
from party.policy.judge import FAILED_S
from party.state.node_audit import NodeAudit
from party.state.recovery import companions
from party.state.recovery.history import note
from party.state.store import Store

EVERY_S: Final = 3600.0
AT_ONCE: Final = 500  # jobs that are forgotten in one transaction
REST_S: Final = 0.05  # between two


class Upkeep:
    """Looks after `node.db` while the node runs. To be used on the event loop only.

    Args:
        config: The node's file.
        store: The jobs.
        audit: The log beside them.
        settled: The first entry about something that the database may not know yet; None where it knows all.
        log: Where failures are reported.
        now: Unix seconds.
    """

    def __init__(
        self,
        config: PartyConfig,
        store: Store,
        audit: NodeAudit,
        settled: Callable[[], Mark | None],
        log: Log,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._audit, self._settled, self._log = store, audit, settled, log
        self.now, self._party = now, config.party
        self._keep: Counter[str] = Counter()
        self._kept_s = FAILED_S  # for so long a rule counts failures
        self.renew(config)
        self._before: Mark | None = None
        self._task: asyncio.Task[None] | None = None

    def renew(self, config: PartyConfig) -> None:
        """Keeps from now on what other settings need, too: what a limit has counted stays if the limit comes back."""
        for name, together in alike(config.dataset).items():
            needed = max(config.policy_of(other).max_jobs or 0 for other in together)
            self._keep[name] = max(self._keep[name], needed)
        self._kept_s = max(seconds(config.party.keep_jobs), self._kept_s)

    def start(self) -> None:
        """Begins, at once."""
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _go_on(self) -> None:
        while True:
            try:
                await self.look()
            except ComineError as error:
                self._log.error("upkeep failed", error=error)
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Does once what is to be done.

        Raises:
            ComineError: The database or the log cannot be used.
        """
        place: float | None = float("-inf")
        while place is not None:
            place = await asyncio.to_thread(self.forget, place)
            await asyncio.sleep(REST_S)
        await asyncio.to_thread(self._store.forget_unstarted, self.now())
        await asyncio.to_thread(companions.note, self._store, self._party.state_dir)
        # What stood in the log a while ago is in the database by now, but for what is known to be under way.
        marks = [self._before, self._settled()]
        self._before = await asyncio.to_thread(self._audit.mark)
        if marks[0] is not None:
            known = min(filter(None, marks), key=lambda mark: mark.seq)
            await asyncio.to_thread(note, self._store, self._audit, known, self._party.name)

    def forget(self, after: float) -> float | None:
        """Forgets some old jobs; where to go on."""
        now = self.now()
        return self._store.prune(after, now - self._kept_s, now, self._keep, AT_ONCE)

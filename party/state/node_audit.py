"""The audit log as a running node writes it: why it cannot be written stays in the node's own log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from jobs.audit.events import Event, Transcript, ValuesOpened
from jobs.audit.log import AuditLog
from jobs.audit.tail import Mark
from link.errors import ComineError, ResourceError, shareable
from link.logs.structured import Log
from party.node.uninterrupted import uninterrupted
from party.state.audit_count import OUTCOMES, AuditCount

_OF_THE_PAST: Final = (ValuesOpened, Transcript)  # what these record has happened, whether it can be written or not


class NodeAudit(AuditLog):
    """An audit log whose faults may be told to coordinators and peers.

    Attributes:
        party: Whose it is.
        log: The node's log.
        count: What coordinators have made it write lately.
        closed: Whether the node has stopped; nothing is written any more.
    """

    party: str
    log: Log
    closed = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.count = AuditCount((), lambda job_id: None)
        self._late: list[Event] = []  # what could not be written, and is before anything else is
        self._writing = asyncio.Lock()

    async def record(self, *events: Event) -> None:
        """Writes entries, off the event loop; they are on disk when this returns.

        Raises:
            LimitExceeded: A coordinator has made the node write as much as it may; nothing is written.
            ResourceError: They cannot be written, so what they record must not happen. How a session ended is kept, and
                written with the next entries.
        """
        await uninterrupted(self._record(events))

    async def _record(self, events: tuple[Event, ...]) -> None:
        counted = await asyncio.to_thread(self.count.bins, events)
        async with self._writing:
            kept = len(self._late)
            self.count.take(counted, self.party, refuses=not any(isinstance(event, OUTCOMES) for event in events))
            try:
                with self._reason_in_log():
                    await super().record(*self._late, *events)
            except ResourceError:
                self.count.give_back(counted)
                self._late += (event for event in events if isinstance(event, _OF_THE_PAST))
                raise
            del self._late[:kept]

    def check(self, outcome: type[Event], coordinator: str) -> None:
        """Refuses what would end in an event that has then happened.

        Raises:
            LimitExceeded: The coordinator has made the node write as much as it may.
        """
        self.count.check(outcome, coordinator, self.party)

    def mark(self) -> Mark:
        """The last entry.

        Raises:
            ResourceError: The log cannot be read, so nothing can be written after it either.
        """
        with self._reason_in_log():
            return super().mark()

    @contextlib.contextmanager
    def _reason_in_log(self) -> Iterator[None]:
        if self.closed:
            raise ResourceError(f"{self.party} has stopped", party=self.party)
        try:
            yield
        except ComineError as error:
            self.log.error("audit not written", error=error)
            raise shareable(
                ResourceError(
                    f"{self.party} cannot write its audit log, and nothing may happen unrecorded; "
                    f"the log of {self.party} has the reason",
                    party=self.party,
                )
            ) from error

    def close(self) -> None:
        """Closes the file, once."""
        if not self.closed:
            self.closed = True
            super().close()

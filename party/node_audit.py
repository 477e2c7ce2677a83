"""The audit log as a running node writes it: why it cannot be written stays in the node's own log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from jobs.audit.events import Event, Transcript, ValuesOpened
from jobs.audit.log import AuditLog
from jobs.audit.tail import Mark
from link.errors import ComineError, ResourceError, tellable
from party.logs import Log
from party.uninterrupted import uninterrupted

_OF_THE_PAST: Final = (ValuesOpened, Transcript)  # what these tell has happened, whether it can be written or not


class NodeAudit(AuditLog):
    """An audit log whose faults may be told to coordinators and peers.

    Attributes:
        party: Whose it is.
        log: The node's log.
        closed: Whether the node has stopped; nothing is written any more.
    """

    party: str
    log: Log
    closed = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._late: list[Event] = []  # what could not be written, and is before anything else is
        self._writing = asyncio.Lock()

    async def record(self, *events: Event) -> None:
        """Writes entries, off the event loop; they are on disk when this returns.

        Raises:
            ResourceError: They cannot be written, so what they tell must not happen. How a session ended is kept, and
                written with the next entries.
        """
        await uninterrupted(self._record(events))

    async def _record(self, events: tuple[Event, ...]) -> None:
        async with self._writing:
            kept = len(self._late)
            try:
                with self._hushed():
                    await super().record(*self._late, *events)
            except ResourceError:
                self._late += (event for event in events if isinstance(event, _OF_THE_PAST))
                raise
            del self._late[:kept]

    def mark(self) -> Mark:
        """The last entry.

        Raises:
            ResourceError: The log cannot be read, so nothing can be written after it either.
        """
        with self._hushed():
            return super().mark()

    @contextlib.contextmanager
    def _hushed(self) -> Iterator[None]:
        if self.closed:
            raise ResourceError(f"{self.party} has stopped", party=self.party)
        try:
            yield
        except ComineError as error:
            self.log.error("audit not written", error=error)
            raise tellable(
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

"""The audit log as a running node writes it: why it cannot be written stays in the node's own log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jobs.audit.events import Event
from jobs.audit.log import AuditLog
from jobs.audit.tail import Mark
from link.errors import ComineError, ResourceError
from party.logs import Log


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

    async def record(self, *events: Event) -> None:
        """Writes entries, off the event loop; they are on disk when this returns.

        Raises:
            ResourceError: They cannot be written, so what they tell must not happen.
        """
        with self._hushed():
            await super().record(*events)

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
            raise ResourceError(
                f"{self.party} cannot write its audit log, and nothing may happen unrecorded; "
                f"the log of {self.party} has the reason",
                party=self.party,
            ) from error

    def close(self) -> None:
        """Closes the file, once."""
        if not self.closed:
            self.closed = True
            super().close()

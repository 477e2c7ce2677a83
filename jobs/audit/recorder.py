"""Writes a session's beginning and end into the audit log; `jobs.run.run_party` waits for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.audit.events import SessionBegan, Transcript, ValuesOpened
from jobs.audit.key import AuditKey
from jobs.audit.log import AuditLog
from link.disclosure import Opened
from link.receipts import Account


class SessionRecorder:
    """The recorder of one job's session; implements `jobs.run.Recorder`.

    Args:
        log: The party's audit log.
        key: Keys the MACs.
        job_id: The job.
        attempt: Counts its starts.
        parties: All parties of the job.

    Attributes:
        mac_secret: Out of which the session's MAC key is made.
        has_begun: Whether anything but greetings may have left.
        opened: Labels of what was opened, once the session is over.
    """

    def __init__(self, log: AuditLog, key: AuditKey, job_id: bytes, attempt: int, parties: Sequence[str]) -> None:
        self._log, self._job, self._attempt, self._parties = log, job_id, attempt, tuple(parties)
        self._over = True  # until it has begun
        self.mac_secret, self.has_begun = key.secret, False
        self.opened: frozenset[str] = frozenset()

    async def began(self, session: bytes) -> None:
        """Puts the session on disk, before anything of it leaves."""
        await self._log.record(
            SessionBegan(job=self._job, session=session, attempt=self._attempt, parties=self._parties)
        )
        self._over, self.has_begun = False, True

    async def ended(
        self, session: bytes, opened: Sequence[Opened], accounts: Mapping[str, Account], *, complete: bool
    ) -> None:
        """Puts what left, and what was said of it, on disk; once, whatever interrupts the first call.

        Of a session whose beginning could not be recorded nothing has left.
        """
        if self._over:
            return
        self._over = True
        self.opened = frozenset(line.label for line in opened)
        await self._log.record(
            ValuesOpened.of(self._job, session, opened),
            Transcript.of(self._job, session, accounts, complete=complete),
        )

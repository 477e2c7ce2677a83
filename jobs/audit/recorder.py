"""Writes a session's beginning and end into the audit log; `jobs.run.run_party` waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from jobs.audit.events import Event, SessionBegan, Transcript, ValuesOpened
from jobs.audit.evidence import EvidenceFolder
from jobs.audit.key import AuditKey
from jobs.audit.log import AuditLog
from link.disclosure import Opened
from link.errors import ResourceError
from link.transcripts.receipts import Account
from link.transcripts.words import Evidence


class SessionRecorder:
    """The recorder of one job's session; implements `jobs.run.Recorder`.

    Args:
        log: The party's audit log.
        key: Keys the MACs.
        job_id: The job.
        attempt: Counts its starts.
        parties: All parties of the job.
        evidence: Where evidence against peers is kept.

    Attributes:
        mac_secret: Out of which the session's MAC key is made.
        has_begun: Whether anything but greetings may have left.
        opened: Labels of what was opened, once the session is over.
    """

    def __init__(
        self,
        log: AuditLog,
        key: AuditKey,
        job_id: bytes,
        attempt: int,
        parties: Sequence[str],
        evidence: EvidenceFolder,
    ) -> None:
        self._evidence = evidence
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
        self,
        session: bytes,
        opened: Sequence[Opened],
        accounts: Mapping[str, Account],
        evidence: Sequence[Evidence],
        *,
        complete: bool,
    ) -> None:
        """Puts what left, what was said of it and what convicts a peer on the disk; once, whatever interrupts a call.

        Of a session whose beginning could not be recorded nothing has left.
        """
        if self._over:
            return
        self._over = True
        self.opened = frozenset(line.label for line in opened)
        end: list[Event] = [
            ValuesOpened.of(self._job, session, opened),
            Transcript.of(self._job, session, accounts, complete=complete),
        ]
        try:
            kept = await asyncio.to_thread(self._evidence.keep, evidence) if evidence else None
            end += [] if kept is None else [kept]
        except OSError as error:
            raise ResourceError(
                f"evidence against a peer cannot be kept in {self._evidence.path} ({error.strerror}); check state_dir"
            ) from None
        finally:
            await self._log.record(*end)

"""As a node records its sessions: its database notes that the audit log has them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from jobs.audit.evidence import EvidenceFolder
from jobs.audit.recorder import SessionRecorder
from link.disclosure import Opened
from link.errors import ComineError
from link.transcripts.receipts import Account
from link.transcripts.words import Evidence
from party.jobs.context import JobContext
from party.jobs.job import Job


class NodeRecorder(SessionRecorder):
    """The recorder of one job's session.

    Args:
        context: What the node's jobs share.
        job: The job.
        attempt: Counts its starts.
        evidence: Where evidence against peers is kept.
    """

    def __init__(self, context: JobContext, job: Job, attempt: int, evidence: EvidenceFolder) -> None:
        super().__init__(context.audit, context.audit_key, job.id, attempt, job.spec.job.parties, evidence)
        self._context = context

    async def began(self, session: bytes) -> None:
        """Puts the session on disk, in both files, before anything of it leaves."""
        await super().began(session)
        await asyncio.to_thread(self._see)

    async def ended(
        self,
        session: bytes,
        opened: Sequence[Opened],
        accounts: Mapping[str, Account],
        evidence: Sequence[Evidence],
        *,
        complete: bool,
    ) -> None:
        """Puts what left, what was said of it and what convicts a peer on the disk, in both files."""
        await super().ended(session, opened, accounts, evidence, complete=complete)
        with contextlib.suppress(ComineError):  # what has happened has, and the log says so
            await asyncio.to_thread(self._see)

    def _see(self) -> None:
        self._context.seen.see(self._context.audit.mark())

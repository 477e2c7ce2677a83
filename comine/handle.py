"""A submitted job, as Python holds it: its state, its result, and its end on request."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.interrupt import run_interruptibly
from coordinator.jobs.lifecycle import ended
from coordinator.jobs.records.store import JobFolder
from coordinator.jobs.released import result_of
from coordinator.jobs.runner import cancel_job
from coordinator.jobs.status import job_status
from coordinator.jobs.watching import wait_for_end
from jobs.kinds.registry import coordinator_learns
from link.errors import DeadlineExceeded, PeerError
from link.pki.identity import Identity

if TYPE_CHECKING:
    from jobs.documents.job_status import JobDocument
    from jobs.results.result import Result


class JobHandle:
    """A job that goes on in the background, whatever becomes of this process.

    Args:
        folder: Where the coordinator keeps it.
        federation: The federation file.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.

    Attributes:
        id: In hex; `comine job watch ID` and the like know it.

    Example:
        >>> job = comine.Federation.connect("federation.toml").submit("job.toml")
        >>> job.result(timeout=300).n_rows
        180
        >>> job.status().state
        'succeeded'
    """

    def __init__(self, folder: JobFolder, federation: Path, identity: Identity, addresses: Mapping[str, str]) -> None:
        self._folder, self._federation, self._identity, self._addresses = folder, federation, identity, addresses
        self.id = folder.id

    def status(self) -> JobDocument:
        """How the job stands, and each of its parties, as `comine job status --json` prints it."""
        return run_interruptibly(job_status(self._folder, self._identity, self._addresses))

    def result(self, timeout: float | None = None) -> Result:
        """The result, once the job has succeeded.

        Args:
            timeout: Seconds to wait; without one, until the job ends by its own deadlines.

        Raises:
            DeadlineExceeded: The job goes on after `timeout` seconds.
            ComineError: The job ended early; the error is the one that began it.
        """

        async def wait() -> Any:
            async with asyncio.timeout(timeout):
                return await wait_for_end(self._folder, self._federation)

        try:
            record = run_interruptibly(wait())
        except TimeoutError:
            waits = ", ".join(self._folder.record().job.waits_for)
            raise DeadlineExceeded(
                f"the job {self.id[:12]} goes on after {timeout:g} s" + (f"; it waits for {waits}" if waits else "")
            ) from None
        if record.job.problem is not None:
            raise ended(record.job)

        table = self._folder.table() if coordinator_learns(record.spec) else None
        found: Result = result_of(record, record.released, table, signer=self._identity)
        return found

    def cancel(self, reason: str = "") -> None:
        """Ends the job at all its parties; does nothing where it has ended.

        Raises:
            PeerError: It is cancelled, but a party could not be told.
        """
        _, untold = run_interruptibly(cancel_job(self._folder, self._identity, self._addresses, reason))
        if untold:
            raise PeerError(f"the job is cancelled, but {', '.join(untold)} could not be told", party=untold[0])

    def __repr__(self) -> str:
        record = self._folder.record()
        return f"JobHandle({record.name!r}, {self.id[:12]}, {record.job.state})"

    def _repr_html_(self) -> str:
        record = self._folder.record()
        waits = ", ".join(record.job.waits_for) if not record.job.over else ""
        note = record.job.problem.message if record.job.problem is not None else (f"waits for {waits}" if waits else "")
        return f"<b>{html.escape(record.name)}</b> <code>{self.id[:12]}</code> {html.escape(record.job.state)}" + (
            f"<br>{html.escape(note)}" if note else ""
        )

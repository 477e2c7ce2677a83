"""Jobs that the party's own people have ended, in `node.db`: a running node looks here, and begins none of them."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.audit.events import OwnerCancelled
from link.errors import CancelledByOwner, ComineError, from_code
from party.state.node_database import NodeTables


class OwnerEnds(NodeTables):
    """The table of these jobs. Calls are short, and may be made from any thread."""

    def follow_owner_ends(self, events: Iterable[OwnerCancelled]) -> None:
        """Takes note of what the audit log says; what is known already stays as it is."""
        with self._using() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO owner_ends (job, code, by, reason) VALUES (?, ?, ?, ?)",
                [(event.job, CancelledByOwner.code, event.by, event.reason) for event in events],
            )

    def owner_end(self, job_id: bytes, me: str) -> ComineError | None:
        """What the others are told of a job that was ended so; None of any other.

        Args:
            job_id: The job.
            me: This party.
        """
        with self._using() as connection:
            row = connection.execute("SELECT code, by, reason FROM owner_ends WHERE job = ?", (job_id,)).fetchone()
        return None if row is None else from_code(row[0], f"{row[1]} at {me} cancelled the job: {row[2]}", party=me)

    def forget_owner_ends(self) -> None:
        """Forgets those of jobs that are forgotten, and can be proposed no more."""
        with self._using() as connection:
            connection.execute("DELETE FROM owner_ends WHERE job NOT IN (SELECT job_id FROM jobs)")

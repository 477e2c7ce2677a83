"""Jobs that the party's own people have ended, in `node.db`: a running node looks here, and begins none of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.audit.events import HoldWithheld, OwnerCancelled
from link.errors import CancelledByOwner, ComineError, ResultWithheld, from_code
from party.state.node_database import NodeTables

DEADLINE: Final = "deadline"  # who withholds where nobody has decided in time


class OwnerEnds(NodeTables):
    """The table of these jobs. Calls are short, and may be made from any thread."""

    def follow_owner_ends(self, events: Iterable[OwnerCancelled | HoldWithheld]) -> None:
        """Takes note of what the audit log says; what is known already stays as it is."""
        with self._using() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO owner_ends (job, code, by, reason) VALUES (?, ?, ?, ?)",
                [(event.job, _code(event), event.by, event.reason) for event in events],
            )

    def owner_end(self, job_id: bytes, me: str) -> ComineError | None:
        """What the others are told of a job that was ended so; None of any other.

        Args:
            job_id: The job.
            me: This party.
        """
        with self._using() as connection:
            row = connection.execute("SELECT code, by, reason FROM owner_ends WHERE job = ?", (job_id,)).fetchone()
        if row is None:
            return None
        if row[0] == ResultWithheld.code:
            return withheld(me)
        return from_code(row[0], f"{row[1]} at {me} cancelled the job: {row[2]}", party=me)

    def forget_owner_ends(self) -> None:
        """Forgets those of jobs that are forgotten, and can be proposed no more."""
        with self._using() as connection:
            connection.execute("DELETE FROM owner_ends WHERE job NOT IN (SELECT job_id FROM jobs)")


def withheld(me: str) -> ResultWithheld:
    """What others are told where a result is withheld, by whom and why ever."""
    return ResultWithheld(f"{me} withholds the result of this job, as its policy lets it; ask its people", party=me)


def _code(event: OwnerCancelled | HoldWithheld) -> str:
    return ResultWithheld.code if isinstance(event, HoldWithheld) else CancelledByOwner.code

"""Which people have approved the jobs that need the approval of several, in `node.db`, as the audit log has them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from jobs.audit.events import ApprovalGiven
from party.state.node_database import NodeTables


class Voice(NamedTuple):
    """One person's approval.

    Attributes:
        by: Who.
        runs: What they approve in advance, in the words of the audit log.
    """

    by: str
    runs: str


class Voices(NodeTables):
    """The table of these approvals. Calls are short, and may be made from any thread."""

    def follow_voices(self, events: Iterable[ApprovalGiven]) -> None:
        """Takes note of what the audit log says; of one person the first approval counts."""
        with self._using() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO voices (job, person, by, runs) VALUES (?, ?, ?, ?)",
                [(event.job, person(event.by), event.by, event.runs) for event in events],
            )

    def voices(self, job_id: bytes) -> tuple[Voice, ...]:
        """Who has approved a job, of those whose approvals are counted."""
        with self._using() as connection:
            rows = connection.execute("SELECT by, runs FROM voices WHERE job = ? ORDER BY person", (job_id,)).fetchall()
        return tuple(Voice(*row) for row in rows)

    def forget_voices(self) -> None:
        """Forgets those on jobs that are forgotten, unless runs of them are approved in advance."""
        with self._using() as connection:
            connection.execute(
                "DELETE FROM voices WHERE job NOT IN (SELECT job_id FROM jobs UNION SELECT job FROM standing)"
            )


def person(by: str) -> str:
    """A name as it is compared: one person does not become two by another way of writing it."""
    return " ".join(unicodedata.normalize("NFKC", by).casefold().split())

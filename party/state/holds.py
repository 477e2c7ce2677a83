"""What jobs have found that the party's people have yet to release, in `node.db`: how nodes and people meet there."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from party.state.node_database import NodeTables
from protos.v1.control_pb2 import CANCELLED, FAILED, RELEASING, RUNNING, JobState

_RUNNING: Final = tuple(map(JobState.Name, (RUNNING, RELEASING)))
_LOST: Final = tuple(map(JobState.Name, (FAILED, CANCELLED)))  # from which another attempt may begin


class Held(NamedTuple):
    """A result that is held, or was.

    Attributes:
        job_id: Of which job.
        digest: Of what was found.
        shown: What people are shown of it: JSON values.
        released_by: Who has released it; empty where nobody has.
    """

    job_id: bytes
    digest: bytes
    shown: dict[str, Any]
    released_by: str


class Holds(NodeTables):
    """The table of these results. Calls are short, and may be made from any thread."""

    def hold(self, job_id: bytes, digest: bytes, shown: dict[str, Any]) -> Held:
        """Holds a result, and returns how that stands: released, where the same result of an earlier attempt was."""
        with self._changing() as connection:
            connection.execute("DELETE FROM holds WHERE job = ? AND digest != ?", (job_id, digest))
            connection.execute(
                "INSERT INTO holds (job, digest, shown) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET shown = excluded.shown",
                (job_id, digest, json.dumps(shown)),
            )
        held = self.held(job_id)
        assert held is not None
        return held

    def held(self, job_id: bytes) -> Held | None:
        """What is held of a job, or was; None where nothing was."""
        with self._using() as connection:
            row = connection.execute(
                "SELECT job, digest, shown, released_by FROM holds WHERE job = ?", (job_id,)
            ).fetchone()
        return None if row is None else Held(row[0], row[1], json.loads(row[2]), row[3])

    def unreleased(self, now: float) -> list[bytes]:
        """Jobs of which something is held that nobody has released: they run, or their proposals hold yet.

        Args:
            now: Unix seconds.
        """
        rows = (
            "SELECT job FROM holds JOIN jobs ON job_id = job WHERE released_by = '' "
            "AND (state IN (?, ?) OR (state IN (?, ?) AND expiry > ?)) ORDER BY received, job"
        )
        with self._using() as connection:
            return [bytes(job) for (job,) in connection.execute(rows, (*_RUNNING, *_LOST, now))]

    def let_go(self, job_id: bytes, by: str) -> None:
        """Notes who has released the result of a job."""
        with self._using() as connection:
            connection.execute("UPDATE holds SET released_by = ? WHERE job = ?", (by, job_id))

    def forget_holds(self) -> None:
        """Forgets those of jobs that are forgotten."""
        with self._using() as connection:
            connection.execute("DELETE FROM holds WHERE job NOT IN (SELECT job_id FROM jobs)")

"""The jobs in `node.db` that have ended: a part of them at a time, the newest first."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from party.jobs.job import ENDS
from party.state.node_database import NodeTables
from protos.v1.control_pb2 import EXPIRED, JobState

_OPEN: Final = ("APPROVED", "AWAITING_APPROVAL")  # which expire whether or not a node is there to see it


class Filter(NamedTuple):
    """Which jobs are asked for.

    Attributes:
        now: Unix seconds.
        state: How they ended; None for all ends.
        coordinator: Who proposed them; empty for all.
        dataset: On which data; empty for all.
    """

    now: float
    state: JobState.ValueType | None = None
    coordinator: str = ""
    dataset: str = ""


class PastJobs(NodeTables):
    """These jobs. Calls are short, and may be made from any thread."""

    def count_past(self, which: Filter) -> int:
        """How many there are."""
        where, values = _where(which)
        with self._using() as connection:
            return int(connection.execute(f"SELECT count(*) FROM jobs WHERE {where}", values).fetchone()[0])  # noqa: S608

    def past(self, which: Filter, start: int, number: int) -> list[bytes]:
        """The ids of some of them, from the one at `start`."""
        where, values = _where(which)
        statement = f"SELECT job_id FROM jobs WHERE {where} ORDER BY received DESC, job_id LIMIT ? OFFSET ?"  # noqa: S608
        with self._using() as connection:
            return [job_id for (job_id,) in connection.execute(statement, (*values, number, start))]


def _where(which: Filter) -> tuple[str, tuple[Any, ...]]:
    ends = sorted(JobState.Name(state) for state in (ENDS if which.state is None else (which.state,)))
    where, values = f"state IN ({', '.join('?' * len(ends))})", list[Any](ends)
    if which.state in (None, EXPIRED):
        where = f"({where} OR state IN (?, ?) AND expiry <= ?)"
        values += [*_OPEN, which.now]
    for column, value in (("coordinator", which.coordinator), ("dataset", which.dataset)):
        if value:
            where += f" AND {column} = ?"
            values.append(value)
    return where, tuple(values)

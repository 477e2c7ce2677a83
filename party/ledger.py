"""The privacy ledger: what each start of a job may cost the records of its dataset, written before anything leaves.

A start is charged once, whatever becomes of it: a party that dies, or loses its peers, cannot know what they have seen.
Another attempt of a job draws its noise anew and is charged anew. Nothing is ever taken back. What is recorded is on
disk when the call returns, and survives the end of the process and a loss of power.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from jobs.privacy_account import Charge
from party.node_database import open_database, translated


@dataclass(frozen=True, slots=True)
class Entry:
    """What one start of a job was charged.

    Attributes:
        job_id: The job.
        attempt: Counts its starts, from 1.
        time: Of the start, Unix seconds.
        dataset: Whose records it may cost that much.
        name: Of the job, for people.
        coordinator: Who proposed it.
        charge: What it may cost.
        state: How far the job has come; empty where the node knows no such job any more.
    """

    job_id: bytes
    attempt: int
    time: float
    dataset: str
    name: str
    coordinator: str
    charge: Charge
    state: str = ""


class Ledger:
    """The charges of one party. Calls are short, and may be made from any thread.

    Args:
        path: `node.db`.
        connection: To it, by which what is written survives a loss of power.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Opens the database, and makes it where there is none.

        Raises:
            ConfigurationError: The file is no such database, damaged, or of a newer version.
            ResourceError: It cannot be read or written.
        """
        return cls(path, open_database(path, "FULL"))

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def record(self, entry: Entry) -> None:
        """Charges a start, once; it is on disk when this returns.

        Raises:
            ComineError: It cannot be written, so the job must not start.
        """
        charge = entry.charge
        amounts = (None if x is None else str(x) for x in (charge.local_epsilon, charge.epsilon, charge.delta))
        with self._lock, translated(self._path):
            self._connection.execute(
                "INSERT INTO charges (job_id, attempt, time, dataset, name, coordinator, model, local_epsilon, "
                "epsilon, delta) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    entry.job_id,
                    entry.attempt,
                    entry.time,
                    entry.dataset,
                    entry.name,
                    entry.coordinator,
                    charge.model,
                    *amounts,
                ),
            )

    def entries(self, dataset: str, since: float | None = None) -> list[Entry]:
        """What was charged on a dataset, the first first.

        Args:
            dataset: Its name.
            since: Only what was started after this time, in Unix seconds.
        """
        return self._select("dataset = ? AND time > ?", dataset, float("-inf") if since is None else since)

    def of_job(self, job_id: bytes) -> list[Entry]:
        """What the starts of one job were charged."""
        return self._select("job_id = ?", job_id)

    def datasets(self) -> list[str]:
        """The names of all datasets that anything was charged on."""
        with self._lock, translated(self._path):
            return [name for (name,) in self._connection.execute("SELECT DISTINCT dataset FROM charges ORDER BY 1")]

    def _select(self, where: str, *values: object) -> list[Entry]:
        statement = (
            "SELECT job_id, attempt, time, dataset, name, coordinator, model, local_epsilon, epsilon, delta, "  # noqa: S608
            f"(SELECT state FROM jobs WHERE jobs.job_id = charges.job_id) FROM charges WHERE {where} "
            "ORDER BY time, job_id, attempt"
        )
        with self._lock, translated(self._path):
            return list(map(_entry, self._connection.execute(statement, values)))


def charges(entries: Iterable[Entry], *, without: tuple[bytes, int] | None = None) -> tuple[Charge, ...]:
    """What entries cost.

    Args:
        entries: Of a ledger.
        without: A job and its attempt, which is not to count where it was charged already.
    """
    return tuple(entry.charge for entry in entries if (entry.job_id, entry.attempt) != without)


def _entry(row: tuple[Any, ...]) -> Entry:
    job_id, attempt, time, dataset, name, coordinator, model, *amounts, state = row
    local_epsilon, epsilon, delta = (None if amount is None else Decimal(amount) for amount in amounts)
    cost = Charge(model, local_epsilon, epsilon, delta)
    return Entry(job_id, attempt, time, dataset, name, coordinator, cost, state or "")

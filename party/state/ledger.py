"""The privacy ledger: what each start of a job may cost the records of its dataset, written before anything leaves.

A start is charged once, whatever becomes of it: a party that dies, or loses its peers, cannot know what they have seen.
A job under noise is charged with its first start alone, since other attempts repeat the very same noise, from coins
that are kept (`mining.joint.coins`). Nothing is ever taken back. What is recorded is on disk when the call returns, and
survives the end of the process and a loss of power.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

from jobs.privacy_account import Charge
from party.state.joint_results import JointResults


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


class Ledger(JointResults):
    """The charges of one party. Calls are short, and may be made from any thread."""

    def record(self, entry: Entry) -> bool:
        """Charges a start, once, and under noise the first of a job alone; it is on disk when this returns.

        Returns:
            Whether it had not been charged yet.

        Raises:
            ComineError: It cannot be written, so the job must not start.
        """
        charge = entry.charge
        amounts = [None if x is None else str(x) for x in (charge.local_epsilon, charge.epsilon, charge.delta)]
        with self._changing() as connection:
            done = connection.execute(
                "INSERT INTO charges (job_id, attempt, time, dataset, name, coordinator, model, local_epsilon, "
                "epsilon, delta) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS "
                "(SELECT 1 FROM charges WHERE job_id = ? AND epsilon IS NOT NULL) ON CONFLICT DO NOTHING",
                (
                    entry.job_id,
                    entry.attempt,
                    entry.time,
                    entry.dataset,
                    entry.name,
                    entry.coordinator,
                    charge.model,
                    *amounts,
                    entry.job_id,
                ),
            )
            if done.rowcount == 1:
                connection.execute(
                    "INSERT INTO spent VALUES (?, ?, ?, ?, ?, 1) "
                    "ON CONFLICT (dataset, model, local_epsilon, epsilon, delta) DO UPDATE SET starts = starts + 1",
                    (entry.dataset, charge.model, *(amount or "" for amount in amounts)),
                )
        return done.rowcount == 1

    def entries(self, dataset: str, since: float | None = None) -> list[Entry]:
        """What was charged on a dataset, the first first.

        Args:
            dataset: Its name.
            since: Only what was started after this time, in Unix seconds.
        """
        return self._select("dataset = ? AND time > ?", dataset, float("-inf") if since is None else since)

    def spent(self, dataset: str, since: float | None = None) -> Counter[Charge]:
        """How many starts on a dataset have cost what, those included whose jobs the node has forgotten.

        Args:
            dataset: Its name.
            since: Only what was started after this time, in Unix seconds; of that, only what a model bounds.
        """
        statement = "SELECT model, local_epsilon, epsilon, delta, starts FROM spent WHERE dataset = ?"
        values: tuple[object, ...] = (dataset,)
        if since is not None:
            statement = (
                "SELECT model, local_epsilon, epsilon, delta, 1 FROM charges "
                "WHERE dataset = ? AND time > ? AND epsilon IS NOT NULL"
            )
            values = dataset, since
        found: Counter[Charge] = Counter()
        with self._using() as connection:
            for model, *amounts, starts in connection.execute(statement, values):
                found[_charge(model, amounts)] += starts
        return found

    def of_job(self, job_id: bytes) -> list[Entry]:
        """What the starts of one job were charged."""
        return self._select("job_id = ?", job_id)

    def datasets(self) -> list[str]:
        """The names of all datasets that anything was charged on."""
        with self._using() as connection:
            return [name for (name,) in connection.execute("SELECT DISTINCT dataset FROM charges ORDER BY 1")]

    def _select(self, where: str, *values: object) -> list[Entry]:
        statement = (
            "SELECT job_id, attempt, time, dataset, name, coordinator, model, local_epsilon, "  # noqa: S608
            "epsilon, delta, "
            f"(SELECT state FROM jobs WHERE jobs.job_id = charges.job_id) FROM charges WHERE {where} "
            "ORDER BY time, job_id, attempt"
        )
        with self._using() as connection:
            return list(map(_entry, connection.execute(statement, values)))


def charges(spent: Counter[Charge], *, composed: bool) -> tuple[Charge, ...]:
    """What counted starts cost.

    Args:
        spent: As `Ledger.spent` gives it.
        composed: Whether each start counts by itself, as optimal composition needs it. Otherwise those that cost the
            same are one charge of their sum.
    """
    if composed:
        return tuple(spent.elements())
    with localcontext(Context(prec=200)):
        return tuple(Charge(cost.model, *_times(cost, starts)) for cost, starts in spent.items() if starts > 0)


def _times(cost: Charge, starts: int) -> Iterator[Decimal | None]:
    for amount in (cost.local_epsilon, cost.epsilon, cost.delta):
        yield None if amount is None else amount * starts


def _entry(row: tuple[Any, ...]) -> Entry:
    job_id, attempt, time, dataset, name, coordinator, model, *amounts, state = row
    cost = _charge(model, amounts)
    return Entry(job_id, attempt, time, dataset, name, coordinator, cost, state or "")


def _charge(model: Any, amounts: Iterable[str | None]) -> Charge:
    local_epsilon, epsilon, delta = (Decimal(amount) if amount else None for amount in amounts)
    return Charge(model, local_epsilon, epsilon, delta)

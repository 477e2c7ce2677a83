"""From a job specification to the code that runs it at a party."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.parameters import horizontal_mining
from jobs.spec import JobSpec
from link.session import Session
from mining.itemsets import Itemsets
from mining.joint.horizontal import mine
from mining.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task comes to at one party.

    Attributes:
        n_rows: Transactions of all parties together.
        itemsets: The frequent itemsets, at a party that learns them with their supports.
        strategy: The strategy that was taken.
    """

    n_rows: int
    itemsets: Itemsets | None
    strategy: str


async def run_task(session: Session, spec: JobSpec, data: Transactions, least_count: int = 1) -> Outcome:
    """Runs one party's part of a job's task. Rules follow from the itemsets where the result is written."""
    if spec.itemsets.exclude:
        data = await session.compute(data.without, spec.itemsets.exclude)
    found = await mine(session, data, horizontal_mining(spec), least_count)
    return Outcome(found.n_rows, found.itemsets, found.strategy)

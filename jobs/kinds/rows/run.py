"""One party's part in mining rows that parties hold for themselves, exactly."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.itemsets_outcome import found_itemsets, rows_taken
from jobs.kinds.kind import Resources
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint.horizontal import mine as horizontal


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    transactions = await rows_taken(session, spec, data)
    task = await session.compute(horizontal_mining, spec)
    found = await horizontal.mine(session, transactions, task, resources.least_count, resources.list_limits)
    return Outcome(found.n_rows, found.strategy, found_itemsets(spec, found.itemsets, found.rules))

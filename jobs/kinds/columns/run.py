"""One party's part in mining columns of the same rows at several parties, exactly."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.columns.parameters import vertical_mining
from jobs.kinds.data import table_rows_of
from jobs.kinds.itemsets_outcome import found_itemsets
from jobs.kinds.kind import Resources
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint.vertical import mine as vertical
from mining.joint.vertical import verified


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    table, task = table_rows_of(spec, data, session.me), await session.compute(vertical_mining, spec)
    least, limits = resources.least_count, resources.list_limits
    if task.is_verified:
        found = await verified.mine(session, table, task, least, limits)
    else:
        found = await vertical.mine(session, table, task, least, resources.dealings, limits)
    return Outcome(found.n_rows, found.strategy, found_itemsets(spec, found.itemsets, found.rules))

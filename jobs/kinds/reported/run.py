"""One party's part in estimates from perturbed records."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.itemsets_outcome import estimates, rows_taken
from jobs.kinds.kind import Resources
from jobs.kinds.reported.parameters import hybrid_mining
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint.hybrid.mine import mine


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    rows = await rows_taken(session, spec, data)
    task = await session.compute(hybrid_mining, spec)
    found = await mine(session, rows, task, resources.least_count, resources.spool_limits)
    return estimates(found, task.search)

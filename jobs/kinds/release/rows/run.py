"""One party's part in a release of rows."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.data import table_rows_of
from jobs.kinds.kind import Resources
from jobs.kinds.release.checks import check_insensitive, check_persons
from jobs.kinds.release.outcome import found_release
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.data.table_rows import TableRows
from mining.joint.anonymisation.anonymise import anonymise


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    task = await session.compute(joint_anonymisation, spec)
    rows: TableRows = table_rows_of(spec, data, session.me)
    await session.compute(check_persons, rows, session.me)
    await session.compute(check_insensitive, spec, rows, session.me)
    found = await anonymise(session, rows, task, resources.spool_limits)
    return found_release(task, found, session.parties)

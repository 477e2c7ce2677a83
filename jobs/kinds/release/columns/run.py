"""One party's part in a release of columns."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.alignment.groups import column_groups
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.data import table_rows_of
from jobs.kinds.kind import Resources
from jobs.kinds.release.checks import check_insensitive
from jobs.kinds.release.outcome import found_release
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint.anonymisation.vertical.anonymise import anonymise_columns


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    task = await session.compute(joint_anonymisation, spec)
    table = table_rows_of(spec, data, session.me)
    await session.compute(check_insensitive, spec, table, session.me)
    common, limits = row_alignment(spec), resources.list_limits
    found = await anonymise_columns(session, table, task, common, limits, column_groups(spec))
    return found_release(task, found, session.parties)

"""Jobs that anonymise: from their specification to the protocol, and what that discloses."""

from __future__ import annotations

from crypto.protocols.ot_stock import StockStore
from jobs.anonymize_parameters import joint_anonymisation
from jobs.anonymized import Anonymized
from jobs.parameters import row_alignment
from jobs.spec import JobSpec
from link.disclosure import Declared, Learned
from link.session import Session
from mining.joint.anonymisation import disclosure
from mining.joint.anonymisation.anonymise import anonymise
from mining.joint.anonymisation.vertical import disclosure as vertical
from mining.joint.anonymisation.vertical.anonymise import anonymise_columns
from mining.tables import Table


async def anonymise_rows(
    session: Session, spec: JobSpec, table: Table, stock: StockStore | None = None
) -> tuple[int, Anonymized | None]:
    """Runs one party's part.

    Returns:
        The number of rows of all parties, and the release at a party that learns it.

    Raises:
        ComineError: As the protocol says.
    """
    task = joint_anonymisation(spec)
    if spec.is_vertical:
        found = await anonymise_columns(session, table, task, row_alignment(spec), stock)
    else:
        found = await anonymise(session, table, task, stock)
    if found.rows is None:
        return found.n_rows, None
    return found.n_rows, Anonymized.of(task, found, session.parties)


def openings(spec: JobSpec) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    if spec.is_vertical:
        return vertical.openings(joint_anonymisation(spec), spec.job.parties, row_alignment(spec))
    return disclosure.openings(joint_anonymisation(spec), spec.job.parties)


def learned(spec: JobSpec) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    if spec.is_vertical:
        return vertical.learned(joint_anonymisation(spec), spec.job.parties, row_alignment(spec))
    return disclosure.learned(joint_anonymisation(spec), spec.job.parties)


def collusion(spec: JobSpec) -> str:
    """Which parties may work together without learning more, in words."""
    if spec.is_vertical:
        return vertical.collusion(joint_anonymisation(spec), spec.job.parties)
    return disclosure.collusion(joint_anonymisation(spec), spec.job.parties)

"""Jobs that anonymise: from their specification to the protocol, and what that discloses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import pyarrow as pa

from anonymize.blocks.counted_rows import CountedRows
from anonymize.blocks.sources import BLOCK_ROWS
from jobs.data import Data
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.data import table_of, table_rows_of
from jobs.kinds.kind import Resources
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.spec.job import JobSpec
from link.disclosure import Declared, Learned
from link.errors import InputDataError
from link.session import Session
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.anonymisation import disclosure
from mining.joint.anonymisation.anonymise import anonymise
from mining.joint.anonymisation.vertical import disclosure as vertical
from mining.joint.anonymisation.vertical.anonymise import anonymise_columns

JUDGED_FROM: Final = 20
"""Rows of a party below which it says nothing of a column that each has a value of its own."""


def check_persons(spec: JobSpec, table: TableRows, me: str) -> None:
    """Refuses rows of which several have one id: k would count rows. Columns of several parties have one row for each.

    Raises:
        InputDataError: There are such rows.
    """
    if spec.is_vertical or not table.id_columns:
        return
    with tempfile.TemporaryDirectory() as scratch:  # used where ids do not fit memory
        counted = CountedRows(Path(scratch))
        for ids in table.only((), ids=True).parts(_ids):
            for start in range(0, ids.num_rows, BLOCK_ROWS):
                counted.add(ids.slice(start, BLOCK_ROWS))
        several = any((rows > 1).any() for _, rows in counted.sorted())
    if several:
        raise InputDataError(
            f"the data of {me} have several rows of one id ({', '.join(table.id_columns)}): k would count rows, and k "
            "rows may be one person's; keep one row for each, or set id = [] where the column names no person",
            party=me,
        )


def _ids(table: Table, _first: int) -> pa.Table:
    """The ids of a block."""
    return pa.table(list(table.ids), list(table.id_columns))


def check_insensitive(spec: JobSpec, table: TableRows, me: str) -> None:
    """Refuses a column that is to be published as it is and distinguishes most rows of this party.

    Raises:
        InputDataError: There is one that the job does not allow.
    """
    section = spec.anonymization
    for name in table.column_names:
        if name not in section.insensitive or name in section.allow_unique:
            continue
        _, rows = table.value_counts(name)
        if table.n_rows >= JUDGED_FROM and 2 * int((rows == 1).sum()) > table.n_rows:
            raise InputDataError(
                f"in the data of {me} most rows have a value of '{name}' of their own, and it is to be "
                "published as it is: anybody who knows a value finds its row; take another role, or if nobody can know "
                "it of a person, add it to allow_unique in the job",
                party=me,
            )


async def anonymise_rows(
    session: Session, spec: JobSpec, data: Data, resources: Resources
) -> tuple[int, Anonymized | None]:
    """Runs one party's part.

    Args:
        session: The job's session.
        spec: The job.
        data: This party's table.
        resources: What this party lends the job.

    Returns:
        The number of rows of all parties, and the release at a party that learns it.

    Raises:
        ComineError: As the protocol says.
    """
    task = await session.compute(joint_anonymisation, spec)
    rows: TableRows = table_rows_of(spec, data, session.me)
    await session.compute(check_persons, spec, rows, session.me)
    await session.compute(check_insensitive, spec, rows, session.me)
    if spec.is_vertical:
        table, limits = table_of(spec, data, session.me), resources.list_limits
        found = await anonymise_columns(session, table, task, row_alignment(spec), limits)
    else:
        found = await anonymise(session, rows, task, resources.spool_limits)
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
        return vertical.collusion(joint_anonymisation(spec), spec.job.parties, row_alignment(spec))
    return disclosure.collusion(joint_anonymisation(spec), spec.job.parties)


def worst(spec: JobSpec) -> str:
    """The worst that colluders could find out, in plain words."""
    if spec.is_vertical:
        return vertical.worst(joint_anonymisation(spec), spec.job.parties)
    return disclosure.worst(joint_anonymisation(spec), spec.job.parties)

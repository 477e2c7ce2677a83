"""What a party looks at before its rows enter a release."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import pyarrow as pa

from anonymize.blocks.counted_rows import CountedRows
from anonymize.blocks.sources import BLOCK_ROWS
from jobs.spec.job import JobSpec
from link.errors import InputDataError
from mining.data.table_rows import TableRows
from mining.data.tables import Table

JUDGED_FROM: Final = 20
"""Rows of a party below which it says nothing of a column that each has a value of its own."""


def check_persons(table: TableRows, me: str) -> None:
    """Refuses rows of which several have one id: k would count rows.

    Raises:
        InputDataError: There are such rows.
    """
    if not table.id_columns:
        return
    with tempfile.TemporaryDirectory() as scratch:  # used where ids do not fit memory
        counted = CountedRows(Path(scratch))
        for ids in table.only((), ids=True).parts(_ids):
            rows = pa.table(ids, list(table.id_columns))
            for start in range(0, rows.num_rows, BLOCK_ROWS):
                counted.add(rows.slice(start, BLOCK_ROWS))
        several = any((rows > 1).any() for _, rows in counted.sorted())
    if several:
        raise InputDataError(
            f"the data of {me} have several rows of one id ({', '.join(table.id_columns)}): k would count rows, and k "
            "rows may be one person's; keep one row for each, or set id = [] where the column names no person",
            party=me,
        )


def _ids(table: Table, _first: int) -> list[pa.Array]:
    """The ids of a block."""
    return list(table.ids)


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

"""What commits took, on disk: reports until a tally covers them, and who took part until the period is over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from party.services.frequency.storage.participants import SUBMITTERS, Participants, merged_submitters

_ALL: Final = (1 << 63) - 1


class Row(NamedTuple):
    """What one commit took for one round.

    Attributes:
        round: The round's row.
        number: Of the segment; in each round they ascend.
        size: How many reports it has.
        tags: Of the reports, 8 bytes each.
        submitters: Who sent them, as `SUBMITTERS`.
        reports: `Reports.to_bytes`.
    """

    round: int
    number: int
    size: int
    tags: bytes
    submitters: bytes
    reports: bytes


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Writes segments."""
    connection.executemany(f"INSERT INTO segments ({', '.join(Row._fields)}) VALUES (?, ?, ?, ?, ?, ?)", rows)  # noqa: S608


def waiting(connection: sqlite3.Connection, round_row: int) -> list[tuple[int, int, int]]:
    """The segments of a round that no tally covers: number, reports, and bytes of these."""
    which = "SELECT number, size, length(reports) FROM segments WHERE round = ? ORDER BY number"
    return connection.execute(which, (round_row,)).fetchall()


def reports_of(connection: sqlite3.Connection, round_row: int, number: int) -> bytes:
    """The reports of a segment."""
    which = "SELECT reports FROM segments WHERE round = ? AND number = ?"
    ((data,),) = connection.execute(which, (round_row, number))
    assert isinstance(data, bytes)
    return data


def participants(connection: sqlite3.Connection, period_row: int) -> Participants:
    """Who took part in a period, in all its rounds."""
    which = "SELECT key, collection, number FROM periods WHERE row = ?"
    ((key, collection, number),) = connection.execute(which, (period_row,))
    rows = connection.execute(
        "SELECT tags, submitters FROM taken WHERE period = ? UNION ALL SELECT tags, submitters FROM segments "
        "WHERE round IN (SELECT row FROM rounds WHERE collection = ? AND period = ?)",
        (period_row, collection, number),
    ).fetchall()
    return Participants(key, np.frombuffer(_joined(rows, 0), "<u8"), np.frombuffer(_joined(rows, 1), SUBMITTERS))


def compact(connection: sqlite3.Connection, round_row: int, period_row: int | None, last: int | None = None) -> int:
    """Deletes segments that a tally covers, but keeps who took part.

    Args:
        connection: To the database.
        round_row: Of the round.
        period_row: Of its period; None: who took part is forgotten, too.
        last: The last of these segments; None: of all.

    Returns:
        How many reports they had.
    """
    which = "FROM segments WHERE round = ? AND number <= ?"
    values = (round_row, _ALL if last is None else last)
    rows = connection.execute(f"SELECT tags, submitters, size {which}", values).fetchall()
    if rows and period_row is not None:
        submitters = merged_submitters(np.frombuffer(_joined(rows, 1), SUBMITTERS))
        connection.execute(
            "INSERT INTO taken (period, tags, submitters) VALUES (?, ?, ?)",
            (period_row, _joined(rows, 0), submitters.tobytes()),
        )
    connection.execute(f"DELETE {which}", values)
    return sum(row[2] for row in rows)


def sweep(connection: sqlite3.Connection) -> bool:
    """Deletes some of the tags of periods that are over; whether there were any."""
    orphans = "SELECT row FROM taken WHERE period NOT IN (SELECT row FROM periods) LIMIT 1"
    return connection.execute(f"DELETE FROM taken WHERE row IN ({orphans})").rowcount > 0  # noqa: S608


def _joined(rows: list[Any], column: int) -> bytes:
    return b"".join(row[column] for row in rows)

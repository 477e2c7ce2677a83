"""`queries.db`: every query that was decided, and what auditors go on from.

    datasets    how records are known: by which ids; or where there are none, how many there were, digests of columns
    auditors    what audits a column, and a random id by which the file of its state is known
    variables   of datasets with ids, digests of each id and value that an auditor has met; they are numbered in order
    decisions   the queries, who asked, how they were decided, and the rank of answered sums until then; of answered
                ones the records and the answer

A decision is on disk when `decided` returns, and only then may it leave. A denied query adds nothing to what an auditor
knows, so its records are not kept.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymize.auditing.decision import Reason
from crypto.primitives.randomness import Randomness
from party.state.database import Kind, StateDatabase

FILE: Final = "queries.db"
_TABLES: Final = """
CREATE TABLE datasets (
    name TEXT PRIMARY KEY,
    records INTEGER NOT NULL,
    digests TEXT NOT NULL
);
CREATE TABLE auditors (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL,
    column TEXT NOT NULL,
    id BLOB NOT NULL,
    UNIQUE (dataset, column)
);
CREATE TABLE variables (
    auditor INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BLOB NOT NULL,
    PRIMARY KEY (auditor, number)
) WITHOUT ROWID;
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    auditor INTEGER NOT NULL,
    time REAL NOT NULL,
    coordinator TEXT NOT NULL,
    query TEXT NOT NULL,
    class TEXT NOT NULL,
    reason TEXT NOT NULL,
    rank INTEGER,
    records BLOB,
    value REAL
);
CREATE INDEX decisions_of_auditor ON decisions (auditor, number)
"""
KIND: Final = Kind(
    "query",
    "bring it back from a copy; without it earlier answers are not protected from new ones",
    0x636F6D71,  # "comq"
    (_TABLES,),
    first=2,
    exclusive=True,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """The data from which earlier queries were answered.

    Attributes:
        records: How many; −1 where they are known by ids.
        digests: By column, of its first so many cells; of ids, the names alone.
    """

    records: int
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditorRow:
    """An auditor as the log knows it.

    Attributes:
        row: Its number.
        id: 16 random bytes, by which the file of its state is known from others.
    """

    row: int
    id: bytes


class Answers(NamedTuple):
    """All queries of a dataset that were answered.

    Attributes:
        number: How many.
        size: Bytes that they take.
    """

    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A query that was answered.

    Attributes:
        number: Of the decision.
        query_class: Its class.
        records: The variables that it is about, ascending.
        value: What the auditor was given: the sum, maximum, minimum or count.
    """

    number: int
    query_class: str
    records: NDArray[np.int64]
    value: float


class QueryLog(StateDatabase):
    """All decisions of one node. Calls may be made from any thread; those that write wait for the disk."""

    KIND = KIND

    # -- data --------------------------------------------------------------------------------------------------------
    def bound(self, dataset: str) -> Bound | None:
        """The data to which earlier decisions belong; None where there is none."""
        with self._using() as connection:
            found = connection.execute("SELECT records, digests FROM datasets WHERE name = ?", (dataset,)).fetchone()
            return None if found is None else Bound(found[0], _digests(found[1]))

    def bind(self, dataset: str, bound: Bound) -> None:
        """Notes to which data the decisions from now on belong."""
        row = (dataset, bound.records, json.dumps(dict(bound.digests)))
        with self._changing() as connection:
            connection.execute("INSERT OR REPLACE INTO datasets VALUES (?, ?, ?)", row)

    # -- auditors ----------------------------------------------------------------------------------------------------
    def auditor(self, dataset: str, column: str) -> AuditorRow:
        """What audits a column; made where there is none."""
        select = "SELECT row, id FROM auditors WHERE dataset = ? AND column = ?"
        with self._changing() as connection:
            found = connection.execute(select, (dataset, column)).fetchone()
            if found is None:
                drawn = Randomness.from_os().bytes(16)
                connection.execute(
                    "INSERT INTO auditors (dataset, column, id) VALUES (?, ?, ?)", (dataset, column, drawn)
                )
                found = connection.execute(select, (dataset, column)).fetchone()
        return AuditorRow(*found)

    def variables(self, auditor: AuditorRow) -> dict[bytes, int]:
        """The variables of an auditor, by digests of id and value."""
        select = "SELECT cell, number FROM variables WHERE auditor = ?"
        with self._using() as connection:
            return dict(connection.execute(select, (auditor.row,)).fetchall())

    def remember(self, auditor: AuditorRow, cells: Sequence[bytes], first: int) -> None:
        """Keeps new variables.

        Args:
            auditor: Whose.
            cells: Digests of ids and values.
            first: The number of the first of them.
        """
        if not cells:
            return
        rows = ((auditor.row, first + number, cell) for number, cell in enumerate(cells))
        with self._changing() as connection:
            connection.executemany("INSERT INTO variables VALUES (?, ?, ?)", rows)

    @property
    def head(self) -> int:
        """The number of the last decision."""
        with self._using() as connection:
            return int(connection.execute("SELECT coalesce(max(number), 0) FROM decisions").fetchone()[0])

    # -- decisions ---------------------------------------------------------------------------------------------------
    def decided(
        self,
        auditor: AuditorRow,
        coordinator: str,
        query: str,
        query_class: str,
        reason: Reason | None,
        rank: int | None,
        records: bytes | None = None,
        value: float | None = None,
    ) -> int:
        """Keeps a decision; it is on disk when this returns.

        Args:
            auditor: Whose.
            coordinator: Who asked.
            query: In which words.
            query_class: Of which class.
            reason: Why it is denied; None where it is answered.
            rank: How many independent sums the auditor knew before; None where it audits something else.
            records: The variables that an answered one is about, as `packed` gives them.
            value: What the auditor is given of the answer.

        Returns:
            The decision's number, by which this node's decisions are in the order in which they were made.
        """
        with self._changing() as connection:
            written = connection.execute(
                "INSERT INTO decisions (auditor, time, coordinator, query, class, reason, rank, records, value) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (auditor.row, time.time(), coordinator, query, query_class, reason or "", rank, records, value),
            )
        assert written.lastrowid is not None
        return written.lastrowid

    def answers(self, dataset: str) -> Answers:
        """The queries that were answered of a dataset."""
        count = (
            "SELECT count(*), coalesce(sum(length(records) + length(query)), 0) FROM decisions "
            "JOIN auditors ON auditor = row WHERE dataset = ? AND reason = '' AND records IS NOT NULL"
        )
        with self._using() as connection:
            return Answers(*connection.execute(count, (dataset,)).fetchone())

    def knows(self, auditor: AuditorRow, number: int) -> bool:
        """Whether a decision of that number was made for an auditor."""
        select = "SELECT 1 FROM decisions WHERE auditor = ? AND number = ?"
        with self._using() as connection:
            return connection.execute(select, (auditor.row, number)).fetchone() is not None

    def answered(self, auditor: AuditorRow, after: int = 0) -> Iterator[Answered]:
        """The queries of an auditor that were answered after a decision, in their order."""
        select = (
            "SELECT number, class, records, value FROM decisions WHERE auditor = ? AND number > ? AND reason = '' "
            "ORDER BY number LIMIT 1"
        )
        number = after
        while True:
            with self._using() as connection:
                found = connection.execute(select, (auditor.row, number)).fetchone()
                records = None if found is None else _records(found[2])
            if records is None:
                return
            number = found[0]
            yield Answered(number, found[1], records, found[3])


def _digests(text: str) -> dict[str, str]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(digest, str) for digest in found.values()):
        raise ValueError("these are no digests of columns")
    return found


def packed(records: NDArray[np.bool_]) -> bytes:
    """A set of variables as it is kept: one bit for each, compressed."""
    return zlib.compress(np.packbits(records).tobytes(), 1)


def _records(packed: bytes) -> NDArray[np.int64]:
    try:
        return np.flatnonzero(np.unpackbits(np.frombuffer(zlib.decompress(packed), np.uint8)))
    except zlib.error as error:
        raise ValueError(str(error)) from None

"""`releases.db`: which releases of a dataset have left, and which requests came to nothing on its rows.

Several releases together tell more than each, and the threshold from which on there is none tells of the rows, too.
Either is in the database before anything of it leaves. The same rows once more, or the same request, tell nothing new,
and count once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from link.errors import PolicyDenied
from party.database import alone, connect, make_private, prepare, told

FILE: Final = "releases.db"
VERSION: Final = 1
APPLICATION: Final = 0x636D6172  # "cmar"
BUSY_S: Final = 10.0

_TABLES: Final = f"""
CREATE TABLE releases (
    dataset TEXT NOT NULL,
    release BLOB NOT NULL,
    request BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (dataset, release)
);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION}
"""
_FAILURES: Final = """
CREATE TABLE IF NOT EXISTS failures (
    dataset TEXT NOT NULL,
    request BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (dataset, request)
)
"""  # beside the others, as databases from before it was kept lack it


class Releases:
    """The database; any thread may use it.

    Args:
        path: Its file.
        connection: To it.
        me: This party.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, me: str) -> None:
        self._path, self._connection, self._me = path, connection, me
        self._alone = Lock()

    @classmethod
    def open(cls, path: Path, me: str) -> Releases:
        """Opens the database, and makes it where there is none.

        Raises:
            ConfigurationError: The file is another's, damaged, or of another version.
            ResourceError: It cannot be used.
        """
        make_private(path, folder=True)
        with told(path, "releases", "move it away; releases before then no longer count"):
            connection = connect(path, BUSY_S, "synchronous = FULL")
            try:
                prepare(connection, path, "releases", _TABLES, APPLICATION, VERSION)
                connection.execute(_FAILURES)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, me)

    def check(self, dataset: str, request: bytes, most: int, most_failures: int) -> None:
        """Refuses a request that could only give one release or one failure too many, before any work is done for it.

        Args:
            dataset: Of which dataset.
            request: Digest of what is asked.
            most: How many different releases may leave.
            most_failures: How many different requests may come to nothing.

        Raises:
            PolicyDenied: As many have left or failed, and no release has left at such a request.
        """
        select = "SELECT count(*), coalesce(max(request = ?), 0) FROM releases WHERE dataset = ?"
        with self._using() as connection:
            left, known = connection.execute(select, (request, dataset)).fetchone()
            (failed,) = connection.execute("SELECT count(*) FROM failures WHERE dataset = ?", (dataset,)).fetchone()
        if known:
            return
        if left >= most:
            raise self._denied(dataset, most)
        if failed >= most_failures:
            raise PolicyDenied(
                f"the policy of {self._me} lets {most_failures} requests for releases of '{dataset}' come to nothing "
                "on its rows (rule max_failures), and as many have; a release that has left may be asked for again",
                party=self._me,
            )

    def admit(self, dataset: str, release: bytes, request: bytes, coordinator: str, most: int) -> None:
        """Writes down that a release leaves; it is on disk when this returns.

        Args:
            dataset: Of which dataset.
            release: Digest of its rows.
            request: Digest of what was asked.
            coordinator: Who asked.
            most: How many different releases may leave.

        Raises:
            PolicyDenied: As many have left, and this is none of them.
        """
        with self._using() as connection, alone(connection):
            known = "SELECT 1 FROM releases WHERE dataset = ? AND release = ?"
            if connection.execute(known, (dataset, release)).fetchone() is not None:
                return
            (left,) = connection.execute("SELECT count(*) FROM releases WHERE dataset = ?", (dataset,)).fetchone()
            if left >= most:
                raise self._denied(dataset, most)
            row = (dataset, release, request, coordinator, time.time())
            connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?)", row)

    def fail(self, dataset: str, request: bytes, coordinator: str) -> None:
        """Writes down that a request came to nothing on the data; it is on disk when this returns.

        Args:
            dataset: Of which dataset.
            request: Digest of what was asked.
            coordinator: Who asked.
        """
        with self._using() as connection, alone(connection):
            row = (dataset, request, coordinator, time.time())
            connection.execute("INSERT OR IGNORE INTO failures VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    def _denied(self, dataset: str, most: int) -> PolicyDenied:
        return PolicyDenied(
            f"the policy of {self._me} lets {most} different releases of '{dataset}' leave in all (rule max_releases), "
            "and as many have; one that has left may be asked for again",
            party=self._me,
        )

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._alone, told(self._path, "releases", "move it away; releases before then no longer count"):
            yield self._connection

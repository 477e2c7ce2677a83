"""`releases.db`: which releases of a dataset have left, and which requests came to nothing on its rows.

Several releases together reveal more than each, and so does the threshold from which on there is none.
Either is in the database before anything of it leaves. The same rows once more, or the same request, reveal nothing
new, and count once. Joint releases and those of this node alone count together, over all who ask and all datasets of
one source.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from link.errors import PolicyDenied
from party.state.database import Held, Kind, StateDatabase

FILE: Final = "releases.db"

_TABLES: Final = """
CREATE TABLE releases (
    dataset TEXT NOT NULL,
    release BLOB NOT NULL,
    request BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (dataset, release)
)
"""
_MORE: Final = """
CREATE TABLE IF NOT EXISTS failures (
    dataset TEXT NOT NULL,
    request BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (dataset, request)
);
CREATE TABLE IF NOT EXISTS joint (
    job BLOB PRIMARY KEY,
    dataset TEXT NOT NULL,
    coordinator TEXT NOT NULL,
    at REAL NOT NULL,
    came_to_nothing INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS head (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL);
INSERT OR IGNORE INTO head VALUES (1, 0);
CREATE TRIGGER IF NOT EXISTS releases_count AFTER INSERT ON releases
    BEGIN UPDATE head SET number = number + 1; END;
CREATE TRIGGER IF NOT EXISTS failures_count AFTER INSERT ON failures
    BEGIN UPDATE head SET number = number + 1; END;
CREATE TRIGGER IF NOT EXISTS joint_count AFTER INSERT ON joint
    BEGIN UPDATE head SET number = number + 1; END
"""  # head: how much has been counted ever, by which an older copy is known. Of all that, first files have a part
KIND: Final = Kind(
    "releases",
    "bring it back from a copy; without it releases before then no longer count",
    0x636D6172,  # "cmar"
    (_TABLES, _MORE),
    busy_s=10.0,
)


class Counted(NamedTuple):
    """What has been made of the rows of a dataset.

    Attributes:
        releases: How many releases have left, or may have: a joint one counts from its start, unless it ended before
            anything of the rows could leave.
        failures: How many came to nothing on the rows.
    """

    releases: int = 0
    failures: int = 0


NOTHING: Final = Counted()


class Earlier(Enum):
    """As what earlier attempts of a joint release count."""

    NOTHING = "nothing"
    FAILURE = "failure"
    RELEASE = "release"


class Releases(StateDatabase):
    """The database; any thread may use it.

    Args:
        path: Its file.
        opened: It, open.
        me: This party.
        alike: By dataset, all datasets that have its source, itself among them; itself alone where it is missing.
    """

    KIND = KIND

    def __init__(
        self, path: Path, opened: Held, me: str, alike: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    ) -> None:
        super().__init__(path, opened)
        self._me, self._alike = me, alike

    def renew(self, alike: Mapping[str, tuple[str, ...]]) -> None:
        """Counts together what other datasets have one source."""
        self._alike = alike

    @property
    def head(self) -> int:
        """How much has been counted ever: it goes up with whatever leaves or fails."""
        with self._using() as connection:
            return int(connection.execute("SELECT number FROM head").fetchone()[0])

    def counted(self, dataset: str, without: bytes = b"") -> Counted:
        """What has been made of the rows of a dataset.

        Args:
            dataset: Its name.
            without: A job that is not counted.
        """
        with self._using() as connection:
            return self._counted(connection, dataset, without)

    def begin(self, dataset: str, job: bytes, coordinator: str, most: int) -> Earlier:
        """Writes down that an attempt of a joint release begins; it is on disk when this returns. A job counts once.

        It counts as a release from now on, also where it was a failure: this attempt may get further.

        Args:
            dataset: Of which dataset.
            job: The job's id.
            coordinator: Who proposed it.
            most: How many releases may leave.

        Returns:
            As what the job counted before, which is what `take_back` must know.

        Raises:
            PolicyDenied: As many have left.
        """
        with self._changing() as connection:
            if self._counted(connection, dataset, job).releases >= most:
                raise PolicyDenied(f"the policy of {self._me} {too_many(dataset, most)}", party=self._me)
            before = connection.execute("SELECT came_to_nothing FROM joint WHERE job = ?", (job,)).fetchone()
            connection.execute(
                "INSERT INTO joint (job, dataset, coordinator, at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET came_to_nothing = 0",
                (job, dataset, coordinator, time.time()),
            )
        if before is None:
            return Earlier.NOTHING
        return Earlier.FAILURE if before[0] else Earlier.RELEASE

    def came_to_nothing(self, job: bytes) -> None:
        """Writes down that the rows allowed no joint release, so that none of them has left."""
        with self._changing() as connection:
            connection.execute("UPDATE joint SET came_to_nothing = 1 WHERE job = ?", (job,))

    def take_back(self, job: bytes, earlier: Earlier) -> None:
        """Writes down that of this attempt of a joint release nothing has left: the job counts as before it.

        Args:
            job: The job's id.
            earlier: What `begin` returned for this attempt.
        """
        if earlier is Earlier.FAILURE:
            self.came_to_nothing(job)
        elif earlier is Earlier.NOTHING:
            with self._changing() as connection:
                connection.execute("DELETE FROM joint WHERE job = ?", (job,))

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
        with self._using() as connection:
            known = connection.execute(
                "SELECT 1 FROM releases WHERE request = ? AND dataset = ?", (request, dataset)
            ).fetchone()
            left, failed = self._counted(connection, dataset)
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
        """Writes down that a release leaves, and that its request has not failed; it is on disk when this returns.

        Args:
            dataset: Of which dataset.
            release: Digest of its rows.
            request: Digest of what was asked.
            coordinator: Who asked.
            most: How many different releases may leave.

        Raises:
            PolicyDenied: As many have left, and this is none of them.
        """
        with self._changing() as connection:
            connection.execute("DELETE FROM failures WHERE dataset = ? AND request = ?", (dataset, request))
            known = "SELECT 1 FROM releases WHERE dataset = ? AND release = ?"
            if connection.execute(known, (dataset, release)).fetchone() is not None:
                return
            if self._counted(connection, dataset).releases >= most:
                raise self._denied(dataset, most)
            row = (dataset, release, request, coordinator, time.time())
            connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?)", row)

    def fail(self, dataset: str, request: bytes, coordinator: str) -> None:
        """Writes down that a request comes to nothing on the data, unless it is admitted; on disk when this returns.

        Args:
            dataset: Of which dataset.
            request: Digest of what was asked.
            coordinator: Who asked.
        """
        with self._changing() as connection:
            row = (dataset, request, coordinator, time.time())
            connection.execute("INSERT OR IGNORE INTO failures VALUES (?, ?, ?, ?)", row)

    def _denied(self, dataset: str, most: int) -> PolicyDenied:
        return PolicyDenied(
            f"the policy of {self._me} {too_many(dataset, most)}; one that has left may be asked for again",
            party=self._me,
        )

    def _counted(self, connection: sqlite3.Connection, dataset: str, without: bytes = b"") -> Counted:
        found = NOTHING
        for name in self._alike.get(dataset, (dataset,)):
            (left,) = connection.execute("SELECT count(*) FROM releases WHERE dataset = ?", (name,)).fetchone()
            (failed,) = connection.execute("SELECT count(*) FROM failures WHERE dataset = ?", (name,)).fetchone()
            jobs = "SELECT count(*), coalesce(sum(came_to_nothing), 0) FROM joint WHERE dataset = ? AND job != ?"
            joint, nothing = connection.execute(jobs, (name, without)).fetchone()
            found = Counted(found.releases + left + joint - nothing, found.failures + failed + nothing)
        return found


def too_many(dataset: str, most: int) -> str:
    """The end of a sentence that begins with "the policy of NAME": no further release may leave."""
    return (
        f"lets {most} different releases of the rows of '{dataset}' leave in all (rule max_releases), joint ones among "
        "them, and as many have: of the same rows they combine, and reveal more than each"
    )

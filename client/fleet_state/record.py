"""What a gateway keeps on its disk of clients that it knows by ids: what each was made to report, before it is sent.

A second report of a client in a period would be a second perturbed answer to what was asked once. So whatever is about
to leave is written down first: the client, the collection, the period, and a digest of round, mechanism and value. The
same again is the same bits and costs nothing; anything else of that client in that period does not leave. What each
report has spent stands beside it, so that ledgers and budgets go on in the next process.

Clients and digests are keyed with the clients' secrets: without the gateway's secret the file reveals neither who
reported nor what.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from client.budget import DAY_S, KEPT_DAYS, exact
from client.database import Database
from client.pseudonym import PSEUDONYM_BYTES
from link.errors import ConfigurationError, ResourceError
from link.files import locks

DIGEST_BYTES: Final = 16
WAIT_S: Final = 60.0  # for another process that reports by the same record
_LOOK_S: Final = 0.05
_APPLICATION: Final = 0x636F6D67  # "comg"
_VERSION: Final = 2  # a collection with an id of its choice could have learned the names in the first
_SCHEMA: Final = f"""
CREATE TABLE reports (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection BLOB NOT NULL,
    period INTEGER NOT NULL,
    step INTEGER NOT NULL,
    at REAL NOT NULL,
    epsilon TEXT NOT NULL,
    clients BLOB NOT NULL,
    digests BLOB NOT NULL
);
CREATE INDEX reports_by_period ON reports (collection, period);
CREATE INDEX reports_by_time ON reports (at);
CREATE TABLE clocks (collection BLOB PRIMARY KEY, ahead REAL NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""

Rows = NDArray[np.uint8]
"""Shape (n, 16)."""


class Charged(NamedTuple):
    """What some clients have spent at once.

    Attributes:
        step: Of the collection's ledger.
        at: Unix seconds.
        epsilon: Each.
        clients: Their names in the record.
    """

    step: int
    at: float
    epsilon: Fraction
    clients: Rows


@dataclass(frozen=True, slots=True)
class Leaving:
    """Reports that are about to be sent.

    Attributes:
        collection: The collection's id.
        period: In which each client reports once.
        step: Of the collection's ledger.
        at: Unix seconds.
    """

    collection: bytes
    period: int
    step: int
    at: float


def digests_of(secrets: NDArray[np.uint8], terms: bytes, values: Rows) -> Rows:
    """What distinguishes reports.

    Args:
        secrets: Shape (n, 32): the clients'.
        terms: Round and mechanism.
        values: Digests of the clients' values.
    """
    keyed = zip(secrets, values, strict=True)
    found = b"".join(
        blake2b(value.tobytes() + terms, key=secret.tobytes(), digest_size=DIGEST_BYTES).digest()
        for secret, value in keyed
    )
    return np.frombuffer(found, np.uint8).reshape(len(secrets), DIGEST_BYTES)


class FleetRecord(Database):
    """The file; one process uses it at a time."""

    WHOSE, PLACE = "a gateway", "the folder of the gateway's secret"
    VERSION, APPLICATION, SCHEMA = _VERSION, _APPLICATION, _SCHEMA

    @classmethod
    @contextmanager
    def held(cls, path: Path) -> Generator[Self]:
        """The record of a secret that has one; other processes wait a while until this one is done.

        Raises:
            ConfigurationError: It is gone, empty, damaged, or of another version.
            ResourceError: It cannot be used, or another process does not leave it.
        """
        try:
            lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ResourceError(f"{path} cannot be locked ({error.strerror}); check {cls.PLACE}") from None
        try:
            cls._wait(lock, path)
            if not path.is_file() or not path.stat().st_size:
                raise ConfigurationError(
                    f"{path} is gone or empty, and without it clients would report once more what they have reported; "
                    "bring it back from a copy, or name another secret, with which all clients are new"
                )
            record = cls.open_file(path)
            try:
                yield record
            finally:
                record.close()
        finally:
            os.close(lock)

    @classmethod
    def _wait(cls, lock: int, path: Path) -> None:
        until = time.monotonic() + WAIT_S
        while True:
            try:
                locks.lock(lock)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise ResourceError(
                        f"another process has reported by {path} for more than {WAIT_S:.0f} s, and two at once could "
                        "send two reports of a client; wait until it is done, or end it, and send the reports again"
                    ) from None
                time.sleep(_LOOK_S)
            except OSError as error:
                raise ResourceError(f"{path} cannot be locked ({error.strerror}); check {cls.PLACE}") from None
            else:
                return

    @property
    def last(self) -> int:
        """The number of what was written last."""
        return int(self.execute("SELECT coalesce(max(row), 0) FROM reports").fetchone()[0])

    def latest(self, collection: bytes) -> int | None:
        """The last period in which anybody reported."""
        (found,) = self.execute("SELECT max(period) FROM reports WHERE collection = ?", collection).fetchone()
        return None if found is None else int(found)

    def sent(self, collection: bytes, period: int) -> tuple[Rows, Rows]:
        """Names of the clients that have reported in a period, and digests of what."""
        which = "SELECT clients, digests FROM reports WHERE collection = ? AND period = ?"
        found = self.execute(which, collection, period).fetchall()
        clients, digests = (b"".join(row[part] for row in found) for part in (0, 1))
        with self._translated():
            if len(clients) != len(digests):
                raise ValueError("not each client has a digest")
            return _rows(clients), _rows(digests)

    def charged(self, *, collection: bytes | None = None, after: float = 0.0) -> Iterator[Charged]:
        """What was spent, in the order of steps where it is of one collection, else of time."""
        columns = "SELECT step, at, epsilon, clients FROM reports WHERE epsilon != '0'"
        if collection is None:
            found = self.execute(f"{columns} AND at > ? ORDER BY at, row", after)
        else:
            found = self.execute(f"{columns} AND collection = ? ORDER BY step, row", collection)
        for step, at, epsilon, clients in found:
            with self._translated():
                charged = Charged(step, at, exact(epsilon), _rows(clients))
            yield charged

    def put(self, leaving: Leaving, *reports: tuple[Fraction, Rows, Rows]) -> None:
        """Writes down what is about to be sent; it is on the disk when this returns.

        Args:
            leaving: Where to, and when.
            *reports: What each of some clients spends, their names, and digests of their reports.
        """
        with self.transaction():
            for epsilon, clients, digests in reports:
                if len(clients):
                    self.execute(
                        "INSERT INTO reports (collection, period, step, at, epsilon, clients, digests) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?)",
                        *(leaving.collection, leaving.period, leaving.step, leaving.at),
                        *(str(epsilon), clients.tobytes(), digests.tobytes()),
                    )

    def forget(self, collection: bytes, period: int, now: float) -> None:
        """Forgets reports up to a period whose charges no budget counts any more; but never the latest."""
        self.execute(
            "DELETE FROM reports WHERE collection = ? AND period <= ? AND at < ?",
            *(collection, period, now - KEPT_DAYS * DAY_S),
        )

    def ahead(self, collection: bytes, found: float) -> float:
        """By how much the node's steps were ahead of the clock at least, this time included; kept from now on."""
        self.execute(
            "INSERT INTO clocks VALUES (?, ?) ON CONFLICT DO UPDATE SET ahead = min(ahead, excluded.ahead)",
            *(collection, found),
        )
        return float(self.execute("SELECT ahead FROM clocks WHERE collection = ?", collection).fetchone()[0])


def _rows(data: bytes) -> Rows:
    return np.frombuffer(data, np.uint8).reshape(-1, PSEUDONYM_BYTES)

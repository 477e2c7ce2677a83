"""`client.db`: all that a device must not forget, in one SQLite file that its owner alone may open.

The secret, the budget, what was spent and when, kept answers, what services have announced, and reports on their way.
What belongs together is written in one transaction, so at whatever moment the device stops, either all of it is there
or nothing. Two processes may use one folder: the second one waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from client.budget import DAY_S, KEPT_DAYS, exact
from client.database import Database
from client.pseudonym import PSEUDONYM_BYTES, SECRET_BYTES
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

FILE: Final = "client.db"
VERSION: Final = 1
KEPT_ROUNDS: Final = 10_000  # of a collection; who remembers no more takes part in no earlier ones

_ROUNDS_END: Final = 1 << 63
_APPLICATION: Final = 0x636F6D63  # "comc"
_SCHEMA: Final = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE collections (
    id BLOB PRIMARY KEY,
    node TEXT NOT NULL,
    name TEXT NOT NULL,
    description BLOB NOT NULL,
    UNIQUE (node, name)
) WITHOUT ROWID;
CREATE TABLE labels (digest BLOB PRIMARY KEY, lines BLOB NOT NULL);
CREATE TABLE announced (
    collection BLOB NOT NULL, round INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (collection, round)
) WITHOUT ROWID;
CREATE TABLE taken (
    collection BLOB NOT NULL, period INTEGER NOT NULL, part TEXT NOT NULL, round INTEGER NOT NULL,
    PRIMARY KEY (collection, period)
) WITHOUT ROWID;
CREATE TABLE ledgers (collection BLOB PRIMARY KEY, ledger BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE charges (at REAL NOT NULL, collection BLOB NOT NULL, epsilon TEXT NOT NULL);
CREATE INDEX charges_by_time ON charges (at);
CREATE TABLE memos (
    collection BLOB NOT NULL, fingerprint BLOB NOT NULL, memo BLOB NOT NULL, PRIMARY KEY (collection, fingerprint)
);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    node TEXT NOT NULL,
    collection TEXT NOT NULL,
    round INTEGER NOT NULL,
    pseudonym BLOB NOT NULL,
    report BLOB NOT NULL,
    made REAL NOT NULL
);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {VERSION};
"""


class Part(NamedTuple):
    """What a client decided for a period.

    Attributes:
        what: "reported", "not selected", or "drawn" to report in the round.
        round: In which, or which one was drawn.
    """

    what: str
    round: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A collection as it was announced.

    Attributes:
        id: 16 bytes.
        description: The serialised `Collection`.
    """

    id: bytes
    description: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """A report in the outbox, as it will be sent every time.

    Attributes:
        id: Its number here.
        collection: The collection's name.
        round: In which it was made.
        pseudonym: 16 bytes.
        report: A batch of one.
    """

    id: int
    collection: str
    round: int
    pseudonym: bytes
    report: bytes


class ClientStore(Database):
    """The file of one device. Calls are short, and may be made from any thread."""

    WHOSE, PLACE = "a client", "the client's folder"
    VERSION, APPLICATION, SCHEMA = VERSION, _APPLICATION, _SCHEMA

    @classmethod
    def open(cls, folder: Path) -> ClientStore:
        """Opens the file in a folder, and makes both where they are not there.

        Raises:
            ConfigurationError: The file is no such database, damaged, or of another version.
            ResourceError: It cannot be read or written.
        """
        return cls.open_file(folder / FILE)

    # -- the device ---------------------------------------------------------------------------------------------------
    @property
    def secret(self) -> bytes:
        """The client's 32 bytes."""
        found = self.fact("secret")
        if found is None or len(found) != SECRET_BYTES:
            raise ConfigurationError(
                f"{self._path} has lost its secret; restore the client's folder or begin a new one"
            )
        return found

    def fact(self, name: str) -> bytes | None:
        """A value by its name."""
        return self._one("SELECT value FROM facts WHERE name = ?", name)

    def put_fact(self, name: str, value: bytes) -> None:
        """Keeps a value in the place of the one before."""
        self.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)

    def advance(self, now: float) -> float:
        """The time by which budgets are computed: that of the clock, but it never goes back.

        Args:
            now: What the clock says, in Unix seconds.
        """
        found = self.fact("clock")
        with self._translated():
            latest = now if found is None else max(now, float(found))
        self.put_fact("clock", repr(latest).encode())
        return latest

    # -- what was spent -----------------------------------------------------------------------------------------------
    def spent(self, after: float) -> Fraction:
        """What was charged after a time."""
        rows = self.execute("SELECT epsilon FROM charges WHERE at > ?", after)
        with self._translated():
            return sum((exact(epsilon) for (epsilon,) in rows), Fraction(0))

    def charge(self, at: float, collection: bytes, epsilon: Fraction, now: float) -> None:
        """Notes a charge, and forgets those that count for no budget any more, `now` being certain to be past."""
        self.execute("DELETE FROM charges WHERE at <= ?", now - KEPT_DAYS * DAY_S)
        self.execute("INSERT INTO charges VALUES (?, ?, ?)", at, collection, str(epsilon))

    def ledger(self, collection: bytes) -> bytes | None:
        """What was spent in the steps of a collection."""
        return self._one("SELECT ledger FROM ledgers WHERE collection = ?", collection)

    def put_ledger(self, collection: bytes, ledger: bytes) -> None:
        """Keeps a collection's ledger."""
        self.execute("INSERT OR REPLACE INTO ledgers VALUES (?, ?)", collection, ledger)

    def memo(self, collection: bytes, fingerprint: bytes) -> bytes | None:
        """The answers that are kept for a mechanism in a collection."""
        return self._one("SELECT memo FROM memos WHERE collection = ? AND fingerprint = ?", collection, fingerprint)

    def put_memo(self, collection: bytes, fingerprint: bytes, memo: bytes) -> None:
        """Keeps answers in the place of those before."""
        self.execute("INSERT OR REPLACE INTO memos VALUES (?, ?, ?)", collection, fingerprint, memo)

    def part(self, collection: bytes, period: int) -> Part | None:
        """What was decided for a period; for one that lies too far back, that the client has reported."""
        (latest,) = self.execute("SELECT max(period) FROM taken WHERE collection = ?", collection).fetchone()
        if latest is not None and period <= latest - KEPT_ROUNDS:
            return Part("reported", -1)
        statement = "SELECT part, round FROM taken WHERE collection = ? AND period = ?"
        found = self.execute(statement, collection, period).fetchone()
        return None if found is None else Part(*found)

    def put_part(self, collection: bytes, period: int, part: Part) -> None:
        """Keeps what was decided for a period."""
        self.execute("INSERT OR REPLACE INTO taken VALUES (?, ?, ?, ?)", collection, period, *part)
        self.execute("DELETE FROM taken WHERE collection = ? AND period <= ?", collection, period - KEPT_ROUNDS)

    # -- what services have announced ---------------------------------------------------------------------------------
    def kept(self, node: str, name: str) -> Kept | None:
        """A collection."""
        statement = "SELECT id, description FROM collections WHERE node = ? AND name = ?"
        found = self.execute(statement, node, name).fetchone()
        return None if found is None else Kept(*found)

    def names(self, node: str) -> list[str]:
        """The collections of a node."""
        return [name for (name,) in self.execute("SELECT name FROM collections WHERE node = ? ORDER BY name", node)]

    def put_collection(self, node: str, name: str, kept: Kept) -> None:
        """Keeps what is announced of a collection, in the place of another one of that name."""
        self.execute("DELETE FROM collections WHERE node = ? AND name = ?", node, name)
        statement = "INSERT OR REPLACE INTO collections VALUES (?, ?, ?, ?)"
        self.execute(statement, kept.id, node, name, kept.description)

    def labels(self, digest: bytes) -> bytes | None:
        """The labels of a domain."""
        return self._one("SELECT lines FROM labels WHERE digest = ?", digest)

    def put_labels(self, digest: bytes, lines: bytes) -> None:
        """Keeps the labels of a domain."""
        self.execute("INSERT OR REPLACE INTO labels VALUES (?, ?)", digest, lines)

    def announced(self, collection: bytes, number: int) -> bytes | None:
        """The digest of what was announced first of a round, or of the collection itself as round −1."""
        return self._one("SELECT digest FROM announced WHERE collection = ? AND round = ?", collection, number)

    def put_announced(self, collection: bytes, number: int, digest: bytes) -> None:
        """Keeps what is announced of a round."""
        self.execute("INSERT INTO announced VALUES (?, ?, ?)", collection, number, digest)
        self.execute(
            "DELETE FROM announced WHERE collection = ? AND round BETWEEN 0 AND ?", collection, number - KEPT_ROUNDS
        )

    # -- reports on their way -----------------------------------------------------------------------------------------
    def size(self) -> int:
        """How many reports wait."""
        (found,) = self.execute("SELECT count(*) FROM outbox").fetchone()
        return int(found)

    def put_report(self, node: str, waiting: Waiting, made: float) -> None:
        """Puts a report into the outbox; its number is given here."""
        self.execute(
            "INSERT INTO outbox (node, collection, round, pseudonym, report, made) VALUES (?, ?, ?, ?, ?, ?)",
            *(node, waiting.collection, waiting.round, waiting.pseudonym, waiting.report, made),
        )

    def waiting(self, node: str) -> list[Waiting]:
        """The reports for a node, the oldest first."""
        statement = "SELECT id, collection, round, pseudonym, report FROM outbox WHERE node = ? ORDER BY id"
        found = [Waiting(*row) for row in self.execute(statement, node)]
        with self._translated():
            if not all(0 <= each.round < _ROUNDS_END and len(each.pseudonym) == PSEUDONYM_BYTES for each in found):
                raise ValueError("a report without its round or pseudonym")
        return found

    def drop_report(self, number: int) -> None:
        """Takes a report out of the outbox."""
        self.execute("DELETE FROM outbox WHERE id = ?", number)

    def drop_old_reports(self, before: float) -> int:
        """Takes reports out of the outbox that were made before a time; how many."""
        return self.execute("DELETE FROM outbox WHERE made < ?", before).rowcount

    # -- SQLite -------------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        self.put_fact("secret", Randomness.from_os().bytes(SECRET_BYTES))

    def _one(self, statement: str, *values: Any) -> bytes | None:
        found = self.execute(statement, *values).fetchone()
        return None if found is None else bytes(found[0])

"""SQLite files of a state folder: opened for their owner alone, used in whole transactions, with clear errors."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from link.errors import ConfigurationError, ResourceError
from link.files import locks, private_file
from link.files.printable import one_line
from link.files.sqlite_cells import check_cells

KEEP: Final = "keep [party] state_dir as it is, since limits count what is in it"  # for all who might change it
_IDENTITY: Final = ("application_id", "user_version")


def bring_back(path: Path) -> str:
    """What to do where another file stands in the place of a database, as the end of a sentence."""
    return f"move it away, bring back the {path.name} of this node from a copy, and {KEEP}"


def make_private(path: Path, *, folder: bool = False) -> None:
    """As `link.files.private_file.make_private`, of a file of the state folder.

    Raises:
        ResourceError: It cannot be opened.
    """
    try:
        private_file.make_private(path, folder=folder)
    except OSError as error:
        raise ResourceError(
            f"{path} cannot be opened ({error.strerror}); see to its disk and owner, and {KEEP}"
        ) from None


def connect(path: Path, busy_s: float, *pragmas: str) -> sqlite3.Connection:
    """A connection to a database in write-ahead mode, which any thread may use.

    Args:
        path: The file; what lies beside it belongs to it.
        busy_s: For which another process may hold it.
        *pragmas: Settings of the connection beyond that mode.
    """
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("journal_mode = WAL", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def alone(connection: sqlite3.Connection) -> Iterator[None]:
    """What is done inside is done whole or not at all, and no other process writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # where the disk is full, SQLite has gone back by itself
            connection.execute("ROLLBACK")
        raise


def locked(path: Path) -> int:
    """An open file beside a database, whose lock keeps other processes away while it is open.

    The lock ends with the process, however that ends.

    Raises:
        ConfigurationError: Another process holds it.
        ResourceError: It cannot be opened, or not be locked.
    """
    beside = path.with_suffix(".lock")
    make_private(beside)
    lock = os.open(beside, os.O_RDWR)
    try:
        locks.lock(lock)
    except BlockingIOError:
        os.close(lock)
        raise in_use(path) from None
    except OSError as error:
        os.close(lock)
        raise ResourceError(
            f"{beside} cannot be locked ({error.strerror}); keep [party] state_dir on a disk of this machine"
        ) from None
    return lock


def in_use(path: Path) -> ConfigurationError:
    """The error of a database that another process has locked: only the node of this state folder does.

    It does not send anybody to another folder: a node that began anew there would know of no earlier job, and of no
    limit that is used up.
    """
    return ConfigurationError(
        f"this node is running already: its process holds {path}; look at it with comine party health, or stop it "
        "before it is started again"
    )


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock beside a database; makes no file."""
    try:
        beside = os.open(path.with_suffix(".lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        locks.lock(beside, shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(beside)
    return False


@contextmanager
def translated(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Translates what SQLite raises, and what is raised where a cell is read that is none.

    The sentences may cross the wire, so they name the file without its folder.

    Args:
        path: The database.
        what: Which one it is: "job", "frequency".
        remedy: What to do with a damaged one.

    Raises:
        ConfigurationError: It is damaged.
        ResourceError: It cannot be used.
    """
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:  # the second once it is closed
        why = one_line(str(error))
        raise ResourceError(
            f"the {what} database {path.name} in the state folder cannot be used ({why}); see to its disk and owner"
        ) from None
    except sqlite3.DatabaseError as error:
        why = one_line(str(error))
        raise ConfigurationError(
            f"the {what} database {path.name} in the state folder is damaged ({why}); {remedy}"
        ) from None
    except UnicodeDecodeError:  # of the words with which SQLite reports the damage, or of a cell
        raise ConfigurationError(
            f"the {what} database {path.name} in the state folder is damaged (it holds text that is none); {remedy}"
        ) from None
    except (ValueError, ArithmeticError, LookupError):
        raise ConfigurationError(
            f"the {what} database {path.name} in the state folder is damaged (it holds what no version writes); "
            f"{remedy}"
        ) from None


def statements(text: str) -> Iterator[str]:
    """The statements of a text, parted by semicolons; a trigger has some within."""
    begun = ""
    for part in text.rstrip("; \n").split(";"):
        begun += f"{part};"
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""
    assert not begun, begun


@dataclass(frozen=True, slots=True)
class Held:
    """An open database.

    Attributes:
        connection: To it, in use by one thread at a time.
        lock: An open file whose lock says that this process alone uses it; None where others may.
        in_use: Held by the thread that uses the connection.
    """

    connection: sqlite3.Connection
    lock: int | None = None
    in_use: threading.RLock = field(default_factory=threading.RLock)

    def close(self) -> None:
        """Ends the connection, and lets others use the database."""
        self.connection.close()
        if self.lock is not None:
            os.close(self.lock)


@dataclass(frozen=True, slots=True)
class Kind:
    """What all databases of one kind have in common, and how they are opened.

    Attributes:
        name: In sentences: "job", "frequency".
        remedy: What to do with a damaged one.
        application: Their `application_id`.
        versions: Statements, parted by semicolons, that make each version out of the one before it: the one place
            of all migrations. What has landed is never changed, since files of it exist.
        first: The number of the first of these versions; files that are older are refused.
        exclusive: Whether no other process may use one: what is in it is known in memory, too.
        overwrites: Whether what is deleted is overwritten, in the file and in its log.
        busy_s: For which another process, such as a backup, may hold one.
    """

    name: str
    remedy: str
    application: int
    versions: tuple[str, ...]
    first: int = 1
    exclusive: bool = False
    overwrites: bool = False
    busy_s: float = 5.0

    def translated(self, path: Path) -> AbstractContextManager[None]:
        """Translates what SQLite raises about a database; see `translated`."""
        return translated(path, self.name, self.remedy)

    def open(self, path: Path, node: Path | None = None) -> Held:
        """Opens a database, makes it where there is none, and brings an older one up to date.

        Args:
            path: The file.
            node: The database whose lock the node holds that may use this one meanwhile; None where that is the caller.

        Raises:
            ConfigurationError: The file is no such database, damaged, of a version that is not known, or another
                process uses it and may not; or it is older, and a node that has yet to be restarted uses it.
            ResourceError: It cannot be read or written.
        """
        make_private(path, folder=True)
        lock = locked(path) if self.exclusive else None
        try:
            return Held(self._connected(path, node), lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    def look(self, path: Path) -> Held:
        """Opens a database of this version to be read alone, whether or not its node runs; nothing of it is changed.

        Raises:
            ConfigurationError: The file is no such database, damaged, or of another version.
            ResourceError: It is not there, or cannot be read.
        """
        with self.translated(path):
            uri = f"{path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(
                uri, uri=True, timeout=self.busy_s, isolation_level=None, check_same_thread=False
            )
            try:
                found = tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _IDENTITY)
                if found != (self.application, self.latest):
                    raise ConfigurationError(
                        f"{path} is not the {self.name} database of this version of comine; restart the node with this "
                        "version, which brings it up to date"
                    )
            except BaseException:
                connection.close()
                raise
        return Held(connection)

    @property
    def latest(self) -> int:
        """The version that is written."""
        return self.first + len(self.versions) - 1

    def _connected(self, path: Path, node: Path | None) -> sqlite3.Connection:
        with self.translated(path):
            settings = ("synchronous = FULL", *(("secure_delete = ON",) if self.overwrites else ()))
            connection = connect(path, self.busy_s, *settings)  # each commit survives a loss of power
            try:
                with alone(connection):  # two processes may do so at once
                    self._prepare(connection, path, node)
                check_cells(connection)
                if self.overwrites:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was deleted may still be in the log
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, path: Path, node: Path | None) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        latest = self.latest
        if (application, version, tables) == (0, 0, 0):
            version = self.first - 1
        elif application != self.application:
            raise ConfigurationError(f"{path} is not the {self.name} database of a party; {bring_back(path)}")
        elif version > latest:
            raise ConfigurationError(
                f"{path} was written by a newer version of comine (its schema is {version}, this version knows up to "
                f"{latest}); install that version again, or put back the copy of the state folder from before the "
                "upgrade"
            )
        elif version < self.first:
            raise ConfigurationError(
                f"{path} was written by an older version of comine, whose schema {version} is no longer read (this "
                f"version begins at {self.first}); {bring_back(path)}"
            )
        if version == latest:
            return
        if node is not None and version >= self.first and is_locked(node):
            raise ConfigurationError(
                f"{path} is of the version of comine that its node still runs, which is older than this one; restart "
                "the node, which brings it up to date, and run the command again"
            )
        for text in self.versions[version - self.first + 1 :]:
            for statement in statements(text):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {latest}")


class StateDatabase:
    """One database of a state folder. Calls are short, and may be made from any thread.

    Args:
        path: The file.
        opened: It, open.

    Attributes:
        connection: To the file, in use by one thread at a time.
    """

    KIND: ClassVar[Kind]

    def __init__(self, path: Path, opened: Held) -> None:
        self._path, self._opened, self.connection = path, opened, opened.connection
        self._lock = opened.in_use

    @classmethod
    def open(cls, path: Path, *arguments: Any, **named: Any) -> Self:
        """Opens the database, and makes it where there is none.

        Args:
            path: The file.
            *arguments: Of the class, behind these two.
            **named: Of the class, by their names.

        Raises:
            ConfigurationError: The file is no such database, damaged, of another version, or another process uses it
                and may not.
            ResourceError: It cannot be read or written.
        """
        return cls._of(path, cls.KIND.open(path), *arguments, **named)

    @classmethod
    def _of(cls, path: Path, opened: Held, *arguments: Any, **named: Any) -> Self:
        try:
            return cls(path, opened, *arguments, **named)
        except BaseException:
            opened.close()
            raise

    @classmethod
    def open_beside(cls, node: Path, path: Path, *arguments: Any) -> Self:
        """As `open`, by a command: what a running node of an earlier version uses is not brought up to date under it.

        Args:
            node: The database whose lock a running node holds.
            path: The file.
            *arguments: Of the class, behind these two.

        Raises:
            ConfigurationError: As `open`; or the running node has to be restarted first.
            ResourceError: As `open`.
        """
        return cls._of(path, cls.KIND.open(path, node), *arguments)

    @classmethod
    def look(cls, path: Path, *arguments: Any) -> Self:
        """As `open`, to be read alone: beside a running node too, of which nothing is changed.

        Args:
            path: The file.
            *arguments: Of the class, behind these two.

        Raises:
            ConfigurationError: As `open`.
            ResourceError: It is not there, or cannot be read.
        """
        return cls._of(path, cls.KIND.look(path), *arguments)

    @classmethod
    def beside(cls, other: StateDatabase, *arguments: Any) -> Self:
        """Other tables of an open database, through the same connection.

        They wait for each other, however long the disk takes. Two connections would wait for `busy_s`, and then fail.

        Args:
            other: What has the database open, and closes it.
            *arguments: Of the class, behind its path and it.
        """
        return cls(other._path, other._opened, *arguments)

    def close(self) -> None:
        """Closes the database, once nobody uses it: to close a connection in use ends the process."""
        with self._lock:
            self._opened.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; what SQLite raises is translated."""
        with self._lock, self.KIND.translated(self._path):
            yield self.connection

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """As `_using`; what is done inside is done whole or not at all."""
        with self._using() as connection, alone(connection):
            yield connection

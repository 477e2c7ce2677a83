"""SQLite files of devices and gateways: opened for their owner alone, used in whole transactions, with clear errors."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from link.errors import ConfigurationError, ResourceError
from link.files.printable import one_line
from link.files.private_file import make_private
from link.files.sqlite_cells import check_cells

BUSY_S: Final = 10.0  # for which another process may hold a database
SYNCHRONOUS: Final = "FULL"  # a loss of power takes nothing back that a call has returned from


class Database:
    """One file. Calls are short, and may be made from any thread.

    Args:
        path: The file.
        connection: To it.
    """

    WHOSE: ClassVar[str]
    """In sentences: "a client"."""
    PLACE: ClassVar[str]
    """What is to be brought back if the file is damaged: "the client's folder"."""
    VERSION: ClassVar[int]
    APPLICATION: ClassVar[int]
    SCHEMA: ClassVar[str]
    """Statements that make the tables, each ending its line with a semicolon; they set both numbers."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        self._lock = threading.RLock()

    @classmethod
    def open_file(cls, path: Path) -> Self:
        """Opens the file, and makes it and its folder where they are not there.

        Raises:
            ConfigurationError: The file is no such database, damaged, or of another version.
            ResourceError: It cannot be read or written.
        """
        try:
            make_private(path, folder=True)
        except OSError as error:
            raise ResourceError(f"{path} cannot be opened ({error.strerror}); check {cls.PLACE}") from None
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        found = cls(path, connection)
        try:
            found._prepare()
        except BaseException:
            connection.close()
            raise
        return found

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:  # anyone who closes a connection that another thread uses ends the process
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What is done inside is kept whole, and on the disk when this ends; or not at all, where it raises."""
        with self._lock:
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _begin(self) -> None:
        """Fills a new file."""

    def _prepare(self) -> None:
        self.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        self.execute("PRAGMA secure_delete = ON")
        with self.transaction():
            (application,) = self.execute("PRAGMA application_id").fetchone()
            (version,) = self.execute("PRAGMA user_version").fetchone()
            (tables,) = self.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not application and not tables:
                for statement in self.SCHEMA.split(";\n"):
                    self.execute(statement)
                self._begin()
            elif application != self.APPLICATION:
                raise ConfigurationError(f"{self._path} is no database of {self.WHOSE}; choose another folder")
            elif version != self.VERSION:
                raise ConfigurationError(
                    f"{self._path} has version {version}, and this version of comine knows version {self.VERSION}; use "
                    "the one that wrote it"
                )
        with self._translated():
            check_cells(self._connection)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Runs one statement."""
        with self._translated(), self._lock:
            return self._connection.execute(statement, values)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Translates what SQLite raises, and what is raised where a cell is read that is none."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:  # the second once it is closed
            why = one_line(str(error))
            raise ResourceError(
                f"{self._path} cannot be used ({why}); check the disk, and whether another process holds the file"
            ) from None
        except sqlite3.DatabaseError as error:
            why = one_line(str(error))
            raise ConfigurationError(f"{self._path} is damaged ({why}); restore {self.PLACE}") from None
        except (ValueError, ArithmeticError, LookupError):
            raise ConfigurationError(
                f"{self._path} is damaged (it holds what no version writes); restore {self.PLACE}"
            ) from None

"""Queries against SQLite, DuckDB and PostgreSQL, opened for reading only; nothing of the rows gets into an error."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from link.errors import ConfigurationError, InputDataError

if TYPE_CHECKING:
    import duckdb

FILE_URLS: Final = ("sqlite:///", "duckdb:///")
SERVER_URLS: Final = ("postgresql://", "postgres://")
FETCH: Final = 1 << 16  # rows at a time


@dataclass(frozen=True, slots=True)
class Database:
    """What the URL of a source names.

    Attributes:
        kind: Who reads it.
        path: The file of a SQLite or DuckDB database.
        url: Of a PostgreSQL database.
    """

    kind: Literal["sqlite", "duckdb", "postgres"]
    path: Path | None = None
    url: str = ""

    @classmethod
    def at(cls, url: str) -> Database:
        """The database at a URL.

        Raises:
            ConfigurationError: It is no such URL.
            InputDataError: The file is not there.
        """
        if url.startswith(SERVER_URLS):
            return cls("postgres", url=url)
        if not url.startswith(FILE_URLS):
            raise ConfigurationError(
                "The source of a dataset of format sql must be a URL sqlite:///PATH, duckdb:///PATH or postgres://..."
            )
        scheme, _, rest = url.partition(":///")
        path = Path(rest)
        if not os.path.isfile(path):  # which no name makes fail
            raise InputDataError(f"There is no database file {path}; check the path in the dataset's source.")
        return cls("sqlite" if scheme == "sqlite" else "duckdb", path)

    @property
    def where(self) -> str:
        """How sentences begin that are about a query on it."""
        return f"The query on {self.path}" if self.path else "The query on the PostgreSQL source"


@contextmanager
def sqlite_query(database: Database, query: str) -> Iterator[sqlite3.Cursor]:
    """Runs a query on a SQLite file; what goes wrong while its rows are fetched is translated, too.

    Raises:
        InputDataError: The file or the query is wrong.
    """
    path = database.path or Path()
    cursor: sqlite3.Cursor | None = None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            cursor = connection.execute(query)
            yield cursor
        finally:
            connection.close()
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        # What SQLite says of rows may repeat a value, as it does for text that is not UTF-8.
        is_known = cursor is None and not isinstance(error, UnicodeDecodeError)
        reason = f": {error}" if is_known else " while it ran; try it in the database's own client"
        raise InputDataError(f"{database.where} failed{reason}.") from error


@contextmanager
def duckdb_query(database: Database, query: str) -> Iterator[duckdb.DuckDBPyRelation]:
    """Runs a query on a DuckDB file or a PostgreSQL server; what goes wrong while rows are fetched is translated, too.

    Raises:
        ConfigurationError: DuckDB's PostgreSQL extension is not installed.
        InputDataError: The database cannot be opened, or the query is wrong.
    """
    import duckdb  # large, and needed by a node with such a source only

    path, where = database.path, database.where
    offline: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    try:
        connection = duckdb.connect(str(path) if path else ":memory:", read_only=path is not None, config=offline)
    except (duckdb.Error, UnicodeError) as error:
        raise InputDataError(f"{path} cannot be opened as a DuckDB database for reading.") from error
    try:
        if database.url:
            _attach_postgres(connection, database.url)
        relation = connection.sql(query)
        if relation is None:
            raise InputDataError(f"{where} returns no rows; it must be a select.")
        yield relation
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        reason = str(error).splitlines()[0]
        raise InputDataError(f"{where} failed: {reason}") from error
    except duckdb.Error as error:
        raise InputDataError(f"{where} failed while it ran; try it in the database's own client.") from error
    finally:
        connection.close()


def _attach_postgres(connection: duckdb.DuckDBPyConnection, url: str) -> None:
    import duckdb

    try:
        connection.execute("LOAD postgres")
    except duckdb.Error:
        raise ConfigurationError(
            "Reading PostgreSQL needs DuckDB's postgres extension; install it once on this machine with "
            "duckdb.sql('INSTALL postgres')."
        ) from None
    try:
        escaped = url.replace("'", "''")
        connection.execute(f"ATTACH '{escaped}' AS source (TYPE postgres, READ_ONLY)")
        connection.execute("USE source")
    except duckdb.Error:
        # The driver's message repeats the URL, password and all.
        raise InputDataError(
            "The PostgreSQL source cannot be opened; check host, database, user and password."
        ) from None

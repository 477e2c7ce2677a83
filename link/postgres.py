"""Queries against PostgreSQL servers through their Arrow-native driver, for reading only.

No sentence repeats a URL, a password or anything of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from link.errors import ConfigurationError, InputDataError

WHERE: Final = "The query on the PostgreSQL source"
_PATIENCE_S: Final = 30  # until a server that does not answer counts as gone; a URL may say otherwise
_SETTINGS: Final = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET synchronize_seqscans = off",  # the same table in the same order, as far as the server can
)
_REFUSALS: Final = (  # what libpq says, which names hosts and users, and what is said instead
    (("could not translate host name",), "its host is not known; check the host in the source"),
    (("connection refused", "no such file"), "nobody listens there; check host and port, and that the server runs"),
    (("no password supplied",), "it asks for a password; name one by password_env or password_file, or in ~/.pgpass"),
    (("authentication failed", "role "), "it refuses the user or the password; check both"),
    (
        ("no pg_hba.conf entry",),
        "it accepts no such login from this machine; ask who runs it for a line in pg_hba.conf",
    ),
    (("database ",), "it has no such database, or the user may not connect to it; check its name"),
    (("timeout", "timed out"), "it does not answer; check host and port, and the firewalls between"),
    (("ssl", "certificate"), "the encrypted connection fails; check sslmode and sslrootcert"),
)


@contextmanager
def postgres_query(url: str, query: str, password: str | None = None) -> Iterator[pa.RecordBatchReader]:
    """Runs a query; what goes wrong while its rows are fetched is translated, too.

    Exact decimals, UUIDs and JSON come as text. Where no password is given, libpq takes it from `PGPASSWORD`, or from
    the file `~/.pgpass` or `PGPASSFILE`.

    Raises:
        ConfigurationError: The driver is not installed.
        InputDataError: The server cannot be reached, or the query is wrong.
    """
    with _cursor(url, password) as (cursor, failed):
        try:
            cursor.execute(query)
            batches = cursor.fetch_record_batch()
        except failed as error:
            raise _wrong(error) from None
        yield _plain(batches)


def expected_cells(url: str, query: str, password: str | None = None) -> int:
    """How many cells the server expects a query to return, by its statistics; the query is not run.

    Raises:
        ConfigurationError: The driver is not installed.
        InputDataError: The server cannot be reached, or the query is wrong.
    """
    with _cursor(url, password) as (cursor, _):
        columns = len(cursor.adbc_execute_schema(query))
        cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": False})  # which takes a query alone
        cursor.execute(f"EXPLAIN {query}")
        found = re.search(r"rows=(\d+)", str(cursor.fetchone()))
    return int(found[1]) * columns if found else 0


@contextmanager
def _cursor(url: str, password: str | None) -> Iterator[tuple[Any, type[Exception]]]:
    """A cursor of a session for reading, and the error of its driver."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise ConfigurationError(
            "Reading PostgreSQL needs its Arrow-native driver; install it with: pip install 'comine[postgres]'"
        ) from None
    try:
        connection = dbapi.connect(_with(url, password), autocommit=True)
    except Error as error:
        raise InputDataError(f"The PostgreSQL source cannot be opened: {_refusal(str(error))}.") from None
    try:
        with connection, connection.cursor() as cursor:
            for setting in _SETTINGS:
                cursor.execute(setting)
            yield cursor, Error
    except (Error, pa.ArrowException, OSError):
        raise InputDataError(f"{WHERE} failed while it ran; try it in the database's own client.") from None


def _with(url: str, password: str | None) -> str:
    """A URL with a password, and a patience, where it has none."""
    added = [] if "connect_timeout=" in url else [f"connect_timeout={_PATIENCE_S}"]
    if password is not None:
        added.append(f"password={quote(password, safe='')}")
    return f"{url}{'&' if '?' in url else '?'}{'&'.join(added)}" if added else url


def _refusal(reason: str) -> str:
    """Why a server cannot be used, in words that name nothing of the machine."""
    reason = reason.lower()
    for signs, words in _REFUSALS:
        if any(sign in reason for sign in signs):
            return words
    return "check host, database, user and password"


def _wrong(error: Any) -> InputDataError:
    """A query that is refused before it has read a row: what is said is about the query alone."""
    state = str(error.sqlstate or "")
    if state.startswith("25"):
        return InputDataError(f"{WHERE} writes; it must be a select.")
    if state.startswith(("42", "3D", "3F")):
        said = str(error).partition("ERROR:")[2].splitlines()
        return InputDataError(f"{WHERE} failed: {said[0].strip() if said else 'it is not valid SQL'}.")
    return InputDataError(f"{WHERE} failed while it ran; try it in the database's own client.")


def _plain(batches: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same with text in the place of types that only PostgreSQL has."""
    schema = pa.schema([pa.field(field.name, _kind(field.type)) for field in batches.schema])

    def plain() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, plain())


def _kind(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.UuidType):
        return pa.string()
    if isinstance(kind, pa.BaseExtensionType) and pa.types.is_string(kind.storage_type):
        return pa.string()
    return kind


def _column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(column.type, pa.UuidType):
        return pa.array([None if each is None else str(each) for each in column.to_pylist()], kind)
    return column.storage if column.type != kind else column

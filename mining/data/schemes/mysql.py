"""MySQL and MariaDB servers: `mysql://USER@HOST/DATABASE`.

Rows are read one after the other, as the server sends them, and become batches of Arrow's. No sentence repeats a URL, a
password or anything of the rows.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from link.errors import ConfigurationError, InputDataError
from mining.data.schemes.scheme import ArrowDatabase, is_loopback
from mining.data.source_options import SourceOptions

if TYPE_CHECKING:
    from pymysql.connections import Connection

_WHERE: Final = "The query on the MySQL source"
_KNOWN: Final = ("ssl-ca", "ssl-mode", "unix_socket")  # what may follow the ?
_MODES: Final = ("disabled", "required", "verify-ca", "verify-identity")
_PORT: Final = 3306
_PATIENCE_S: Final = 30  # until a server that does not answer counts as gone
BATCH_ROWS: Final = 1 << 14  # of a batch
_SETTINGS: Final = ("SET time_zone = '+00:00'", "SET SESSION TRANSACTION READ ONLY")  # which also forbids DDL
_HERE: Final = "127.0.0.1"
_NOBODY: Final = "nobody answers there; check host and port, and that the server runs"
_REFUSALS: Final = {  # by the number of the error
    1045: "it refuses the user or the password; check both, and password_env or password_file",
    1698: "it refuses the user or the password; check both, and password_env or password_file",
    1044: "the user may not use this database; check its name, or have it granted",
    1049: "it has no such database; check its name",
    1130: "it accepts no login from this machine; ask who runs it for an account of this host",
    2026: "it has no encrypted connections; ask who runs it for them",
}
_ABOUT_THE_QUERY: Final = frozenset(
    (1046, 1051, 1052, 1054, 1055, 1060, 1064, 1066, 1109, 1111, 1140, 1142, 1143, 1146, 1149, 1222, 1305, 1370, 1630)
)
_READ_ONLY: Final = 1792
_OUTER: Final = ("SIMPLE", "PRIMARY", "UNION")  # selects whose rows are those of the query
_BINARY: Final = 63  # the character set of bytes
_UNSIGNED: Final = 32  # the flag


class MySql(ArrowDatabase):
    """Through PyMySQL, the driver of the extra `mysql`."""

    prefixes = ("mysql://", "mariadb://")
    form = "mysql://USER@HOST/DATABASE"
    has_password = True

    def fault(self, source: str) -> str:
        """Also what is not known behind the `?`, and a port that is none."""
        if fault := super().fault(source):
            return fault
        found = urlsplit(source)
        given = dict(parse_qsl(found.query, keep_blank_values=True))
        if given.keys() - set(_KNOWN):
            return f"has something unknown behind its ?; there are {', '.join(_KNOWN)}"
        if given.get("ssl-mode", _MODES[0]).lower() not in _MODES:
            return f"has an unknown ssl-mode; there are {', '.join(_MODES)}"
        try:
            _ = found.port
        except ValueError:
            return "has a port that is no number"
        return "" if found.path.strip("/") else "names no database"

    def place(self, source: str) -> str:
        """The database, however the server is named and whoever logs in."""
        found = urlsplit(source)
        socket = dict(parse_qsl(found.query)).get("unix_socket")
        return f"mysql://{socket or f'{found.hostname}:{found.port or _PORT}'}{found.path}"

    def where(self, _source: str) -> str:
        """Names no host: a query is one's own, and its server is in the configuration."""
        return _WHERE

    @contextmanager
    def query(self, source: str, query: str, options: SourceOptions) -> Iterator[pa.RecordBatchReader]:
        """See `ArrowDatabase.query`."""
        from pymysql import MySQLError

        connection = _connected(source, options)
        try:
            with connection.cursor() as cursor:
                for setting in _SETTINGS:
                    cursor.execute(setting)
                try:
                    cursor.execute(query)
                except MySQLError as error:
                    raise _wrong(error) from None
                if cursor.description is None:
                    raise InputDataError(f"{_WHERE} returns no rows; it must be a select.")
                try:
                    yield _batches(cursor)
                finally:
                    _leave(cursor)
        except pa.ArrowInvalid:
            raise InputDataError(
                f"{_WHERE} returns a date that is none, such as 0000-00-00; write NULLIF(column, 0) in its place."
            ) from None
        except (MySQLError, OSError, UnicodeError):
            raise InputDataError(f"{_WHERE} failed while it ran; try it in the database's own client.") from None
        finally:
            connection.close()

    def cells(self, source: str, query: str, options: SourceOptions) -> int:
        """See `ArrowDatabase.cells`: of each select, as many rows as of its longest table."""
        query = query.rstrip("; \n")
        with self.query(source, f"EXPLAIN {query}", options) as batches:
            lines = batches.read_all().to_pylist()
        with self.query(source, f"SELECT * FROM ({query}) AS comine LIMIT 0", options) as batches:  # noqa: S608 - as its owner wrote it
            columns = len(batches.schema)
        longest: dict[str, int] = {}
        for line in lines:
            if line["select_type"] in _OUTER:
                longest[line["id"]] = max(longest.get(line["id"], 1), int(line["rows"] or 1))
        return sum(longest.values()) * columns


def _connected(source: str, options: SourceOptions) -> Connection[Any]:
    try:
        from pymysql import MySQLError, connect
        from pymysql.converters import encoders
        from pymysql.cursors import SSCursor
    except ImportError:
        raise ConfigurationError(
            "Reading MySQL and MariaDB needs PyMySQL; install it with: pip install 'comine[mysql]'"
        ) from None
    found, given = urlsplit(source), dict(parse_qsl(urlsplit(source).query))
    try:
        connection = connect(
            user=unquote(found.username or ""),
            password=options.password() or "",
            host=found.hostname or _HERE,
            database=unquote(found.path.strip("/")),
            charset="utf8mb4",
            cursorclass=SSCursor,
            conv=cast(Any, encoders),  # and no decoders: cells as the server writes them
            defer_connect=True,
            **_encryption(found.netloc.rpartition("@")[2], given),
        )
    except OSError:
        raise _closed("its ssl-ca cannot be read; check the file") from None
    try:
        way = _way(found.hostname or _HERE, found.port or _PORT, given.get("unix_socket"))
    except OSError:
        raise _closed(_NOBODY) from None
    try:
        connection.connect(way)
    except (MySQLError, RuntimeError) as error:  # RuntimeError: the machine lacks how this server checks passwords
        way.close()
        raise _closed(_refusal(error)) from None
    return connection


def _way(host: str, port: int, path: str | None) -> socket.socket:
    """A connection to the server."""
    if path is None:
        found = socket.create_connection((host, port), _PATIENCE_S)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return found
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(_PATIENCE_S)
        found.connect(path)
    except OSError:
        found.close()
        raise
    return found


def _closed(why: str) -> InputDataError:
    return InputDataError(f"the MySQL source cannot be opened: {why}.")


def _encryption(place: str, given: dict[str, str]) -> dict[str, Any]:
    """How the connection is encrypted: off this machine always, and by a certificate that is checked, unless said."""
    is_here = "unix_socket" in given or not place or is_loopback(place)
    mode = given.get("ssl-mode", "" if is_here and "ssl-ca" not in given else _MODES[-1]).lower()
    if mode in ("", "disabled"):
        return {"ssl_disabled": mode == "disabled"}
    context = ssl.create_default_context(cafile=given.get("ssl-ca"))
    context.check_hostname = mode == "verify-identity"
    context.verify_mode = ssl.CERT_NONE if mode == "required" else ssl.CERT_REQUIRED
    return {"ssl": context}


def _leave(cursor: Any) -> None:
    """Does not wait for the rows that are yet to come: the connection is closed next."""
    if cursor._result is not None:
        cursor._result.unbuffered_active = False
    cursor._result = cursor.connection = None


def _batches(cursor: Any) -> pa.RecordBatchReader:
    fields = cursor._result.fields
    schema = pa.schema([(field.name, _kind(field)) for field in fields])

    def batches() -> Iterator[pa.RecordBatch]:
        while rows := cursor.fetchmany(BATCH_ROWS):
            columns = [_column(cells, kind) for cells, kind in zip(zip(*rows, strict=True), schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _kind(field: Any) -> pa.DataType:
    """Of the cells of a column; exact decimals, times, JSON and whatever else is text."""
    from pymysql.connections import TEXT_TYPES
    from pymysql.constants import FIELD_TYPE as TYPES

    code = field.type_code
    if code in (TYPES.TINY, TYPES.SHORT, TYPES.INT24, TYPES.LONG, TYPES.LONGLONG, TYPES.YEAR):
        return pa.uint64() if field.flags & _UNSIGNED else pa.int64()
    if code in (TYPES.FLOAT, TYPES.DOUBLE):
        return pa.float64()
    if code == TYPES.DATE:
        return pa.date32()
    if code in (TYPES.DATETIME, TYPES.TIMESTAMP):
        return pa.timestamp("us", tz="UTC" if code == TYPES.TIMESTAMP else None)
    if code == TYPES.BIT:
        return pa.uint64()
    return pa.binary() if code in TEXT_TYPES and field.charsetnr == _BINARY else pa.string()


def _column(cells: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array(cells, kind)
    if pa.types.is_integer(kind) and any(isinstance(cell, bytes) for cell in cells):  # bits
        return pa.array([None if cell is None else int.from_bytes(cell) for cell in cells], kind)
    texts = pa.array(cells, pa.string())
    if pa.types.is_timestamp(kind):
        return texts.cast(pa.timestamp("us")).cast(kind)  # of the zone that the settings name
    return texts.cast(kind)


def _refusal(error: Exception) -> str:
    """Why a server cannot be used, in words that name nothing of the machine."""
    cause = getattr(error, "original_exception", None)
    if isinstance(cause, ssl.SSLError):
        return (
            "its certificate is not trusted here, or of another host; name its authority's file by ssl-ca, and check "
            "ssl-mode"
        )
    number = error.args[0] if error.args else 0
    return _REFUSALS.get(number, _NOBODY)


def _wrong(error: Exception) -> InputDataError:
    """A query that is refused before it has read a row: what is said is about the query alone."""
    number, *said = (*error.args, "")
    if number == _READ_ONLY:
        return InputDataError(f"{_WHERE} writes; it must be a select.")
    if number in _ABOUT_THE_QUERY:
        return InputDataError(f"{_WHERE} failed: {said[0]}.")
    return InputDataError(f"{_WHERE} failed while it ran; try it in the database's own client.")

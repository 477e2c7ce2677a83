"""`stock.db`: this party's halves of the extension seeds that it keeps with each peer from job to job.

All of it is secret, and none is worth a backup: a lost file costs some tens of milliseconds a peer, while a restored
copy brings back what was to be forgotten. When a call returns, what it wrote would survive a loss of power (one sync of
SQLite's write-ahead log). What it replaced is overwritten a moment later, when that log is folded in and emptied.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from crypto.primitives.hashing import encode_labels
from crypto.protocols.ot_stock import Reason, Role, Stock
from link.errors import ResourceError
from link.sqlite_cells import check_cells
from party.database import alone, connect, make_private, told
from party.logs import Log

STOCK_FILE: Final = "stock.db"
DAMAGED: Final = ".damaged"  # in the place of ".db"
VERSION: Final = 1
BUSY_S: Final = 5.0  # for which another process may hold the database
FOLD_S: Final = 1.0  # after a write, until what it replaced is forgotten: a job's writes come together, and none waits
_REMEDY: Final = "delete it, and the node makes another one"
_SCHEMA: Final = """
CREATE TABLE stocks (
    peer TEXT NOT NULL,
    role TEXT NOT NULL,
    id BLOB NOT NULL,
    terms BLOB NOT NULL,
    made REAL NOT NULL,
    next INTEGER NOT NULL,
    heard INTEGER NOT NULL,
    seeds BLOB NOT NULL,
    delta BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (peer, role)
) WITHOUT ROWID
"""

T = TypeVar("T")


class StockFile:
    """The stocks of one party; a `crypto.protocols.ot_stock.StockStore`. Calls may be made from any thread.

    Args:
        path: The database.
        connection: To it.
        log: The node's log, which is told of stocks that are made and dropped.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, log: Log) -> None:
        self._path, self._connection, self._log = path, connection, log
        self._lock = threading.Lock()
        self._folding: threading.Timer | None = None

    @classmethod
    def open(cls, path: Path, log: Log) -> StockFile:
        """Opens the database, and makes it where there is none; stocks of an earlier version's file are forgotten.

        A file that is damaged, or is no such database, is set aside: nothing in it is worth a job.

        Raises:
            ResourceError: It cannot be read or written.
        """
        with told(path, "stock", _REMEDY):
            opened = cls(path, _connected(path, log), log)
        opened.fold()  # what an earlier process had no time for
        return opened

    def close(self) -> None:
        """Ends the connection."""
        self.fold()
        with self._lock:
            self._connection.close()

    def fold(self) -> None:
        """Leaves nothing on disk of what was replaced; done by itself `FOLD_S` after a write."""
        with self._lock:
            if self._folding is not None:
                self._folding.cancel()
                self._folding = None
            with contextlib.suppress(sqlite3.Error):  # then the next write sees to it, or the next start
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    # -- StockStore --------------------------------------------------------------------------------------------------
    def get(self, peer: str, role: Role) -> Stock | None:
        """The stock with `peer` in which this party has `role`; one that the disk has spoilt counts as none."""
        return self._use(lambda: self._read(peer, role), None)

    def put(self, peer: str, role: Role, stock: Stock) -> None:
        """Keeps a new stock. Of two that were made at once both ends keep the same one: that with the larger id."""

        def work() -> bool:
            with alone(self._connection):
                kept = self._read(peer, role)
                if kept is not None and kept.id > stock.id:
                    return False
                row = (peer, role, *_row(stock), _checksum(peer, role, stock))
                places = ", ".join("?" * len(row))
                self._connection.execute(f"INSERT OR REPLACE INTO stocks VALUES ({places})", row)  # noqa: S608
                return True

        if self._use(work, False, writes=True):
            self._log.info("stock made", peer=peer)

    def advance(self, peer: str, role: Role, before: Stock, after: Stock) -> bool:
        """Replaces `before`, of which soon nothing is left; False where another `id`, `next` or `heard` is kept now."""
        statement = (
            "UPDATE stocks SET next = ?, heard = ?, seeds = ?, checksum = ? "
            "WHERE peer = ? AND role = ? AND id = ? AND next = ? AND heard = ?"
        )
        values = (
            *(after.next, after.heard, after.seeds, _checksum(peer, role, after)),
            *(peer, role, before.id, before.next, before.heard),
        )
        return self._use(lambda: self._connection.execute(statement, values).rowcount == 1, False, writes=True)

    def drop(self, peer: str, role: Role, stock_id: bytes, why: Reason) -> None:
        """Forgets this stock, if it is still kept."""
        statement, values = "DELETE FROM stocks WHERE peer = ? AND role = ? AND id = ?", (peer, role, stock_id)
        if self._use(lambda: self._connection.execute(statement, values).rowcount == 1, False, writes=True):
            self._log.warning("stock dropped", peer=peer, reason=why)

    # -- SQLite ------------------------------------------------------------------------------------------------------
    def _read(self, peer: str, role: Role) -> Stock | None:
        row = self._connection.execute(
            "SELECT id, terms, made, next, heard, seeds, delta, checksum FROM stocks WHERE peer = ? AND role = ?",
            (peer, role),
        ).fetchone()
        if row is None:
            return None
        *values, checksum = row
        stock = Stock(*values)
        return stock if checksum == _checksum(peer, role, stock) else None

    def _use(self, work: Callable[[], T], without: T, *, writes: bool = False) -> T:
        """What `work` comes to; `without`, where the file turns out to be damaged and a new one takes its place."""
        with self._lock, told(self._path, "stock", _REMEDY):
            try:
                found = work()
            except (sqlite3.OperationalError, sqlite3.ProgrammingError):  # the second once it is closed
                raise
            except sqlite3.DatabaseError:
                self._connection.close()
                _set_aside(self._path, self._log)
                self._connection = _connected(self._path, self._log)
                return without
            if writes and self._folding is None:
                self._folding = threading.Timer(FOLD_S, self.fold)
                self._folding.daemon = True
                self._folding.start()
            return found


def _connected(path: Path, log: Log) -> sqlite3.Connection:
    """A connection to the file; to a new one, where that is damaged."""
    for _ in range(2):
        make_private(path)
        try:
            return _opened(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise  # the disk, or another process
            _set_aside(path, log)
    return _opened(path)


def _opened(path: Path) -> sqlite3.Connection:
    connection = connect(path, BUSY_S, "synchronous = FULL", "secure_delete = ON")
    try:
        with alone(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                connection.execute("DROP TABLE IF EXISTS stocks")
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("SELECT * FROM stocks LIMIT 0")
        check_cells(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_aside(path: Path, log: Log) -> None:
    """Moves a damaged file away, and removes what belongs to it; it may still hold secrets, as the page on it says."""
    try:
        path.replace(path.with_suffix(DAMAGED))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError(f"{path.name} is damaged and cannot be moved away ({error.strerror}); delete it") from None
    log.warning("stock set aside")


def _row(stock: Stock) -> tuple[bytes, bytes, float, int, int, bytes, bytes]:
    return stock.id, stock.terms, stock.made, stock.next, stock.heard, stock.seeds, stock.delta


def _checksum(peer: str, role: Role, stock: Stock) -> bytes:
    """Over all that is kept: a disk that spoils a seed would spoil results, silently."""
    identifier, terms, made, following, heard, seeds, delta = _row(stock)
    labels = encode_labels(peer, role, identifier, terms, made.hex(), following, heard, seeds, delta)
    return hashlib.sha256(labels).digest()

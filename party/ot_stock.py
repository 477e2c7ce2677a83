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
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crypto.primitives.hashing import encode_labels
from crypto.protocols.ot_stock import Reason, Role, Stock
from party.database import alone, connect, make_private, told
from party.logs import Log

STOCK_FILE: Final = "stock.db"
VERSION: Final = 1
BUSY_S: Final = 5.0  # for which another process may hold the database
FOLD_S: Final = 1.0  # after a write, until what it replaced is forgotten: a job's writes come together, and none waits
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

        Raises:
            ConfigurationError: The file is no such database, or damaged.
            ResourceError: It cannot be read or written.
        """
        make_private(path)
        with _told(path):
            connection = connect(path, BUSY_S, "synchronous = FULL", "secure_delete = ON")
            try:
                with alone(connection):
                    (version,) = connection.execute("PRAGMA user_version").fetchone()
                    if version != VERSION:
                        connection.execute("DROP TABLE IF EXISTS stocks")
                        connection.execute(_SCHEMA)
                        connection.execute(f"PRAGMA user_version = {VERSION}")
                opened = cls(path, connection, log)
                opened.fold()  # what an earlier process had no time for
                return opened
            except BaseException:
                connection.close()
                raise

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
        with self._use():
            return self._read(peer, role)

    def put(self, peer: str, role: Role, stock: Stock) -> None:
        """Keeps a new stock. Of two that were made at once both ends keep the same one: that with the larger id."""
        with self._use(writes=True), alone(self._connection):
            kept = self._read(peer, role)
            if kept is not None and kept.id > stock.id:
                return
            row = (peer, role, *_row(stock), _checksum(peer, role, stock))
            self._connection.execute(f"INSERT OR REPLACE INTO stocks VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        self._log.info("stock made", peer=peer)

    def advance(self, peer: str, role: Role, before: Stock, after: Stock) -> bool:
        """Replaces `before`, of which soon nothing is left; False where another `id`, `next` or `heard` is kept now."""
        with self._use(writes=True):
            cursor = self._connection.execute(
                "UPDATE stocks SET next = ?, heard = ?, seeds = ?, checksum = ? "
                "WHERE peer = ? AND role = ? AND id = ? AND next = ? AND heard = ?",
                (
                    *(after.next, after.heard, after.seeds, _checksum(peer, role, after)),
                    *(peer, role, before.id, before.next, before.heard),
                ),
            )
            return cursor.rowcount == 1

    def drop(self, peer: str, role: Role, stock_id: bytes, why: Reason) -> None:
        """Forgets this stock, if it is still kept."""
        with self._use(writes=True):
            where = "WHERE peer = ? AND role = ? AND id = ?"
            cursor = self._connection.execute(f"DELETE FROM stocks {where}", (peer, role, stock_id))  # noqa: S608
        if cursor.rowcount == 1:
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

    @contextlib.contextmanager
    def _use(self, *, writes: bool = False) -> Iterator[None]:
        with self._lock, _told(self._path):
            yield
            if writes and self._folding is None:
                self._folding = threading.Timer(FOLD_S, self.fold)
                self._folding.daemon = True
                self._folding.start()


def _told(path: Path) -> contextlib.AbstractContextManager[None]:
    return told(path, "stock", "delete it, and the node makes another one")


def _row(stock: Stock) -> tuple[bytes, bytes, float, int, int, bytes, bytes]:
    return stock.id, stock.terms, stock.made, stock.next, stock.heard, stock.seeds, stock.delta


def _checksum(peer: str, role: Role, stock: Stock) -> bytes:
    """Over all that is kept: a disk that spoils a seed would spoil results, silently."""
    identifier, terms, made, following, heard, seeds, delta = _row(stock)
    labels = encode_labels(peer, role, identifier, terms, made.hex(), following, heard, seeds, delta)
    return hashlib.sha256(labels).digest()

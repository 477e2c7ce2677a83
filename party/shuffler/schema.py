"""The tables of `shuffler.db`, and how the file is opened.

    routes     document, this node's private key and tag key for it, and the number of the batch that is being filled
    segments   what one message brought: reports without this node's layer, and the sender until the batch leaves
    tags       of reports that were taken, by which they are known when they come again
    drops      how many reports of the batch were dropped, and why
    batches    what left: the head with all statements
    parts      its reports, until the next hop has them

What is deleted is overwritten.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

from party.database import connect, locked, make_private, prepare, told

VERSION: Final = 1
BUSY_S: Final = 5.0  # for which another process, such as a backup, may hold the database
_APPLICATION: Final = 0x636F6D73  # "coms"
_TABLES: Final = f"""
CREATE TABLE routes (
    row INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    document BLOB NOT NULL,
    key BLOB NOT NULL,
    tag_key BLOB NOT NULL,
    creator TEXT NOT NULL,
    created REAL NOT NULL,
    retired REAL,
    batch INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE segments (
    row INTEGER PRIMARY KEY,
    route INTEGER NOT NULL,
    sender TEXT NOT NULL,
    size INTEGER NOT NULL,
    reports BLOB NOT NULL
);
CREATE INDEX segments_of_route ON segments (route);
CREATE TABLE tags (
    row INTEGER PRIMARY KEY,
    route INTEGER NOT NULL,
    tags BLOB NOT NULL
);
CREATE INDEX tags_of_route ON tags (route);
CREATE TABLE drops (
    route INTEGER NOT NULL,
    reason TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (route, reason)
) WITHOUT ROWID;
CREATE TABLE batches (
    route INTEGER NOT NULL,
    number INTEGER NOT NULL,
    head BLOB NOT NULL,
    sent REAL,
    PRIMARY KEY (route, number)
);
CREATE TABLE parts (
    route INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reports BLOB NOT NULL,
    PRIMARY KEY (route, batch, number)
);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {VERSION}"""


class Opened(NamedTuple):
    """An open database.

    Attributes:
        lock: An open file whose lock says that this process alone uses the database.
        connection: Each commit through it survives a loss of power.
    """

    lock: int
    connection: sqlite3.Connection

    def close(self) -> None:
        """Ends the connection, and lets others use the database."""
        self.connection.close()
        os.close(self.lock)


def open_database(path: Path) -> Opened:
    """Opens the database, and makes it where there is none.

    Raises:
        ConfigurationError: The file is no such database, damaged, of another version, or another process uses it.
        ResourceError: It cannot be read or written.
    """
    make_private(path, folder=True)
    lock = locked(path)
    try:
        with translated(path):
            connection = connect(path, BUSY_S, "synchronous = FULL", "secure_delete = ON")
            try:
                prepare(connection, path, "shuffler", _TABLES, _APPLICATION, VERSION)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was deleted may still stand in the log
            except BaseException:
                connection.close()
                raise
    except BaseException:
        os.close(lock)
        raise
    return Opened(lock, connection)


def translated(path: Path) -> AbstractContextManager[None]:
    """Translates what SQLite raises about this database; see `party.database.told`."""
    return told(path, "shuffler", "move it away, which forgets all routes and the reports that wait")

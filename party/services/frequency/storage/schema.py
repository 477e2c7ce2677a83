"""The tables of `frequency.db`.

    collections   name, id, specification, labels, and the schedule's state
    periods       the secret key of each period; with it go the tags of who took part
    rounds        mechanism, times, and the tally: of an open round over what was folded, of an ended one over all
    segments      what one commit took for one round: tags, submitters, and the reports, until the tally covers them
    taken         tags and submitters of segments that the tally covers
    refusals      how many reports were refused, and why

What is deleted is overwritten. The rows of periods are never used again, since tags may outlive their period's key; nor
are those of collections, since a report may be refused while its collection is deleted.
"""

from __future__ import annotations

from typing import Final

from party.state.database import Kind

_TABLES: Final = """
CREATE TABLE collections (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    id BLOB NOT NULL,
    spec BLOB NOT NULL,
    labels BLOB NOT NULL,
    creator TEXT NOT NULL,
    created REAL NOT NULL,
    closed REAL,
    state BLOB NOT NULL
);
CREATE TABLE periods (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key BLOB NOT NULL,
    UNIQUE (collection, number)
);
CREATE TABLE rounds (
    row INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    period INTEGER NOT NULL,
    step INTEGER NOT NULL,
    opens REAL NOT NULL,
    closes REAL NOT NULL,
    mechanism BLOB NOT NULL,
    purpose TEXT NOT NULL,
    share TEXT NOT NULL,
    ended REAL,
    counted INTEGER NOT NULL DEFAULT 0,
    tally BLOB NOT NULL,
    result BLOB NOT NULL,
    UNIQUE (collection, number)
);
CREATE TABLE segments (
    row INTEGER PRIMARY KEY,
    round INTEGER NOT NULL,
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,
    tags BLOB NOT NULL,
    submitters BLOB NOT NULL,
    reports BLOB NOT NULL,
    UNIQUE (round, number)
);
CREATE TABLE taken (
    row INTEGER PRIMARY KEY,
    period INTEGER NOT NULL,
    tags BLOB NOT NULL,
    submitters BLOB NOT NULL
);
CREATE INDEX taken_in_period ON taken (period);
CREATE TABLE refusals (
    collection INTEGER NOT NULL,
    round INTEGER NOT NULL,
    reason TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (collection, round, reason)
) WITHOUT ROWID"""
KIND: Final = Kind(
    "frequency",
    "bring it back from a copy, or move it away, which forgets all collections",
    0x636F6D66,  # "comf"
    (_TABLES,),
    exclusive=True,
    overwrites=True,
)

"""The tables of `shuffler.db`.

    routes     document and its digest, this node's private key and tag key for it, and the number of the batch that is
               being filled
    segments   what one message brought: reports without this node's layer, and the sender until the batch leaves
    tags       of reports that were taken, by which they are known when they come again
    drops      how many reports of the batch were dropped, and why
    batches    what left: the head with all statements
    parts      its reports, until the next hop has them

What is deleted is overwritten.
"""

from __future__ import annotations

from typing import Final

from party.state.database import Kind

_TABLES: Final = """
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
)"""
_BY_DIGEST: Final = "ALTER TABLE routes ADD COLUMN digest BLOB; CREATE INDEX routes_by_digest ON routes (digest)"
KIND: Final = Kind(
    "shuffler",
    "move it away, which forgets all routes and the reports that wait",
    0x636F6D73,  # "coms"
    (_TABLES, _BY_DIGEST),
    exclusive=True,
    overwrites=True,
)

BEGIN TRANSACTION;
CREATE TABLE collections (
    row INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    id BLOB NOT NULL,
    spec BLOB NOT NULL,
    labels BLOB NOT NULL,
    creator TEXT NOT NULL,
    created REAL NOT NULL,
    closed REAL,
    state BLOB NOT NULL
);
INSERT INTO "collections" VALUES(1,'homepages',X'01010101010101010101010101010101',X'73706563',X'6C6162656C73','analyst',1000.0,NULL,X'7374617465');
CREATE TABLE periods (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key BLOB NOT NULL,
    UNIQUE (collection, number)
);
INSERT INTO "periods" VALUES(1,1,0,X'0202020202020202020202020202020202020202020202020202020202020202');
CREATE TABLE refusals (
    collection INTEGER NOT NULL,
    round INTEGER NOT NULL,
    reason TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (collection, round, reason)
) WITHOUT ROWID;
INSERT INTO "refusals" VALUES(1,0,'late',5);
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
INSERT INTO "rounds" VALUES(1,1,0,1,0,1000.0,2000.0,X'6D','estimate','1',NULL,3,X'74616C6C79',X'');
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
INSERT INTO "taken" VALUES(1,1,X'0000000000000000',X'00000000');
CREATE INDEX taken_in_period ON taken (period);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('periods',1);
PRAGMA application_id = 1668246886;
PRAGMA user_version = 1;
COMMIT;

BEGIN TRANSACTION;
CREATE TABLE auditors (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL,
    column TEXT NOT NULL,
    id BLOB NOT NULL,
    UNIQUE (dataset, column)
);
INSERT INTO "auditors" VALUES(1,'patients','age',X'01010101010101010101010101010101');
CREATE TABLE datasets (
    name TEXT PRIMARY KEY,
    records INTEGER NOT NULL,
    digests TEXT NOT NULL
);
INSERT INTO "datasets" VALUES('patients',12,'{}');
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    auditor INTEGER NOT NULL,
    time REAL NOT NULL,
    coordinator TEXT NOT NULL,
    query TEXT NOT NULL,
    class TEXT NOT NULL,
    reason TEXT NOT NULL,
    rank INTEGER,
    records BLOB,
    value REAL
);
INSERT INTO "decisions" VALUES(1,1,1000.0,'analyst','{}','sum','answered',1,X'72',3.5);
CREATE TABLE variables (
    auditor INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BLOB NOT NULL,
    PRIMARY KEY (auditor, number)
) WITHOUT ROWID;
CREATE INDEX decisions_of_auditor ON decisions (auditor, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('auditors',1);
INSERT INTO "sqlite_sequence" VALUES('decisions',1);
PRAGMA application_id = 1668246897;
PRAGMA user_version = 2;
COMMIT;

BEGIN TRANSACTION;
CREATE TABLE asked (
    service TEXT NOT NULL,
    coordinator TEXT NOT NULL,
    hour INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (service, coordinator, hour)
) WITHOUT ROWID;
INSERT INTO "asked" VALUES('jobs','analyst',0,512);
CREATE TABLE "charges" (
    job_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    time REAL NOT NULL,
    dataset TEXT NOT NULL,
    name TEXT NOT NULL,
    coordinator TEXT NOT NULL,
    model TEXT NOT NULL,
    local_epsilon TEXT,
    epsilon TEXT,
    delta TEXT,
    PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;
INSERT INTO "charges" VALUES(X'0101010101010101010101010101010101010101010101010101010101010101',1,1003.0,'baskets','weekly','analyst','distributed',NULL,'0.5','0');
CREATE TABLE clock (only INTEGER PRIMARY KEY CHECK (only = 1), latest REAL NOT NULL);
CREATE TABLE companions (name TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "companions" VALUES('releases.db');
CREATE TABLE heads (
    service TEXT NOT NULL,
    subject TEXT NOT NULL,
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (service, subject)
) WITHOUT ROWID;
INSERT INTO "heads" VALUES('releases','',3,0);
CREATE TABLE holds (
    job BLOB PRIMARY KEY,
    digest BLOB NOT NULL,
    shown TEXT NOT NULL,
    released_by TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
INSERT INTO "holds" VALUES(X'0707070707070707070707070707070707070707070707070707070707070707',X'01','{}','');
CREATE TABLE jobs (
    job_id BLOB PRIMARY KEY,
    proposal BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    dataset TEXT NOT NULL,
    parties TEXT NOT NULL,
    min_support TEXT NOT NULL,
    expiry INTEGER NOT NULL,
    received REAL NOT NULL,
    state TEXT NOT NULL,
    decided REAL,
    decided_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    approval BLOB NOT NULL DEFAULT x'',
    started REAL,
    n_rows INTEGER,
    data_digest BLOB,
    ended REAL,
    error_code TEXT NOT NULL DEFAULT '',
    error_message TEXT NOT NULL DEFAULT '',
    error_party TEXT NOT NULL DEFAULT '',
    release BLOB NOT NULL DEFAULT x''
, attempt INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "jobs" VALUES(X'0101010101010101010101010101010101010101010101010101010101010101',X'70726F706F73616C','analyst','baskets','["north", "south"]','0.01',2000,1001.0,'SUCCEEDED',1002.0,'policy','',X'617070726F76616C',1003.0,60,X'0303030303030303030303030303030303030303030303030303030303030303',1004.0,'','','',X'72656C65617365',1);
INSERT INTO "jobs" VALUES(X'0202020202020202020202020202020202020202020202020202020202020202',X'70726F706F73616C','analyst','baskets','["north", "south"]','0.01',2000,1005.0,'AWAITING_APPROVAL',NULL,'','',X'',NULL,NULL,NULL,NULL,'','','',X'',0);
CREATE TABLE "joint_results" (
    dataset TEXT NOT NULL,
    parties TEXT NOT NULL,
    sums INTEGER NOT NULL,
    threshold TEXT NOT NULL,
    columns TEXT NOT NULL,
    PRIMARY KEY (dataset, parties, sums, threshold, columns)
) WITHOUT ROWID;
INSERT INTO "joint_results" VALUES('baskets','east north south',1,'0.01','');
INSERT INTO "joint_results" VALUES('baskets','north south',1,'','');
INSERT INTO "joint_results" VALUES('people','north south',0,'','{"groups": [], "ids": [false, "keep", "none"], "intervals": {"age": ["30"]}}');
CREATE TABLE journal (
    job_id BLOB NOT NULL,
    what TEXT NOT NULL,
    version TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (job_id, what)
) WITHOUT ROWID;
INSERT INTO "journal" VALUES(X'0202020202020202020202020202020202020202020202020202020202020202','step 1','0.1.0 16',X'7365616C6564');
CREATE TABLE notices (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL);
INSERT INTO "notices" VALUES(1,'{}');
CREATE TABLE owner_ends (
    job BLOB PRIMARY KEY,
    code TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "owner_ends" VALUES(X'0707070707070707070707070707070707070707070707070707070707070707','E501','owner','not now');
CREATE TABLE plans (coordinator TEXT NOT NULL, asked REAL NOT NULL);
INSERT INTO "plans" VALUES('analyst',1000.0);
CREATE TABLE reached (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    party TEXT NOT NULL,
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL,
    place INTEGER NOT NULL
);
INSERT INTO "reached" VALUES(1,'north','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',7,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',900);
CREATE TABLE recounted (what TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "recounted" VALUES('joint results');
INSERT INTO "recounted" VALUES('joint results with columns');
INSERT INTO "recounted" VALUES('unions');
CREATE TABLE reloads (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    changed TEXT NOT NULL DEFAULT '',
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT ''
);
INSERT INTO "reloads" VALUES(1,'north.toml',1,'policy','','');
CREATE TABLE row_versions (
    dataset TEXT NOT NULL,
    digest BLOB NOT NULL,
    n_rows INTEGER,
    PRIMARY KEY (dataset, digest)
) WITHOUT ROWID;
INSERT INTO "row_versions" VALUES('baskets',X'0303030303030303030303030303030303030303030303030303030303030303',60);
CREATE TABLE seen (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL,
    place INTEGER NOT NULL
);
INSERT INTO "seen" VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',9,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1200);
CREATE TABLE spent (
    dataset TEXT NOT NULL,
    model TEXT NOT NULL,
    local_epsilon TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    starts INTEGER NOT NULL,
    PRIMARY KEY (dataset, model, local_epsilon, epsilon, delta)
) WITHOUT ROWID;
INSERT INTO "spent" VALUES('baskets','distributed','','0.5','0',1);
CREATE TABLE standing (
    id BLOB PRIMARY KEY,
    certificate TEXT NOT NULL,
    signature BLOB NOT NULL,
    revoked TEXT NOT NULL DEFAULT '',
    party TEXT NOT NULL,
    job BLOB NOT NULL,
    spec_digest BLOB NOT NULL,
    coordinator TEXT NOT NULL,
    coordinator_certificate BLOB NOT NULL,
    times INTEGER NOT NULL,
    every_s INTEGER NOT NULL,
    until INTEGER NOT NULL,
    approved INTEGER NOT NULL,
    by TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "standing" VALUES(X'0505050505050505050505050505050505050505050505050505050505050505','{}',X'73','','north',X'0101010101010101010101010101010101010101010101010101010101010101',X'0606060606060606060606060606060606060606060606060606060606060606','analyst',X'63',4,3600,3000,1000,'owner');
CREATE TABLE standing_uses (
    job BLOB PRIMARY KEY,
    standing BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE voices (
    job BLOB NOT NULL,
    person TEXT NOT NULL,
    by TEXT NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (job, person)
) WITHOUT ROWID;
INSERT INTO "voices" VALUES(X'0707070707070707070707070707070707070707070707070707070707070707','anna','Anna','');
CREATE INDEX jobs_by_dataset ON jobs (dataset, started);
CREATE INDEX jobs_by_state ON jobs (state, received);
CREATE INDEX jobs_by_refusal ON jobs (decided_by, received) WHERE state = 'DENIED';
CREATE INDEX jobs_by_count ON jobs (dataset, started) WHERE data_digest IS NOT NULL;
CREATE INDEX jobs_by_approval ON jobs (coordinator, dataset, decided) WHERE approval != x'';
CREATE INDEX jobs_by_end ON jobs (ended) WHERE started IS NOT NULL;
CREATE INDEX jobs_never_started ON jobs (expiry) WHERE started IS NULL;
CREATE INDEX plans_by_coordinator ON plans (coordinator, asked);
CREATE INDEX charges_by_dataset ON charges (dataset, time);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('reloads',1);
INSERT INTO "sqlite_sequence" VALUES('notices',1);
PRAGMA application_id = 1668246889;
PRAGMA user_version = 21;
COMMIT;

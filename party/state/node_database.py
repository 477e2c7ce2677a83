"""The tables of `node.db`, and how the file is opened.

    jobs      every job that this party was asked for, what it answered, and how far the job came
    journal   what is kept of jobs that can go on, sealed by keys that are outside of the file
    charges   the privacy ledger: what each start of a job may cost the records of its dataset
    spent     the same starts, counted by what they cost: totals need no look at each of them
    recounted what has been counted anew out of the audit log, since earlier versions did not count it
    companions  databases beside this one that the node has had, and without which it does not start
    reached   whose the file is, and up to which entry of the audit log it knows all
    heads     how far the databases beside this one had come, according to the audit log
    plans     when each coordinator has asked for plans lately
    standing, standing_uses, clock  what people have approved in advance, the runs that used it, the latest time seen
    owner_ends  jobs that the party's own people have ended, by whom and why: they do not begin any more
    holds     what jobs have found that people have to release, as they are shown it, and who has
    voices    which people have approved jobs that need several
    reloads   for what people have asked the running node to read its files anew, and what it answered
    joint_results, row_versions  of exact jobs, what counts for what several reveal together: parties, thresholds, how
              columns are joined and cut, rows
    asked     how many bytes of the audit log each coordinator has brought about lately, by hours, up to that entry

The node and the command line use the file at the same time. Of nodes one alone may: it holds the lock beside the file,
which covers all that is in the state folder.
"""

from __future__ import annotations

from typing import Final

from party.state.database import Kind, StateDatabase

FILE: Final = "node.db"
_FIRST: Final = """
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
) WITHOUT ROWID;
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_dataset ON jobs (dataset, started);
"""
_SECOND: Final = """
ALTER TABLE jobs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
CREATE TABLE levels (
    job_id BLOB NOT NULL,
    length INTEGER NOT NULL,
    version TEXT NOT NULL,
    level BLOB NOT NULL,
    PRIMARY KEY (job_id, length)
) WITHOUT ROWID;
UPDATE jobs SET attempt = 1 WHERE started IS NOT NULL;
"""
_THIRD: Final = """
CREATE TABLE charges (
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
CREATE INDEX charges_by_dataset ON charges (dataset, time);
"""
_FOURTH: Final = """
DROP INDEX jobs_by_state;
CREATE INDEX jobs_by_state ON jobs (state, received);
CREATE INDEX jobs_by_refusal ON jobs (decided_by, received) WHERE state = 'DENIED';
CREATE INDEX jobs_by_count ON jobs (dataset, started) WHERE data_digest IS NOT NULL;
CREATE INDEX jobs_by_approval ON jobs (coordinator, dataset, decided) WHERE approval != x'';
CREATE INDEX jobs_by_end ON jobs (ended) WHERE started IS NOT NULL;
CREATE INDEX jobs_never_started ON jobs (expiry) WHERE started IS NULL;
CREATE TABLE spent (
    dataset TEXT NOT NULL,
    model TEXT NOT NULL,
    local_epsilon TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    starts INTEGER NOT NULL,
    PRIMARY KEY (dataset, model, local_epsilon, epsilon, delta)
) WITHOUT ROWID;
INSERT INTO spent
    SELECT dataset, model, ifnull(local_epsilon, ''), ifnull(epsilon, ''), ifnull(delta, ''), count(*) FROM charges
    GROUP BY 1, 2, 3, 4, 5;
CREATE TABLE reached (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    party TEXT NOT NULL,
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL,
    place INTEGER NOT NULL
);
"""
_FIFTH: Final = """
CREATE TABLE plans (coordinator TEXT NOT NULL, asked REAL NOT NULL);
CREATE INDEX plans_by_coordinator ON plans (coordinator, asked);
"""
_SIXTH: Final = """
CREATE TABLE companions (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_SEVENTH: Final = """
CREATE TABLE heads (
    service TEXT NOT NULL,
    subject TEXT NOT NULL,
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (service, subject)
) WITHOUT ROWID;
"""
_EIGHTH: Final = """
ALTER TABLE charges ADD COLUMN unites INTEGER NOT NULL DEFAULT 0;
CREATE TABLE unions (dataset TEXT PRIMARY KEY, starts INTEGER NOT NULL) WITHOUT ROWID;
"""
_NINTH: Final = """
CREATE TABLE recounted (what TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_TENTH: Final = """
CREATE TABLE asked (
    service TEXT NOT NULL,
    coordinator TEXT NOT NULL,
    hour INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (service, coordinator, hour)
) WITHOUT ROWID;
"""
_ELEVENTH: Final = """
CREATE TABLE reloads (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    changed TEXT NOT NULL DEFAULT '',
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT ''
);
"""
_TWELFTH: Final = """
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
CREATE TABLE standing_uses (
    job BLOB PRIMARY KEY,
    standing BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE clock (only INTEGER PRIMARY KEY CHECK (only = 1), latest REAL NOT NULL);
"""
_THIRTEENTH: Final = """
CREATE TABLE notices (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL);
"""
_FOURTEENTH: Final = """
DROP TABLE levels;
CREATE TABLE journal (
    job_id BLOB NOT NULL,
    what TEXT NOT NULL,
    version TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (job_id, what)
) WITHOUT ROWID;
"""
_FIFTEENTH: Final = """
CREATE TABLE owner_ends (
    job BLOB PRIMARY KEY,
    code TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;
"""
_SIXTEENTH: Final = """
CREATE TABLE holds (
    job BLOB PRIMARY KEY,
    digest BLOB NOT NULL,
    shown TEXT NOT NULL,
    released_by TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
"""
_SEVENTEENTH: Final = """
CREATE TABLE voices (
    job BLOB NOT NULL,
    person TEXT NOT NULL,
    by TEXT NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (job, person)
) WITHOUT ROWID;
"""
_EIGHTEENTH: Final = """
CREATE TABLE joint_results (
    dataset TEXT NOT NULL,
    parties TEXT NOT NULL,
    sums INTEGER NOT NULL,
    threshold TEXT NOT NULL,
    PRIMARY KEY (dataset, parties, sums, threshold)
) WITHOUT ROWID;
CREATE TABLE row_versions (
    dataset TEXT NOT NULL,
    digest BLOB NOT NULL,
    n_rows INTEGER,
    PRIMARY KEY (dataset, digest)
) WITHOUT ROWID;
INSERT INTO row_versions SELECT DISTINCT dataset, data_digest, n_rows FROM jobs WHERE data_digest IS NOT NULL;
"""
_NINETEENTH: Final = """
CREATE TABLE seen (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL,
    place INTEGER NOT NULL
);
"""
_TWENTIETH: Final = """
CREATE TABLE charged (
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
INSERT INTO charged
    SELECT job_id, attempt, time, dataset, name, coordinator, model, local_epsilon, epsilon, delta FROM charges;
DROP TABLE charges;
ALTER TABLE charged RENAME TO charges;
CREATE INDEX charges_by_dataset ON charges (dataset, time);
DROP TABLE unions;
"""
_TWENTY_FIRST: Final = """
CREATE TABLE noted_results (
    dataset TEXT NOT NULL,
    parties TEXT NOT NULL,
    sums INTEGER NOT NULL,
    threshold TEXT NOT NULL,
    columns TEXT NOT NULL,
    PRIMARY KEY (dataset, parties, sums, threshold, columns)
) WITHOUT ROWID;
INSERT INTO noted_results SELECT dataset, parties, sums, threshold, '' FROM joint_results;
DROP TABLE joint_results;
ALTER TABLE noted_results RENAME TO joint_results;
"""
KIND: Final = Kind(
    "job",
    "move it away, and the node makes it again out of its audit log, or bring it back from a copy",
    0x636F6D69,  # "comi"
    (
        *(_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH, _ELEVENTH, _TWELFTH),
        *(_THIRTEENTH, _FOURTEENTH, _FIFTEENTH, _SIXTEENTH, _SEVENTEENTH, _EIGHTEENTH, _NINETEENTH, _TWENTIETH),
        _TWENTY_FIRST,
    ),
)


class NodeTables(StateDatabase):
    """Tables of `node.db`. Calls are short, and may be made from any thread."""

    KIND = KIND

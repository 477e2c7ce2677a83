"""The jobs in `node.db`: every one that this party was asked for, what it answered, and how far the job came.

The node and the command line use the table at the same time. A state is written before anybody
learns it, and a move between states is made only from the state that the mover believes in; so of two processes that
decide at once one is refused, and a job begins once in the life of the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from link.errors import ComineError, InputDataError, OverLimit
from party.jobs.job import MOVES
from party.policy.policy_input import Earlier
from party.state.audit_count import Bin
from party.state.database import Held
from party.state.holds import Holds
from party.state.owner_ends import OwnerEnds
from party.state.past import PastJobs
from party.state.recovery.heads import Head
from party.state.standing import StandingTables
from party.state.voices import Voices
from protos.v1.control_pb2 import JobState, SignedProposal

MOST_REFUSED: Final = 1000
MOST_UNSTARTED: Final = 1000  # jobs that ended before they began, beyond their expiry
_ID_DIGITS: Final = 64


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the table. Times are Unix seconds; what has not come to pass is None or empty.

    Attributes:
        job_id: The job.
        proposal: The serialised `SignedProposal`.
        coordinator: Who proposed it.
        dataset: On which data.
        parties: All its parties.
        min_support: As in its specification.
        expiry: When it can no longer be started.
        received: When it came.
        state: Where it stands.
        decided: When it was approved or denied.
        decided_by: "policy", or a person.
        reason: Why it was denied.
        approval: The serialised `SignedApproval`.
        started: When it began here.
        n_rows: Rows of the dataset when it began.
        data_digest: Of the dataset's content then; never leaves this party.
        ended: When it ended.
        error_code: Of what ended it early.
        error_message: The sentence of that error.
        error_party: Where that error arose.
        release: The serialised `ResultHeader` of a job that succeeded.
        attempt: The last that has begun here, from 1; 0 before the first.
    """

    job_id: bytes
    proposal: bytes
    coordinator: str
    dataset: str
    parties: tuple[str, ...]
    min_support: str
    expiry: int
    received: float
    state: JobState.ValueType
    decided: float | None = None
    decided_by: str = ""
    reason: str = ""
    approval: bytes = b""
    started: float | None = None
    n_rows: int | None = None
    data_digest: bytes | None = None
    ended: float | None = None
    error_code: str = ""
    error_message: str = ""
    error_party: str = ""
    release: bytes = b""
    attempt: int = 0

    @property
    def signed_proposal(self) -> SignedProposal:
        """What the coordinator signed."""
        return SignedProposal.FromString(self.proposal)


def early_end(now: float, error: ComineError, me: str) -> dict[str, Any]:
    """What is kept of an early end, in the columns of the table."""
    return {
        "ended": now,
        "error_code": error.code,
        "error_message": error.message,
        "error_party": error.blamed(me),
    }


class Reached(NamedTuple):
    """Up to where the database knows what the audit log says.

    Attributes:
        party: Whose both are.
        log: SHA-256 of the log's first entry, in hex.
        seq: Number of the last entry that is known.
        entry: SHA-256 of it, in hex.
        place: Where in the file it begins.
    """

    party: str
    log: str
    seq: int
    entry: str
    place: int


_COLUMNS: Final = tuple(field.name for field in fields(Record))
_ALL: Final = f"SELECT {', '.join(_COLUMNS)} FROM jobs"  # noqa: S608  # the names are this module's own


class Store(StandingTables, OwnerEnds, Holds, Voices, PastJobs):
    """The jobs of one party. Calls are short, and may be made from any thread."""

    def __init__(self, path: Path, opened: Held) -> None:
        super().__init__(path, opened)
        self._version = self._data_version()

    # -- reading -----------------------------------------------------------------------------------------------------
    def get(self, job_id: bytes) -> Record | None:
        """One job."""
        found = self._select("WHERE job_id = ?", job_id)
        return found[0] if found else None

    def coordinator_of(self, job_id: bytes) -> str | None:
        """Who proposed a job."""
        found = self._read("SELECT coordinator FROM jobs WHERE job_id = ?", job_id)
        return str(found[0][0]) if found else None

    def find(self, prefix: str) -> list[Record]:
        """The jobs whose id in hex begins with `prefix`."""
        if len(prefix) > _ID_DIGITS:
            return []
        low, high = (bytes.fromhex(prefix.ljust(_ID_DIGITS, digit)) for digit in "0f")
        return self._select("WHERE job_id BETWEEN ? AND ? ORDER BY received", low, high)

    def all(self) -> list[Record]:
        """All jobs, the newest first."""
        return self._select("ORDER BY received DESC, job_id")

    def within(self, states: Collection[JobState.ValueType]) -> list[Record]:
        """The jobs in some states, the oldest first."""
        names = [JobState.Name(state) for state in states]
        return self._select(f"WHERE state IN ({_places(names)}) ORDER BY received, job_id", *names)

    def latest_of_coordinators(self) -> list[Record]:
        """The last job that each coordinator proposed, by coordinator."""
        return self._select(
            "WHERE job_id IN (SELECT job_id FROM (SELECT job_id, max(received) FROM jobs GROUP BY coordinator)) "
            "ORDER BY coordinator"
        )

    def is_empty(self) -> bool:
        """Whether there is no job at all."""
        return not self._read("SELECT 1 FROM jobs LIMIT 1")

    def first(self, dataset: str, without: bytes) -> list[Earlier]:
        """Of the jobs that were started on a dataset, the first, but for the one with the id `without`."""
        return self._earlier("ORDER BY started, job_id LIMIT 1", dataset, without)

    def latest(self, dataset: str, without: bytes, number: int) -> list[Earlier]:
        """Of the jobs that were started on a dataset so many, the last ones, first the first."""
        return self._earlier("ORDER BY started DESC, job_id DESC LIMIT ?", dataset, without, number)[::-1]

    def starts(self, dataset: str, without: bytes, number: int) -> list[Earlier]:
        """As `latest`, with nothing but when each was started, which an index knows: for rules that count."""
        with self._using() as connection:
            rows = connection.execute(
                "SELECT job_id, started FROM jobs WHERE dataset = ? AND started IS NOT NULL AND job_id != ? "
                "ORDER BY started DESC, job_id DESC LIMIT ?",
                (dataset, without, number),
            ).fetchall()
        return [Earlier(job_id, started, (), "", "") for job_id, started in reversed(rows)]

    def failed_here(
        self, datasets: Collection[str], coordinator: str, party: str, parties: Collection[str], since: float
    ) -> int:
        """How many jobs of a coordinator on some datasets failed because of data, as others learned.

        Those count whose failure was this party's, and those over a limit of the job among the same parties: nobody may
        learn whose data these were, and a party that says so falsely uses up nothing but the failures of its own jobs.
        So does every attempt that another has followed, also while that runs: what ended it is known no more.

        Args:
            datasets: The datasets.
            coordinator: Who proposed them.
            party: Whose store this is.
            parties: Of the job that is judged.
            since: Unix seconds, after which they ended.
        """
        rows = self._read(
            "SELECT error_code, parties, count(*) FROM jobs INDEXED BY jobs_by_end "  # noqa: S608
            f"WHERE dataset IN ({_places(datasets)}) AND started IS NOT NULL AND ended > ? AND coordinator = ? "
            "AND ((error_code = ? AND error_party = ?) OR error_code = ?) GROUP BY error_code, parties",
            *(*datasets, since, coordinator, InputDataError.code, party, OverLimit.code),
        )
        followed = (
            f"SELECT attempt - 1 FROM jobs INDEXED BY jobs_by_end WHERE dataset IN ({_places(datasets)}) "  # noqa: S608
            "AND started IS NOT NULL AND coordinator = ? AND attempt > 1 AND "
        )
        ended, running = f"{followed} ended > ?", f"{followed} ended IS NULL"  # together they would use no index
        attempts = [*self._read(ended, *datasets, coordinator, since), *self._read(running, *datasets, coordinator)]
        alike = set(parties)
        last = sum(number for code, among, number in rows if code != OverLimit.code or set(among.split(" ")) == alike)
        return int(last + sum(number for (number,) in attempts))

    def last_counted(self, dataset: str, without: bytes) -> list[Earlier]:
        """Of the jobs that were started on a dataset, the last of which it is noted on what rows it ran."""
        which = "AND data_digest IS NOT NULL ORDER BY started DESC, job_id DESC LIMIT 1"
        return self._earlier(which, dataset, without)

    def _earlier(self, which: str, dataset: str, without: bytes, *values: Any) -> list[Earlier]:
        with self._using() as connection:
            rows = connection.execute(
                "SELECT job_id, started, parties, min_support, state, n_rows, data_digest FROM jobs "  # noqa: S608
                f"WHERE dataset = ? AND started IS NOT NULL AND job_id != ? {which}",
                (dataset, without, *values),
            )
            return [
                Earlier(job_id, started, tuple(parties.split(" ")), min_support, state, n_rows, data_digest)
                for job_id, started, parties, min_support, state, n_rows, data_digest in rows
            ]

    def last_approved(self, coordinator: str, dataset: str, before: float) -> Record | None:
        """The job of this coordinator on this dataset that was approved last before a time."""
        found = self._select(
            "WHERE coordinator = ? AND dataset = ? AND approval != x'' AND received < ? ORDER BY decided DESC LIMIT 1",
            coordinator,
            dataset,
            before,
        )
        return found[0] if found else None

    def changed(self) -> bool:
        """Whether another process has written since the last time this was asked."""
        before, self._version = self._version, self._data_version()
        return before != self._version

    # -- writing -----------------------------------------------------------------------------------------------------
    def add(self, record: Record) -> bool:
        """Records a job that was proposed; False where this very job is recorded already."""
        values = [_stored(getattr(record, name)) if name != "state" else _name(record.state) for name in _COLUMNS]
        statement = f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({_places(_COLUMNS)}) ON CONFLICT DO NOTHING"  # noqa: S608
        return self._execute(statement, *values) == 1

    def forget_refused(self, by: str, keep: int = MOST_REFUSED) -> None:
        """Forgets all but the newest of the jobs that `by` refused; otherwise proposers could fill the disk."""
        older = (
            "SELECT job_id FROM jobs WHERE state = 'DENIED' AND decided_by = ? ORDER BY received DESC LIMIT -1 OFFSET ?"
        )
        self._execute(f"DELETE FROM jobs WHERE job_id IN ({older})", by, keep)  # noqa: S608

    def move(
        self, job_id: bytes, before: JobState.ValueType, after: JobState.ValueType, changes: Mapping[str, Any]
    ) -> bool:
        """Brings a job from one state to another and notes what goes with it; False where it was not in the first.

        Args:
            job_id: The job.
            before: Where it must stand.
            after: A state that may follow.
            changes: New values by column.

        Raises:
            RuntimeError: The move is not legal.
        """
        if after not in MOVES[before]:
            raise RuntimeError(f"a job cannot go from {_name(before)} to {_name(after)}")
        self._check_names(changes)
        new = {"state": _name(after), **{name: _stored(value) for name, value in changes.items()}}
        settings = ", ".join(f"{name} = ?" for name in new)
        statement = f"UPDATE jobs SET {settings} WHERE job_id = ? AND state = ?"  # noqa: S608
        return self._execute(statement, *new.values(), job_id, _name(before)) == 1

    def keep_release(self, job_id: bytes, release: bytes) -> None:
        """Keeps what is signed of a job that is about to succeed.

        Args:
            job_id: The job.
            release: The serialised `ResultHeader`.

        Raises:
            ResourceError: It cannot be written.
        """
        self._execute("UPDATE jobs SET release = ? WHERE job_id = ? AND state = 'RELEASING'", release, job_id)

    def put(self, record: Record) -> None:
        """Records a job as it stands, in place of what is recorded of it."""
        values = [_stored(getattr(record, name)) if name != "state" else _name(record.state) for name in _COLUMNS]
        self._execute(f"INSERT OR REPLACE INTO jobs ({', '.join(_COLUMNS)}) VALUES ({_places(_COLUMNS)})", *values)  # noqa: S608

    def note_data(self, job_id: bytes, n_rows: int, data_digest: bytes) -> None:
        """Notes on what data a job runs."""
        self._execute("UPDATE jobs SET n_rows = ?, data_digest = ? WHERE job_id = ?", n_rows, data_digest, job_id)

    # -- what is kept of the past -------------------------------------------------------------------------------------
    def prune(self, after: float, before: float, now: float, keep: Mapping[str, int], most: int) -> float | None:
        """Forgets jobs that began and ended long ago, some at a time.

        What rules may still ask for stays, however old: of each dataset the first job that was started, the last whose
        rows were counted, and as many of the last ones as `keep` says. The ledger keeps what any job may have cost.

        Args:
            after: Jobs are looked at that ended after this time, in Unix seconds.
            before: And before this one.
            now: Unix seconds; what could still be proposed again, or go on, stays.
            keep: By dataset, how many of its last jobs stay.
            most: So many at most.

        Returns:
            When the last of them ended: where to go on; None where that were all.
        """
        statement = (
            "SELECT job_id, dataset, ended FROM jobs WHERE started IS NOT NULL AND ended > ? AND ended < ? "
            "AND expiry < ? "
            "ORDER BY ended LIMIT ?"
        )
        old = self._read(statement, after, before, now, most)
        needed = {job.job_id for name in {name for _, name, _ in old} for job in self._needed(name, keep.get(name, 0))}
        with self.alone():
            for job_id, _, _ in old:
                if job_id not in needed:
                    self._execute("DELETE FROM charges WHERE job_id = ? AND epsilon IS NULL", job_id)
                    self._execute("DELETE FROM jobs WHERE job_id = ?", job_id)
        return float(old[-1][2]) if len(old) == most else None

    def ended_after(self, time: float) -> list[bytes]:
        """The jobs that were started, and ended after a time."""
        return self._ids("SELECT job_id FROM jobs WHERE started IS NOT NULL AND ended > ?", time)

    def received_after(self, time: float) -> list[bytes]:
        """The jobs that were proposed after a time."""
        return self._ids("SELECT job_id FROM jobs WHERE received > ?", time)

    def _needed(self, dataset: str, number: int) -> list[Earlier]:
        return [
            *self.first(dataset, b""),
            *self.last_counted(dataset, b""),
            *(self.latest(dataset, b"", number) if number else ()),
        ]

    def forget_unstarted(self, now: float) -> None:
        """Forgets jobs that ended before they began and can be proposed no more, but for the newest."""
        old = (
            "SELECT job_id FROM jobs WHERE started IS NULL AND ended IS NOT NULL AND expiry < ? "
            "ORDER BY expiry DESC LIMIT -1 OFFSET ?"
        )
        self._execute(f"DELETE FROM jobs WHERE job_id IN ({old})", now, MOST_UNSTARTED)  # noqa: S608
        self.forget_owner_ends()
        self.forget_holds()
        self.forget_voices()

    def _ids(self, statement: str, *values: Any) -> list[bytes]:
        return [job_id for (job_id,) in self._read(statement, *values)]

    def reached(self) -> Reached | None:
        """Up to where the database knows what the audit log says; None where nobody has compared them yet."""
        rows = self._read("SELECT party, log, seq, entry, place FROM reached")
        return Reached(*rows[0]) if rows else None

    def reach(self, reached: Reached) -> None:
        """Notes that the database knows all that the audit log tells up to an entry."""
        self._execute("INSERT OR REPLACE INTO reached VALUES (1, ?, ?, ?, ?, ?)", *reached)

    def companions(self) -> list[str]:
        """Names of the databases beside this one that the node has had."""
        return [name for (name,) in self._read("SELECT name FROM companions ORDER BY name")]

    def add_companions(self, names: Collection[str]) -> None:
        """Notes that the node has these databases."""
        for name in names:
            self._execute("INSERT OR IGNORE INTO companions VALUES (?)", name)

    def heads(self, service: str) -> list[Head]:
        """How far a database beside this one had come according to the audit log."""
        columns = ", ".join(Head._fields)
        return [Head(*row) for row in self._read(f"SELECT {columns} FROM heads WHERE service = ?", service)]  # noqa: S608

    def raise_head(self, head: Head) -> None:
        """Notes how far one had come, where that is beyond what is noted."""
        self._execute(
            "INSERT INTO heads VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET number = excluded.number, "
            "size = excluded.size WHERE (excluded.number, excluded.size) > (number, size)",
            *head,
        )

    def drop_head(self, service: str, subject: str) -> None:
        """Forgets what one had of a collection or route."""
        self._execute("DELETE FROM heads WHERE service = ? AND subject = ?", service, subject)

    def bins(self) -> list[Bin]:
        """What coordinators have brought about of the audit log, up to where the database knows it."""
        return [Bin(*row) for row in self._read("SELECT service, coordinator, hour, size FROM asked")]

    def add_bins(self, bins: Iterable[Bin], since: int) -> None:
        """Adds to that, and forgets what was before an hour."""
        for each in bins:
            self._execute(
                "INSERT INTO asked VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET size = size + excluded.size", *each
            )
        self._execute("DELETE FROM asked WHERE hour < ?", since)

    def drop_bins(self) -> None:
        """Forgets all of it."""
        self._execute("DELETE FROM asked")

    def fold(self) -> None:
        """Brings what was written into the database's own file, so that nothing depends on the one beside it."""
        self._read("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_whole(self) -> None:
        """Looks through the whole file.

        Raises:
            ConfigurationError: It is damaged.
        """
        ((found,),) = self._read("PRAGMA quick_check(1)")
        if found != "ok":
            with self.KIND.translated(self._path):
                raise sqlite3.DatabaseError(" ".join(str(found).split()))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """What is done inside is done whole or not at all, and no other process writes meanwhile."""
        with self._lock:
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # where the disk is full, SQLite has gone back by itself
                    self._execute("ROLLBACK")
                raise

    # -- SQLite ------------------------------------------------------------------------------------------------------
    def _execute(self, statement: str, *values: Any) -> int:
        """How many rows a statement has changed."""
        with self._using() as connection:
            return connection.execute(statement, values).rowcount

    def _read(self, statement: str, *values: Any) -> list[Any]:
        """All rows that a statement gives; one that is still read would be in the way of another thread's commit."""
        with self._using() as connection:
            return connection.execute(statement, values).fetchall()

    def _select(self, where: str, *values: Any) -> list[Record]:
        with self._using() as connection:
            return [_record(row) for row in connection.execute(f"{_ALL} {where}", values)]

    def _data_version(self) -> int:
        ((version,),) = self._read("PRAGMA data_version")
        return int(version)

    def _check_names(self, changes: Mapping[str, Any]) -> None:
        for name in changes:
            if name not in _COLUMNS:
                raise RuntimeError(f"there is no column {name}")


def _name(state: JobState.ValueType) -> str:
    return JobState.Name(state)


def _places(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _stored(value: Any) -> Any:
    return " ".join(value) if isinstance(value, tuple) else value


def _record(row: tuple[Any, ...]) -> Record:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["parties"] = tuple(values["parties"].split(" "))
    values["state"] = JobState.Value(values["state"])
    return Record(**values)

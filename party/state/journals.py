"""The journals of jobs that can go on after a failure: sealed in `node.db`, each under a key in a file of its own.

What a journal holds is known to this party anyway, or is a coin of its own. Nobody else is to read it: with the coins
the noise can be taken off what was opened. Its key is beside the database, in `journals/JOB_ID.key`, and is removed
with it. So whoever gets a copy of `node.db` alone learns how many steps and draws there were, and how long the result
of each step is, rounded up to a power of two of at least 1 KiB; and once a job has ended for good no copy of the
database that was made on the way can be read, nor what SQLite leaves in free pages and in its log. Whoever may read the
whole state folder while the job can go on reads it, and whoever can bring back removed files from the disk.

What a job has found that people of the party have yet to release is there, too, to be shown after a restart.

A journal is made when a job starts for the first time, with the root of its coins. Under noise what has gone since is
missed, never replaced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crypto.primitives.hashing import derive_key
from crypto.primitives.randomness import Randomness
from link.errors import ComineError, ConfigurationError, ResourceError, VersionMismatch
from link.files.private_file import replace_private
from link.journal import FIRST, ROOT, WHOLE, Journal, Step
from party.state.database import Held
from party.state.node_database import NodeTables
from protos.v1.control_pb2 import JobState

JOURNAL_BYTES: Final = 256 << 20  # of the steps of one job
FOLDER: Final = "journals"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_NAME_BYTES: Final = 16
_LEAST_STEP: Final = 1 << 10
_STEP: Final = "step {:06}"
_ROOT: Final = f"secret {ROOT}"
_FIRST: Final = f"secret {FIRST}"
_COINS: Final = "secret /"  # of a step, whose name is a path
_FOUND: Final = "found"


class Journals(NodeTables):
    """The journals of one party.

    Args:
        path: Of the database.
        opened: It, open.
        me: This party.
        most: Bytes that the steps of one job may take.
    """

    def __init__(self, path: Path, opened: Held, me: str, most: int = JOURNAL_BYTES) -> None:
        super().__init__(path, opened)
        self.me, self.folder, self.most = me, path.parent / FOLDER, most

    def begin(self, job_id: bytes, version: str, root: bytes, *, attempt: int, started: bool) -> Journal:
        """The journal of a job that starts; it is made where the job has none.

        Args:
            job_id: The job.
            version: Of what will read it.
            root: 32 secret bytes, from which all coins follow of a job that has none yet.
            attempt: Of the job.
            started: Whether the job has started before.

        Raises:
            VersionMismatch: Another version has drawn coins for it.
            ConfigurationError: Its key is lost, or its rows in the database.
            ResourceError: It cannot be kept.
        """
        if not (started and self._is_begun(job_id)):
            if started and self._file(job_id).exists():  # the database has been lost, and with it what was drawn once
                raise _unreadable(job_id)
            self.forget(job_id)
            self._make(job_id, version, root, first=attempt == 1)
        journal = self._journal(job_id, version)
        journal.secret(ROOT, root)
        return journal

    def resume(self, job_id: bytes, version: str) -> Journal:
        """The journal of a job that has started.

        Args:
            job_id: The job.
            version: Of what will read it.

        Raises:
            VersionMismatch: Another version has drawn coins for it.
            ConfigurationError: It is lost.
            ResourceError: It cannot be read.
        """
        self.check_begun(job_id)
        return self._journal(job_id, version)

    def check_begun(self, job_id: bytes) -> None:
        """Refuses a job whose journal should have its coins.

        Raises:
            ConfigurationError: It has none.
        """
        if not self._is_begun(job_id):
            raise _missing(job_id)

    def forget(self, job_id: bytes) -> None:
        """Forgets the journal of one job; its key goes first.

        Raises:
            ResourceError: The key stays, or all.
        """
        try:
            self._forget_key(self._file(job_id))
        finally:
            self._rows("DELETE FROM journal WHERE job_id = ?", job_id)

    def keep_found(self, job_id: bytes, version: str, packed: bytes) -> None:
        """Keeps what a job has found, for people who have yet to release it; nothing of more than a journal may hold.

        Raises:
            ComineError: It cannot be kept, or the job has no journal.
        """
        self.check_begun(job_id)
        if 2 * len(packed) + _LEAST_STEP <= self.most:  # it is padded
            sealed = self._journal(job_id, version).sealed_found(packed)
            self._rows("INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?)", job_id, _FOUND, version, sealed)

    def found(self, job_id: bytes, version: str) -> bytes | None:
        """What was kept of it by this version; None where nothing was.

        Raises:
            ComineError: It cannot be read.
        """
        of_version = "SELECT sealed FROM journal WHERE job_id = ? AND what = ? AND version = ?"
        rows = self._rows(of_version, job_id, _FOUND, version)
        return None if not rows else self._journal(job_id, version).unsealed_found(rows[0][0])

    def keep_only(
        self,
        running: Collection[JobState.ValueType],
        waiting: Collection[JobState.ValueType],
        now: float,
        over: Collection[bytes] = (),
    ) -> None:
        """Forgets the journals of all jobs but those that run, and those that may go on until their proposals expire.

        Args:
            running: States in which a job keeps its journal, whatever becomes of its proposal.
            waiting: States in which it keeps it until the proposal expires.
            now: Unix seconds.
            over: Jobs that keep none.

        Raises:
            ResourceError: A key cannot be removed; all else is forgotten. Or the database cannot be written.
        """
        marks = ["(" + ", ".join("?" * len(states)) + ")" for states in (running, waiting)]
        stays = f"(state IN {marks[0]} OR (expiry > ? AND state IN {marks[1]}))"
        values = (*map(JobState.Name, running), now, *map(JobState.Name, waiting))
        of_job = f"SELECT 1 FROM jobs WHERE job_id = ? AND {stays}"  # noqa: S608
        failed: ResourceError | None = None
        for file in list(self.folder.glob("*.key")) if self.folder.is_dir() else ():
            job_id = _job_of(file)
            if job_id not in over and self._rows(of_job, job_id, *values):
                continue
            try:
                self._forget_key(file)
            except ResourceError as error:
                failed = failed or error
        kept = f"SELECT 1 FROM jobs WHERE job_id = journal.job_id AND {stays}"  # noqa: S608
        self._rows(f"DELETE FROM journal WHERE NOT EXISTS ({kept})", *values)  # noqa: S608
        for job_id in over:
            self._rows("DELETE FROM journal WHERE job_id = ?", job_id)
        if failed is not None:
            raise failed

    def next_stale(self, waiting: Collection[JobState.ValueType]) -> float | None:
        """When the first proposal expires of a job in some states of which there is a journal; None where none does."""
        marks = ", ".join("?" * len(waiting))
        found = f"SELECT min(expiry) FROM jobs WHERE job_id IN (SELECT job_id FROM journal) AND state IN ({marks})"  # noqa: S608
        ((expiry,),) = self._rows(found, *map(JobState.Name, waiting))
        return None if expiry is None else float(expiry)

    def read(self, job_id: bytes, what: str) -> list[tuple[str, bytes]]:
        """What is in a journal under names of a form, in their order."""
        rows = "SELECT what, sealed FROM journal WHERE job_id = ? AND what GLOB ? ORDER BY what"
        return [(name, sealed) for name, sealed in self._rows(rows, job_id, what)]

    def write_step(self, job_id: bytes, version: str, what: str, sealed: bytes) -> bool:
        """Writes a step, in place of what is there and behind it; False where that would be too much."""
        with self._changing() as connection:
            steps = "job_id = ? AND what GLOB 'step *' AND what"
            connection.execute(f"DELETE FROM journal WHERE {steps} >= ?", (job_id, what))  # noqa: S608
            size = f"SELECT ifnull(sum(length(sealed)), 0) FROM journal WHERE {steps} < ?"  # noqa: S608
            ((before,),) = connection.execute(size, (job_id, what))
            if int(before) + len(sealed) > self.most:
                return False
            connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (job_id, what, version, sealed))
        return True

    def write_secret(self, job_id: bytes, version: str, what: str, sealed: bytes) -> tuple[str, bytes] | None:
        """Writes a secret where there is none of that name, and returns what is there, with its version.

        Nothing is written into a journal that has no root: it was forgotten, and what is drawn now is drawn anew.
        """
        with self._changing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO journal SELECT ?, ?, ?, ? "
                "WHERE EXISTS (SELECT 1 FROM journal WHERE job_id = ? AND what = ?)",
                (job_id, what, version, sealed, job_id, _ROOT),
            )
            row = connection.execute(
                "SELECT version, sealed FROM journal WHERE job_id = ? AND what = ?", (job_id, what)
            ).fetchone()
            return None if row is None else (str(row[0]), bytes(row[1]))

    def write_new(self, job_id: bytes, version: str, sealed: Mapping[str, bytes]) -> None:
        """Writes what a journal has as it is made, at once: among it the root of its coins."""
        with self._changing() as connection:
            rows = [(job_id, what, version, each) for what, each in sealed.items()]
            connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?)", rows)

    def _is_begun(self, job_id: bytes) -> bool:
        return bool(self.read(job_id, _ROOT))

    def _make(self, job_id: bytes, version: str, root: bytes, *, first: bool) -> None:
        file, key = self._file(job_id), Randomness.from_os().bytes(_KEY_BYTES)
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            replace_private(file, key)
        except OSError as error:
            raise _not_kept(file, error) from None
        try:
            _JobJournal(self, job_id, version, key).make(root, first=first)
        except ComineError:  # as on a full disk
            with contextlib.suppress(ResourceError):
                self._forget_key(file)
            raise

    def _journal(self, job_id: bytes, version: str) -> _JobJournal:
        others = self._rows("SELECT what FROM journal WHERE job_id = ? AND version != ?", job_id, version)
        if any(what.startswith(_COINS) for (what,) in others):
            raise VersionMismatch(
                f"{self.me} has had another version of comine since an earlier attempt of this job, so the job cannot "
                "go on; run it again as a new one",
                party=self.me,
            )
        if others:  # another version cannot be trusted to mean the same by them
            self._rows("DELETE FROM journal WHERE job_id = ? AND what GLOB 'step *'", job_id)
        file = self._file(job_id)
        try:
            key = file.read_bytes()
        except FileNotFoundError:
            raise _unreadable(job_id) from None
        except OSError as error:
            raise _not_kept(file, error) from None
        if len(key) != _KEY_BYTES:
            raise _unreadable(job_id)
        return _JobJournal(self, job_id, version, key)

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._using() as connection:
            return connection.execute(statement, values).fetchall()

    def _file(self, job_id: bytes) -> Path:
        return self.folder / f"{job_id.hex()}.key"

    @staticmethod
    def _forget_key(file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise ResourceError(
                f"the key of a job's journal, {file}, cannot be removed ({error.strerror}); see to the disk and its "
                "owner"
            ) from None


class _JobJournal:
    """The journal of one job."""

    def __init__(self, journals: Journals, job_id: bytes, version: str, key: bytes) -> None:
        self._journals, self._job_id, self._version = journals, job_id, version
        self._cipher, self._names = AESGCM(derive_key(key, "journal", "seal")), derive_key(key, "journal", "names")

    def make(self, root: bytes, *, first: bool) -> None:
        """Makes it of the root of the job's coins, in the job's first attempt or a later one."""
        new = {_ROOT: root} | ({_FIRST: WHOLE} if first else {})
        self._journals.write_new(self._job_id, self._version, {what: self._sealed(what, new[what]) for what in new})

    def steps(self) -> Sequence[Step]:
        found = list[Step]()
        for what, sealed in self._journals.read(self._job_id, "step *"):
            if what != _STEP.format(len(found)):
                break
            try:
                found.append(Step.unpack(_unpadded(self._unsealed(self._version, what, sealed))))
            except ValueError:
                raise _unreadable(self._job_id) from None
        return found

    def keep(self, place: int, step: Step) -> bool:
        what = _STEP.format(place)
        with contextlib.suppress(ResourceError):  # a job may end well on a full disk, if without another attempt
            sealed = self._sealed(what, _padded(step.pack()))
            return self._journals.write_step(self._job_id, self._version, what, sealed)
        return False

    def secret(self, name: str, fresh: bytes) -> bytes:
        what = f"secret {name}"
        if what.startswith(_COINS):  # the name of a step is not for whoever has the database alone
            what = _COINS + derive_key(self._names, name, size=_NAME_BYTES).hex()
        kept = self._journals.write_secret(self._job_id, self._version, what, self._sealed(what, fresh))
        if kept is None:
            raise _missing(self._job_id)
        version, sealed = kept
        return self._unsealed(version, what, sealed)

    def sealed_found(self, packed: bytes) -> bytes:
        """What was found, as the database may have it."""
        return self._sealed(_FOUND, _padded(packed))

    def unsealed_found(self, sealed: bytes) -> bytes:
        """What `sealed_found` made it of."""
        return _unpadded(self._unsealed(self._version, _FOUND, sealed))

    def _sealed(self, what: str, plain: bytes) -> bytes:
        nonce = Randomness.from_os().bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, self._bound_to(self._version, what))

    def _unsealed(self, version: str, what: str, sealed: bytes) -> bytes:
        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, body, self._bound_to(version, what))
        except (InvalidTag, ValueError):
            raise _unreadable(self._job_id) from None

    def _bound_to(self, version: str, what: str) -> bytes:
        return b"\0".join((b"comine.journal/1", self._job_id, version.encode(), what.encode()))


def _job_of(file: Path) -> bytes:
    """The job of a key; that of no job, where the node has given the file no such name."""
    try:
        return bytes.fromhex(file.stem)
    except ValueError:
        return b""


def _padded(plain: bytes) -> bytes:
    """A step in as many bytes as many another one has."""
    return (plain + b"\x80").ljust(max(_LEAST_STEP, 1 << len(plain).bit_length()), b"\0")


def _unpadded(padded: bytes) -> bytes:
    return padded.rstrip(b"\0")[:-1]


def _not_kept(file: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"the key of a job's journal, {file}, cannot be kept ({error.strerror}); see to the disk and its owner"
    )


def _missing(job_id: bytes) -> ConfigurationError:
    return ConfigurationError(
        f"what was kept of job {job_id.hex()[:12]} for another attempt is not there: its proposal has expired, an "
        "earlier version of comine began it, or the job database was lost; run the job again as a new one"
    )


def _unreadable(job_id: bytes) -> ConfigurationError:
    return ConfigurationError(
        f"what is kept of job {job_id.hex()[:12]} for another attempt cannot be read: its key or the job database was "
        "lost or damaged; run the job again as a new one"
    )

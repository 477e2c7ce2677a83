"""`frequency.db`: collections, their rounds, and the reports of open rounds, in one SQLite file of the node.

When a call returns, what it wrote survives a crash and a loss of power: one sync of SQLite's write-ahead log for each
commit, which many submissions share. All writing is done by one thread; reading never waits for it.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.mechanism import Mechanism
from ldp.reports import Reports
from link.errors import ConfigurationError
from party.services.frequency.schedule import next_round
from party.services.frequency.storage import segments
from party.services.frequency.storage.commits import OpenRound
from party.services.frequency.storage.folding import Folder, Folding
from party.services.frequency.storage.participants import Claim, Participants
from party.services.frequency.storage.reading import COLLECTION, ROUND, FrequencyRecords
from party.services.frequency.storage.records import COUNTERS, Counters, StoredCollection, StoredRound
from party.services.frequency.storage.refusals import WHOLE
from party.services.frequency.storage.schema import KIND
from party.services.frequency.storage.tags import KEY_BYTES
from party.services.frequency.storage.writer import Writer
from party.state.database import Held, connect

FILE: Final = "frequency.db"

P = ParamSpec("P")
T = TypeVar("T")


class FrequencyStore(FrequencyRecords):
    """All collections of one node. Calls may be made from any thread; those that write wait for the disk.

    Args:
        path: The database.
        opened: It, open.
        most_bytes: That it may take; then it `is_full`.

    Attributes:
        writer: Does all writing.
        folder: Folds reports into tallies.
    """

    def __init__(self, path: Path, opened: Held, most_bytes: float = math.inf) -> None:
        with KIND.translated(path):
            reading = connect(path, KIND.busy_s, "query_only = ON")  # through which nothing can be written
        super().__init__(path, opened, reading)
        self.most_bytes = most_bytes
        self.writer = Writer(opened.connection, self._translated, self._refusals)
        self.folder = Folder()
        self._periods: WeakValueDictionary[int, Participants] = WeakValueDictionary()
        self._open: WeakValueDictionary[int, OpenRound] = WeakValueDictionary()
        self._recovering = threading.Lock()
        self._sweep()

    def close(self) -> None:
        """Writes what waits, and ends the connections."""
        self.folder.close()
        self.writer.close()
        with self._lock:
            self._reading.close()
        super().close()

    # -- collections -------------------------------------------------------------------------------------------------
    def create(self, collection: StoredCollection) -> None:
        """Keeps a new collection.

        Raises:
            ConfigurationError: Its name is taken.
        """

        def write(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM collections WHERE name = ?", (collection.name,)).fetchone():
                raise ConfigurationError(
                    f"there is a collection '{collection.name}' already; take another name, or go on with that one"
                )
            values = [getattr(collection, name) for name in COLLECTION.split(", ")]
            connection.execute(f"INSERT INTO collections ({COLLECTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608

        self.writer.do(write)

    def knows(self, name: str, number: int, reports: int) -> bool | None:
        """Whether all is there that the log has of a collection; None where there is nothing of it.

        Args:
            name: The collection.
            number: Of its latest round in the log; below 0 for none.
            reports: How many that round had then.
        """
        found = self._select("SELECT state FROM collections WHERE name = ?", name)
        if not found:
            return None
        if number < 0:
            return True
        kept = self.round(name, number)
        return next_round(found[0][0]) > number and (kept is None or kept.counters.counted >= reports)

    def close_collection(self, name: str, at: float) -> None:
        """Notes that a collection was closed; keys and tags of periods whose next round now never comes are deleted.

        Its open rounds are ended before, by `end_round`.
        """
        collection = self._collection(name)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM periods WHERE collection = ?", (collection,))
            connection.execute("UPDATE collections SET closed = ? WHERE row = ?", (at, collection))

        self.writer.do(write)
        self.writer.empty_log()
        self._sweep()

    def delete_collection(self, name: str) -> None:
        """Forgets a closed collection with all that is kept of it; its name is free again.

        Raises:
            ConfigurationError: There is none of that name.
        """
        collection = self._collection(name)

        def write(connection: sqlite3.Connection) -> None:
            is_open = "SELECT 1 FROM collections WHERE row = ? AND closed IS NULL"
            if connection.execute(is_open, (collection,)).fetchone():
                raise RuntimeError("close a collection before it is deleted")
            for table in ("periods", "rounds", "refusals"):
                connection.execute(f"DELETE FROM {table} WHERE collection = ?", (collection,))  # noqa: S608
            connection.execute("DELETE FROM collections WHERE row = ?", (collection,))

        self.writer.do(write)
        self._refusals.forget(collection)
        self.writer.empty_log()

    def refuse(self, name: str, number: int | None, reason: str, n: int) -> None:
        """Counts refused reports; on disk within a second or so.

        Args:
            name: Of the collection.
            number: Of the round, open or ended; None, or one that there is not: for the collection as a whole.
            reason: A field of `Counters`.
            n: How many reports.
        """
        collection = self._collection(name)
        known = number is not None and self._select(
            "SELECT 1 FROM rounds WHERE collection = ? AND number = ?", collection, number
        )
        self.writer.refuse((collection, number if known and number is not None else WHOLE), reason, n)

    # -- rounds ------------------------------------------------------------------------------------------------------
    def open_round(self, name: str, round_: StoredRound, state: bytes) -> None:
        """Keeps a new round, together with the new state of the collection's schedule.

        Raises:
            ConfigurationError: The collection has this round already.
        """
        collection = self._collection(name)

        def write(connection: sqlite3.Connection) -> None:
            of_period = (collection, round_.period)
            had, has = (
                connection.execute(f"SELECT 1 FROM {table} WHERE collection = ? AND {column} = ?", of_period).fetchone()  # noqa: S608
                for table, column in (("rounds", "period"), ("periods", "number"))
            )
            if had and not has:
                raise RuntimeError("who took part in this period is forgotten; it cannot go on")
            values = [getattr(round_, column) for column in ROUND.split(", ")]
            try:
                connection.execute(
                    f"INSERT INTO rounds (collection, {ROUND}, tally, result) VALUES ({', '.join('?' * 12)})",  # noqa: S608
                    (collection, *values, round_.tally, round_.result),
                )
            except sqlite3.IntegrityError:
                raise ConfigurationError(f"the collection '{name}' has a round {round_.number} already") from None
            connection.execute(
                "INSERT OR IGNORE INTO periods (collection, number, key) VALUES (?, ?, ?)",
                (*of_period, Randomness.from_os().bytes(KEY_BYTES)),
            )
            connection.execute("UPDATE collections SET state = ? WHERE row = ?", (state, collection))

        self.writer.do(write)

    def end_round(
        self,
        name: str,
        number: int,
        at: float,
        tally: bytes,
        result: bytes,
        state: bytes,
        keep_tags_for_period: bool = False,
    ) -> None:
        """Ends a round, together with the new state of the schedule: its reports go, tally and result stay.

        Its intake is to be stopped before, and the tally to be taken after that.

        Args:
            name: Of the collection.
            number: Of the round.
            at: When it ended.
            tally: Over all its reports.
            result: What was made of them.
            state: Of the schedule.
            keep_tags_for_period: Whether another round of its period follows; otherwise the period's key goes at once,
                and all its tags soon.
        """
        row, period, collection = self._round(name, number)
        open_round = self._open.get(row)
        if open_round is not None and not open_round.ended:
            raise RuntimeError("stop the intake of a round before it is ended")

        def write(connection: sqlite3.Connection) -> bool:
            others = connection.execute(
                "SELECT 1 FROM rounds JOIN periods "
                "ON (rounds.collection, period) = (periods.collection, periods.number) "
                "WHERE periods.row = ? AND rounds.row != ? AND ended IS NULL",
                (period, row),
            ).fetchone()
            over = not keep_tags_for_period and others is None
            counted = segments.compact(connection, row, None if over else period)
            connection.execute(
                "UPDATE rounds SET ended = ?, counted = counted + ?, tally = ?, result = ? WHERE row = ?",
                (at, counted, tally, result, row),
            )
            if over:
                connection.execute("DELETE FROM periods WHERE row = ?", (period,))
            connection.execute("UPDATE collections SET state = ? WHERE row = ?", (state, collection))
            return over

        over = self.writer.do(write)
        if open_round is not None:
            open_round.folding.drop()
        if over:
            self._periods.pop(period, None)
            self.writer.empty_log()
            self._sweep()

    def forget_rounds(self, name: str, before: float) -> None:
        """Forgets the rounds that ended before a time; only how many reports they had is still known."""
        collection = self._collection(name)
        which, whole = "collection = ? AND ended < ?", (collection, WHOLE)

        def write(connection: sqlite3.Connection) -> list[tuple[int, int]]:
            ended = connection.execute(f"SELECT number, counted FROM rounds WHERE {which}", (collection, before))  # noqa: S608
            rows = ended.fetchall()
            connection.execute(f"DELETE FROM rounds WHERE {which}", (collection, before))  # noqa: S608
            keys = [(collection, number) for number, _ in rows]
            kept = sum((self._refusals.of(key) for key in keys), self._refusals.of(whole))
            forgotten = kept + Counters(counted=sum(counted for _, counted in rows))
            connection.executemany("DELETE FROM refusals WHERE collection = ? AND round = ?", keys)
            connection.executemany(
                "INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)",
                [(*whole, reason, getattr(forgotten, reason)) for reason in COUNTERS],
            )
            return rows

        rows = self.writer.do(write)
        self._refusals.move([(collection, number) for number, _ in rows], whole)
        self._refusals.note(whole, "counted", sum(counted for _, counted in rows))

    @property
    def used_bytes(self) -> int:
        """What is used of the database's file."""
        return self.writer.used_bytes

    @property
    def is_full(self) -> bool:
        """Whether it takes as much as it may: then no report is taken, no round begins, and nothing is created."""
        return self.used_bytes >= self.most_bytes

    @property
    def memory(self) -> int:
        """Bytes that it may take who has taken part in the periods whose reports are taken."""
        return sum(period.memory for period in list(self._periods.values()))

    async def room(self) -> None:
        """Waits while too many bytes of reports wait to be written; to be awaited before more are read."""
        await self.writer.room()

    # -- what intakes need -------------------------------------------------------------------------------------------
    def recover(self, name: str, number: int, period_number: int, mechanism: Mechanism[Any]) -> OpenRound:
        """An open round as it stands on disk, to go on with.

        Raises:
            ConfigurationError: It has ended, or its intake is at work already.
            InputDataError: What is on disk is of another mechanism.
        """
        row, period, collection = self._round(name, number)
        with self._recovering:
            if self._select("SELECT number FROM periods WHERE row = ?", period) != [(period_number,)]:
                raise ConfigurationError(f"round {number} of '{name}' does not belong to period {period_number}")
            if (at_work := self._open.get(row)) is not None and not at_work.ended:
                raise ConfigurationError(f"reports of round {number} of '{name}' are being taken already")
            ((ended, tally),) = self._select("SELECT ended, tally FROM rounds WHERE row = ?", row)
            if ended is not None:
                raise ConfigurationError(f"round {number} of '{name}' has ended; no report of it is taken any more")
            total = Aggregator.from_bytes(tally, mechanism) if tally else Aggregator(mechanism)
            who = self._periods.get(period)
            if who is None:
                who = self._periods[period] = self._read(segments.participants, period)

            def read(number: int) -> Reports:
                data = self._read(segments.reports_of, row, number)
                return Reports.from_bytes(data, mechanism.fingerprint, mechanism.layout)

            def save(last: int, total: Aggregator[Any], done: Callable[[bool], None]) -> None:
                tally = total.to_bytes()

                def write(connection: sqlite3.Connection) -> None:
                    if not found.ended:
                        segments.compact(connection, row, period, last)
                        values = (tally, len(total), row)
                        connection.execute("UPDATE rounds SET tally = ?, counted = ? WHERE row = ?", values)

                self.writer.later(write, done)

            waiting = self._read(segments.waiting, row)
            if waiting:  # those of another mechanism are seen now, and not whenever somebody asks for the tally
                read(waiting[0][0])
            counted = len(total)  # before the total grows in the background
            found = OpenRound(row, (collection, number), who, Folding(total, read, save, self.folder), counted)
            for segment, size, nbytes in waiting:
                found.folding.append(segment, size, nbytes, None)
                found.counted, found.next = found.counted + size, segment + 1
            self._open[row] = found
            return found

    async def commit(self, round_: OpenRound, claim: Claim, reports: Reports) -> NDArray[np.uint8]:
        """Has reports counted; the status of each, when they are on disk."""
        return await self.writer.commit(round_, claim, reports)

    def stop(self, round_: OpenRound) -> None:
        """Takes no more reports of a round, and returns when all that were taken before are on disk."""
        round_.ended = True
        self.writer.do(lambda connection: None)

    def refused(self, round_: OpenRound, reason: str, n: int) -> None:
        """Counts refused reports of an open round."""
        self.writer.refuse(round_.key, reason, n)

    def refusals(self, round_: OpenRound) -> Counters:
        """What was refused in an open round."""
        return self._refusals.of(round_.key)

    def _sweep(self) -> None:
        """Deletes the tags of periods that are over, a part at a time: without their key they reveal nothing."""
        found = False

        def write(connection: sqlite3.Connection) -> None:
            nonlocal found
            found = segments.sweep(connection)

        self.writer.later(write, lambda done: self._sweep() if done and found else None)

    # -- SQLite ------------------------------------------------------------------------------------------------------
    def _round(self, name: str, number: int) -> tuple[int, int, int]:
        """The rows of an open round, of its period and of its collection."""
        found = self._select(
            "SELECT rounds.row, periods.row, rounds.collection FROM rounds JOIN periods "
            "ON (rounds.collection, rounds.period) = (periods.collection, periods.number) "
            "WHERE rounds.collection = ? AND rounds.number = ?",
            self._collection(name),
            number,
        )
        if not found:
            raise ConfigurationError(f"the collection '{name}' has no open round {number}")
        row, period, collection = found[0]
        return row, period, collection

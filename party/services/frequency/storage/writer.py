"""The one thread that writes: it takes all that waits and commits it in one transaction, so many share one sync.

An answer is given when what it says is on disk; where a commit fails, all whose reports it had get the error.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ldp.reports import Reports
from link.errors import ComineError, InputDataError, InternalError
from party.services.frequency.storage.commits import Commit, OpenRound, Submission, by
from party.services.frequency.storage.participants import Claim
from party.services.frequency.storage.refusals import Key, Refusals
from party.services.frequency.storage.segments import insert
from party.state.database import alone

MOST_AT_ONCE: Final = 1 << 23  # bytes of a transaction, but for its last batch
MOST_WAITING: Final = 1 << 26  # bytes beyond which submitters are asked to wait
FLUSH_S: Final = 1.0  # until numbers of refused reports are on disk
_LOG_BUSY_MS: Final = 100  # for which commits wait while somebody reads and the log is to be emptied
_CLOSED: Final = "the frequency database is closed; start the node again"

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """Something else that is written."""

    work: Work[Any]
    answer: Future[Any]
    alone: bool = True  # in a transaction of its own
    nbytes: int = 0


class Writer:
    """The thread, and what waits for it.

    Args:
        connection: To the database; nobody else writes.
        translated: Translates errors of the database.
        refusals: Numbers of refused reports, which are written along.

    Attributes:
        used_bytes: Of the database's file, after the last transaction.
        waiting: Bytes that are not written yet.
    """

    def __init__(
        self, connection: sqlite3.Connection, translated: Callable[[], AbstractContextManager[None]], refusals: Refusals
    ) -> None:
        self._connection, self._translated, self._refusals = connection, translated, refusals
        self._queue: deque[Submission | _Task] = deque()
        self.waiting = 0  # bytes
        self._outside: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._flush_at, self._log_is_full = 0.0, False
        self.used_bytes = 0
        self._measure()
        self._thread = threading.Thread(target=self._run, name="frequency-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Writes what waits, and ends the thread."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join()

    def do(self, work: Work[T]) -> T:
        """Has something written in a transaction of its own, after all that waits; returns when it is on disk."""
        answer: Future[T] = Future()
        self._put(_Task(work, answer))
        return answer.result()

    def empty_log(self) -> None:
        """Brings all that was written into the database and empties the log, where what was deleted still stands.

        Where somebody reads meanwhile it is tried again every second.
        """
        answer: Future[None] = Future()
        self._put(_Task(self._empty_log, answer, alone=False))
        answer.result()

    def later(self, work: Work[None], done: Callable[[bool], None]) -> None:
        """As `do`, without waiting; `done` is called with whether it went well."""
        answer: Future[None] = Future()
        answer.add_done_callback(lambda future: done(future.exception() is None))
        with suppress(ComineError):  # a closed writer: the work can be done after the next start
            self._put(_Task(work, answer))

    def refuse(self, key: Key, reason: str, number: int) -> None:
        """Counts refused reports; on disk within a second or so."""
        self._refusals.note(key, reason, number)
        with self._news:
            self._news.notify()

    async def room(self) -> None:
        """Waits while too much waits to be written."""
        loop = asyncio.get_running_loop()
        while True:
            with self._news:
                if self.waiting <= MOST_WAITING or self._closed:
                    return
                free: asyncio.Future[None] = loop.create_future()
                self._outside.append((loop, free))
            await free

    async def commit(self, round_: OpenRound, claim: Claim, reports: Reports) -> NDArray[np.uint8]:
        """Has reports counted; the status of each, when they are on disk."""
        await self.room()
        if round_.ended:
            raise InputDataError("the round has ended; no report of it is taken any more")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[NDArray[np.uint8]] = loop.create_future()
        self._put(Submission(round_, claim, reports, loop, answer))
        return await answer

    def _put(self, item: Submission | _Task) -> None:
        with self._news:
            if self._closed:
                raise InternalError(_CLOSED)
            self._queue.append(item)
            self.waiting += item.nbytes
            self._news.notify()

    # -- the thread --------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        taken: list[Submission | _Task] | None = []
        try:
            while (taken := self._take()) is not None:
                for kind, items in groupby(taken, type):
                    if kind is _Task:
                        for task in items:
                            self._do(cast(_Task, task))
                    else:
                        self._commit(cast(list[Submission], list(items)))
                if time.monotonic() >= self._flush_at:
                    self._flush()
                    if self._log_is_full:
                        self._empty_log(self._connection)
                self._measure()
            self._flush()
        finally:  # also where memory here could not follow the disk: then only a start from the disk helps
            with self._news:
                self._closed = True
                left, self._queue = [*(taken or ()), *self._queue], deque()
            gone = InternalError(_CLOSED)
            _answer([(item, gone) for item in left if isinstance(item, Submission)])
            for item in left:
                if isinstance(item, _Task) and not item.answer.done():
                    item.answer.set_exception(gone)
            self._admit()

    def _take(self) -> list[Submission | _Task] | None:
        """What waits, as far as one transaction takes it; nothing where only refusals do; None at the end."""
        with self._news:
            while not self._queue and not self._closed:
                due = self._refusals.waiting or self._log_is_full
                wait = max(0.0, self._flush_at - time.monotonic()) if due else None
                if not self._news.wait(wait):
                    return []
            if not self._queue:
                return None
            taken: list[Submission | _Task] = []
            size = 0
            while self._queue and size < MOST_AT_ONCE:
                taken.append(self._queue.popleft())
                size += taken[-1].nbytes
            self.waiting -= size
        self._admit()
        return taken

    def _admit(self) -> None:
        """Notifies those outside that there is room."""
        with self._news:
            if self.waiting > MOST_WAITING and not self._closed:
                return
            outside, self._outside = list(self._outside), deque()
        for loop, free in outside:
            _call(loop, _set, [(free, None)])

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        self._log_is_full = True
        with suppress(sqlite3.Error):
            ((patience,),) = connection.execute("PRAGMA busy_timeout")
            connection.execute(f"PRAGMA busy_timeout = {_LOG_BUSY_MS}")
            try:
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.execute(f"PRAGMA busy_timeout = {patience}")
            self._log_is_full = bool(busy)

    def _measure(self) -> None:
        with suppress(sqlite3.Error):
            ((pages,), (unused,), (size,)) = (
                self._connection.execute(f"PRAGMA {name}").fetchone()
                for name in ("page_count", "freelist_count", "page_size")
            )
            self.used_bytes = (pages - unused) * size

    def _do(self, task: _Task) -> None:
        try:
            with self._translated(), alone(self._connection) if task.alone else nullcontext():
                done = task.work(self._connection)
        except BaseException as error:  # the caller raises it
            task.answer.set_exception(error)
        else:
            self._measure()
            task.answer.set_result(done)

    def _flush(self) -> None:
        """Writes the numbers of refused reports."""
        self._flush_at = time.monotonic() + FLUSH_S
        if keys := self._refusals.take():
            try:
                with self._translated(), alone(self._connection):
                    self._refusals.write(keys, self._connection)
            except ComineError:  # of all that is kept these numbers matter least; they go with the next ones
                self._refusals.put_back(keys)

    def _commit(self, submissions: list[Submission]) -> None:
        try:
            with self._translated():
                commit = Commit.of(submissions)
                if commit.rows:
                    with alone(self._connection):
                        insert(self._connection, commit.rows)
        except Exception as error:  # the caller raises it
            _answer([(each, error) for each in submissions])
            return
        commit.note(self._refusals)
        _answer([(each, commit.rulings[each].statuses) for each in submissions])


def _answer(answers: Sequence[tuple[Submission, NDArray[np.uint8] | Exception]]) -> None:
    """Answers submissions on the loops where they wait."""
    for loop, some in by(answers, lambda answer: answer[0].loop):
        _call(loop, _set, [(each.answer, what) for each, what in some])


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
        loop.call_soon_threadsafe(what, *arguments)


def _set(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, what in answers:
        if future.done():  # the caller has gone
            continue
        if isinstance(what, Exception):
            # Each one that waits raises an error of its own, or their tracebacks would mix.
            future.set_exception(type(what)(what.message) if isinstance(what, ComineError) else what)
        else:
            future.set_result(what)

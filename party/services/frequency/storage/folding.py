"""Reports that are on disk become a tally: in the background, and at once where somebody asks.

Commits never wait for tallies. What is committed waits here until it is folded in; its reports are kept in memory as
long as there is room for all rounds together, and are read from disk again beyond. From time to time the tally is
saved in place of the reports that it covers, so that neither disk nor recovery grows with their number.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ldp.aggregator import Aggregator
from ldp.reports import Reports

_AT_ONCE: Final = 1 << 14  # reports that are folded between two looks at who is waiting
MOST_HELD: Final = 1 << 26  # bytes of reports of all rounds that wait in memory
REST_S: Final = 0.25  # after a fold that few reports made due,
_REST_SHARE: Final = 20  # or so many times what the fold took
SAVE_BYTES: Final = 1 << 22
SAVE_SEGMENTS: Final = 1 << 12
_RETRY_S: Final = 10.0
_LONGEST_FOLD_S: Final = 5.0  # that is waited for at the end; nothing is lost by it
_WORD: Final = 8  # bytes of a number of a tally


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    number: int
    size: int  # reports
    nbytes: int
    reports: Reports | None  # None: they are on disk only


class Folding:
    """The tally of one round.

    Args:
        total: What was saved.
        read: Gives the reports of a segment back from disk.
        save: Puts a tally in place of all segments up to a number, later, and says at the end whether it could.
        folder: Whose thread folds.

    Attributes:
        enough_bytes: After so many bytes of reports that no saved tally covers, one is saved.
    """

    def __init__(
        self,
        total: Aggregator[Any],
        read: Callable[[int], Reports],
        save: Callable[[int, Aggregator[Any], Callable[[bool], None]], None],
        folder: Folder,
    ) -> None:
        self._total, self._read, self._save, self._folder = total, read, save, folder
        self._waiting: deque[_Waiting] = deque()
        self._size = 0  # reports that wait
        self._lock = threading.Lock()  # of the queue; held for moments
        self._turn = threading.Lock()  # of the total; held for a fold
        self._asking = 0
        self._rest_until = 0.0
        self._folded = -1  # the last segment that the total covers
        self.enough_bytes = max(SAVE_BYTES, 2 * _WORD * math.prod(total.mechanism.tally_shape))
        self._unsaved_bytes = self._unsaved_segments = 0
        self._saving, self._save_after = False, 0.0

    def append(self, number: int, size: int, nbytes: int, reports: Reports | None) -> None:
        """Takes a segment that is on disk.

        Args:
            number: Of the segment; they ascend.
            size: How many reports it has.
            nbytes: How long they are.
            reports: The reports; None: they are to be read when they are needed.
        """
        held = reports is not None and self._folder.hold(nbytes)
        with self._lock:
            self._waiting.append(_Waiting(number, size, nbytes, reports if held else None))
            self._size += size
        self._folder.touch(self)

    def aggregator(self) -> Aggregator[Any]:
        """A copy of the sums over all reports that were committed when this was called.

        It folds what waits: usually less than 2^14 reports.
        """
        with self._lock:
            last = self._waiting[-1].number if self._waiting else -1
            self._asking += 1
        try:
            with self._turn:
                while self._waiting and self._waiting[0].number <= last:
                    self._fold(last)
                return self._copy()
        finally:
            with self._lock:
                self._asking -= 1

    def drop(self) -> None:
        """Lets go of what waits, once the round has ended."""
        with self._turn, self._lock:
            held = sum(segment.nbytes for segment in self._waiting if segment.reports is not None)
            self._waiting.clear()
            self._size = self._unsaved_bytes = self._unsaved_segments = 0
        self._folder.release(held)

    # -- the folder's thread -----------------------------------------------------------------------------------------
    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self._worth_saving

    def step(self) -> bool:
        """Folds some of what waits and saves the tally, as far as it is worth it now; whether it did anything."""
        now = time.monotonic()
        due = bool(self._waiting) and (self._size >= _AT_ONCE or now >= self._rest_until)
        if self._asking or not (due or self._worth_saving):
            return False
        with self._turn:
            if due and self._waiting:
                self._rest_until = now + _RETRY_S  # unless all goes well
                self._fold(self._waiting[-1].number)
                after = time.monotonic()
                self._rest_until = after + max(REST_S, _REST_SHARE * (after - now))
            if self._worth_saving:
                self._saving = True
                saved = self._unsaved_bytes, self._unsaved_segments
                self._save(self._folded, self._copy(), lambda done: self._saved(done, *saved))
        return True

    @property
    def _worth_saving(self) -> bool:
        many = self._unsaved_bytes >= self.enough_bytes or self._unsaved_segments >= SAVE_SEGMENTS
        return many and not self._saving and time.monotonic() >= self._save_after

    def _saved(self, done: bool, nbytes: int, segments: int) -> None:
        with self._lock:
            if done:
                self._unsaved_bytes -= nbytes
                self._unsaved_segments -= segments
            else:
                self._save_after = time.monotonic() + _RETRY_S
            self._saving = False

    def _copy(self) -> Aggregator[Any]:
        return Aggregator(self._total.mechanism).merge(self._total)

    def _fold(self, last: int) -> None:
        """Adds some segments up to a number to the total; it is the caller's turn."""
        taken: list[_Waiting] = []
        with self._lock:
            size = 0
            for segment in self._waiting:
                if taken and (size + segment.size > _AT_ONCE or segment.number > last):
                    break
                taken.append(segment)
                size += segment.size
        batches = [self._read(each.number) if each.reports is None else each.reports for each in taken]
        self._total.add(Reports.concatenated(batches))
        with self._lock:
            for segment in taken:
                self._waiting.popleft()
                self._size -= segment.size
            self._unsaved_bytes += sum(segment.nbytes for segment in taken)
            self._unsaved_segments += len(taken)
        self._folder.release(sum(segment.nbytes for segment in taken if segment.reports is not None))
        self._folded = taken[-1].number


class Folder:
    """The thread that folds the reports of all rounds of a store.

    Attributes:
        held: Bytes of reports that wait in memory.
    """

    def __init__(self) -> None:
        self._touched: set[Folding] = set()
        self.held = 0
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="frequency-folder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join(_LONGEST_FOLD_S)

    def hold(self, nbytes: int) -> bool:
        """Whether so many bytes may wait in memory; then they count until they are released."""
        with self._news:
            if self.held + nbytes > MOST_HELD:
                return False
            self.held += nbytes
            return True

    def release(self, nbytes: int) -> None:
        """Gives room back."""
        with self._news:
            self.held -= nbytes

    def touch(self, folding: Folding) -> None:
        """Says that something waits."""
        with self._news:
            if folding not in self._touched:
                self._touched.add(folding)
                self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._touched and not self._closed:
                    self._news.wait()
                if self._closed:
                    return
                touched = list(self._touched)
            worked = False
            for folding in touched:
                try:
                    worked |= folding.step()
                except Exception:  # noqa: S112 (who asks for the tally meets it, too, and can report it)
                    continue
                with self._news:
                    if folding.idle:
                        self._touched.discard(folding)
            if not worked:
                time.sleep(REST_S / 10)

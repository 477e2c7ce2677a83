"""How many reports were refused, by round and reason: counted at once, and on disk within a second or so."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from typing import Final

from party.services.frequency.storage.records import COUNTERS, Counters

WHOLE: Final = -1  # no round: of those refused for no known round, or for rounds that were forgotten

Key = tuple[int, int]
"""A collection's row, and the number of a round or `WHOLE`."""


class Refusals:
    """Numbers of refused reports. Calls may be made from any thread.

    Args:
        connection: From which they are read.

    Raises:
        ValueError: They are not what this version writes.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[Key, Counter[str]] = {}
        for collection, round_, reason, number in connection.execute(
            "SELECT collection, round, reason, number FROM refusals"
        ):
            if reason not in COUNTERS:
                raise ValueError(f"there is no counter {reason}")
            self._numbers.setdefault((collection, round_), Counter())[reason] = number
        self._changed: set[Key] = set()

    @property
    def waiting(self) -> bool:
        """Whether something is to be written."""
        return bool(self._changed)

    def note(self, key: Key, reason: str, number: int) -> None:
        """Counts refused reports.

        Args:
            key: For what they came.
            reason: A field of `Counters`.
            number: How many.
        """
        if reason not in COUNTERS:
            raise RuntimeError(f"there is no counter {reason}")
        with self._lock:
            self._numbers.setdefault(key, Counter())[reason] += number
            self._changed.add(key)

    def of(self, key: Key) -> Counters:
        """What was refused."""
        with self._lock:
            return Counters(**self._numbers.get(key, Counter()))

    def move(self, keys: list[Key], to: Key) -> None:
        """Adds what was refused under some keys to another."""
        with self._lock:
            for key in keys:
                self._numbers.setdefault(to, Counter()).update(self._numbers.pop(key, Counter()))
            self._changed = {to} | self._changed.difference(keys)

    def forget(self, collection: int) -> None:
        """Forgets a collection that was deleted."""
        with self._lock:
            self._numbers = {key: numbers for key, numbers in self._numbers.items() if key[0] != collection}
            self._changed = {key for key in self._changed if key[0] != collection}

    def take(self) -> set[Key]:
        """What has changed and is written now; `put_back` where that fails."""
        with self._lock:
            changed, self._changed = self._changed, set()
            return changed

    def put_back(self, keys: set[Key]) -> None:
        """Has them written later."""
        with self._lock:
            self._changed |= keys

    def write(self, keys: set[Key], connection: sqlite3.Connection) -> None:
        """Writes the numbers under some keys; of collections that were deleted meanwhile, none."""
        with self._lock:
            rows = [(*key, reason, number) for key in keys for reason, number in self._numbers.get(key, {}).items()]
        connection.executemany(
            "INSERT OR REPLACE INTO refusals SELECT row, ?2, ?3, ?4 FROM collections WHERE row = ?1", rows
        )

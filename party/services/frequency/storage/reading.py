"""What `frequency.db` says of collections and rounds, for the node and for who looks at them beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from link.errors import ConfigurationError
from party.services.frequency.storage.records import Counters, StoredCollection, StoredRound
from party.services.frequency.storage.refusals import WHOLE, Refusals
from party.services.frequency.storage.schema import KIND
from party.state.database import Held, StateDatabase

COLLECTION: Final = "name, id, spec, labels, creator, created, closed, state"
ROUND: Final = "number, period, step, opens, closes, mechanism, purpose, share, ended"

P = ParamSpec("P")
T = TypeVar("T")


class FrequencyRecords(StateDatabase):
    """All collections of one node, to be read. Calls may be made from any thread.

    Args:
        path: The database.
        opened: It, open.
        reading: The connection through which it is read; that of `opened`, if None.
    """

    KIND = KIND

    def __init__(self, path: Path, opened: Held, reading: sqlite3.Connection | None = None) -> None:
        super().__init__(path, opened)
        self._reading = opened.connection if reading is None else reading
        with self._translated():
            self._refusals = Refusals(self._reading)

    def collections(self) -> list[StoredCollection]:
        """All collections, in the order of their creation."""
        return [StoredCollection(*row) for row in self._select(f"SELECT {COLLECTION} FROM collections ORDER BY row")]  # noqa: S608

    def counters(self, name: str) -> Counters:
        """What became of all reports to a collection, of forgotten rounds too, as far as it is on disk."""
        collection = self._collection(name)
        whole = self._refusals.of((collection, WHOLE))
        return sum((each.counters for each in self.rounds(name, states=False)), whole)

    def counted(self, name: str) -> int:
        """How many reports the rounds of a collection that have ended had, forgotten ones among them."""
        forgotten = self._refusals.of((self._collection(name), WHOLE)).counted
        return forgotten + sum(each.counters.counted for each in self.rounds(name, states=False) if each.ended)

    def rounds(self, name: str, *, states: bool = True) -> list[StoredRound]:
        """All rounds of a collection, the first first.

        Args:
            name: Of the collection.
            states: Whether with their tallies and results, which may be long.
        """
        collection = self._collection(name)
        return self._rounds("rounds.collection = ?", collection, states=states)

    def round(self, name: str, number: int) -> StoredRound | None:
        """One round, if there is one of this number."""
        found = self._rounds("rounds.collection = ? AND rounds.number = ?", self._collection(name), number)
        return found[0] if found else None

    def released(self, name: str) -> set[int]:
        """The ended rounds of a collection of whose reports something was made."""
        which = "SELECT number FROM rounds WHERE collection = ? AND ended IS NOT NULL AND length(result) > 0"
        return {int(number) for (number,) in self._select(which, self._collection(name))}

    def latest_round(self, name: str, *, after: int, released: bool) -> int | None:
        """The last ended round with something to show; None where there is none.

        Args:
            name: Of the collection.
            after: Only rounds of higher numbers are looked for.
            released: Whether what was made of the reports counts, or else the reports.
        """
        condition = "length(result) > 0" if released else "counted > 0"
        found = self._select(
            f"SELECT number FROM rounds WHERE collection = ? AND number > ? AND ended IS NOT NULL AND {condition} "  # noqa: S608
            "ORDER BY number DESC LIMIT 1",
            *(self._collection(name), after),
        )
        return int(found[0][0]) if found else None

    def _collection(self, name: str) -> int:
        """A collection's row."""
        found = self._select("SELECT row FROM collections WHERE name = ?", name)
        if not found:
            raise ConfigurationError(f"there is no collection '{name}' on this node; see `comine frequency list`")
        return int(found[0][0])

    def _rounds(self, where: str, *values: Any, states: bool = True) -> list[StoredRound]:
        # The tally of an open round is of no use without its segments; it is for `recover` alone.
        state = "CASE WHEN ended IS NULL THEN x'' ELSE tally END, result" if states else "x'', x''"
        rows = self._select(
            f"SELECT {ROUND}, {state}, rounds.collection, counted + "  # noqa: S608  # the names are this module's own
            "(SELECT coalesce(sum(size), 0) FROM segments WHERE segments.round = rounds.row) "
            f"FROM rounds WHERE {where} ORDER BY number",
            *values,
        )
        return [
            replace(StoredRound(*row), counters=self._refusals.of((collection, row[0])) + Counters(counted=counted))
            for *row, collection, counted in rows
        ]

    def _select(self, statement: str, *values: Any) -> list[Any]:
        return self._read(lambda connection: connection.execute(statement, values).fetchall())

    def _read(self, what: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock, self._translated():
            return what(self._reading, *args, **kwargs)

    def _translated(self) -> AbstractContextManager[None]:
        return KIND.translated(self._path)

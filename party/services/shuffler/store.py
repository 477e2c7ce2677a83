"""`shuffler.db`: routes, the reports that wait, and the batches that have not left yet, in one SQLite file of the node.

When a call that writes returns, what it wrote survives a crash and a loss of power. Calls are made from one thread at a
time. A backup of this file can hold the keys of routes that are open, but a batch that was sent is not in it.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.shuffling.route import route_of
from link.errors import ConfigurationError
from party.services.shuffler.schema import KIND
from party.state.database import Held, StateDatabase
from party.state.recovery.heads import RETIRED
from protos.v1.shuffle_pb2 import BatchHead

FILE: Final = "shuffler.db"
PART_BYTES: Final = 1 << 20  # of reports in one row, and in one message
_ROUTE: Final = "name, document, key, tag_key, creator, created, retired, batch, row"


@dataclass(frozen=True, slots=True)
class StoredRoute:
    """A row of `routes`.

    Attributes:
        name: Of the route.
        document: Of the route.
        key: This node's private key for it; empty once it is retired.
        tag_key: Of its tags; empty once it is retired.
        creator: The coordinator.
        created: Unix seconds.
        retired: Unix seconds, or None.
        batch: The number of the batch that is being filled.
        row: Of the table.
    """

    name: str
    document: bytes
    key: bytes = field(repr=False)
    tag_key: bytes = field(repr=False)
    creator: str
    created: float
    retired: float | None = None
    batch: int = 1
    row: int = 0


class Segment(NamedTuple):
    """What one message brought.

    Attributes:
        sender: Its member, as in a route's document.
        size: How many reports.
        reports: Without this node's layer, one after another.
    """

    sender: str
    size: int
    reports: bytes


class Waiting(NamedTuple):
    """What is known of the batch that is being filled.

    Attributes:
        senders: How many reports each sender has in it.
        drops: How many reports were dropped, by the reason.
    """

    senders: Counter[str]
    drops: Counter[str]


class ShufflerStore(StateDatabase):
    """All routes of one node.

    Args:
        path: The database.
        opened: It, open.
        most_bytes: That it may take; then it `is_full`.
    """

    KIND = KIND

    def __init__(self, path: Path, opened: Held, most_bytes: float = math.inf) -> None:
        super().__init__(path, opened)
        self.most_bytes, self._used_bytes = most_bytes, 0
        self._add_digests()
        self._measure()

    @property
    def is_full(self) -> bool:
        """Whether it takes as much as it may: then no report, no batch and no route is taken. What leaves, leaves."""
        return self._used_bytes >= self.most_bytes

    # -- routes ------------------------------------------------------------------------------------------------------
    def add(self, route: StoredRoute) -> StoredRoute:
        """Keeps a new route, and returns it with its row.

        Raises:
            ConfigurationError: There is another one of its name.
        """

        def write() -> None:
            if self.connection.execute("SELECT 1 FROM routes WHERE name = ?", (route.name,)).fetchone():
                raise ConfigurationError(f"there is another route '{route.name}' already; take another name")
            named = (route.name, route.document, route.key, route.tag_key, route.creator, route.created)
            self.connection.execute(
                "INSERT INTO routes (name, document, key, tag_key, creator, created, digest) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*named, _digest(route.document)),
            )

        self._write(write)
        added = self.route(route.name)
        assert added is not None
        return added

    def routes(self) -> list[StoredRoute]:
        """All routes, in the order of their creation."""
        return self._routes("1 ORDER BY row")

    def unfinished(self) -> list[StoredRoute]:
        """Those that are open, or have batches that have not left, in the order of their creation."""
        waits = "EXISTS (SELECT 1 FROM batches WHERE route = routes.row AND sent IS NULL)"
        return self._routes(f"retired IS NULL OR {waits} ORDER BY row")

    def route(self, name: str) -> StoredRoute | None:
        """A route by its name."""
        return next(iter(self._routes("name = ?", name)), None)

    def route_with(self, digest: bytes) -> StoredRoute | None:
        """A route by the digest of its document."""
        return next(iter(self._routes("digest = ?", digest)), None)

    def knows(self, name: str, batch: int, received: int, me: str) -> bool | None:
        """Whether all is there that the log has of a route; None where there is nothing of it.

        Args:
            name: The route.
            batch: The latest in the log, or `party.state.recovery.heads.RETIRED`. A batch may not have been closed yet,
            where
                the node died just then.
            received: How many reports it had by the log.
            me: This party; one that is not the first gets a batch as a whole and closes it at once.
        """
        found = self.route(name)
        if found is None:
            return None
        if batch == RETIRED or found.retired is not None:
            return found.retired is not None
        if found.batch != batch or route_of(found.document).shufflers[0] != me:
            return found.batch >= batch
        waiting = self.waiting(found.row)
        return waiting.senders.total() + waiting.drops.total() >= received

    def retire(self, row: int, at: float) -> None:
        """Deletes a route's keys, tags, and reports that wait; batches that have not left stay."""

        def write() -> None:
            for table in ("segments", "tags", "drops"):
                self.connection.execute(f"DELETE FROM {table} WHERE route = ?", (row,))  # noqa: S608
            self.connection.execute("UPDATE routes SET retired = ?, key = x'', tag_key = x'' WHERE row = ?", (at, row))

        self._write(write)
        self._empty_log()

    # -- the batch that is being filled ------------------------------------------------------------------------------
    def commit(self, row: int, segments: Sequence[Segment], tags: NDArray[np.uint64], drops: Mapping[str, int]) -> None:
        """Keeps reports with their tags, and counts those that were dropped."""

        def write() -> None:
            values = [(row, *segment) for segment in segments]
            self.connection.executemany(
                "INSERT INTO segments (route, sender, size, reports) VALUES (?, ?, ?, ?)", values
            )
            self._add_tags(row, tags)
            self.connection.executemany(
                "INSERT INTO drops VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number",
                [(row, *drop) for drop in drops.items()],
            )

        self._write(write)

    def tags(self, row: int) -> NDArray[np.uint64]:
        """Of all reports that were taken."""
        blobs = self._select("SELECT tags FROM tags WHERE route = ? ORDER BY row", row)
        with KIND.translated(self._path):
            return np.frombuffer(b"".join(blob for (blob,) in blobs), "<u8").astype(np.uint64)

    def waiting(self, row: int) -> Waiting:
        """What is known of the batch that is being filled."""
        senders = self._select("SELECT sender, sum(size) FROM segments WHERE route = ? GROUP BY sender", row)
        drops = self._select("SELECT reason, number FROM drops WHERE route = ?", row)
        return Waiting(Counter(dict(senders)), Counter(dict(drops)))

    def reports(self, row: int) -> bytes:
        """The reports of that batch, one after another, as they came."""
        blobs = self._select("SELECT reports FROM segments WHERE route = ? ORDER BY row", row)
        return b"".join(blob for (blob,) in blobs)

    # -- batches -----------------------------------------------------------------------------------------------------
    def depart(self, row: int, head: BatchHead, reports: NDArray[np.uint8], tags: NDArray[np.uint64]) -> None:
        """Closes the batch that is being filled: from now on it is these reports in this order, and nothing else.

        Args:
            row: Of the route.
            head: Of the batch.
            reports: Shape (n, bytes of a report).
            tags: Of reports that came with a batch of the shuffler before.
        """
        step = max(1, PART_BYTES // reports.shape[1])
        data, width = np.ascontiguousarray(reports).data, reports.shape[1]
        flat = data.cast("B") if len(reports) else b""

        def write() -> None:
            self.connection.execute(
                "INSERT INTO batches (route, number, head) VALUES (?, ?, ?)",
                (row, head.batch, head.SerializeToString()),
            )
            self.connection.executemany(
                "INSERT INTO parts VALUES (?, ?, ?, ?)",
                (
                    (row, head.batch, i, flat[start * width : (start + step) * width])
                    for i, start in enumerate(range(0, len(reports), step))
                ),
            )
            self._add_tags(row, tags)
            for table in ("segments", "drops"):
                self.connection.execute(f"DELETE FROM {table} WHERE route = ?", (row,))  # noqa: S608
            self.connection.execute("UPDATE routes SET batch = ? WHERE row = ?", (head.batch + 1, row))

        self._write(write)
        self._empty_log()

    def unsent(self, row: int) -> list[int]:
        """The numbers of the batches that the next hop has not got, the first first."""
        rows = self._select("SELECT number FROM batches WHERE route = ? AND sent IS NULL ORDER BY number", row)
        return [number for (number,) in rows]

    def head(self, row: int, number: int) -> BatchHead | None:
        """The head of a batch that was closed."""
        rows = self._select("SELECT head FROM batches WHERE route = ? AND number = ?", row, number)
        return BatchHead.FromString(rows[0][0]) if rows else None

    def part(self, row: int, batch: int, number: int) -> bytes | None:
        """Reports of a batch: the part of this number, from 0; None after the last one."""
        which = "SELECT reports FROM parts WHERE route = ? AND batch = ? AND number = ?"
        rows = self._select(which, row, batch, number)
        return rows[0][0] if rows else None

    def sent(self, row: int, upto: int, at: float) -> None:
        """Forgets the reports of batches that the next hop has got; their heads stay."""

        def write() -> None:
            self.connection.execute("DELETE FROM parts WHERE route = ? AND batch <= ?", (row, upto))
            which = "route = ? AND number <= ? AND sent IS NULL"
            self.connection.execute(f"UPDATE batches SET sent = ? WHERE {which}", (at, row, upto))  # noqa: S608

        self._write(write)
        self._empty_log()

    # -- SQLite ------------------------------------------------------------------------------------------------------
    def _routes(self, which: str, *values: object) -> list[StoredRoute]:
        return [StoredRoute(*row) for row in self._select(f"SELECT {_ROUTE} FROM routes WHERE {which}", *values)]  # noqa: S608

    def _add_digests(self) -> None:
        """Of routes that an earlier version has kept."""
        without = self._select("SELECT row, document FROM routes WHERE digest IS NULL")
        if without:
            digests = [(_digest(document), row) for row, document in without]
            self._write(lambda: self.connection.executemany("UPDATE routes SET digest = ? WHERE row = ?", digests))

    def _add_tags(self, row: int, tags: NDArray[np.uint64]) -> None:
        if len(tags):
            self.connection.execute("INSERT INTO tags (route, tags) VALUES (?, ?)", (row, tags.astype("<u8").tobytes()))

    def _select(self, statement: str, *values: object) -> list[Any]:
        with self._using() as connection:
            return connection.execute(statement, values).fetchall()

    def _write(self, work: Callable[[], object]) -> None:
        with self._changing():
            work()
        self._measure()

    def _measure(self) -> None:
        with self._using() as connection:
            pages, unused, size = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
        self._used_bytes = (pages - unused) * size

    def _empty_log(self) -> None:
        with suppress(sqlite3.Error):  # it is emptied the next time
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _digest(document: bytes) -> bytes:
    return hashlib.sha256(document).digest()

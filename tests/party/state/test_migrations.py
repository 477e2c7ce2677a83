"""Databases of every schema since the first are brought up to this one, whole or not at all.

`earlier` has a dump of each, with content; it was made by the code of the commit that first had that schema. A file
whose name goes on behind the number is of a schema that had the number, too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from client.database import Database
from client.fleet_state.record import FleetRecord
from client.store import ClientStore
from party.services.anonymization.releases import Counted, Releases
from party.services.frequency.storage.store import FrequencyStore
from party.services.queries.log import QueryLog
from party.services.shuffler.store import ShufflerStore
from party.state import database
from party.state.database import Kind, StateDatabase, connect, statements
from party.state.ledger import Ledger
from party.state.store import Store
from protos.v1.control_pb2 import AWAITING_APPROVAL, SUCCEEDED
from tests.errors import fails

EARLIER: Final = Path(__file__).with_name("earlier")
DUMPS: Final = sorted(path.stem for path in EARLIER.glob("*.sql"))
STORES: Final[dict[str, type[StateDatabase]]] = {
    "node": Store,
    "frequency": FrequencyStore,
    "shuffler": ShufflerStore,
    "queries": QueryLog,
    "releases": Releases,
}
DEVICES: Final[dict[str, type[Database]]] = {"client": ClientStore, "fleet": FleetRecord}
LEFT: Final = {"levels", "unions"}  # tables that a later version leaves behind: of what begins anew, or counts no more
LEFT_COLUMNS: Final = {("charges", "unites")}
OTHERWISE: Final = {"frequency-01-first"}  # its rows of collections take numbers of those that are gone

Columns = dict[str, list[str]]


def kind_of(name: str) -> Kind:
    return STORES[name.partition("-")[0]].KIND


def version_of(name: str) -> int:
    return int(name.split("-")[1])


def latest(kind: Kind) -> int:
    return kind.first + len(kind.versions) - 1


@contextlib.contextmanager
def plain(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that waits for no disk."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def restored(name: str, path: Path) -> None:
    """Writes the database of a dump."""
    with plain(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript((EARLIER / f"{name}.sql").read_text())


class Found(NamedTuple):
    """What is in a database: its version, and by table and column what they hold."""

    version: int
    columns: Columns
    rows: dict[str, list[str]]


def found(path: Path, of: Columns | None = None) -> Found:
    """What is in a database; of the rows these columns, all but what is left behind where absent."""
    with plain(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {
            table: [
                row[1]
                for row in connection.execute(f"PRAGMA table_info({table})")
                if (table, row[1]) not in LEFT_COLUMNS
            ]
            for table in tables
            if table not in LEFT
        }
        rows = {
            table: sorted(map(repr, connection.execute(f"SELECT {', '.join(names)} FROM {table}")))
            for table, names in (columns if of is None else of).items()
        }
        return Found(version, columns, rows)


def shape(path: Path) -> dict[str, str]:
    """The statements of a database's tables, indices and triggers, by name."""
    with plain(path) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: " ".join(sql.split()) for name, sql in made}


def opened(name: str, path: Path) -> StateDatabase:
    store = STORES[name.partition("-")[0]]
    return store.open(path, "north") if store is Releases else store.open(path)


@pytest.mark.parametrize("store", STORES)
def test_each_schema_has_a_dump(store: str) -> None:
    kind = STORES[store].KIND
    assert {version_of(name) for name in DUMPS if name.startswith(store)} == set(range(kind.first, latest(kind) + 1))


@pytest.mark.parametrize("name", [name for name in DUMPS if name.partition("-")[0] in STORES])
def test_what_an_earlier_version_has_kept_is_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    restored(name, path)
    before = found(path)
    for _ in range(2):
        opened(name, path).close()
        now = found(path, before.columns)
        assert (now.version, now.rows) == (latest(kind_of(name)), before.rows)


@pytest.mark.parametrize("store", STORES)
def test_a_database_that_was_migrated_is_as_a_new_one(store: str, tmp_path: Path) -> None:
    """So no statement of a version that has landed has changed since."""
    opened(store, new := tmp_path / "new.db").close()
    for name in (name for name in DUMPS if name.partition("-")[0] == store and name not in OTHERWISE):
        restored(name, path := tmp_path / f"{name}.db")
        opened(name, path).close()
        assert shape(path) == shape(new), name


@pytest.mark.parametrize("name", [name for name in DUMPS if name.startswith("node")])
def test_jobs_of_earlier_versions_are_read_and_new_ones_are_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    restored(name, path)
    store = Store.open(path)
    asked, done = store.all()
    assert (asked.state, asked.attempt, done.state, done.attempt) == (AWAITING_APPROVAL, 0, SUCCEEDED, 1)
    assert done.release == b"release"
    store.add(replace(asked, job_id=bytes(32)))
    assert len(store.all()) == 3
    store.close()
    ledger = Ledger.open(path)
    assert [entry.name for entry in ledger.entries("baskets")] == (["weekly"] if version_of(name) >= 3 else [])
    ledger.close()


@pytest.mark.parametrize("name", [name for name in DUMPS if name.startswith("releases")])
def test_releases_of_earlier_versions_count(name: str, tmp_path: Path) -> None:
    restored(name, tmp_path / "releases.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    joint, failed = name not in ("releases-01-first", "releases-01-failures"), name != "releases-01-first"
    assert releases.counted("patients") == Counted(1 + joint, int(failed))
    head = releases.head
    releases.begin("patients", bytes([9]) * 32, "analyst", 9)
    assert releases.head == head + 1
    releases.close()


@pytest.mark.parametrize("name", ["client-01", "fleet-02"])
def test_devices_read_what_the_first_version_has_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    restored(name, path)
    before = found(path)
    DEVICES[name.partition("-")[0]].open_file(path).close()
    assert found(path) == before


@pytest.mark.parametrize("name", ["node-01", "shuffler-01", "releases-01-first"])
def test_a_migration_that_dies_at_any_statement_leaves_the_old_database(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on the disk before each statement is what a process leaves that is killed there."""
    path, left = tmp_path / "kept.db", list[Path]()
    restored(name, path)
    before = found(path)

    def observed(place: Path, *settings: Any) -> sqlite3.Connection:
        connection = connect(place, *settings)

        def leave(statement: str) -> None:
            folder = tmp_path / f"left-{len(left)}"
            folder.mkdir()
            for each in (place, place.with_name(f"{place.name}-wal")):
                if each.exists():
                    shutil.copy(each, folder)
            left.append(folder / place.name)

        connection.set_trace_callback(leave)
        return connection

    monkeypatch.setattr(database, "connect", observed)
    kind_of(name).open(path).close()
    monkeypatch.undo()
    changes = [each for text in kind_of(name).versions[1:] for each in statements(text)]
    unfinished = [each for each in left if found(each) == before]
    assert len(unfinished) > len(changes)
    opened(name, unfinished[-1]).close()
    for each in (unfinished[-1], *(each for each in left if each not in unfinished)):
        now = found(each, before.columns)
        assert (now.version, now.rows) == (latest(kind_of(name)), before.rows)


@pytest.mark.parametrize("name", ["node-13", "releases-01-first"])
def test_a_command_changes_no_tables_of_a_node_that_runs(name: str, tmp_path: Path) -> None:
    """One of the version before may: what it reads would be gone."""
    node, path, store = tmp_path / "node.db", tmp_path / "kept.db", STORES[name.partition("-")[0]]
    restored(name, path)
    before, more = found(path), ("north",) if store is Releases else ()
    lock = database.locked(node)
    with fails("E100"):
        store.open_beside(node, path, *more)
    assert found(path) == before
    store.open(path, *more).close()  # the node itself, once it is restarted
    store.open_beside(node, path, *more).close()
    store.open_beside(node, tmp_path / "new.db", *more).close()
    os.close(lock)
    restored(name, tmp_path / "alone.db")
    store.open_beside(node, tmp_path / "alone.db", *more).close()
    assert found(tmp_path / "alone.db").version == latest(store.KIND)


@pytest.mark.parametrize("store", STORES)
def test_a_database_of_a_newer_version_is_refused_and_stays_as_it_is(store: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    restored(next(name for name in reversed(DUMPS) if name.startswith(store)), path)
    with plain(path) as changed:
        changed.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with fails("E100"):
        opened(store, path)
    assert path.read_bytes() == before


def test_a_database_that_is_too_old_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "queries.db"
    restored("queries-02", path)
    with plain(path) as changed:
        changed.execute("PRAGMA user_version = 1")  # its digests were others
    before = path.read_bytes()
    with fails("E100"):
        QueryLog.open(path)
    assert path.read_bytes() == before


def test_a_trigger_is_one_statement() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; DELETE FROM c; END"
    assert [each.strip() for each in statements(f"CREATE TABLE a (x);\n{trigger};\n")] == [
        "CREATE TABLE a (x);",
        f"{trigger};",
    ]

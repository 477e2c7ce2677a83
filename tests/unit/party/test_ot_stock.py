from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crypto.protocols.ot_stock import Role, Stock, StockStore
from link.errors import ResourceError
from party.logs import open_log
from party.ot_stock import StockFile

SEEDS = b"".join(bytes([i]) * 16 for i in range(256))


def stock(**changes: Any) -> Stock:
    made = Stock(bytes(range(16)), b"t" * 32, 1000.5, next=1, heard=1, seeds=SEEDS, delta=b"delta of 16 byte")
    return replace(made, **changes)


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stock.db"


@pytest.fixture
def store(path: Path, log: io.StringIO) -> Iterator[StockFile]:
    opened = StockFile.open(path, open_log("north", log))
    yield opened
    opened.close()


def another(path: Path) -> StockFile:
    return StockFile.open(path, open_log("north", io.StringIO()))


def told(log: io.StringIO) -> list[tuple[str, str, str | None]]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [(line["event"], line["peer"], line.get("reason")) for line in lines]


# -- what is kept ------------------------------------------------------------------------------------------------------
def test_the_file_is_its_owners_alone(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    assert [stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("stock.db*")].count(0o600) >= 1
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    path.chmod(0o644)
    another(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_kept_is_found_by_peer_and_role_also_after_a_restart(store: StockFile, path: Path) -> None:
    kept: dict[tuple[str, Role], Stock] = {
        ("south", "sender"): stock(),
        ("south", "receiver"): stock(delta=b"", next=7),
        ("east", "sender"): stock(made=0.1 + 0.2, heard=2**16),
    }
    for (peer, role), one in kept.items():
        store.put(peer, role, one)
    store.close()
    again = another(path)
    assert {where: again.get(*where) for where in kept} == kept
    assert again.get("east", "receiver") is None
    again.close()


def test_of_two_new_stocks_the_one_with_the_larger_id_stays(store: StockFile) -> None:
    small, large = stock(id=bytes(16)), stock(id=b"\xff" * 16)
    for order in ((small, large), (large, small)):
        for one in order:
            store.put("south", "sender", one)
        assert store.get("south", "sender") == large
        store.drop("south", "sender", large.id, "too old")


def test_a_stock_is_advanced_only_from_where_it_stands(store: StockFile) -> None:
    before, after = stock(), stock(next=2, heard=2, seeds=SEEDS[::-1])
    assert not store.advance("south", "sender", before, after)
    store.put("south", "sender", before)
    for stale in (stock(id=b"i" * 16), stock(next=0), stock(heard=0)):
        assert not store.advance("south", "sender", stale, after)
    assert not store.advance("south", "receiver", before, after)
    assert store.get("south", "sender") == before
    assert store.advance("south", "sender", before, after)
    assert store.get("south", "sender") == after
    assert not store.advance("south", "sender", before, after)


def test_a_stock_is_dropped_by_its_id(store: StockFile, log: io.StringIO) -> None:
    store.put("south", "sender", stock())
    store.drop("south", "sender", b"i" * 16, "used up")
    assert store.get("south", "sender") is not None
    store.drop("south", "sender", stock().id, "rolled back at the peer")
    store.drop("south", "sender", stock().id, "rolled back at the peer")
    assert store.get("south", "sender") is None
    assert told(log) == [
        ("stock made", "south", None),
        ("stock dropped", "south", "rolled back at the peer"),
    ]


def test_the_log_takes_the_known_reasons_only() -> None:
    stream = io.StringIO()
    open_log("north", stream).info("stock dropped", reason="milk")
    assert json.loads(stream.getvalue())["withheld"] == ["reason"]


# -- what is forgotten -------------------------------------------------------------------------------------------------
def test_nothing_of_an_earlier_generation_stays_in_the_folder(store: StockFile, path: Path) -> None:
    """Nor of a stock that was dropped: who reads the files later finds neither."""

    def folder() -> bytes:
        return b"".join(file.read_bytes() for file in path.parent.iterdir())

    generations = [os.urandom(4096) for _ in range(4)]
    now = stock(seeds=generations[0])
    store.put("south", "sender", now)
    for number, seeds in enumerate(generations[1:], 1):
        after = replace(now, next=now.next + 1, seeds=seeds)
        assert store.advance("south", "sender", now, after)
        now = after
        store.fold()
        held = folder()
        assert seeds[:64] in held
        assert not [old for old in generations[:number] if any(old[i : i + 16] in held for i in range(0, 4096, 16))]
    store.drop("south", "sender", now.id, "too old")
    store.fold()
    held = folder()
    assert not [old for old in generations if any(old[i : i + 16] in held for i in range(0, 4096, 16))]
    assert stock().delta not in held


def test_it_is_forgotten_without_being_asked(store: StockFile, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("party.ot_stock.FOLD_S", 0.01)
    store.fold()
    store.put("south", "sender", stock(seeds=b"old seeds" * 400))
    assert store.advance("south", "sender", stock(), stock(next=2))
    while any(b"old seeds" in file.read_bytes() for file in path.parent.iterdir()):
        time.sleep(0.01)
    assert store.get("south", "sender") == stock(next=2)


def test_a_start_forgets_what_a_killed_process_had_no_time_for(path: Path, store: StockFile) -> None:
    store.put("south", "sender", stock())
    with spending(path, 1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    another(path).close()
    assert not path.with_name("stock.db-wal").stat().st_size


@pytest.mark.parametrize("column", ["id", "terms", "made", "next", "heard", "seeds", "delta"])
def test_a_stock_that_the_disk_has_spoilt_counts_as_none_and_gives_way(
    store: StockFile, path: Path, column: str
) -> None:
    store.put("south", "sender", stock(id=b"\xff" * 16))
    connection = sqlite3.connect(path)
    value = 77 if column in ("made", "next", "heard") else b"spoilt"
    connection.execute(f"UPDATE stocks SET {column} = ?", (value,))
    connection.commit()
    connection.close()
    assert store.get("south", "sender") is None
    store.put("south", "sender", stock())
    assert store.get("south", "sender") == stock()


def test_a_row_serves_only_the_peer_and_role_that_it_was_written_for(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    connection = sqlite3.connect(path)
    connection.execute("UPDATE stocks SET peer = 'east'")
    connection.commit()
    connection.close()
    assert store.get("east", "sender") is None


def test_stocks_of_another_versions_file_are_forgotten(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    again = another(path)
    assert again.get("south", "sender") is None
    again.put("south", "sender", stock())
    again.close()


# -- leases side by side -----------------------------------------------------------------------------------------------
def spend(store: StockStore, times: int) -> list[int]:
    """Takes numbers as sessions do: again where another was faster."""
    taken: list[int] = []
    while len(taken) < times:
        now = store.get("south", "sender")
        assert now is not None
        if store.advance("south", "sender", now, replace(now, next=now.next + 1)):
            taken.append(now.next)
    return taken


def test_threads_never_take_the_same_number(store: StockFile) -> None:
    store.put("south", "sender", stock())
    with ThreadPoolExecutor(4) as pool:
        taken = [number for part in pool.map(lambda _: spend(store, 15), range(4)) for number in part]
    assert sorted(taken) == list(range(1, 61))


SPEND = """
import io, sys
from pathlib import Path
from party.logs import open_log
from party.ot_stock import StockFile
from tests.unit.party.test_ot_stock import spend
store = StockFile.open(Path(sys.argv[1]), open_log("north", io.StringIO()))
for _ in range(int(sys.argv[2])):
    print(*spend(store, 1), flush=True)
sys.stdin.read()
"""


def spending(path: Path, times: int) -> subprocess.Popen[str]:
    """A process that tells each number as soon as it has taken it, and waits."""
    command = [sys.executable, "-c", SPEND, str(path), str(times)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_never_take_the_same_number(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    processes = [spending(path, 15) for _ in range(2)]
    taken = [int(line) for process in processes for line in process.communicate()[0].split()]
    assert sorted(taken) == list(range(1, 31))


def test_a_number_that_was_told_stays_spent_when_the_process_is_killed(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    for round_ in range(3):
        with spending(path, 2) as process:
            assert process.stdout is not None
            told_last = [int(process.stdout.readline()) for _ in range(2)][-1]
            process.send_signal(signal.SIGKILL)
        assert told_last == 2 * round_ + 2
        again = another(path)
        left = again.get("south", "sender")
        assert left is not None
        assert left.next == told_last + 1
        again.close()


# -- what cannot be used -----------------------------------------------------------------------------------------------
def test_a_damaged_file_is_set_aside_and_made_anew(path: Path, log: io.StringIO) -> None:
    """It is a cache: no job and no start of a node may fail for it."""
    path.write_bytes(b"no database" * 1000)
    made = StockFile.open(path, open_log("north", log))
    made.put("south", "sender", stock())
    assert made.get("south", "sender") == stock()
    made.close()
    assert path.with_suffix(".damaged").read_bytes() == b"no database" * 1000
    assert stat.S_IMODE(path.with_suffix(".damaged").stat().st_mode) == 0o600
    assert "stock set aside" in log.getvalue()


CALLS: dict[str, Callable[[StockFile], object]] = {
    "get": lambda store: store.get("south", "sender"),
    "put": lambda store: store.put("south", "sender", stock()),
    "advance": lambda store: store.advance("south", "sender", stock(), stock(next=2)),
    "drop": lambda store: store.drop("south", "sender", stock().id, "the peer broke the protocol"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_file_whose_damage_shows_later_is_set_aside_then(path: Path, log: io.StringIO, call: str) -> None:
    before = StockFile.open(path, open_log("north", log))
    before.put("south", "sender", stock())
    before.close()
    contents = bytearray(path.read_bytes())
    assert len(contents) >= 8192
    contents[4096:] = b"\xa5" * (len(contents) - 4096)
    path.write_bytes(contents)
    store = StockFile.open(path, open_log("north", log))
    assert not CALLS[call](store)
    assert path.with_suffix(".damaged").read_bytes() == contents
    assert "stock set aside" in log.getvalue()
    store.put("south", "sender", stock())
    assert store.advance("south", "sender", stock(), stock(next=2))
    store.close()


def test_a_file_that_cannot_be_written_is_told(path: Path, store: StockFile) -> None:
    store.put("south", "sender", stock())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store._connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(ResourceError, match=r"stock\.db in the state folder cannot be used"):
        store.advance("south", "sender", stock(), stock(next=2))
    other.close()
    with pytest.raises(ResourceError, match="cannot be opened"):
        another(path.parent / "absent" / "stock.db")


def test_a_stock_that_is_asked_for_after_the_end_is_not_set_aside(store: StockFile, path: Path) -> None:
    store.put("south", "sender", stock())
    store.close()
    with pytest.raises(ResourceError, match="closed"):
        store.get("south", "sender")
    again = another(path)
    assert again.get("south", "sender") == stock()
    again.close()

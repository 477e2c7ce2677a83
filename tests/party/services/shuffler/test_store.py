"""What is on disk: who may open it, what survives a crash between two steps, and a full disk."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldp.shuffling.batch import shuffled
from link.errors import ResourceError
from party.services.shuffler.store import FILE, PART_BYTES, Segment, ShufflerStore, StoredRoute
from protos.v1 import shuffle_pb2 as pb
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.contract import ERROR
from tests.party.nodes import refused
from tests.party.services.shuffler.nodes import SIZE, World, numbers, route_for, running

OVERHEAD = 48


def stored(name: str = "weekly") -> StoredRoute:
    return StoredRoute(name, b"document", b"k" * 32, b"t" * 32, "analyst", 1.0)


def test_a_store_keeps_what_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / FILE
    store = ShufflerStore.open(path)
    row = store.add(stored()).row
    tags = np.array([3, 2**64 - 1], np.uint64)
    store.commit(row, [Segment("client/a", 2, b"aabb"), Segment("client/b", 1, b"cc")], tags, {"replayed": 2})
    store.commit(row, [Segment("client/a", 1, b"dd")], tags[:0], {"replayed": 1, "unreadable": 5})
    store.close()
    store = ShufflerStore.open(path)
    assert store.waiting(row) == (Counter({"client/a": 3, "client/b": 1}), Counter({"replayed": 3, "unreadable": 5}))
    assert store.reports(row) == b"aabbccdd"
    assert store.tags(row).tolist() == tags.tolist()
    reports = np.frombuffer(store.reports(row), np.uint8).reshape(-1, 2)
    store.depart(row, pb.BatchHead(batch=1, reports=4), reports, tags[:0])
    assert store.waiting(row) == (Counter(), Counter())
    assert (store.part(row, 1, 0), store.part(row, 1, 1), store.unsent(row)) == (b"aabbccdd", None, [1])
    assert [(each.batch, each.retired) for each in store.routes()] == [(2, None)]
    store.sent(row, 1, 5.0)
    assert (store.part(row, 1, 0), store.unsent(row)) == (None, [])
    head = store.head(row, 1)
    assert head is not None
    assert head.reports == 4
    store.close()


def test_large_batches_are_kept_in_parts_of_whole_reports(tmp_path: Path) -> None:
    store = ShufflerStore.open(tmp_path / FILE)
    row = store.add(stored()).row
    reports = np.random.default_rng(1).integers(0, 256, (PART_BYTES // 100, 333), np.uint8)
    store.depart(row, pb.BatchHead(batch=1, reports=len(reports)), reports, np.empty(0, np.uint64))
    parts: list[bytes] = []
    while (part := store.part(row, 1, len(parts))) is not None:
        parts.append(part)
    assert len(parts) == 4
    assert all(len(part) % 333 == 0 and len(part) <= PART_BYTES for part in parts)
    assert b"".join(parts) == reports.tobytes()
    store.close()


def test_foreign_files_and_second_users_are_refused(tmp_path: Path) -> None:
    store = ShufflerStore.open(tmp_path / FILE)
    with fails("E100"):
        ShufflerStore.open(tmp_path / FILE)
    store.close()
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    for name, statement in (("a.db", "PRAGMA user_version = 99"), ("b.db", "CREATE TABLE t (x)")):
        connection = sqlite3.connect(tmp_path / name)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with fails("E100"):
            ShufflerStore.open(tmp_path / name)
    (tmp_path / "c.db").write_bytes(b"no database" * 1000)
    with fails("E100"):
        ShufflerStore.open(tmp_path / "c.db")
    with pytest.raises(ResourceError):
        ShufflerStore.open(tmp_path / FILE / "x.db")


def store_of(world: World, name: str = "north") -> ShufflerStore:
    return world.nodes[name].shuffler.running.store


def test_a_batch_whose_receipt_was_lost_is_sent_again_and_taken_once(tmp_path: Path) -> None:
    """The first shuffler dies after the second one has the batch, and before it knows."""

    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(10))
            await world.caller("fleet").submit(sealed)
            arrived = asyncio.Event()
            loop = asyncio.get_running_loop()

            def dies(row: int, upto: int, at: float) -> None:
                loop.call_soon_threadsafe(arrived.set)
                raise ResourceError("the node is dead")

            store_of(world).sent = dies  # type: ignore[method-assign]
            await world.analyst().flush()
            await arrived.wait()
            assert store_of(world).unsent(1) == [1]
            before = await world.batches(route, 1)
            await world.restart("north")
            while True:
                if not (await world.analyst().describe()).unsent:
                    break
                await asyncio.sleep(0.05)
            after = await world.batches(route, 1)
            assert len(before) == len(after) == 1
            assert np.array_equal(before[0][1], after[0][1])
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(10))

    asyncio.run(test())


def test_batches_wait_for_a_shuffler_that_is_away(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(30))
            fleet, analyst = world.caller("fleet"), world.analyst()
            await world.nodes["south"].stop()
            for start in range(0, 30, 10):
                await fleet.submit(sealed[start : start + 10])
                await analyst.flush()
            assert (await analyst.describe()).unsent == 3
            await world.start("south")
            found = await world.opened(route, 3)
            for start, each in zip(range(0, 30, 10), found, strict=True):
                assert sorted(numbers(each.reports)) == list(range(start, start + 10))

    asyncio.run(test())


def test_on_a_full_disk_nothing_is_taken_and_nothing_is_lost(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            route = route_for(["north"])
            sealed = await world.sealed(route, range(3000))
            fleet, analyst = world.caller("fleet"), world.analyst()
            await fleet.submit(sealed[:100])
            connection = store_of(world).connection

            def fill() -> None:
                ((pages,),) = connection.execute("PRAGMA page_count")
                connection.execute(f"PRAGMA max_page_count = {pages + 1}")

            fill()
            refusal = await refused(fleet.submit(sealed[100:]))
            assert (refusal.code, "database or disk is full" in refusal.sentence) == ("E103", True)
            assert store_of(world).waiting(1).senders.total() == 100
            connection.execute("PRAGMA max_page_count = 1000000")
            assert set(await fleet.submit(sealed[100:])) == {pb.TAKEN}
            fill()
            assert (await refused(analyst.flush())).code == "E103"
            assert store_of(world).waiting(1).senders.total() == 3000
            connection.execute("PRAGMA max_page_count = 1000000")
            await analyst.flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(3000))

    asyncio.run(test())


@pytest.mark.parametrize("honest", slowly([0, 1], now=[0]))
def test_one_honest_shuffler_suffices(tmp_path: Path, honest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in which reports arrive says nothing of that in which they were sent, whoever else leaves them as is.

    Spearman's test of places, of neighbours and of the time in which a part of them came; each errs with ERROR.
    """
    n = 2000
    width = SIZE + OVERHEAD * (2 - honest)

    def dishonest(reports: Any, random: Any) -> Any:
        return shuffled(reports, random) if reports.shape[1] == width else reports

    monkeypatch.setattr("party.services.shuffler.pool.shuffled", dishonest)

    async def test() -> list[int]:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(n))
            fleet = world.caller("fleet")
            for start in range(0, n, 200):
                await fleet.submit(sealed[start : start + 200])
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            return numbers(found.reports)

    out = np.array(asyncio.run(test()))
    assert np.array_equal(np.sort(out), np.arange(n))
    assert stats.spearmanr(np.arange(n), out).pvalue > ERROR
    assert stats.spearmanr(out[:-1], out[1:]).pvalue > ERROR
    table = np.histogram2d(np.arange(n) // 200, out // 200, bins=10)[0]
    assert stats.chi2_contingency(table).pvalue > ERROR


def test_routes_of_an_earlier_version_are_found_by_their_digests(tmp_path: Path) -> None:
    store = ShufflerStore.open(tmp_path / FILE)
    store.add(stored("weekly"))
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as old, old:
        old.execute("DROP INDEX routes_by_digest")
        old.execute("ALTER TABLE routes DROP COLUMN digest")
        old.execute("PRAGMA user_version = 1")
    store = ShufflerStore.open(tmp_path / FILE)
    found = store.route_with(hashlib.sha256(b"document").digest())
    assert found == store.route("weekly")
    assert found is not None
    assert (store.route("daily"), store.route_with(bytes(32))) == (None, None)
    store.close()


def test_what_is_over_is_no_longer_among_what_is_taken_up(tmp_path: Path) -> None:
    store = ShufflerStore.open(tmp_path / FILE)
    row = store.add(stored()).row
    store.depart(row, pb.BatchHead(batch=1, reports=1), np.zeros((1, 2), np.uint8), np.empty(0, np.uint64))
    store.retire(row, 2.0)
    assert [each.name for each in store.unfinished()] == ["weekly"]
    store.sent(row, 1, 3.0)
    assert store.unfinished() == []
    assert [each.name for each in store.routes()] == ["weekly"]
    store.close()

"""Datasets that are counted in blocks: encoded once, kept while their file is the same, and gone when it changes."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.data import close
from link.errors import InputDataError
from link.executor import ThreadExecutor
from link.files import stamps
from link.pki.authority import Authority
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.partitioned.encoding import encode
from mining.partitioned.in_process import InProcess
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.sources import by_processes
from party.config import DatasetSection
from party.data import block_folders, engine
from party.data.block_folders import REMOVER
from party.data.engine import engine_of
from party.data.sources import SCRATCH, Sources
from tests.errors import fails
from tests.mining.partitioned.test_encoding import Inline
from tests.party.nodes import running


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is encoded in this process."""
    monkeypatch.setattr(encode, "Workers", Inline)


def section(source: str, **more: Any) -> DatasetSection:
    contents = {"name": "baskets", "kind": "transactions", "source": source, "format": "basket", "engine": "processes"}
    return DatasetSection.model_validate(contents | more)


def sources(folder: Path, executor: ThreadExecutor, *withheld: str, **more: Any) -> Sources:
    dataset = section(**({"source": str(folder / "baskets.dat")} | more))
    return Sources([dataset], executor, {"baskets": withheld}, folder / "blocks")


async def loaded(kept: Sources) -> PartitionedRows:
    data = await kept.load("baskets")
    assert isinstance(data, PartitionedRows)
    return data


def folders(folder: Path) -> set[str]:
    place = folder / "blocks" / "baskets"
    return {path.name for path in place.iterdir()} if place.exists() else set()


async def only(folder: Path, expected: set[str]) -> None:
    """Folders are removed beside the event loop."""
    while folders(folder) != expected:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_blocks_are_made_once_and_outlive_the_node(tmp_path: Path, executor: ThreadExecutor) -> None:
    (tmp_path / "baskets.dat").write_text("milk bread\nmilk\n\n")

    async def test() -> None:
        kept = sources(tmp_path, executor)
        first, second = await asyncio.gather(loaded(kept), loaded(kept))
        made = folders(tmp_path)
        assert len(made) == 1
        assert (first.n_rows, first.items, first.item_counts().tolist()) == (2, ("bread", "milk"), [1, 2])
        for rows in (first, second):
            rows.close()
        again = await loaded(sources(tmp_path, executor))
        assert folders(tmp_path) == made
        assert await kept.rows("baskets") == await sources(tmp_path, executor).rows("baskets", again)
        again.close()

    asyncio.run(test())


def test_rows_have_the_digest_that_they_have_in_memory(tmp_path: Path, executor: ThreadExecutor) -> None:
    (tmp_path / "baskets.dat").write_text("milk bread hiv\nmilk\nhiv\n")

    async def test() -> None:
        assert await sources(tmp_path, executor, "hiv").rows("baskets") == await sources(
            tmp_path, executor, "hiv", engine="memory"
        ).rows("baskets")

    asyncio.run(test())


def test_a_changed_file_is_encoded_again_and_the_old_blocks_go_with_their_last_user(
    tmp_path: Path, executor: ThreadExecutor
) -> None:
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread\nmilk\n")

    async def test() -> None:
        kept = sources(tmp_path, executor)
        first = await loaded(kept)
        old = folders(tmp_path)
        path.write_text("milk\nbread beer\neggs\n")
        second = await loaded(kept)
        assert second.n_rows == 3
        assert old < folders(tmp_path)
        first.close()
        await only(tmp_path, folders(tmp_path) - old)
        second.close()
        (await loaded(kept)).close()
        assert len(folders(tmp_path)) == 1

    asyncio.run(test())


def test_what_was_never_finished_is_removed_at_the_start(tmp_path: Path, executor: ThreadExecutor) -> None:
    (tmp_path / "baskets.dat").write_text("milk bread\nmilk\n")
    torn = tmp_path / "blocks" / "baskets" / "0123"
    torn.mkdir(parents=True)
    (torn / "000000-000000.block").write_bytes(b"half")

    async def test() -> None:
        (await loaded(sources(tmp_path, executor))).close()
        assert not torn.exists()

    asyncio.run(test())


def test_before_a_node_begins_blocks_that_no_job_can_use_are_removed(tmp_path: Path, executor: ThreadExecutor) -> None:
    """Those with items that are withheld by now, of sources that have gone, and of datasets that are no more."""
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread hiv\nmilk\n")
    gone = tmp_path / "blocks" / "visits"

    def encode_all() -> None:
        async def encode() -> None:
            (await loaded(sources(tmp_path, executor))).close()

        asyncio.run(encode())
        for thread in threading.enumerate():
            if thread.name == REMOVER:
                thread.join()

    encode_all()
    made = folders(tmp_path)
    elsewhere = tmp_path / "disk"
    shutil.copytree(tmp_path / "blocks" / "baskets", elsewhere)
    gone.symlink_to(elsewhere)
    torn = tmp_path / "blocks" / "baskets" / "0123"
    torn.mkdir()
    assert sources(tmp_path, executor).remove_stale() == 2
    assert (folders(tmp_path), list(elsewhere.iterdir())) == (made, [])
    assert sources(tmp_path, executor).remove_stale() == 0
    assert sources(tmp_path, executor, "hiv").remove_stale() == 1
    assert folders(tmp_path) == set()
    for change in (lambda: {"engine": "auto"}, lambda: path.unlink() or {}):
        encode_all()
        assert sources(tmp_path, executor, **change()).remove_stale() == 1
        assert not (tmp_path / "blocks" / "baskets").exists()


def test_a_node_that_starts_removes_them(tmp_path: Path) -> None:
    stale, left = (tmp_path / "state" / "north" / each for each in ("blocks/gone/0123", f"{SCRATCH}0123"))

    def prepare(_: Authority) -> None:
        for folder in (stale, left):
            folder.mkdir(parents=True)

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            assert not stale.parent.exists()
            assert not left.exists()
            assert "stale blocks removed" in nodes.logs["north"].getvalue()
            assert "stale" not in nodes.logs["south"].getvalue()

    asyncio.run(test())


def test_a_file_that_may_change_within_its_time_is_read_for_every_job(
    tmp_path: Path, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on disks that count whole seconds; in memory and in blocks."""
    path, second = tmp_path / "baskets.dat", 1_700_000_000 * 10**9

    def write(rows: str) -> None:
        with path.open("w") as file:
            file.write(rows)
        os.utime(path, ns=(second, second))

    async def items(kept: Sources) -> set[str]:
        data = await kept.load("baskets")
        assert not isinstance(data, Table)
        close(data)
        return set(data.items)

    async def test(kept: Sources) -> None:
        monkeypatch.setattr(stamps.time, "time_ns", lambda: second + 10**9)
        write("milk bread\n")
        assert await items(kept) == {"milk", "bread"}
        write("milk beers\n")
        assert await items(kept) == {"milk", "beers"}
        monkeypatch.setattr(stamps.time, "time_ns", lambda: second + 10**10)
        assert await items(kept) == {"milk", "beers"}
        made = folders(tmp_path)
        assert await items(kept) == {"milk", "beers"}
        assert folders(tmp_path) == made

    for engine_ in ("memory", "processes"):
        asyncio.run(test(sources(tmp_path, executor, engine=engine_)))


def test_blocks_are_for_their_owner_alone(tmp_path: Path, executor: ThreadExecutor) -> None:
    """Whatever folders there were before."""
    (tmp_path / "baskets.dat").write_text("milk bread\nmilk\n")
    (tmp_path / "blocks" / "baskets").mkdir(parents=True, mode=0o755)

    async def test() -> None:
        rows = await loaded(sources(tmp_path, executor))
        found = [tmp_path / "blocks", *(tmp_path / "blocks").rglob("*")]
        assert {path.stat().st_mode & 0o777 for path in found} == {0o700, 0o600}
        assert all(path.stat().st_mode & 0o777 == 0o700 for path in found if path.is_dir())
        rows.close()

    asyncio.run(test())


def test_blocks_that_are_lost_are_made_again(tmp_path: Path, executor: ThreadExecutor) -> None:
    (tmp_path / "baskets.dat").write_text("milk bread\nmilk\n")

    async def test() -> None:
        kept = sources(tmp_path, executor)
        (await loaded(kept)).close()
        shutil.rmtree(tmp_path / "blocks" / "baskets")
        data = await loaded(kept)
        assert data.n_rows == 2
        assert len(folders(tmp_path)) == 1
        data.close()

    asyncio.run(test())


def test_a_database_is_encoded_for_every_job(tmp_path: Path, executor: ThreadExecutor) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table sales (id text, item text)")
        database.execute("insert into sales values ('1', 'milk'), ('1', 'bread'), ('2', 'milk')")
    database.close()

    async def test() -> None:
        kept = sources(
            tmp_path,
            executor,
            source=f"sqlite:///{tmp_path / 'shop.db'}",
            format="sql",
            query="select id, item from sales",
        )
        data = await loaded(kept)
        assert data.n_rows == 2
        data.close()
        await only(tmp_path, set())

    asyncio.run(test())


def test_a_source_that_cannot_be_read_leaves_nothing(tmp_path: Path, executor: ThreadExecutor) -> None:
    path = tmp_path / "baskets.dat"

    async def test() -> None:
        kept = sources(tmp_path, executor)
        for contents in (None, b"milk\n\xff\n"):
            if contents is not None:
                path.write_bytes(contents)
            with pytest.raises(InputDataError):
                await kept.load("baskets")
            await only(tmp_path, set())
        path.write_text("milk\n")
        data = await loaded(kept)
        assert data.n_rows == 1
        close(data)

    asyncio.run(test())


def test_a_cancelled_job_ends_the_encoding(
    tmp_path: Path, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "baskets.dat").write_text("milk\n")
    begun, closed = asyncio.Event(), asyncio.Event()

    class Waiting(Inline):
        def run(self, function: Any, calls: Any) -> Any:
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(closed.wait(), loop).result()
            raise InputDataError("ended")

        def close(self) -> None:
            loop.call_soon_threadsafe(closed.set)

    async def test() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        kept = sources(tmp_path, executor)
        with monkeypatch.context() as patch:
            patch.setattr(encode, "Workers", Waiting)
            task = asyncio.create_task(kept.load("baskets"))
            await begun.wait()
            task.cancel()
            await closed.wait()
            with pytest.raises(asyncio.CancelledError):
                await task
        await only(tmp_path, set())
        (await loaded(kept)).close()

    loop: asyncio.AbstractEventLoop
    asyncio.run(test())


@pytest.mark.parametrize("known", [True, False])
def test_a_job_that_is_cancelled_as_its_rows_come_gives_them_back(
    known: bool, tmp_path: Path, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their folder goes once it is not current any more: nobody holds it."""
    (tmp_path / "baskets.dat").write_text("milk\n")
    lent, cancelled = asyncio.Event(), threading.Event()

    def late(*given: Any) -> Any:
        rows = by_processes(*given)
        loop.call_soon_threadsafe(lent.set)
        cancelled.wait()
        return rows

    async def test() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        kept = sources(tmp_path, executor)
        if known:
            (await loaded(kept)).close()
        with monkeypatch.context() as patch:
            patch.setattr(block_folders, "by_processes", late)
            task = asyncio.create_task(kept.load("baskets"))
            await lent.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            cancelled.set()
        old = folders(tmp_path)
        (tmp_path / "baskets.dat").write_text("milk\nbread\n")
        data = await loaded(kept)
        await only(tmp_path, folders(tmp_path) - old)
        data.close()

    loop: asyncio.AbstractEventLoop
    asyncio.run(test())


def test_a_damaged_block_is_encoded_anew_by_the_next_job(tmp_path: Path, executor: ThreadExecutor) -> None:
    (tmp_path / "baskets.dat").write_text("milk bread\nmilk\n")

    async def test() -> None:
        kept = sources(tmp_path, executor)
        first = await loaded(kept)
        old = folders(tmp_path)
        (block,) = (tmp_path / "blocks").rglob("*.block")
        block.write_bytes(block.read_bytes()[:-1] + b"\xff")
        with fails("E101"):
            first.total(Transactions.item_counts)
        second = await loaded(kept)
        assert second.total(Transactions.item_counts).tolist() == [1, 2]
        first.close()
        await only(tmp_path, folders(tmp_path) - old)
        second.close()

    asyncio.run(test())


@pytest.mark.parametrize("form", ["basket", "parquet"])
def test_auto_takes_processes_where_rows_would_fill_memory(
    form: str, tmp_path: Path, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "baskets"
    if form == "basket":
        path.write_text("milk bread\n" * 1000)
    else:
        pq.write_table(pa.table({"items": [["milk", "bread"]] * 1000}), path)
    dataset = section(str(path), format=form, engine="auto")
    monkeypatch.setattr(engine, "memory_limit", lambda: 1 << 30)
    assert engine_of(dataset, Decimal("0.25")) == "memory"
    monkeypatch.setattr(engine, "memory_limit", lambda: 200_000)
    assert engine_of(dataset, Decimal("0.25")) == "processes"
    assert engine_of(dataset, Decimal(1)) == "memory"
    asyncio.run(_taken(dataset, tmp_path, executor))
    assert engine_of(section(str(path), format=form, engine="memory"), Decimal("0.25")) == "memory"
    assert engine_of(section(str(tmp_path / "absent"), engine="auto"), Decimal("0.25")) == "memory"


async def _taken(dataset: DatasetSection, folder: Path, executor: ThreadExecutor) -> None:
    """Jobs that need rows in memory get them there."""
    kept = Sources([dataset], executor, {"baskets": ()}, folder / "blocks")
    data = await loaded(kept)
    data.close()
    assert isinstance(await kept.load("baskets", in_blocks=False), Transactions)
    (await loaded(kept)).close()


QUERIES = {"public": ["town"], "columns": {"ward": ["sum"]}, "min_size": 5}


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "table", "format": "csv", "queries": QUERIES},
        {"hiding": {"rules": ["milk -> bread"], "min_support": "0.1"}},
    ],
)
def test_what_is_read_in_memory_alone_says_so(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r'engine = "processes" and \[dataset\.\w+\] exclude each other'):
        section("people.csv", **more)
    monkeypatch.setattr(engine, "estimated_bytes", lambda _: 1 << 60)
    assert engine_of(section("people.csv", engine="auto", **more), Decimal("0.25")) == "memory"


def test_blocks_are_looked_over_as_memory_is(
    tmp_path: Path, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from party.data import dataset_check
    from party.data.dataset_check import check_dataset

    monkeypatch.setattr(dataset_check, "Processes", InProcess)
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread\nmilk\nmilk eggs beer\nbread\n" * 50)
    blocks, memory = (check_dataset(section(str(path), engine=each)) for each in ("processes", "memory"))
    assert blocks.problem == memory.problem == ""
    assert blocks.profile == memory.profile
    assert blocks.publishable == memory.publishable

    async def encode() -> None:
        (await loaded(sources(tmp_path, executor))).close()

    asyncio.run(encode())
    with monkeypatch.context() as patch:
        patch.setattr(dataset_check, "encoding_of", None)  # the node's own blocks are taken where they are there
        kept = check_dataset(section(str(path), engine="processes"), kept=tmp_path / "blocks" / "baskets")
    assert kept == blocks
    path.write_bytes(b"\xff\n")
    assert "not UTF-8" in check_dataset(section(str(path))).problem

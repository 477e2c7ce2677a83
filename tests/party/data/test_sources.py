from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import party.data.sources
from link.executor import ThreadExecutor
from mining.data.tables import Table
from mining.data.transactions import Transactions
from party.config import DatasetSection
from party.data.sources import Sources
from tests.errors import fails


def sources(path: Path, executor: ThreadExecutor) -> Sources:
    dataset = DatasetSection(name="baskets", kind="transactions", source=str(path), format="basket")
    return Sources([dataset], executor, {dataset.name: ()}, path.parent / "blocks")


def test_an_unchanged_file_is_read_once(tmp_path: Path, executor: ThreadExecutor) -> None:
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread\nmilk\n")

    async def test() -> None:
        kept = sources(path, executor)
        first, second = await asyncio.gather(kept.load("baskets"), kept.load("baskets"))
        assert first is second
        assert first.n_rows == 2
        assert await kept.load("baskets") is first

    asyncio.run(test())


def test_a_changed_file_is_read_again(tmp_path: Path, executor: ThreadExecutor) -> None:
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread\nmilk\n")

    async def test() -> None:
        kept = sources(path, executor)
        first = await kept.load("baskets")
        path.write_text("milk\nbread beer\neggs\n")
        assert (await kept.load("baskets")).n_rows == 3
        status = path.stat()
        path.write_text("milk\nbread wine\neggs\n")  # as many bytes as before
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        changed = await kept.load("baskets")
        assert isinstance(changed, Transactions)
        assert "wine" in changed.items
        assert first.n_rows == 2

    asyncio.run(test())


def test_a_missing_file_is_told_at_the_start_and_at_the_job(tmp_path: Path, executor: ThreadExecutor) -> None:
    kept = sources(tmp_path / "absent.dat", executor)
    assert kept.missing() == ["baskets"]
    with fails("E101"):
        asyncio.run(kept.load("baskets"))


def test_a_table_is_read_and_known_by_its_digest(tmp_path: Path, executor: ThreadExecutor) -> None:
    path = tmp_path / "people.csv"
    path.write_text("ward,bed,age\n1,2,50\n1,3,60\n")
    section = {"name": "people", "kind": "table", "source": str(path), "format": "csv", "id": ["ward", "bed"]}

    async def test() -> None:
        kept = Sources([DatasetSection.model_validate(section)], executor, {"people": ()}, tmp_path / "blocks")
        first = await kept.load("people")
        assert isinstance(first, Table)
        assert (first.n_rows, first.column_names) == (2, ("age",))
        rows = await kept.rows("people", first)
        assert rows.number == 2
        path.write_text('"ward","bed","age"\n1,2,50\n1,3,60\n\n')
        again = await kept.load("people")
        assert again is not first
        assert await kept.rows("people", again) == rows
        path.write_text("ward,bed,age\n1,2,50\n1,3,61\n")
        assert (await kept.rows("people")).digest != rows.digest

    asyncio.run(test())


def test_a_database_is_read_for_every_job(tmp_path: Path, executor: ThreadExecutor) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table sales (id text, item text)")
        database.execute("insert into sales values ('1', 'milk'), ('1', 'bread'), ('2', 'milk')")
    database.close()
    dataset = DatasetSection(
        name="baskets",
        kind="transactions",
        source=f"sqlite:///{tmp_path / 'shop.db'}",
        format="sql",
        query="select id, item from sales",
    )

    async def test() -> None:
        kept = Sources([dataset], executor, {"baskets": ()}, tmp_path / "blocks")
        assert kept.missing() == []
        first = await kept.load("baskets")
        assert first.n_rows == 2
        assert await kept.load("baskets") is not first

    asyncio.run(test())


def test_sessions_on_clusters_end_with_the_node_or_are_left_where_they_do_not(
    executor: ThreadExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, hangs = list[str](), threading.Event()

    class Blocks:
        def __init__(self, url: str, *_: object) -> None:
            self.url = url

        def loading(self, _job: str) -> SimpleNamespace:
            return SimpleNamespace(run=Transactions.empty, close=lambda: None)

        def close(self) -> None:
            if "b.example" in self.url:
                hangs.wait()
            ended.append(self.url)

    monkeypatch.setattr(party.data.sources, "SparkBlocks", Blocks)
    monkeypatch.setattr(party.data.sources.Loading, "run", lambda loading: loading.run())
    urls = [f"sc://{name}.example:15002" for name in "abc"]
    datasets = [
        DatasetSection(name=f"d{number}", kind="transactions", source="/x", format="parquet", engine="spark", spark=url)
        for number, url in enumerate(urls)
    ]

    async def test() -> None:
        kept = Sources(datasets, executor, {each.name: () for each in datasets}, tmp_path)
        for each in datasets[:2]:
            await kept.load(each.name)
        await kept.close(0.1)
        assert ended == urls[:1]
        hangs.set()
        await kept.close(60.0)
        assert set(ended) == set(urls[:2])

    asyncio.run(test())

"""Tables that are counted in blocks: encoded once, with the digest and the sizes of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from link.executor import ThreadExecutor
from mining.data.tables import Table
from mining.partitioned import sources as partitioned_sources
from mining.partitioned.encoding import encode
from mining.partitioned.in_process import InProcess
from mining.partitioned.tables.rows import PartitionedTable
from party.config import DatasetSection
from party.data import dataset_check, engine
from party.data.dataset_check import DatasetCheck, check_dataset
from party.data.engine import engine_of
from party.data.sources import Sources
from tests.errors import fails
from tests.mining.partitioned.tables_world import cells
from tests.mining.partitioned.test_encoding import Inline


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is encoded and counted in this process."""
    monkeypatch.setattr(encode, "Workers", Inline)
    monkeypatch.setattr(partitioned_sources, "Processes", _here)


def _here(sources: Any, lengths: Any, _cores: Any, ended: Any) -> InProcess[Any]:
    ended()
    return InProcess(sources, lengths)


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    executor = ThreadExecutor(2)
    yield executor
    executor.close()


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"p{place},{'AB'[place % 2]},{place % 7},{'' if place % 5 else 'hiv'}" for place in range(300)]
    path.write_text("\n".join(["id,town,ward,found", *rows, "p300,Cöln,,"]))
    return path


def section(path: Path, **more: Any) -> DatasetSection:
    contents = {"name": "people", "kind": "table", "source": str(path), "format": "csv", "engine": "processes"}
    return DatasetSection.model_validate(contents | more)


def sources(path: Path, executor: ThreadExecutor, *withheld: str, **more: Any) -> Sources:
    return Sources([section(path, **more)], executor, {"people": withheld}, path.parent / "blocks")


@pytest.mark.parametrize("withheld", [(), ("found=*",)])
def test_a_table_is_encoded_once_and_has_the_digest_of_memory(
    people: Path, executor: ThreadExecutor, withheld: tuple[str, ...]
) -> None:
    async def test() -> None:
        kept, memory = (sources(people, executor, *withheld, engine=each) for each in ("processes", "memory"))
        first, second, whole = await kept.load("people"), await kept.load("people"), await memory.load("people")
        assert isinstance(first, PartitionedTable)
        assert isinstance(second, PartitionedTable)
        assert isinstance(whole, Table)
        assert len(list((people.parent / "blocks/people").iterdir())) == 1
        assert await kept.rows("people", first) == await memory.rows("people", whole)
        first.close()
        second.close()
        written = b"".join(path.read_bytes() for path in people.parent.rglob("blocks/**/*.*"))
        assert (b"hiv" in written) == (not withheld)

    asyncio.run(test())


def test_a_damaged_block_is_encoded_anew_by_the_next_job(people: Path, executor: ThreadExecutor) -> None:
    async def test() -> None:
        kept = sources(people, executor)
        rows = await kept.load("people")
        assert isinstance(rows, PartitionedTable)
        for path in people.parent.rglob("*.block"):
            path.write_bytes(path.read_bytes()[:-1] + b"?")
        with fails("E101"):
            list(rows.parts(cells))
        rows.close()
        again = await kept.load("people")
        assert isinstance(again, PartitionedTable)
        assert again.value_counts("town")[1].tolist() == [150, 150, 1]
        again.close()

    asyncio.run(test())


def test_the_engine_of_a_table_goes_by_its_size(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = section(people, engine="auto")
    assert engine_of(table, Decimal("0.25")) == "memory"
    monkeypatch.setattr(engine, "memory_limit", lambda: 10_000)
    assert engine_of(table, Decimal("0.25")) == "processes"
    assert engine_of(section(people, engine="memory"), Decimal("0.25")) == "memory"


def test_a_table_on_a_cluster_is_released_by_no_service_and_answers_no_queries(people: Path) -> None:
    cluster = {"format": "parquet", "engine": "spark", "spark": "sc://lake"}
    assert section(people, **cluster).cluster == "sc://lake"
    released = {"columns": {"town": ["quasi_identifiers"]}, "min_k": 2, "algorithms": ["optimal"]}
    asked = {"public": ["town"], "records": True, "min_size": 2, "max_overlap": 1}
    for key, settings, why in (
        ("anonymization", released, "releases are written of files"),
        ("queries", asked, "look at rows in memory"),
    ):
        with pytest.raises(ValueError, match=why):
            section(people, **cluster, **{key: settings})


def test_blocks_of_a_table_are_looked_over_as_memory_is(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_check, "Processes", InProcess)
    blocks, memory = (check_dataset(section(people, engine=each)) for each in ("processes", "memory"))
    assert blocks.profile == memory.profile
    assert blocks.publishable == memory.publishable
    assert memory.publishable.frequent
    assert (blocks.problem, blocks.engine, memory.engine) == ("", "processes", "memory")


@pytest.mark.parametrize("text", ["id\n" + "\n".join(f"p{place}" for place in range(300)), "id,a\n", "a,id\n,1\n"])
def test_tables_without_cells_are_looked_over_as_in_memory(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_check, "Processes", InProcess)
    path = tmp_path / "people.csv"
    path.write_text(text)
    blocks, memory = (check_dataset(section(path, engine=each)) for each in ("processes", "memory"))
    assert (blocks.problem, blocks.profile, blocks.publishable) == ("", memory.profile, memory.publishable)


@pytest.mark.parametrize("text", ["id,a\n1,2,3\n", "a\n1\n", "id,a,a\n1,2,3\n"])
def test_what_is_wrong_with_a_table_is_told_as_in_memory(tmp_path: Path, text: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    found: list[DatasetCheck] = [check_dataset(section(path, engine=each)) for each in ("processes", "memory")]
    assert found[0].problem == found[1].problem != ""

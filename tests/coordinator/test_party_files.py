"""Simulations whose rows lie in blocks: the results of memory, the sentences of nodes, nothing left behind."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comine
from coordinator.jobs.simulation import party_files as module
from coordinator.jobs.simulation.party_files import Engine, party_files
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.kinds.models.document import pack_model
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import ResourceError
from mining.data.transactions import Transactions
from mining.partitioned import counter
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.tables.rows import PartitionedTable
from tests.coordinator.nodes import SPEC
from tests.errors import fails
from tests.mining.joint.model_jobs_world import job as model_job
from tests.mining.joint.model_jobs_world import people, pooled
from tests.mining.partitioned.deadly_kernels import Deadly, Endless, lives

pytestmark = pytest.mark.turn(3)

BLOCKS = Engine("processes")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Parquet files with lists of items, and a temporary folder of the test's own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    generator = np.random.default_rng(7)
    found = {}
    for name in SPEC.job.parties:
        rows = [[f"item {item}" for item in np.flatnonzero(generator.random(6) < 0.4)] for _ in range(60)]
        found[name] = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"items": pa.array(rows, pa.list_(pa.string()))}), found[name], row_group_size=20)
    return found


def job(**itemsets: object) -> dict[str, dict[str, object]]:
    parts = {"name": "weekly", "task": "itemsets", "parties": list(SPEC.job.parties), "dataset": "baskets"}
    return {"job": parts, "itemsets": {"min_support": "0.1", **itemsets}}


def spec(**itemsets: object) -> JobSpec:
    return job_of(job(**itemsets), "job.toml", Path())


def test_blocks_give_what_memory_gives(files: dict[str, Path], tmp_path: Path) -> None:
    options: dict[str, str | int] = {"format": "parquet", "seed": 3}
    memory, blocks = (
        comine.simulate(job(), files, engine=engine, **options)  # type: ignore[arg-type]
        for engine in ("memory", "processes")
    )
    assert memory.finding is not None
    assert blocks.finding is not None
    assert memory.finding.pack() == blocks.finding.pack()
    assert not list((tmp_path / "tmp").iterdir())


def test_auto_goes_by_all_files_together(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "expected_source", lambda _: 600)
    monkeypatch.setattr(module, "memory_limit", lambda: 4000)
    for share, kind in (("0.31", Transactions), ("0.29", PartitionedRows)):
        with party_files(spec(), files, "parquet", None, ["id"], Engine.of("auto", share, None)) as data:
            assert {type(each) for each in data.values()} == {kind}


def test_tables_in_blocks_give_the_model_of_memory(tmp_path: Path) -> None:
    rows, spec = people(30, 4), model_job("naive-bayes", ["north", "south"])
    files = {name: tmp_path / f"{name}.csv" for name in spec.job.parties}
    for place, file in enumerate(files.values()):
        own = zip(*(cells[place::2] for cells in rows.values()), strict=True)
        lines = [",".join(rows), *(",".join(row) for row in own)]
        file.write_text("\n".join(lines) + "\n")
    for engine in (Engine("memory"), BLOCKS):
        with party_files(spec, files, "csv", None, [], engine) as data:
            assert isinstance(data["south"], PartitionedTable) == (engine is BLOCKS)
            found = asyncio.run(simulate_job(spec, data))
        assert pack_model(found.model()) == pack_model(pooled(spec, rows))
    with fails("E100"), party_files(spec, files, "basket", None, [], BLOCKS):
        pass


RELEASE: Mapping[str, Any] = {
    "quasi_identifiers": ["one"],
    "model": {"k": 2},
    "hierarchies": {"one": {"builder": "intervals", "widths": [10], "range": [0, 99]}},
}


@pytest.mark.parametrize(
    ("task", "table"),
    [("itemsets", {"itemsets": {"min_support": "0.1"}}), ("anonymize", {"anonymize": RELEASE})],
    ids=["itemsets", "release"],
)
def test_jobs_over_columns_take_blocks(tmp_path: Path, task: str, table: dict[str, Any]) -> None:
    named = {"name": "columns", "task": task, "partition": "vertical", "parties": ["a", "b"], "dataset": "d"}
    files = {name: tmp_path / f"{name}.csv" for name in "ab"}
    for file in files.values():
        file.write_text("id,one\n1,2\n")
    columns = job_of({"job": named, **table}, "job.toml", Path())
    for engine in (Engine("auto", Decimal("1e-12")), BLOCKS):
        with party_files(columns, files, "csv", None, ["id"], engine) as data:
            assert {type(each) for each in data.values()} == {PartitionedTable}


@pytest.mark.parametrize(
    ("engine", "data_format", "separator", "ids"),
    [
        (Engine("disk"), "parquet", None, ["id"]),
        (Engine("auto", Decimal(2)), "parquet", None, ["id"]),
        (Engine("spark"), "parquet", None, ["id"]),
        (Engine("memory", spark="sc://host"), "parquet", None, ["id"]),
        (Engine("spark", spark="sc://host"), "basket", None, ["id"]),
        (BLOCKS, "text", None, ["id"]),
        (BLOCKS, "parquet", ";", ["id"]),
        (BLOCKS, "csv", ";;", ["id"]),
        (BLOCKS, "long", None, ["one", "other"]),
    ],
)
def test_options_that_fit_no_engine(
    files: dict[str, Path], engine: Engine, data_format: str, separator: str | None, ids: list[str]
) -> None:
    with fails("E100"), party_files(spec(), files, data_format, separator, ids, engine):
        pass


def test_a_share_that_is_no_number() -> None:
    with fails("E100"):
        Engine.of("auto", "half", None)


@pytest.mark.parametrize("engine", ["memory", "processes"])
def test_a_file_that_cannot_be_read(files: dict[str, Path], tmp_path: Path, engine: str) -> None:
    files["south"].write_text("no Parquet")
    with fails("E101", party="south"), party_files(spec(), files, "parquet", None, ["id"], Engine(engine)):
        pass
    files["south"].unlink()
    with fails("E101", party="south"), party_files(spec(), files, "parquet", None, ["id"], Engine(engine)):
        pass
    assert not list((tmp_path / "tmp").iterdir())


def test_two_lost_processes_end_the_job(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deaths").mkdir()
    monkeypatch.setattr(counter, "PairCounts", lambda *_: Deadly(tmp_path / "deaths", 1000))
    with pytest.raises(ResourceError), party_files(spec(), files, "parquet", None, ["id"], BLOCKS) as data:
        asyncio.run(simulate_job(spec(), data))


def test_cancelling_ends_the_processes(files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setattr(counter, "PairCounts", lambda *_: Endless(begun))

    async def test() -> None:
        with party_files(spec(), files, "parquet", None, ["id"], BLOCKS) as data:
            running = asyncio.ensure_future(simulate_job(spec(), data))
            while not (begun.exists() and (process := begun.read_text())):  # noqa: ASYNC110 - which several write
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait([running])
            while lives(int(process)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    asyncio.run(test())
    assert not list((tmp_path / "tmp").iterdir())

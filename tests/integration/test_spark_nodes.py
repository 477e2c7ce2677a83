"""Nodes whose rows lie on a Spark cluster, by processes and in memory, in one job; a lost executor; a lost cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comine
from jobs.kinds.packed_itemsets import unpack
from link.errors import ResourceError
from link.pki.authority import Authority
from mining.partitioned.runner import Anywhere
from mining.partitioned.spark.runner import OnSpark
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.mining.partitioned.deadly_kernels import Endless, lives
from tests.mining.partitioned.spark_server import SparkServer
from tests.party.nodes import DATA, Nodes, running, weekly

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NORTH, SOUTH = "north", "south"
POOLED = [row for rows in DATA.values() for row in rows]
LEAST = 36  # a fifth of them


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    server = SparkServer(tmp_path_factory.mktemp("spark"))
    yield server
    server.kill()


def write_lists(folder: Path, party: str) -> Path:
    path = folder / f"{party}.parquet"
    table = pa.table({"items": pa.array(DATA[party], pa.list_(pa.string()))})
    pq.write_table(table, path, row_group_size=10)
    return path


def three_engines(folder: Path, url: str) -> Callable[[Authority], None]:
    """Lets one party's rows be counted on the cluster, another's by processes, and those of the third in memory."""

    def change(party: str, engine: str, **others: str) -> None:
        path = folder / f"{party}.toml"
        settings = {"engine": engine, **others}
        lines = "".join(f'{key} = "{value}"\n' for key, value in settings.items())
        path.write_text(path.read_text().replace("[policy]", f"{lines}[policy]", 1))

    def prepare(_authority: Authority) -> None:
        source = write_lists(folder, NORTH)
        path = folder / f"{NORTH}.toml"
        text = path.read_text().replace(f'source = "{NORTH}.dat"', f'source = "{source}"')
        path.write_text(text.replace('format = "basket"', 'format = "parquet"'))
        change(NORTH, "spark", spark=url)
        change(SOUTH, "processes")
        change("east", "memory")

    return prepare


def events_of(server: SparkServer) -> bytes:
    """What its UI shows."""
    return b"".join(path.read_bytes() for path in server.logs[0].rglob("*") if path.is_file())


async def finds_what_pooled_rows_hold(nodes: Nodes, **itemsets: Any) -> bytes:
    job_id, ends = await nodes.run(weekly(itemsets={"strategy": "level-wise", **itemsets}))
    assert {(end.state, end.error_message) for end in ends.values()} == {(control.SUCCEEDED, "")}
    _, packed = await nodes.clients[NORTH].result(job_id)
    found = unpack(packed).itemsets
    expected = brute_force(POOLED, LEAST)
    assert {frozenset(items): count for items, count in found.rows()} == (
        expected if found.counted else dict.fromkeys(expected)
    )
    return job_id


def test_three_engines_in_one_job(server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One federation goes through it all, since a session on a cluster takes longer to begin than a job."""
    begun, total = tmp_path / "begun", OnSpark.total

    async def test() -> None:
        async with running(tmp_path, prepare=three_engines(tmp_path, server.url)) as nodes:
            await one_is_cancelled(nodes)
            await one_loses_an_executor(nodes)
            await one_loses_the_cluster(nodes)
            server.start()
            job_id = await finds_what_pooled_rows_hold(nodes)
            while f"comine-{job_id.hex()}".encode() not in events_of(server):  # noqa: ASYNC110 - it writes them later
                await asyncio.sleep(0.1)

    async def one_is_cancelled(nodes: Nodes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", lambda self, view, _: total(self, view, Anywhere(Endless(begun))))
            job_id = await nodes.begin(weekly())
            while not (begun.exists() and (process := begun.read_text())):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await nodes.clients[NORTH].cancel(job_id, "enough")
            ends = await nodes.ends(job_id)
            assert {end.state for end in ends.values()} <= {control.CANCELLED, control.FAILED}
            while lives(int(process)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def one_loses_an_executor(nodes: Nodes) -> None:
        killed = list[int]()

        def bereft(self: OnSpark, *those: Any) -> Any:
            if not killed:
                killed.append(1)
                server.kill_executor()
            return total(self, *those)

        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", bereft)
            await finds_what_pooled_rows_hold(nodes, universe="hidden")
            assert killed

    async def one_loses_the_cluster(nodes: Nodes) -> None:
        def lost(self: OnSpark, *those: Any) -> Any:
            server.kill()
            return total(self, *those)

        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", lost)
            _, ends = await nodes.run(weekly(name="lost"))
        for end in ends.values():
            assert (end.state, end.error_code, end.error_party) == (control.FAILED, ResourceError.code, NORTH)
        assert "the engine spark at 127.0.0.1:" in nodes.logs[NORTH].getvalue()

    asyncio.run(test())


def test_a_simulation_counts_on_a_cluster(server: SparkServer, tmp_path: Path) -> None:
    files = {party: write_lists(tmp_path, party) for party in DATA}
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": list(DATA), "dataset": "baskets"},
        "itemsets": {"min_support": LEAST},
    }
    found = comine.simulate(contents, files, format="parquet", engine="spark", spark=server.url).finding
    assert found is not None
    assert {frozenset(items): count for items, count in found.itemsets} == brute_force(POOLED, LEAST)  # type: ignore[attr-defined]

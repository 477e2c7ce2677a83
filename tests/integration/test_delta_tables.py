"""Delta tables on a real Spark cluster: what a query reads of them, by name, by path and by version, is what is mined.

Delta's packages are the cluster's, so these tests need their jars: `COMINE_DELTA_JARS`, with commas between them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.kinds.packed_itemsets import unpack
from link.pki.authority import Authority
from mining.counting import SupportCounter
from mining.data.transactions import Transactions
from mining.partitioned.counter import PartitionedCounter
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.encoding import SparkEncoding
from mining.partitioned.spark.runner import ClusterRows
from mining.partitioned.spark.table_encoding import SparkTableEncoding
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.mining.partitioned.spark_server import SparkServer
from tests.mining.partitioned.tables_world import cells
from tests.party.nodes import DATA, random_rows, running, weekly

pytestmark = [pytest.mark.slow, pytest.mark.turn(2), pytest.mark.timeout(1800)]

JARS = os.environ.get("COMINE_DELTA_JARS", "")
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
NORTH = "north"
TOWNS = ("Aachen", "Bonn")
Rows = dict[int, list[str]]


def town(number: int) -> str:
    return TOWNS[number % len(TOWNS)]


def versions() -> list[Rows]:
    """What the table has in each version: north's rows in the last one, after others were added and deleted."""
    first = dict(enumerate(DATA[NORTH]))
    others = dict(enumerate([[*row, "quince"] for row in random_rows(7, 30)], len(first)))
    return [first, first | others, first]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    if not JARS:
        pytest.skip("COMINE_DELTA_JARS names no jars of Delta")
    server = SparkServer(tmp_path_factory.mktemp("spark"), JARS.split(","), CONF)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def cluster(server: SparkServer) -> Iterator[Cluster]:
    cluster = Cluster(server.url, retries=2)
    yield cluster
    cluster.close()


def write_long(rows: Rows, path: Path) -> None:
    ids, items = zip(*((number, item) for number, row in rows.items() for item in row), strict=True)
    towns = [town(number) for number in ids]
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "item": items, "town": towns}), path)


@pytest.fixture(scope="module")
def receipts(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a table of this name: partitioned, with vectors of deletions, in three versions."""
    folder = tmp_path_factory.mktemp("lake")
    first, second, _ = versions()
    write_long(first, folder / "first.pq")
    write_long({number: row for number, row in second.items() if number not in first}, folder / "others.pq")
    table = folder / "receipts"
    cluster.query(
        f"CREATE TABLE receipts USING delta PARTITIONED BY (town) LOCATION '{table}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') "
        f"AS SELECT id, item, town FROM parquet.`{folder}/first.pq` DISTRIBUTE BY id % 3"
    )
    cluster.query(f"INSERT INTO receipts SELECT id, item, town FROM parquet.`{folder}/others.pq`")
    cluster.query(f"DELETE FROM receipts WHERE id >= {len(first)} OR item = 'quince'")
    assert len(list((table / "_delta_log").glob("*.json"))) == len(versions())
    return table


def encoded(cluster: Cluster, query: str, parts: int = 3) -> ClusterRows:
    return SparkEncoding(cluster, TransactionSource("sc://", "sql", query=query), (), "encoding", parts).run()


def assert_same(kept: ClusterRows, rows: list[list[str]]) -> None:
    found, expected = kept.rows("job"), Transactions.from_rows(rows)
    assert (found.n_rows, found.items) == (expected.n_rows, expected.items)
    assert np.array_equal(found.item_counts(), expected.item_counts())
    assert np.array_equal(PartitionedCounter(found).count_pairs(), SupportCounter(expected).count_pairs())


@pytest.mark.parametrize("table", ["receipts", "delta.`{}`"])
@pytest.mark.parametrize(("version", "expected"), [("", 2), (" VERSION AS OF 0", 0), (" VERSION AS OF 1", 1)])
def test_each_version_by_name_and_by_path(
    cluster: Cluster, receipts: Path, table: str, version: str, expected: int
) -> None:
    kept = encoded(cluster, f"SELECT id, item FROM {table.format(receipts)}{version}")
    assert_same(kept, list(versions()[expected].values()))
    kept.forget()


def test_what_is_deleted_is_marked_and_not_rewritten(cluster: Cluster, receipts: Path) -> None:
    """So the rows that were read came from files with vectors of deletions."""
    assert list(receipts.rglob("deletion_vector_*.bin"))


def test_one_partition(cluster: Cluster, receipts: Path) -> None:
    kept = encoded(cluster, f"SELECT id, item FROM receipts WHERE town = '{TOWNS[1]}'")
    assert_same(kept, [row for number, row in versions()[2].items() if town(number) == TOWNS[1]])
    kept.forget()


def test_a_table_of_columns(cluster: Cluster, receipts: Path) -> None:
    query = f"SELECT id, min(town) AS town, count(*) AS number FROM delta.`{receipts}` VERSION AS OF 1 GROUP BY id"
    source = TableSource("sc://", "sql", query=query, id_columns=("id",))
    found = SparkTableEncoding(cluster, source, (), "encoding", 3).run().rows("table")
    rows = zip(*(chain(*each) for each in zip(*found.parts(cells), strict=True)), strict=True)
    assert sorted(rows) == sorted((str(number), town(number), str(len(row))) for number, row in versions()[1].items())


def test_a_named_version_stays_while_the_table_is_written_to(
    cluster: Cluster, server: SparkServer, receipts: Path
) -> None:
    """Also where blocks are read again, since an executor has gone; without a version the job ends."""
    cluster.query(f"CREATE TABLE busy SHALLOW CLONE delta.`{receipts}` VERSION AS OF 1")
    rows = list(versions()[1].values())
    latest = encoded(cluster, "SELECT id, item FROM busy")
    named = encoded(cluster, "SELECT id, item FROM busy VERSION AS OF 0")
    cluster.query(f"INSERT INTO busy VALUES (0, 'quince', '{town(0)}')")
    server.kill_executor()
    assert_same(named, rows)
    with fails("E103"):
        latest.rows("job").total(Transactions.item_counts)
    for kept in (named, latest):
        kept.forget()


def test_one_party_has_a_delta_table_and_the_others_rows_in_memory(
    server: SparkServer, receipts: Path, tmp_path: Path
) -> None:
    def prepare(_authority: Authority) -> None:
        path = tmp_path / f"{NORTH}.toml"
        query = f"SELECT id, item FROM delta.`{receipts}` VERSION AS OF 2"
        lake = f'source = "{server.url}"\nformat = "sql"\nquery = "{query}"\nengine = "spark"\n'
        path.write_text(path.read_text().replace(f'source = "{NORTH}.dat"\nformat = "basket"\n', lake))

    async def test() -> None:
        itemsets: dict[str, Any] = {"strategy": "level-wise", "max_length": 3}
        async with running(tmp_path, prepare=prepare) as nodes:
            job_id, ends = await nodes.run(weekly(itemsets=itemsets))
            assert {(end.state, end.error_message) for end in ends.values()} == {(control.SUCCEEDED, "")}
            for client in nodes.clients.values():
                _, packed = await client.result(job_id)
                found = unpack(packed).itemsets
                pooled = [row for rows in DATA.values() for row in rows]
                assert {frozenset(items): count for items, count in found.rows()} == brute_force(pooled, 36, 3)

    asyncio.run(test())

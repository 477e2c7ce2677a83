"""Rows on a real Spark cluster, one for all tests, since it starts for longer than they take.

At nodes, beside processes and memory, in one job; and by themselves: the same counts and messages as in memory. Lost
workers and executors; a lost cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comine
from coordinator.jobs.simulation.simulate import simulate_job
from crypto.primitives.randomness import Randomness
from jobs.kinds.models.document import pack_model
from jobs.kinds.packed_itemsets import unpack
from jobs.spec.job import JobSpec
from link.errors import ResourceError
from link.pki.authority import Authority
from mining.counting import SupportCounter
from mining.data.rows import Rows
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.joint import align
from mining.joint.blended.own_records import answers, halves
from mining.joint.vertical.parameters import VerticalMining
from mining.partitioned.counter import PartitionedCounter
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.runner import Anywhere
from mining.partitioned.spark import encoding
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.encoding import SparkEncoding
from mining.partitioned.spark.runner import ClusterRows, OnSpark
from mining.partitioned.spark.table_encoding import SparkTableEncoding
from mining.partitioned.spark.worker import PIECE
from mining.partitioned.tables.rows import PartitionedTable
from mining.public_sizes import FLOOR, coarse
from mining.reference.pooled import brute_force
from party.config import DatasetSection
from party.data import dataset_check
from party.data.dataset_check import check_dataset
from party.data.spark_blocks import SparkBlocks
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.mining.joint import model_jobs_world as models
from tests.mining.joint.anonymisation import anonymisation_world as releases
from tests.mining.joint.anonymisation.test_anonymisation_blocks import outcomes
from tests.mining.joint.hybrid.hybrid_world import TASK
from tests.mining.joint.hybrid.test_blended import TASK as BLENDING
from tests.mining.joint.model_jobs_world import TASKS
from tests.mining.partitioned import test_columns as columns
from tests.mining.partitioned.deadly_kernels import Deadly, Endless, lives
from tests.mining.partitioned.spark_server import MESSAGE, RESULTS, SparkServer
from tests.mining.partitioned.tables_world import cells
from tests.mining.partitioned.test_joint import assert_alike, task_for
from tests.mining.partitioned.test_reported import certain, records, run
from tests.mining.partitioned.world import evenly, partitioned, waiting
from tests.party.nodes import DATA, Nodes, running, weekly

pytestmark = [pytest.mark.slow, pytest.mark.turn(2), pytest.mark.timeout(1800)]

NORTH, SOUTH = "north", "south"
POOLED = [row for rows in DATA.values() for row in rows]
LEAST = 36  # a fifth of them
FEW: dict[str, Any] = {"strategy": "level-wise", "max_length": 2}  # times that rows are counted
ITEM = "quince"  # the beginning of all names of items, which no log may have
NOISE = b"a key for the noise of some rows"  # nor that


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


def pairs(name: str) -> JobSpec:
    """A job that counts rows a few times only: each time takes a cluster longer than all that is around it."""
    return weekly(name=name, itemsets={**FEW, "universe": "items", "catalogue": [f"item{i}" for i in range(8)]})


async def finds_what_pooled_rows_hold(nodes: Nodes, name: str) -> bytes:
    job_id, ends = await nodes.run(pairs(name))
    assert {(end.state, end.error_message) for end in ends.values()} == {(control.SUCCEEDED, "")}
    _, packed = await nodes.clients[NORTH].result(job_id)
    found = unpack(packed).itemsets
    assert {frozenset(items): count for items, count in found.rows()} == brute_force(POOLED, LEAST, 2)
    return job_id


def test_a_simulation_counts_on_a_cluster(server: SparkServer, tmp_path: Path) -> None:
    files = {party: write_lists(tmp_path, party) for party in DATA}
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": list(DATA), "dataset": "baskets"},
        "itemsets": {"min_support": LEAST, **FEW},
    }
    found = comine.simulate(contents, files, format="parquet", engine="spark", spark=server.url).finding
    assert found is not None
    assert {frozenset(items): count for items, count in found.itemsets} == brute_force(POOLED, LEAST, 2)  # type: ignore[attr-defined]


# -- by themselves ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cluster(server: SparkServer) -> Iterator[Cluster]:
    """Blocks on it are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "MOST_ROWS", 10)
        cluster = Cluster(server.url, retries=2)
        yield cluster
        cluster.close()


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    generator = np.random.default_rng(3)
    found = [[f"{ITEM} {item:02}" for item in np.flatnonzero(generator.random(12) < 0.3)] for _ in range(200)]
    return [*found[:100], [], *found[100:]]


@pytest.fixture(scope="module")
def data(rows: list[list[str]]) -> Transactions:
    return Transactions.from_rows(rows)


@pytest.fixture(scope="module")
def folder(rows: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of lists, and one in the long form."""
    folder = tmp_path_factory.mktemp("parquet")
    for name, part in (("a", rows[:150]), ("b", rows[150:])):
        pq.write_table(
            pa.table({"items": pa.array(part, pa.list_(pa.string()))}), folder / f"{name}.parquet", row_group_size=10
        )
    pairs = [(place, item) for place, row in enumerate(rows) for item in [*row, ""]]
    ids, items = zip(*pairs, strict=True)
    pq.write_table(pa.table({"id": pa.array(ids), "item": pa.array(items)}), folder / "long.pq")
    return folder


def encoded(cluster: Cluster, folder: Path, parts: int | None = None, *withheld: str) -> ClusterRows:
    source = TransactionSource(str(folder / "*.parquet"), "parquet")
    return SparkEncoding(cluster, source, withheld, "encoding", parts).run()


@pytest.fixture(scope="module")
def kept(cluster: Cluster, folder: Path) -> ClusterRows:
    return encoded(cluster, folder, 4)


def _n_rows(rows: Transactions, first: int) -> tuple[int, int]:
    return first, rows.n_rows


@pytest.mark.parametrize("parts", [1, 17])  # fewer than tasks, and several for each
def test_a_cluster_counts_as_memory_does(cluster: Cluster, folder: Path, data: Transactions, parts: int) -> None:
    kept = encoded(cluster, folder, parts, "* 03")
    found, expected = kept.rows("job"), data.without(["* 03"])
    assert (found.n_rows, found.items) == (data.n_rows, expected.items)
    assert np.array_equal(found.item_counts(), expected.item_counts())
    narrow = [*expected.items[4::-1], "other"]
    assert np.array_equal(found.onto(narrow).total(Transactions.item_counts), expected.onto(narrow).item_counts())
    memory, blocks = SupportCounter(expected), PartitionedCounter(found)
    assert np.array_equal(memory.count_pairs(), blocks.count_pairs())
    firsts, lengths = zip(*found.parts(_n_rows), strict=True)
    assert list(firsts) == [0, *np.cumsum(lengths)[:-1]]
    assert sum(lengths) == data.n_rows
    assert_perturbed_alike(found, partitioned(expected, [*firsts, data.n_rows]))
    kept.forget()


def assert_perturbed_alike(there: Rows, here: Rows) -> None:
    """The same keys give the same reports, sums, halves and answers, at the workers and in this process."""
    items = here.items
    task = replace(TASK, catalogue=items)
    mechanism, found = task.plan(2.0).phase([]).mechanism, []
    for rows in (there, here):
        own = records(rows, task)
        reports = [each.to_bytes() for each in own.reports(1, mechanism, NOISE)]
        sums = [each.to_bytes() for each in own.sums(0, mechanism, NOISE)]
        half = halves(rows, Randomness.from_seed(2))[1]
        found.append([reports, sums, half.item_counts().tolist()])
        found[-1].append(answers(rows, items, BLENDING, Randomness.from_seed(4)).tolist())
    assert found[0] == found[1]


def test_a_joint_job_is_alike(cluster: Cluster, folder: Path, data: Transactions) -> None:
    parties = {"p0": data, "p1": data.between(0, 50), "p2": data.between(40, 90)}
    kept = encoded(cluster, folder, 3)
    blocks: dict[str, Rows] = {
        "p0": kept.rows("joint"),
        "p1": partitioned(parties["p1"], evenly(50, 3)),
        "p2": parties["p2"],
    }
    assert_alike(parties, blocks, task_for(tuple(parties), 25, strategy="level-wise", disclose="frequent"))
    kept.forget()


def test_a_job_by_perturbed_records(kept: ClusterRows, data: Transactions) -> None:
    parties: dict[str, Rows] = {NORTH: kept.rows("reported"), SOUTH: data, "east": data}
    outcomes = run(parties, replace(TASK, catalogue=data.items))
    assert {each.n_rows for each in outcomes.values()} == {3 * data.n_rows}
    assert all(each.estimated is not None and each.estimated.itemsets.items for each in outcomes.values())


@pytest.mark.parametrize("query", ["SELECT * FROM parquet.`{}/*.parquet`", "SELECT id, item FROM parquet.`{}/long.pq`"])
def test_queries(cluster: Cluster, folder: Path, data: Transactions, query: str) -> None:
    source = TransactionSource("sc://", "sql", query=query.format(folder))
    kept = SparkEncoding(cluster, source, (), "encoding", 3).run()
    found = kept.rows("job")
    assert (found.n_rows, found.items) == (data.n_rows, data.items)
    assert np.array_equal(PartitionedCounter(found).count_pairs(), SupportCounter(data).count_pairs())
    kept.forget()


def test_tables_of_the_cluster(cluster: Cluster, folder: Path, data: Transactions) -> None:
    """What its catalogue names is read by a query."""
    cluster.query(
        f"CREATE TABLE receipts USING parquet LOCATION '{folder}/table' AS SELECT * FROM parquet.`{folder}/long.pq`"
    )
    source = TransactionSource("sc://", "sql", query="SELECT id, item FROM receipts WHERE id >= 0")
    kept = SparkEncoding(cluster, source, ("* 03",), "encoding", 3).run()
    found, expected = kept.rows("job"), data.without(["* 03"])
    assert (found.n_rows, found.items) == (data.n_rows, expected.items)
    assert np.array_equal(found.item_counts(), expected.item_counts())
    kept.forget()


@pytest.mark.parametrize("made", ["TABLE {} USING orc AS", "TEMPORARY VIEW {} AS", "VIEW {} AS"])
def test_whatever_the_catalogue_of_the_cluster_names_is_read(
    cluster: Cluster, folder: Path, data: Transactions, made: str
) -> None:
    """The query is Spark's own, passed on as it is."""
    name = f"made_{''.join(filter(str.isalpha, made)).lower()}"
    cluster.query(f"CREATE {made.format(name)} SELECT id AS receipt, item AS product FROM parquet.`{folder}/long.pq`")
    query = f"SELECT receipt AS id, product AS item FROM {name}"
    kept = SparkEncoding(cluster, TransactionSource("sc://", "sql", query=query), (), "encoding", 3).run()
    found = kept.rows("job")
    assert (found.n_rows, found.items) == (data.n_rows, data.items)
    assert np.array_equal(PartitionedCounter(found).count_pairs(), SupportCounter(data).count_pairs())
    kept.forget()


@pytest.fixture
def growing(cluster: Cluster, folder: Path) -> Iterator[TransactionSource]:
    """A table that somebody else on the cluster writes to; Spark then drops what it keeps of it, and reads it again."""
    cluster.query(f"CREATE TABLE growing USING parquet AS SELECT id, item FROM parquet.`{folder}/long.pq`")
    yield TransactionSource("sc://", "sql", query="SELECT id, item FROM growing")
    cluster.query("DROP TABLE growing")


def grow(cluster: Cluster, folder: Path) -> None:
    """By a row that is there already, so that the dictionary is the same; no item is named, since logs have queries."""
    cluster.query(f"INSERT INTO growing SELECT id + 1000, item FROM parquet.`{folder}/long.pq` WHERE id = 1")


def test_a_table_that_changes_while_it_is_encoded(
    cluster: Cluster, folder: Path, growing: TransactionSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary has the counts of one version: blocks of the next one are refused."""
    kept, keep = list[Any](), Cluster.keep

    def grows(self: Cluster, frame: Any) -> Any:
        kept.append(frame)
        if len(kept) == 2:  # the blocks: the dictionary is there
            grow(cluster, folder)
        return keep(self, frame)

    monkeypatch.setattr(Cluster, "keep", grows)
    with fails("E101"):
        SparkEncoding(cluster, growing, (), "encoding", 3).run()


def test_a_table_that_changes_once_it_is_encoded(cluster: Cluster, folder: Path, growing: TransactionSource) -> None:
    """No job counts rows of two versions; the next one reads the table anew."""
    kept = SparkEncoding(cluster, growing, (), "encoding", 3).run()
    before = kept.rows("job").n_rows
    grow(cluster, folder)
    with fails("E103"):
        kept.rows("job").total(Transactions.item_counts)
    kept.forget()
    found = SparkEncoding(cluster, growing, (), "encoding", 3).run()
    assert found.rows("next").n_rows == before + 1
    found.forget()


def test_files_that_are_overwritten_before_an_executor_is_lost(
    cluster: Cluster, server: SparkServer, rows: list[list[str]], tmp_path: Path
) -> None:
    """Its blocks are read again, and found to be others."""
    path = tmp_path / "a.parquet"
    for number, each in enumerate((rows, rows[::-1])):
        pq.write_table(pa.table({"items": pa.array(each, pa.list_(pa.string()))}), path, row_group_size=10)
        if not number:
            kept = encoded(cluster, tmp_path, 6)
    assert kept.rows("job").total(Transactions.item_counts).tolist() == kept.counts.tolist()
    server.kill_executor()
    with fails("E103"):
        kept.rows("job").total(Transactions.item_counts)
    kept.forget()


def test_sources_that_cannot_be_read(cluster: Cluster, folder: Path) -> None:
    with fails("E101"):
        SparkEncoding(cluster, TransactionSource(str(folder / "none"), "parquet"), (), "encoding").run()
    for query in ("SELECT * FROM nowhere", "SELEC", "SELECT 1 AS one, 2 AS two", "SELECT ARRAY(1.5) AS items"):
        with fails("E101"):
            SparkEncoding(cluster, TransactionSource("sc://", "sql", query=query), (), "encoding").run()


class Words:
    """Gives as many words for any rows, and needs others for it."""

    def __init__(self, given: int, needed: int = 0) -> None:
        self.given, self.needed = given, np.random.default_rng(1).integers(0, 1 << 62, needed)

    def __call__(self, _rows: Transactions) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.arange(self.given)


def test_what_exceeds_a_message_comes_in_several(kept: ClusterRows) -> None:
    number = (PIECE + MESSAGE // 2) // 8
    assert np.array_equal(kept.rows("large").total(Words(number)), np.arange(number) * len(kept.lengths))


@pytest.mark.parametrize("kernel", [Words(RESULTS // 8), Words(1, MESSAGE // 8)])
def test_what_exceeds_a_setting_of_the_cluster_is_told_with_its_name(kept: ClusterRows, kernel: Words) -> None:
    with fails("E103") as raised:
        kept.rows("large").total(kernel)
    assert ("maxInboundMessageSize" if len(kernel.needed) else "maxResultSize") in str(raised.value)


def test_a_killed_worker_costs_a_retry(kept: ClusterRows, data: Transactions, tmp_path: Path) -> None:
    assert np.array_equal(kept.rows("job").total(Deadly(tmp_path, 1)), data.item_counts())
    assert len(list(tmp_path.iterdir())) == 1


def test_a_lost_executor_costs_the_blocks_of_a_query_another_reading(
    cluster: Cluster, server: SparkServer, folder: Path, data: Transactions
) -> None:
    """They are what they were, also where one task reads several again; some partitions of the table have no rows."""
    pairs = f"SELECT id, item FROM parquet.`{folder}/long.pq`"
    kept = SparkEncoding(cluster, TransactionSource("sc://", "sql", query=pairs), (), "encoding", 7).run()
    grouped = f"SELECT id, count(*) AS number FROM parquet.`{folder}/long.pq` WHERE id < %d GROUP BY id"
    sources = [TableSource("sc://", "sql", query=grouped % most, id_columns=("id",)) for most in (5, 1000)]
    tables = [SparkTableEncoding(cluster, source, (), "encoding", 7).run() for source in sources]
    before = [table.rows("job").row_ids()[:] for table in tables]
    server.kill_executor()
    assert np.array_equal(PartitionedCounter(kept.rows("job")).count_pairs(), SupportCounter(data).count_pairs())
    assert [table.rows("job").row_ids()[:] for table in tables] == before
    for each in (kept, *tables):
        each.forget()


def test_closing_ends_the_work_on_the_cluster(kept: ClusterRows, data: Transactions, tmp_path: Path) -> None:
    rows, begun = kept.rows("cancelled"), tmp_path / "begun"
    thread, found = waiting(rows, begun)
    rows.close()
    thread.join()
    assert "was ended" in str(found[0])
    while lives(int(begun.read_text())):
        time.sleep(0.01)
    with fails("E103"):
        rows.total(Transactions.item_counts)
    assert np.array_equal(kept.rows("next").total(Transactions.item_counts), data.item_counts())


def test_no_log_has_data_or_keys(kept: ClusterRows, server: SparkServer, data: Transactions) -> None:
    rows, task = kept.rows("job"), replace(TASK, catalogue=data.items)
    assert list(records(rows, task).reports(0, certain(task), NOISE))
    with fails("E103"):  # later, so that what Spark has written of the reports is there
        rows.total(_wrong)
    files = [path for place in server.logs for path in ([place] if place.is_file() else place.rglob("*"))]
    texts = [path.read_bytes() for path in files if path.is_file() and path.suffix not in (".jar", ".zip")]
    assert any(b"comine" in text for text in texts)
    assert not any(ITEM.encode() in text or NOISE in text for text in texts)


def _wrong(rows: Transactions) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    raise ValueError(f"{ITEM} {rows.n_rows}")


# -- tables -----------------------------------------------------------------------------------------------------------
def on_cluster(cluster: Cluster, table: Table, folder: Path, parts: int | None = None) -> PartitionedTable:
    """A table in two files of row groups of ten rows, on the cluster."""
    whole = pa.table(dict(zip((*table.id_columns, *table.column_names), cells(table), strict=True)))
    for name, piece in (("a", whole.slice(0, 90)), ("b", whole.slice(90))):
        pq.write_table(piece, folder / f"{name}.parquet", row_group_size=10)
    source = TableSource(str(folder / "*.parquet"), "parquet", id_columns=table.id_columns)
    return SparkTableEncoding(cluster, source, (), "encoding", parts).run().rows("table")


def all_cells(table: TableRows) -> list[list[str]]:
    return [list(chain(*each)) for each in zip(*table.parts(cells), strict=True)]


@pytest.mark.parametrize(("parts", "tasks"), [(1, TASKS[:1]), (3, TASKS[1:2]), (17, TASKS[2:])])
def test_a_table_gives_what_memory_gives(
    cluster: Cluster, tmp_path: Path, parts: int, tasks: Sequence[models.Task]
) -> None:
    rows = models.people(165, 4)
    memory = models.table(rows, [f"{ITEM} {place}" for place in range(165)])
    found = on_cluster(cluster, memory, tmp_path, parts)
    assert (found.n_rows, found.column_names, found.id_columns) == (165, memory.column_names, ("id",))
    assert all_cells(found) == cells(memory)
    assert all_cells(found.only(["age", "class"])) == cells(memory.only(["age", "class"]))
    (texts, counts), (own, held) = found.value_counts("age"), memory.value_counts("age")
    assert (texts.to_pylist(), counts.tolist()) == (own.to_pylist(), held.tolist())
    assert found.row_ids()[:] == memory.row_ids()[:]
    assert found.row_ids()[7] == memory.row_ids()[7]
    for task in tasks:
        spec, other = models.job(task, (NORTH, SOUTH)), models.people(30, 9)
        learnt = asyncio.run(simulate_job(spec, {NORTH: found, SOUTH: models.table(other)})).model()
        pooled = models.pooled(spec, {name: [*column, *other[name]] for name, column in rows.items()})
        assert pack_model(learnt) == pack_model(pooled)


def test_a_joint_release_is_alike(cluster: Cluster, tmp_path: Path) -> None:
    wanted = releases.task((NORTH, SOUTH), k=2)
    tables: dict[str, Table] = releases.parted(releases.people(60, 3), np.arange(60) % 2, (NORTH, SOUTH))
    there = on_cluster(cluster, tables[NORTH], tmp_path, 3)
    assert outcomes({**tables, NORTH: there}, wanted) == outcomes(tables, wanted)


def test_a_job_over_columns_is_alike(cluster: Cluster, tmp_path: Path) -> None:
    data = {party: columns.people(party, seed, names) for seed, (party, names) in enumerate(columns.ALONE.items())}
    names, how = tuple(data), columns.HOW
    task = VerticalMining(3, names, names[:2], "a", itemisation=how, engine="ot", max_length=2)
    there = on_cluster(cluster, data["a"], tmp_path, 3)
    expected, frames = columns.mined(data, task)
    found, seen = columns.mined({**data, "a": there}, task)
    assert found == expected
    assert columns.shape(seen) == columns.shape(frames)
    rows = np.array([3, -1, 30, 0])
    assert align.positions_of(there, rows).equals(align.positions_of(data["a"], rows))


def test_column_groups_with_a_slice_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """Data that are split both ways: one of two slices of a column group lies there."""
    data, task = columns.grouped()
    expected, frames = columns.mined(data, task)
    assert any(len(itemset) > 1 for itemset, _ in expected["a"][1])
    found, seen = columns.mined({**data, "a": on_cluster(cluster, data["a"], tmp_path, 3)}, task)
    assert found == expected
    assert columns.shape(seen) == columns.shape(frames)


def test_a_query_gives_a_table(cluster: Cluster, tmp_path: Path) -> None:
    pq.write_table(pa.table({"no": [3, 1, 2], "town": ["A", None, "B"], "fee": [0.5, 7.0, 2.25]}), tmp_path / "t.pq")
    query = f"SELECT * FROM parquet.`{tmp_path}/t.pq`"
    source = TableSource("sc://", "sql", query=query, id_columns=("no",))
    found = SparkTableEncoding(cluster, source, ("town=B",), "encoding").run().rows("job")
    assert sorted(zip(*all_cells(found), strict=True)) == [("1", "", "7"), ("2", "", "2.25"), ("3", "A", "0.5")]
    nothing = replace(source, query=f"{query} WHERE no > 5")
    assert SparkTableEncoding(cluster, nothing, (), "encoding").run().rows("job").n_rows == 0


def test_a_table_is_looked_over_as_in_memory(
    cluster: Cluster, server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blocks(SparkBlocks):
        """In the session that is there."""

        def __init__(self, *those: Any) -> None:
            super().__init__(*those)
            self.cluster = cluster

        def close(self) -> None:
            assert self.cluster is cluster

    monkeypatch.setattr(dataset_check, "SparkBlocks", Blocks)
    cells = {"id": [f"{ITEM} {place}" for place in range(400)], "town": ["A", "B"] * 200}
    pq.write_table(pa.table(cells), tmp_path / "people.parquet")
    place = {"name": "people", "kind": "table", "source": str(tmp_path / "people.parquet"), "format": "parquet"}
    found = check_dataset(DatasetSection(**place, engine="spark", spark=server.url))  # type: ignore[arg-type]
    memory = check_dataset(DatasetSection(**place, engine="memory"))  # type: ignore[arg-type]
    assert (found.problem, found.profile, found.engine) == ("", memory.profile, "spark")
    assert found.publishable.rows == memory.publishable.rows
    assert [(cost.engine, cost.seconds > 0) for cost in found.costs] == [("spark", True)]
    assert found.publishable.level_ms == coarse(max(round(1000 * found.costs[0].seconds), FLOOR))


def test_tables_that_cannot_be_read(cluster: Cluster, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["1"], "town": ["A"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["2"], "city": ["A"]}), tmp_path / "b.parquet")
    for ids in (("id",), ("number",)):
        with fails("E101"):
            SparkTableEncoding(cluster, TableSource(f"{tmp_path}/*.parquet", "parquet", id_columns=ids), (), "t").run()


# -- at nodes ---------------------------------------------------------------------------------------------------------
def test_three_engines_in_one_job_until_the_cluster_is_lost(
    server: SparkServer, kept: ClusterRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One federation goes through it all, since a session on a cluster takes longer to begin than a job.

    The last test: the cluster is gone afterwards, and its start takes longest.
    """
    begun, total = tmp_path / "begun", OnSpark.total

    async def test() -> None:
        async with running(tmp_path, prepare=three_engines(tmp_path, server.url)) as nodes:
            await one_is_cancelled(nodes)
            job_id = await one_loses_an_executor(nodes)
            while f"comine-{job_id.hex()}".encode() not in events_of(server):  # noqa: ASYNC110 - it writes them later
                await asyncio.sleep(0.1)
            await one_loses_the_cluster(nodes)

    async def one_is_cancelled(nodes: Nodes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", lambda self, view, _: total(self, view, Anywhere(Endless(begun))))
            job_id = await nodes.begin(pairs("cancelled"))
            while not (begun.exists() and (process := begun.read_text())):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await nodes.clients[NORTH].cancel(job_id, "enough")
            ends = await nodes.ends(job_id)
            assert {end.state for end in ends.values()} <= {control.CANCELLED, control.FAILED}
            while lives(int(process)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def one_loses_an_executor(nodes: Nodes) -> bytes:
        killed = list[int]()

        def bereft(self: OnSpark, *those: Any) -> Any:
            if not killed:
                killed.append(1)
                server.kill_executor()
            return total(self, *those)

        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", bereft)
            job_id = await finds_what_pooled_rows_hold(nodes, "bereft")
        assert killed
        return job_id

    async def one_loses_the_cluster(nodes: Nodes) -> None:
        rows, ended = kept.rows("lost"), list[Exception]()

        def lost(self: OnSpark, *those: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(OnSpark, "total", total)
                thread, found = waiting(rows, tmp_path / "lost")
                server.kill()
                thread.join()
                ended.extend(found)
            return total(self, *those)

        with monkeypatch.context() as patch:
            patch.setattr(OnSpark, "total", lost)
            _, ends = await nodes.run(pairs("lost"))
        for end in ends.values():
            assert (end.state, end.error_code, end.error_party) == (control.FAILED, ResourceError.code, NORTH)
        assert "the engine spark at 127.0.0.1:" in nodes.logs[NORTH].getvalue()
        assert "the engine spark at 127.0.0.1:" in str(ended[0])
        with fails("E103"):
            rows.total(Transactions.item_counts)

    asyncio.run(test())

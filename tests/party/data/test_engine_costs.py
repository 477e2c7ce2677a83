"""What `party check` says of engines: what each would take, and one sentence where none fits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from link.executor import available_cores
from mining.data.transactions import Transactions
from mining.partitioned.rows import PartitionedRows
from party.check import dataset_lines
from party.config import DatasetSection
from party.data import engine, engine_costs
from party.data.dataset_check import check_dataset
from party.data.engine_costs import CANDIDATES, NODE, PROCESS, cluster_cost, unfit
from party.data.expected_blocks import expected_block_bytes
from party.data.shared_sources import alike
from party.policy.publish import PublishSection
from tests.mining.partitioned.world import partitioned
from tests.party.nodes import weekly

SHARE = Decimal("0.25")


def section(source: str, **more: Any) -> DatasetSection:
    contents = {"name": "baskets", "kind": "transactions", "source": source, "format": "basket"}
    return DatasetSection.model_validate(contents | more)


@pytest.fixture
def dataset(tmp_path: Path) -> DatasetSection:
    path = tmp_path / "baskets.dat"
    path.write_text("milk bread eggs\nmilk\nmilk eggs beer\nbread\n" * 50)
    return section(str(path))


def test_costs_of_both_engines(dataset: DatasetSection) -> None:
    found = check_dataset(dataset)
    assert [(cost.engine, cost.fits) for cost in found.costs] == [("memory", True), ("processes", True)]
    assert all(cost.memory > NODE and cost.seconds >= 0 for cost in found.costs)
    assert sum("of memory" in line for line in dataset_lines(found, show_items=False)) == 2


def test_no_rows_cost_nothing(dataset: DatasetSection, tmp_path: Path) -> None:
    costs = engine_costs.engine_costs(dataset, Transactions.from_rows([]), tmp_path)
    assert [cost.seconds for cost in costs] == [0, 0]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], list[int]]]:
    """The items and counts of each level that is counted in blocks."""
    counted, total = list[tuple[tuple[str, ...], list[int]]](), PartitionedRows.total

    def recorded(rows: PartitionedRows, kernel: Callable[[Transactions], NDArray[np.int64]]) -> NDArray[np.int64]:
        counted.append((rows.items, total(rows, kernel).tolist()))
        return np.array(counted[-1][1])

    monkeypatch.setattr(PartitionedRows, "total", recorded)
    return counted


def test_a_cluster_is_asked_for_a_level(counted: list[tuple[tuple[str, ...], list[int]]]) -> None:
    """Over all its blocks, also where so few items are there that none has candidates."""
    data = Transactions.from_rows([["a", "b", "c"], ["a"], ["b", "c"], ["a", "b", "c"]])
    for rows in (data, data.onto(["a"])):
        cost = cluster_cost(partitioned(rows, [0, 2, 4]))
        assert (cost.engine, cost.memory) == ("spark", NODE)
    assert [(sum(counts), counts[0], len(counts)) for _, counts in counted] == [(2, 2, CANDIDATES), (0, 0, CANDIDATES)]


@pytest.mark.parametrize("few", [2, 19, 50])
def test_no_record_changes_what_a_level_asks_for(few: int, counted: list[tuple[tuple[str, ...], list[int]]]) -> None:
    """The attack: a record that makes one more item frequent, or adds items, so that a level has more candidates.

    Of 999 rows, items are in 9: one record more makes an item one that is in a hundredth of them.
    """
    rows = [[f"item {number % few}"] for number in range(9 * few)] + [["bread"]] * (999 - 9 * few)
    for added in ([], ["item 0"], [f"item {number}" for number in range(few)], ["new"], ["new", "newer", "newest"]):
        cluster_cost(partitioned(Transactions.from_rows([*rows, added]), [0, 500, 1000]))
    assert {(len(items), len(counts)) for items, counts in counted} == {(100, CANDIDATES)}


def test_what_is_said_of_blocks_follows_from_what_is_published(
    dataset: DatasetSection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never from the source, which may be absent: with "auto", by the published rows."""
    absent = dataset.model_copy(update={"source": "/nowhere"})
    million = PublishSection(rows=1_000_000)
    monkeypatch.setattr(engine, "memory_limit", lambda: 100 << 20)

    def said(**changes: Any) -> int | None:
        return expected_block_bytes(absent.model_copy(update=changes), SHARE, weekly())

    assert said() is said(engine="memory") is said(engine="memory", publish=million) is None
    assert said(engine="processes") == said(publish=million) == PROCESS * available_cores()
    assert said(engine="spark") == 0


def test_one_sentence_where_neither_fits(
    dataset: DatasetSection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unfit(dataset, SHARE, tmp_path) == ""
    monkeypatch.setattr(engine_costs, "memory_limit", lambda: 1000)
    problem = unfit(dataset, SHARE, tmp_path)
    assert 'engine = "spark"' in problem
    assert check_dataset(dataset).problem == problem
    assert unfit(section(str(tmp_path / "absent")), SHARE, tmp_path) == ""


CLUSTER = {"engine": "spark", "spark": "sc://lake:15002"}


def test_datasets_on_a_cluster() -> None:
    files = section("/lake/*.parquet", format="parquet", **CLUSTER)
    query = section("sc://lake:15002/;token=a", format="sql", query="SELECT 1", engine="spark")
    other = section("sc://lake/;token=b", format="sql", query="SELECT 2", engine="spark", name="other")
    assert (files.cluster, query.cluster) == ("sc://lake:15002", "sc://lake:15002/;token=a")
    assert files.beside(Path("/there")).source == "/lake/*.parquet"
    assert query.beside(Path("/there")).source == query.source
    assert alike([query, other])["baskets"] == ("baskets", "other")


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "spark"},
        {"spark": "sc://lake"},
        {"engine": "spark", "spark": "lake:15002", "format": "parquet"},
        {"engine": "spark", "spark": "sc://", "format": "parquet"},
        CLUSTER,  # a text
        CLUSTER | {"kind": "table", "format": "csv"},
        {"source": "sc://lake", "format": "sql", "query": "SELECT 1"},
        {"publish": {"rows": 1000, "level_s": 2.5}},
    ],
)
def test_sections_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="spark"):
        section(**{"source": "/lake/a.parquet"} | wrong)

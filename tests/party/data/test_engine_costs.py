"""What `party check` says of engines: what each would take, and one sentence where none fits."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mining.data.transactions import Transactions
from party.check import dataset_lines
from party.config import DatasetSection
from party.data import engine_costs
from party.data.dataset_check import check_dataset
from party.data.engine_costs import NODE, unfit
from party.data.shared_sources import alike

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


def test_rows_without_three_frequent_items_cost_nothing(dataset: DatasetSection, tmp_path: Path) -> None:
    costs = engine_costs.engine_costs(dataset, Transactions.from_rows([["a"]]), tmp_path)
    assert [cost.seconds for cost in costs] == [0, 0]


def test_a_cluster_shares_the_work(dataset: DatasetSection, tmp_path: Path) -> None:
    (cost,) = engine_costs.engine_costs(dataset, Transactions.from_rows([["a", "b", "c"]]), tmp_path, tasks=8)
    assert (cost.engine, cost.memory) == ("spark", NODE)


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
    ],
)
def test_sections_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="spark"):
        section(**{"source": "/lake/a.parquet"} | wrong)

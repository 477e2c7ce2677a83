"""Whole jobs on well-known data give the results on which independent miners agree, however the rows are split."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.loading import job_of
from jobs.results.result import Result
from mining.data.loading import load_transactions
from mining.data.transactions import Transactions
from mining.reference.fpgrowth import fp_growth
from tests.examples import crossed, in_turn

pytestmark = [pytest.mark.slow, pytest.mark.data]

NAMES = ("north", "south", "east", "west", "hill", "coast", "valley")
# By case, the number of parties of a level-wise and of a one-shot run, which not every threshold needs. Where a job is
# large, its time grows with the number of parties, or of a one-shot union by its square: large jobs have few. Every
# number from 2 to 7 meets both.
CASES: dict[str, tuple[int, int | None]] = {
    "groceries@0.01": (2, None),
    "groceries@0.005": (3, 2),
    "groceries@0.001": (4, None),
    "mushroom@0.2": (5, None),
    "mushroom@0.3": (6, 4),
    "mushroom@0.4": (7, 5),
    "mushroom_named@0.3": (2, 3),
    "chess@0.8": (3, 3),
    "chess@0.7": (4, None),
    "retail@0.005": (5, 6),
    "retail@0.002": (2, 2),
    "retail@0.001": (2, None),
    "T10I4D100K@0.01": (2, None),
    "T10I4D100K@0.005": (3, 2),
    "T10I4D100K@0.002": (4, None),
    "kosarak36k@0.01": (5, 7),
    "kosarak36k@0.005": (6, None),
    "foodmart@0.001": (2, 2),
}
PARTIES = {
    "level-wise": {case: parties for case, (parties, _) in CASES.items()},
    "one-shot": {case: parties for case, (_, parties) in CASES.items() if parties is not None},
}
# A run takes a sixth of the cases, and where both strategies have one, they take turns.
BOTH = [case for case in CASES if case in PARTIES["one-shot"]]
PAIRS = [(list(PARTIES)[(place + turn) % 2], case) for place, case in enumerate(BOTH) for turn in (0, 1)]
RUNS = in_turn([("level-wise", case) for case in CASES if case not in BOTH], 6) + in_turn(PAIRS, 12)


@pytest.fixture(scope="module")
def expected(shared_data: Path) -> dict[str, dict[str, Any]]:
    path = shared_data.parent / "acceptance" / "expected.json"
    if not path.exists():
        pytest.skip("the expected results are not there")
    cases: dict[str, dict[str, Any]] = json.loads(path.read_text())["itemsets"]
    return cases


@pytest.fixture(scope="module")
def load(shared_data: Path) -> Callable[[str], Transactions]:
    loaded: dict[str, Transactions] = {}

    def once(name: str) -> Transactions:
        if name not in loaded:
            loaded[name] = load_transactions(shared_data / "transactions" / name, "basket")
        return loaded[name]

    return once


def dealt(data: Transactions, owner: NDArray[np.int64], n_parties: int) -> dict[str, Transactions]:
    """Each party's rows, where `owner` tells of each row whose it is."""
    rows, parts = data.row_numbers(), {}
    for party in range(n_parties):
        own = owner == party
        number, kept = np.cumsum(own) - 1, own[rows]
        parts[NAMES[party]] = Transactions.from_occurrences(
            data.items, number[rows[kept]], data.indices[kept], int(own.sum())
        )
    return parts


def relabelled(data: Transactions, every: int) -> Transactions:
    """The same rows with other names for some items."""
    items = [f"{item}-here" if place % every == 0 else item for place, item in enumerate(data.items)]
    return Transactions.from_occurrences(items, data.row_numbers(), data.indices, data.n_rows)


def mined(parts: Mapping[str, Transactions], min_support: str, **itemsets: Any) -> Result:
    contents = {
        "job": {"name": "acceptance", "task": "itemsets", "parties": list(parts), "dataset": "baskets"},
        "itemsets": {"min_support": min_support, **itemsets},
    }
    result = asyncio.run(simulate_job(job_of(contents, "the test", Path()), parts))
    assert result.finding is not None
    return result


def test_no_reference_result_is_left_out(expected: dict[str, dict[str, Any]]) -> None:
    assert sorted(expected) == sorted(CASES)
    for cases in PARTIES.values():
        assert set(cases.values()) == set(range(2, 8))


@pytest.mark.parametrize(("strategy", "case"), RUNS)
def test_reference_results(
    strategy: str, case: str, expected: dict[str, dict[str, Any]], load: Callable[[str], Transactions]
) -> None:
    right, n_parties = expected[case], PARTIES[strategy][case]
    data = load(right["data"])
    owner = np.random.default_rng(n_parties).integers(n_parties, size=data.n_rows)
    result = mined(dealt(data, owner, n_parties), str(right["minsup"]), strategy=strategy)
    assert result.finding is not None
    assert result.n_rows == right["rows"]
    assert {str(sets.shape[1]): len(sets) for sets, _ in result.finding.itemsets.levels} == right["by_length"]
    assert result.finding.itemsets.digest() == right["sha256"]


@pytest.mark.parametrize(
    ("split", "strategy"), crossed(["1 %", "in blocks", "empty"], ["level-wise", "one-shot", "auto"])
)
def test_skewed_splits(
    split: str, strategy: str, expected: dict[str, dict[str, Any]], load: Callable[[str], Transactions]
) -> None:
    """One party with a hundredth of the rows, all in the order of the file, one without any row."""
    right = expected["groceries@0.005"]
    data = load(right["data"])
    random, n_rows = np.random.default_rng(1), data.n_rows
    owner = {
        "1 %": random.choice(3, n_rows, p=[0.01, 0.33, 0.66]),
        "in blocks": np.arange(n_rows) * 3 // n_rows,
        "empty": random.choice([0, 2], n_rows),
    }[split]
    result = mined(dealt(data, owner, 3), "0.005", strategy=strategy)
    assert result.finding is not None
    assert result.finding.itemsets.digest() == right["sha256"]


@pytest.mark.parametrize(
    "options",
    in_turn([{"strategy": "level-wise"}, {"strategy": "level-wise", "thin": True}, {"strategy": "one-shot"}], 3),
)
def test_a_party_with_items_that_nobody_else_has(options: dict[str, Any], load: Callable[[str], Transactions]) -> None:
    """Against textbook FP-growth on the pooled rows, for there is no published result of such data."""
    data = load("groceries.dat.gz")
    parts = dealt(data, np.random.default_rng(2).choice(3, data.n_rows, p=[0.2, 0.3, 0.5]), 3)
    parts["south"] = relabelled(parts["south"], 3)
    pooled = [
        [part.items[code] for code in part.indices[a:b]]
        for part in parts.values()
        for a, b in pairwise(part.offsets.tolist())
    ]
    result = mined(parts, "0.01", **options)
    assert result.finding is not None
    found = {frozenset(itemset): count for itemset, count in result.finding.itemsets}
    assert any(item.endswith("-here") for itemset in found for item in itemset)
    assert found == fp_growth(pooled, 99)

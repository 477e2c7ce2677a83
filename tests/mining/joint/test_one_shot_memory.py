"""The one-shot strategy enumerates in bounded memory, whatever a party's rows are and whatever the job asks for."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from jobs.run import PartyRun
from link.executor import ThreadExecutor
from mining.data.transactions import Transactions
from mining.filters import downward_closure
from mining.joint.horizontal.one_shot import locally_frequent
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import MAX_ENUMERATED, HorizontalMining, most_enumerated, most_mined
from mining.limits import EnumerationLimit
from tests.coordinator.simulation.whole_job import job, run_job

MOST_BYTES = 160 << 20  # of local mining, which took three times that where millions of itemsets were enumerated


def task(**options: Any) -> HorizontalMining:
    return HorizontalMining(
        min_support=1, learners=("a",), merger="a", compute=("a", "b"), strategy="one-shot", **options
    )


def rows(number: int, items: int, density: float, seed: int = 1) -> Transactions:
    draw = random.Random(seed)
    return Transactions.from_rows([[f"{i:03}" for i in range(items) if draw.random() < density] for _ in range(number)])


@pytest.mark.turn(3)
@pytest.mark.parametrize(
    ("number", "items", "density", "threshold"),
    [
        (400, 60, 0.6, 40),  # a small party, whose threshold is low: millions are frequent
        (400, 60, 0.6, 4),
        (3, 28, 1.0, 2),
        (30, 22, 1.0, 5),
        (2_000, 1_000, 0.02, 2),
        (1_000, 300, 0.1, 2),
        (5_000, 45, 0.5, 60),
    ],
)
def test_local_mining_holds_little(number: int, items: int, density: float, threshold: int) -> None:
    data = rows(number, items, density)
    tally = cast(HorizontalTally, SimpleNamespace(task=task(max_candidates=200_000_000), threshold=threshold))
    tracemalloc.start()
    try:
        locally_frequent(tally, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES


def test_the_subsets_of_a_union_are_enumerated_in_little_memory() -> None:
    draw = random.Random(2)
    union = np.unique(np.sort([draw.sample(range(60), 16) for _ in range(400)], axis=1).astype(np.int32), axis=0)
    tracemalloc.start()
    try:
        with pytest.raises(EnumerationLimit):
            downward_closure([union], most_enumerated(task()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MOST_BYTES


def test_the_job_lowers_the_limit_and_cannot_raise_it() -> None:
    assert most_enumerated(task(max_candidates=100)) == 100
    assert most_mined(task(max_candidates=100)) == 128  # a size class, since whether it is enough is opened
    assert most_mined(task(max_candidates=200_000_000)) == MAX_ENUMERATED
    assert most_enumerated(task(max_candidates=200_000_000)) == MAX_ENUMERATED


def test_where_a_small_party_has_too_much_level_wise_follows() -> None:
    """30 equal rows of 22 items have 4 million itemsets that are frequent there; altogether not even a pair is."""
    items = [f"{i:02}" for i in range(22)]
    data = {"north": [[item] for item in items] * 40, "south": [items] * 30, "east": [[item] for item in items] * 20}
    executor = ThreadExecutor(2)
    try:
        spec = job(data, bound=None, min_support="0.04", strategy="one-shot")
        runs = asyncio.run(run_job(spec, data, executor))
    finally:
        executor.close()
    ended = [run for run in runs.values() if isinstance(run, PartyRun)]
    assert len(ended) == 3, runs
    assert {run.outcome.strategy for run in ended} == {"level-wise"}

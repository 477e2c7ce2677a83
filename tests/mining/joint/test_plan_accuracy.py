"""Jobs cost what lies in the range of their plans, and likely figures are good to a half, with coarse sizes alone."""

from __future__ import annotations

import asyncio
import random
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from coordinator.demo.story import JOB, households
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.forecast import forecast
from jobs.spec.job import JobSpec
from mining.data.loading import load_transactions
from mining.data.transactions import Transactions
from mining.public_sizes import measured
from tests.examples import in_turn
from tests.jobs.plan.answers import PARTIES, told, weekly

pytestmark = pytest.mark.turn(3)

Split = Callable[[list[list[str]]], list[list[list[str]]]]


def evenly(rows: list[list[str]]) -> list[list[list[str]]]:
    return [rows[place::3] for place in range(3)]


def unevenly(rows: list[list[str]]) -> list[list[list[str]]]:
    """The first party has one row in a hundred."""
    shuffled = random.Random(1).sample(rows, len(rows))
    first = len(rows) // 100
    half = first + (len(rows) - first) // 2
    return [shuffled[:first], shuffled[first:half], shuffled[half:]]


def check(spec: JobSpec, data: Mapping[str, Transactions]) -> Plan:
    """The plan from what `comine party check` would have the parties publish, against a simulated run."""
    public = {name: told(name, measured(own)) for name, own in data.items()}
    plan = forecast(spec, public, 0.001)
    result = asyncio.run(simulate_job(spec, data, seed=1))
    assert plan.strategy == result.strategy
    for name, costs in result.parties.items():
        party = plan.parties[name]
        for figure in ("bytes_sent", "bytes_received"):
            least, most = getattr(party, f"{figure}_at_least"), getattr(party, f"{figure}_at_most")
            assert least <= getattr(costs, figure), name
            assert most is None or getattr(costs, figure) <= most, name
            assert getattr(party, figure) == pytest.approx(getattr(costs, figure), rel=0.5), name
        assert plan.rounds_at_least is not None
        assert plan.rounds_at_least <= costs.rounds
        assert plan.rounds_at_most is None or costs.rounds <= plan.rounds_at_most
    return plan


@pytest.mark.turn(3)
@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "one-shot"},
        {"strategy": "level-wise", "universe": "hidden"},
        {"prefer": "disclosure", "disclose": "frequent"},
    ],
    ids=lambda settings: ", ".join(settings.values()),
)
def test_the_demo(settings: dict[str, str]) -> None:
    contents = tomllib.loads(JOB, parse_float=Decimal)
    contents["itemsets"].update(settings)
    del contents["rules"]["measures"]  # which a job without numbers cannot have
    data = {name: Transactions.from_rows(rows) for name, rows in households().items()}
    check(job_of(contents, "the demo", Path()), data)


@cache
def split_baskets(file: Path, split: Split) -> dict[str, Transactions]:
    """The rows of a file, dealt to the parties; once for all strategies. Names have the 12 bytes that plans suppose."""
    loaded = load_transactions(file, "basket")
    rows = [
        [loaded.items[item].zfill(12) for item in loaded.indices[start:stop]]
        for start, stop in pairwise(loaded.offsets)
    ]
    return {party: Transactions.from_rows(own) for party, own in zip(PARTIES, split(rows), strict=True)}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split", "strategy"),
    in_turn(
        [
            ("retail", evenly, "level-wise"),
            ("T10I4D100K", evenly, "one-shot"),
            ("retail", unevenly, "one-shot"),
            ("T10I4D100K", unevenly, "level-wise"),
        ],
        4,
    ),
)
def test_half_a_percent_of_baskets(shared_data: Path, name: str, split: Split, strategy: str) -> None:
    data = split_baskets(shared_data / "transactions" / f"{name}.dat.gz", split)
    check(weekly(strategy=strategy, min_support="0.005"), data)

"""Plans hold within a tenth of the bytes on real data, whether rows are dealt evenly or not."""

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

from coordinator.demo import JOB, households
from coordinator.simulate import simulate_job
from jobs.parameters import horizontal_mining
from jobs.plan.estimate import estimate
from jobs.plan.expected import total_rows
from jobs.plan.publication import published_rows, published_sizes
from jobs.spec import JobSpec
from mining.joint.local_sizes import local_sizes
from mining.loading import load_transactions
from mining.transactions import Transactions
from protos.v1.plan_pb2 import PartyEstimate
from tests.unit.jobs.plans import PARTIES, SPEED, weekly

Split = Callable[[list[list[str]]], list[list[list[str]]]]


def evenly(rows: list[list[str]]) -> list[list[list[str]]]:
    return [rows[place::3] for place in range(3)]


def unevenly(rows: list[list[str]]) -> list[list[list[str]]]:
    """The first party has one row in a hundred."""
    shuffled = random.Random(1).sample(rows, len(rows))
    first = len(rows) // 100
    half = first + (len(rows) - first) // 2
    return [shuffled[:first], shuffled[first:half], shuffled[half:]]


def check(spec: JobSpec, data: Mapping[str, Transactions]) -> None:
    """The plan from rounded sizes, against a simulated run."""
    answers = {
        name: PartyEstimate(
            party=name,
            rows_public="rounded",
            n_rows=published_rows(own.n_rows, "rounded"),
            speed=SPEED,
            certificate_bytes=800,
        )
        for name, own in data.items()
    }
    n_rows = total_rows(answers)
    assert n_rows is not None
    for name, own in data.items():
        sizes = local_sizes(own, horizontal_mining(spec), len(data), n_rows)
        answers[name].sizes.CopyFrom(published_sizes(sizes, "rounded"))
    plan = estimate(spec, answers, 0.001)
    result = asyncio.run(simulate_job(spec, data, seed=1))
    assert plan.strategy == result.strategy
    for name, compared in plan.compare(result.parties).items():
        assert compared["bytes_sent"]["ratio"] == pytest.approx(1, rel=0.1), name
        assert compared["bytes_received"]["ratio"] == pytest.approx(1, rel=0.1), name
        assert compared["rounds"]["ratio"] == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "level-wise"},
        {"strategy": "one-shot"},
        {"strategy": "level-wise", "disclose": "candidates"},
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
    check(JobSpec.of(contents, "the demo", Path()), data)


@cache
def split_baskets(file: Path, split: Split) -> dict[str, Transactions]:
    """The rows of a file, dealt to the parties; once for all strategies."""
    loaded = load_transactions(file, "basket")
    rows = [[loaded.items[item] for item in loaded.indices[start:stop]] for start, stop in pairwise(loaded.offsets)]
    return {party: Transactions.from_rows(own) for party, own in zip(PARTIES, split(rows), strict=True)}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["level-wise", "one-shot"])
@pytest.mark.parametrize("split", [evenly, unevenly])
@pytest.mark.parametrize("name", ["retail", "T10I4D100K"])
def test_half_a_percent_of_baskets(shared_data: Path, name: str, split: Split, strategy: str) -> None:
    data = split_baskets(shared_data / "transactions" / f"{name}.dat.gz", split)
    check(weekly(strategy=strategy, min_support="0.005"), data)

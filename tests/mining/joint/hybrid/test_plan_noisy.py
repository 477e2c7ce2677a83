"""The plan of a job under distributed noise: bytes and rounds of a run, noise by length, what is told beforehand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.charge import charge
from jobs.kinds.noisy.parameters import distributed_mining
from jobs.loading import job_of
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.plan.plan import Plan
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from link.executor import ThreadExecutor
from link.traffic import TOLERANCE
from mining.data.transactions import Transactions
from mining.joint.distributed.budget import length_noise
from tests.coordinator.simulation.whole_job import identities, run_job
from tests.jobs.plan.answers import sizes_of
from tests.mining.joint.hybrid.test_hybrid_sizes import SPEED
from tests.mining.joint.oracle import Rows

ITEMS = [f"item {i:02d}" for i in range(24)]


def rows(seed: int) -> Rows:
    """Baskets of which some items are often bought, and often together."""
    random = np.random.default_rng(seed)
    shares = np.where(np.arange(len(ITEMS)) < 8, 0.55, 0.05)
    return [[ITEMS[at] for at in np.flatnonzero(random.random(len(ITEMS)) < shares)] for _ in range(1500)]


DATA = {"north": rows(1), "south": rows(2), "east": rows(3)}


def job(itemsets: dict[str, Any] | None = None, **privacy: Any) -> JobSpec:
    given = {"min_support": "0.1", "max_length": 3, "universe": "items.txt", "catalogue": ITEMS, **(itemsets or {})}
    contents = {
        "job": {
            "name": "test",
            "task": "itemsets",
            "parties": list(DATA),
            "dataset": "baskets",
            "partition": "hybrid",
            "recipients": ["all"],
        },
        "itemsets": {key: value for key, value in given.items() if value is not None},
        "privacy": {"model": "distributed", "epsilon": "2", "delta": "1e-6", "colluding": 1, **privacy},
    }
    return job_of(contents, "the test", Path())


def planned(spec: JobSpec, *, told: bool = True) -> Plan:
    answers = {}
    for party, data in DATA.items():
        certificate_bytes = len(identities(tuple(DATA))[party].certificate_pem)
        if told:
            sizes = sizes_of(Transactions.from_rows(data), len(data) // 10, 3)
            answers[party] = Answer(party, SPEED, certificate_bytes, len(data), sizes)
        else:
            answers[party] = Answer(party, SPEED, certificate_bytes)
    return estimate(spec, answers, 0.001)


@pytest.mark.parametrize("spec", [job(), job({"max_length": 2}, noise="skellam")], ids=["gaussian", "skellam"])
def test_a_plan_predicts_the_bytes_and_rounds_of_a_run(spec: JobSpec) -> None:
    executor = ThreadExecutor(2)
    runs = asyncio.run(run_job(spec, DATA, executor))
    executor.close()
    plan = planned(spec)
    assert plan.privacy is not None
    for party, run in runs.items():
        assert isinstance(run, PartyRun), run
        assert plan.rounds == run.costs.rounds
        assert plan.parties[party].bytes_sent == pytest.approx(run.costs.bytes_sent, rel=TOLERANCE), party
        spent, cost = run.outcome.spent, charge(spec)
        assert spent is not None
        assert (spent.epsilon, spent.delta) == (plan.privacy.epsilon, plan.privacy.delta)
        assert spent.epsilon <= float(cost.epsilon or 0)
        assert spent.delta <= float(cost.delta or 0)
        assert spent.local_epsilon is None


def test_a_plan_tells_the_noise_of_each_length() -> None:
    spec = job()
    plan, task = planned(spec), distributed_mining(spec)
    assert plan.privacy is not None
    assert [each.length for each in plan.privacy.noise] == [1, 2, 3]
    for each in plan.privacy.noise:
        assert each.deviation == length_noise(task, len(DATA), each.length, each.contributions).sigma
    assert plan.privacy.noise[0].contributions <= len(ITEMS)
    told = " ".join(plan.privacy.prose())
    assert "Counts of itemsets of 2 carry noise of standard deviation" in told
    assert "Each party's ledger is charged epsilon 2, delta 0.000001, whatever becomes of the job" in told


@pytest.mark.parametrize("itemsets", [{}, {"min_support": None, "top_k": 10}, {"catalogue": None, "universe": None}])
def test_a_plan_without_sizes_says_what_it_lacks(itemsets: dict[str, Any]) -> None:
    plan = planned(job(itemsets), told=False)
    assert plan.n_rows is None
    assert any("the figures are of single items alone" in line for line in plan.assumptions)
    assert plan.privacy is not None
    assert plan.privacy.noise


def test_without_a_catalogue_names_are_reckoned() -> None:
    plan = planned(job({"catalogue": None, "universe": None}))
    assert plan.rounds > planned(job()).rounds - 1
    assert plan.batches[0].candidates > 0

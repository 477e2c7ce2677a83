"""The page of a comparison: what its tables and its scripts are given."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from coordinator.comparison.compare import Comparison, check_comparable, compare
from coordinator.comparison.report import report
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import JobCancelled, PolicyDenied
from mining.data.transactions import Transactions
from tests.errors import fails
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, job

DATA = {party: Transactions.from_rows(baskets(500, place)) for place, party in enumerate(PARTIES)}


def spec(**itemsets: Any) -> JobSpec:
    privacy = {"model": "shuffle", "epsilon": "4", "delta": "1e-6"}
    return job(privacy=privacy, itemsets={"min_support": "0.3", "top_k": 4, **itemsets}, job={"name": "<b>four</b>"})


async def run(given: JobSpec, seed: int | None) -> Result:
    if given.privacy.model == "local":
        raise PolicyDenied("the policy of <south> refuses", party="south")
    return await simulate_job(given, DATA, seed=seed)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two runs of the distributed model with each of two ε, and a model that a party refuses."""
    epsilons = (Decimal(2), Decimal("0.01"))
    return asyncio.run(compare(spec(), ("distributed", "local", "distributed"), epsilons, run, (1, 2)))


def test_each_model_is_run_with_each_epsilon_and_seed(comparison: Comparison) -> None:
    assert [(each.model, each.epsilon, len(each.results)) for each in comparison.measured] == [
        ("exact", None, 1),
        ("distributed", Decimal(2), 2),
        ("distributed", Decimal("0.01"), 2),
    ]
    assert [(each.model, each.epsilon, each.error.code) for each in comparison.not_run] == [
        ("local", Decimal(2), "E300"),
        ("local", Decimal("0.01"), "E300"),
    ]
    exact, good, poor = comparison.measured
    assert (exact.spent, exact.mean("f1"), exact.f1_deviation, exact.mean("covered")) == (None, 1.0, None, None)
    assert good.mean("f1") == 1
    assert poor.f1_deviation is not None
    assert poor.spent is not None
    assert (poor.spent.epsilon, good.rounds > 0, good.bytes_sent > 0, good.seconds > 0) == (0.01, True, True, True)


def test_the_page_shows_them_and_escapes_what_came_from_files(comparison: Comparison) -> None:
    page = report(comparison, written=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    assert "Written 2026-01-02 03:04 UTC" in page
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    for words in ("distributed, ε = 2", "distributed, ε = 0.01", "the policy of &lt;south&gt; refuses", "unbounded"):
        assert words in page, words
    assert "&lt;b&gt;four&lt;/b&gt;" in page
    assert "<b>four</b>" not in page
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert len(data["values"]) == len(data["supports"]) == 4
    assert data["supports"] == sorted(data["supports"], reverse=True)
    assert [(each["model"], each["epsilon"], len(each["f1"])) for each in data["models"]] == [
        ("distributed", 2.0, 2),
        ("distributed", 0.01, 2),
    ]
    for each in data["models"]:
        assert len(each["estimates"]) == 4
        assert all(told is None or told[1] <= told[0] <= told[2] for told in each["estimates"])
    assert None not in data["models"][0]["estimates"]


def test_a_page_of_the_exact_model_alone_has_no_charts() -> None:
    page = report(asyncio.run(compare(spec(), ("local",), (), run)))
    assert "accuracy-chart" not in page.split("<script", 1)[0]
    assert "refuses" in page


def test_who_cancels_a_run_ends_the_comparison() -> None:
    async def cancelled(given: JobSpec, seed: int | None) -> Result:
        if given.privacy.model != "exact":
            raise JobCancelled("somebody pressed Ctrl-C")
        return await run(given, seed)

    with pytest.raises(JobCancelled):
        asyncio.run(compare(spec(), ("distributed",), (), cancelled))


def test_a_failure_of_the_exact_model_ends_it_too() -> None:
    async def refused(given: JobSpec, seed: int | None) -> Result:
        raise PolicyDenied("exact jobs are refused")

    with pytest.raises(PolicyDenied):
        asyncio.run(compare(spec(), ("distributed",), (), refused))


def test_jobs_without_itemsets_cannot_be_compared() -> None:
    contents = {
        "job": {"name": "n", "task": "align", "parties": ["a", "b"], "dataset": "d", "partition": "vertical"},
    }
    with fails("E100"):
        check_comparable(JobSpec.model_validate(contents))

"""The report of estimates: intervals in its tables, its chart and its account, and gaps where nothing was estimated."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.documents.result import document
from jobs.kinds.estimates_finding import FoundEstimates
from jobs.report.notebook import notebook
from jobs.report.page import report
from jobs.results.result import Result
from mining.data.transactions import Transactions
from mining.rules.estimated import EstimatedRule, EstimatedRules
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, job


@pytest.fixture(scope="module")
def result() -> Result:
    """Estimates with a rule whose consequent was not estimated."""
    spec = job(
        privacy={"model": "shuffle", "epsilon": 3, "delta": "1e-6"},
        job={"task": "rules", "name": "<private>"},
        rules={"min_confidence": 0, "measures": ["confidence", "lift"]},
        itemsets={"top_k": 6, "min_support": "0.05"},
    )
    data = {party: Transactions.from_rows(baskets(300, place)) for place, party in enumerate(PARTIES)}
    made = asyncio.run(simulate_job(spec, data, seed=2))
    assert isinstance(made.finding, FoundEstimates)
    found = made.finding.estimated
    itemsets = found.itemsets
    whole = next(itemset for itemset, _ in itemsets.rounded().rows() if len(itemset) == 2)
    rules = EstimatedRules(itemsets, (EstimatedRule(whole[:1], whole[1:], 0.5, 0.25, 1.0),))
    return replace(made, finding=FoundEstimates(replace(found, rules=rules)))


def embedded(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    contents: dict[str, object] = json.loads(found[1])
    return contents


def test_the_page_has_intervals(result: Result) -> None:
    page = report(result)
    data = embedded(page)
    assert data["estimated"] is True
    itemsets, rules = data["itemsets"], data["rules"]
    assert isinstance(itemsets, dict)
    assert isinstance(rules, dict)
    for low, support, high in zip(itemsets["low"], itemsets["support"], itemsets["high"], strict=True):
        assert 0 <= low <= support <= high <= 1
    assert set(rules["measures"]) == {"confidence", "lift", "confidence_low", "confidence_high"}
    for words in (
        "Itemsets that seem most frequent",
        'id="intervals"',
        "privacy of a record",
        "towards anyone who sees the result",
        "hidden among",
        "<dt>top</dt><dd><bdi>6<",
        '<th scope="col" class="n">from</th>',
    ):
        assert words in page, words
    assert "<private>" not in page


def test_what_was_not_estimated_is_left_open(result: Result) -> None:
    assert isinstance(result.finding, FoundEstimates)
    told = result.finding.estimated
    assert told.rules is not None
    rule = told.rules.rules[0]
    levels = [level for level in told.itemsets.levels if level[0].shape[1] == 2]
    items = told.itemsets.items
    place = items.index(rule.antecedent[0])
    single = next(level for level in told.itemsets.levels if level[0].shape[1] == 1)
    kept = single[0][:, 0] == place
    fewer = replace(told.itemsets, levels=[(single[0][kept], single[1][kept], single[2][kept]), *levels])
    estimated = replace(told, itemsets=fewer, rules=EstimatedRules(fewer, (rule,)))
    gap = replace(result, finding=FoundEstimates(estimated))
    found = FoundEstimates(estimated).page_data(gap.spec)
    assert found is not None
    assert found["rules"]["consequentCount"].to_pylist() == [None]
    assert "—" in report(gap)
    assert "—" in notebook(gap) or "lift" not in notebook(gap)


def test_the_account_tells_what_it_cost(result: Result) -> None:
    contents = document(result)
    privacy = contents["privacy"]
    assert (contents["estimated"], privacy["model"], privacy["delta"]) == (True, "shuffle", 1e-6)
    assert privacy["epsilon"] <= 3 <= privacy["local_epsilon"]
    elsewhere = document(replace(result, finding=None))
    assert (elsewhere["estimated"], elsewhere["privacy"]) == (None, None)

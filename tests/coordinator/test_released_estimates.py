"""Estimates that parties sign: only what the job asks for is taken for its result."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.kinds.estimates_finding import FoundEstimates
from jobs.kinds.packed_itemsets import pack
from jobs.results.result import Result
from link.errors import MalformedMessage, ProtocolViolation
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.joint.estimated import Estimated, pack_estimates
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, job

DATA = {party: Transactions.from_rows(baskets(200, place)) for place, party in enumerate(PARTIES)}
RULES = {"job": {"task": "rules"}, "rules": {"min_confidence": "0.1"}, "itemsets": {"top_k": 6}}


def simulated(**tables: Any) -> Result:
    return asyncio.run(simulate_job(job(**tables), DATA, seed=1))


def test_estimates_and_what_they_cost_are_in_the_result() -> None:
    result = simulated()
    assert result.finding is not None
    assert result.finding.itemsets.counted
    assert len(result.finding.itemsets) == 3
    assert result.finding.estimated.spent.model == "local"
    assert result.n_rows == 600


def exact(_: Estimated) -> bytes:
    return pack(Itemsets((), [], 600))


def of_another_model(found: Estimated) -> bytes:
    return pack_estimates(replace(found, spent=replace(found.spent, model="distributed")))


def without_rules(found: Estimated) -> bytes:
    return pack_estimates(replace(found, rules=None))


def of_fewer_rows(found: Estimated) -> bytes:
    content = json.loads(pack_estimates(found)) | {"n_rows": 599}
    return f"{json.dumps(content, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}\n".encode()


@pytest.mark.parametrize(
    ("packed", "kind", "sentence"),
    [
        (exact, MalformedMessage, "north sent a result that cannot be read"),
        (of_another_model, ProtocolViolation, "north sent a result of another kind than the job asks for"),
        (without_rules, ProtocolViolation, "north sent a result of another kind than the job asks for"),
        (of_fewer_rows, ProtocolViolation, "north signed another number of rows than its result has"),
    ],
)
def test_nothing_else_is_taken_for_them(
    packed: Any, kind: type[Exception], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FoundEstimates, "pack", lambda self: packed(self.estimated))
    with pytest.raises(kind, match=sentence):
        simulated(**RULES)

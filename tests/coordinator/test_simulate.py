"""Simulation: who must bring data, and which of several failures is told."""

from __future__ import annotations

import asyncio

import pytest

import coordinator.jobs.simulation.simulate
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.run import PartyRun
from link.errors import InputDataError
from mining.data.transactions import Transactions
from mining.reference.pooled import brute_force
from tests.coordinator.nodes import SPEC
from tests.errors import fails

ROWS = {"north": [["a", "b"], ["a"]], "south": [["a", "b"], ["b"], ["a", "b"]]}
DATA = {name: Transactions.from_rows(rows) for name, rows in ROWS.items()}


def test_the_pooled_result_with_costs_and_receipts() -> None:
    told: list[tuple[object, ...]] = []
    result = asyncio.run(simulate_job(SPEC, DATA, seed=1, watcher=lambda *words: told.append(words)))
    assert result.finding is not None
    pooled = [row for rows in ROWS.values() for row in rows]
    assert {frozenset(items): count for items, count in result.finding.itemsets} == brute_force(pooled, 2)
    assert all(costs.bytes_sent > 0 and costs.rounds > 0 for costs in result.parties.values())
    assert result.receipts["north"].agrees_with == ("south",)
    assert {words[0] for words in told} == {"north", "south"}


def test_a_fault_of_one_party_is_the_one_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = coordinator.jobs.simulation.simulate.run_party

    async def spoiled(spec: object, data: object, transport: object, **others: object) -> PartyRun:
        if others["identity"].name == "south":  # type: ignore[attr-defined]
            raise InputDataError("its rows are spoiled", party="south")
        return await real(spec, data, transport, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(coordinator.jobs.simulation.simulate, "run_party", spoiled)
    monkeypatch.setattr(coordinator.jobs.simulation.simulate, "GRACE_S", 0.05)
    with fails("E101"):
        asyncio.run(simulate_job(SPEC, DATA))

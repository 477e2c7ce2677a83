"""Whole jobs over rows where parties deviate with a plan, by universe and by who computes: caught, or right.

Protocols by themselves are in `test_scheming`, `test_scheming_union` and `test_lies`. By hand:
`job_of(…).against(…)` with more seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from link.session import Session
from mining.data.transactions import Transactions
from mining.joint.disclosure import openings
from mining.joint.horizontal.mine import mine
from tests.crypto.protocols.replicated.campaigns import Campaign, Parties, noticed
from tests.crypto.protocols.replicated.deviating_world import Ends
from tests.examples import in_turn, spread
from tests.mining.joint.itemsets_world import supports
from tests.mining.joint.oracle import Rows, pooled_supports
from tests.mining.joint.test_horizontal import task_for

DATA: dict[str, Rows] = {
    "north": [["a", "b", "e"], ["a", "b"], ["b"]] * 3,
    "south": [["a", "b", "c"]] * 4,
    "east": [["d"], ["a", "b"]],
    "west": [["a", "b", "d"], ["c"]],
}
LEAST = 8
CATALOGUE = {"universe": "catalogue", "catalogue": ("a", "b", "c", "d", "e"), "strategy": "level-wise"}
THREE = {"helper": "east", "bound": 64}
JOBS: dict[str, tuple[int, dict[str, Any], Sequence[Parties]]] = {
    "names": (3, {"universe": "frequent-items", "strategy": "level-wise"} | THREE, [("north",), ("south",), ("east",)]),
    "candidates": (
        4,
        {"universe": "frequent-items", "strategy": "level-wise", "thin": True} | THREE,
        [("north", "west"), ("south",), ("east", "west"), ("west",)],
    ),
    "itemsets": (
        4,
        {"universe": "all-items", "strategy": "one-shot", "lambda_": Decimal(0)} | THREE,
        [("north",), ("south", "west"), ("east", "west"), ("west",)],
    ),
    "two of two": (2, CATALOGUE, [("north",), ("south",)]),
    "two of four": (4, CATALOGUE, [("north", "west"), ("south", "east"), ("east", "west")]),
}


@cache
def job_of(name: str) -> Campaign:
    number, settings, coalitions = JOBS[name]
    data = dict(list(DATA.items())[:number])
    parties = tuple(data)
    task = task_for(data, LEAST, security="malicious", **settings)
    expected = pooled_supports(data, LEAST)
    assert len(expected) > 2

    async def role(session: Session) -> Any:
        return supports(await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task))

    def judge(ends: Ends, deviating: Parties) -> bool:
        """An error of a union names nobody. No result is wrong: nothing that a party claims has rows of others."""
        for found in ends.results.values():
            assert found == expected
        return noticed(ends, deviating, ("E104", "E400", "E401", "E402", "E403"))

    three = parties[:3] if task.helper else ()
    return Campaign(parties, three, role, openings(task, parties), coalitions, judge)


@pytest.mark.costly
@pytest.mark.parametrize("name", in_turn(JOBS, 5))
def test_whatever_is_planned_is_caught_or_changes_nothing(name: str) -> None:
    assert job_of(name).against(spread(400, 2, 40)).total() > 1

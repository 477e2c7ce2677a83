"""Whole jobs over columns where parties deviate with a plan, computing ones and others: caught, or right.

One altered frame is in `test_verified_columns`. By hand: `job_of(…).against(…)` with more seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from tests.crypto.protocols.replicated.campaigns import Campaign, Parties
from tests.crypto.protocols.replicated.deviating_world import Ends
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right
from tests.examples import in_turn, spread
from tests.mining.joint.vertical.test_verified_columns import Attacked, is_of_fewer_rows

PARTIES = ("north", "south", "east", "west", "upper")
JOBS: dict[str, tuple[int, Sequence[Parties]]] = {
    "3": (3, [("north",), ("south",), ("east",)]),
    "4": (4, [("north", "west"), ("south",), ("east", "west"), ("west",)]),
    "5": (5, [("north", "west", "upper"), ("south", "upper"), ("west", "upper"), ("upper",)]),
}


@cache
def job_of(name: str) -> Campaign:
    number, coalitions = JOBS[name]
    parties, three = PARTIES[:number], PARTIES[:3]
    job = Attacked(parties, number)

    def judge(ends: Ends, deviating: Parties) -> bool:
        """A party that programs something else takes ids out, as if it did not have them; perhaps none is left."""
        without = {name for name, error in ends.errors.items() if error.code == "E101"}
        errors = {name: error for name, error in ends.errors.items() if name not in without}
        fewer = [result for result in ends.results.values() if is_of_fewer_rows(result, job.expected)]
        assert len({repr(result) for result in ends.results.values()}) <= 1
        caught = assert_caught_or_right(replace(ends, errors=errors), deviating, job.expected, *fewer)
        return caught or bool(without)

    def is_as_stated(ends: Ends) -> bool:
        return all(result == job.expected for result in ends.results.values())

    return Campaign(parties, three, job.role, job.declared, coalitions, judge, is_as_stated)


@pytest.mark.costly
@pytest.mark.parametrize("name", in_turn(JOBS, 3))
def test_whatever_is_planned_is_caught_or_changes_nothing(name: str) -> None:
    assert job_of(name).against(spread(400, 1, 40)).total() > 0

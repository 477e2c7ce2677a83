"""Checked unions where parties deviate with a plan: an honest party gets all that honest ones hold, or an error.

One altered frame is in `test_verified_union`. By hand: `job_of(…).against(…)` with more seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from tests.crypto.protocols.replicated.campaigns import Campaign, Parties, noticed
from tests.crypto.protocols.replicated.deviating_world import Ends
from tests.crypto.protocols.union.test_verified_union import lines_of, pooled, role_of, sets_of
from tests.examples import in_turn, spread

JOBS: dict[str, tuple[Sequence[str], Sequence[Parties]]] = {
    "3": (("ab", "bc", "d"), [("north",), ("south",), ("east",)]),
    "4": (("ab", "bc", "d", "ax"), [("north",), ("south", "west"), ("east", "west"), ("west",)]),
    "5": (("ab", "", "d", "ax", "y"), [("north", "west", "upper"), ("south", "upper"), ("west", "upper")]),
}


@cache
def job_of(name: str) -> Campaign:
    given, coalitions = JOBS[name]
    sets = sets_of(*given)

    def judge(ends: Ends, deviating: Parties) -> bool:
        """An error of the union itself names nobody: the bits of the one that lied were under shares."""
        honest = pooled({name: each for name, each in sets.items() if name not in deviating})
        assert len({repr(found) for found in ends.results.values()}) <= 1
        for found in ends.results.values():
            assert set(honest) <= set(found)
        return noticed(ends, deviating, ("E104", "E400", "E401", "E402", "E403"))

    def is_as_stated(ends: Ends) -> bool:
        return all(found == pooled(sets) for found in ends.results.values())

    three = tuple(sets)[:3]
    return Campaign(tuple(sets), three, role_of(sets), lines_of(sets), coalitions, judge, is_as_stated)


@pytest.mark.costly
@pytest.mark.parametrize("name", in_turn(JOBS, 3))
def test_whatever_is_planned_takes_no_element_from_others(name: str) -> None:
    assert job_of(name).against(spread(400, 4, 80)).total() > 3

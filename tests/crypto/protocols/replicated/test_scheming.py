"""Sums and counts among three, of whom one deviates with a plan, and others with it: caught, or right.

No honest holder opens other values than where nobody deviates.

One altered frame is in the protocols' own tests. By hand: `job_of(…).against(…)` with more seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from tests.crypto.protocols.replicated import test_verified_counts, test_verified_sums
from tests.crypto.protocols.replicated.campaigns import Campaign, Parties
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right

JOBS: dict[str, tuple[Callable[[], Any], Sequence[Parties]]] = {
    "sums of 3": (lambda: test_verified_sums.drawn(3, 11, 30, 40, 7), (("north",), ("south",), ("east",))),
    "sums of 5": (
        lambda: test_verified_sums.drawn(5, 9, 30, 70, 9, ("upper", "north", "west")),
        (("north",), ("south", "west"), ("east", "south", "upper"), ("west",), ("south", "east")),
    ),
    "counts of 4": (
        lambda: test_verified_counts.drawn((2, 1, 0, 2), 40, 8, 4),
        (("north",), ("south", "west"), ("east", "west"), ("west",)),
    ),
}


@cache
def job_of(name: str) -> Campaign:
    make, coalitions = JOBS[name]
    job = make()
    return Campaign(
        job.parties,
        job.three,
        job.role,
        job.declared,
        coalitions,
        lambda ends, deviating: assert_caught_or_right(ends, deviating, job.expected),
    )


@pytest.mark.parametrize("name", JOBS)
def test_whatever_is_planned_is_caught_or_changes_nothing_and_opens_nothing_else(name: str) -> None:
    assert job_of(name).against(range(16))["caught"] > 3

"""Sums and counts among three, of whom one deviates with a plan, and others with it: caught, or right.

No honest holder opens other values than where nobody deviates.

One altered frame is in the protocols' own tests. By hand: `campaign(…)` with more seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest

from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.replicated import test_verified_counts, test_verified_sums
from tests.crypto.protocols.replicated.deviating_world import Alter, Ends, run_deviating
from tests.crypto.protocols.replicated.scheming import Recorded, Scheming, opened_by_honest, other_shares
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right, unaltered

Parties = tuple[str, ...]

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
def job_of(name: str) -> Any:
    return JOBS[name][0]()


def run(name: str, deviating: Parties, alter: Alter, seed: int, observe: Callable[[Frame], None]) -> Ends:
    job = job_of(name)
    return run_deviating(job.parties, job.role, deviating, alter, declared=job.declared, seed=seed, observe=observe)


@cache
def recorded(name: str, deviating: Parties, seed: int) -> Recorded:
    """A session in which nobody deviates."""
    found = Recorded()
    assert not run(name, deviating, unaltered, seed, found).errors
    return found


def campaign(name: str, seeds: range) -> Counter[str]:
    """How many of the attacks ended how: caught, with right results, with honest parties that wait, or never begun.

    Half are plans about frames, half are lies about shares, some are both.
    """
    job, found = job_of(name), Counter[str]()
    for seed in seeds:
        chance = random.Random(seed)
        deviating = chance.choice(JOBS[name][1])
        clean, foreign = (recorded(name, deviating, other) for other in (-1, -2))
        plan, seen, lies = Scheming(seed, deviating, clean, foreign), Recorded(), chance.random() < 0.5
        alter: Alter = unaltered if lies and chance.random() < 0.7 else plan
        cheats = [each for each in deviating if each in job.three]

        def observe(frame: Frame, plan: Scheming = plan, seen: Recorded = seen) -> None:
            plan.observe(frame)
            seen(frame)

        with other_shares(seed, cheats) if lies else nullcontext(list[int]()) as done:
            ends = run(name, deviating, alter, seed, observe)
        caught = assert_caught_or_right(ends, deviating, job.expected)
        stated = opened_by_honest(clean.frames, job.three, deviating)
        for key, values in opened_by_honest(seen.frames, job.three, deviating).items():
            assert values == stated[key], (seed, key)
        begun = done or (alter is plan and plan.altered)
        found["never" if not begun else "caught" if caught else "right" if ends.results else "waits"] += 1
    return found


@pytest.mark.parametrize("name", JOBS)
def test_whatever_is_planned_is_caught_or_changes_nothing_and_opens_nothing_else(name: str) -> None:
    assert campaign(name, range(16))["caught"] > 3

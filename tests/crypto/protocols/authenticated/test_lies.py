"""Sums decided between two of whom one deviates with a plan, in frames or in what it computes: caught, or right.

One altered frame is in `test_authenticated_sums`. By hand: `campaign(…)` with more seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest

from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.authenticated.lying import Lies, lying
from tests.crypto.protocols.authenticated.test_authenticated_sums import (
    TWO,
    Job,
    assert_caught_or_right,
    drawn,
    unaltered,
)
from tests.crypto.protocols.replicated.deviating_world import Alter, Ends, run_deviating
from tests.crypto.protocols.replicated.scheming import Recorded, Scheming

Parties = tuple[str, ...]
JOBS: dict[str, tuple[Job, Sequence[Parties]]] = {
    "2": (drawn(2, 11, 30, 25, 7), [("north",), ("south",)]),
    "2, low threshold": (drawn(2, 9, 60, 5, 3), [("north",), ("south",)]),
    "3": (drawn(3, 11, 30, 40, 8), [("north",), ("south",), ("north", "east"), ("south", "east"), ("east",)]),
    "4": (drawn(4, 5, 30, 50, 9), [("north", "west"), ("south",), ("east", "west")]),
}


def run(name: str, deviating: Parties, alter: Alter, seed: int, observe: Callable[[Frame], None]) -> Ends:
    job = JOBS[name][0]
    return run_deviating(job.parties, job.role, deviating, alter, declared=job.declared, seed=seed, observe=observe)


@cache
def recorded(name: str, deviating: Parties, seed: int) -> Recorded:
    """A session in which nobody deviates."""
    found = Recorded()
    assert not run(name, deviating, unaltered, seed, found).errors
    return found


def with_other_numbers(job: Job, cheat: str, lies: Lies) -> tuple[int, list[int], list[int]] | None:
    """What comes of the numbers that a party has dealt instead of its own, if they are within its limit."""
    (numbers,) = lies.numbers
    if (numbers > job.rows[cheat]).any():
        return None
    other = Job([*job.rows.values()], [each.tolist() for each in job.counts.values()], job.threshold)
    other.counts[cheat] = numbers
    return other.expected


def opened(frames: Sequence[Frame], deviating: Parties) -> dict[tuple[str, str, str], int]:
    """By lane, honest party and label, how many bytes it has opened to each."""
    found: dict[tuple[str, str, str], int] = {}
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.sender not in deviating:
            message = Opening.FromString(frame.body)
            found[frame.lane, frame.sender, message.label] = len(message.values)
    return found


def campaign(name: str, seeds: range) -> Counter[str]:
    """How many of the attacks ended how, by kind: caught, with right results, with others waiting, or never begun."""
    job, found = JOBS[name][0], Counter[str]()
    for seed in seeds:
        chance = random.Random(seed)
        deviating = chance.choice(JOBS[name][1])
        cheats = [each for each in deviating if each in TWO]
        clean, foreign = (recorded(name, deviating, other) for other in (-1, -2))
        plan, seen, lies = Scheming(seed, deviating, clean, foreign), Recorded(), bool(cheats) and chance.random() < 0.7
        alter: Alter = unaltered if lies else plan

        def observe(frame: Frame, plan: Scheming = plan, seen: Recorded = seen) -> None:
            plan.observe(frame)
            seen(frame)

        with lying(seed, cheats[0], TWO) if lies else nullcontext((plan.way, Lies())) as (way, told):
            ends = run(name, deviating, alter, seed, observe)
        other = with_other_numbers(job, cheats[0], told) if told.numbers else None
        expected: list[Any] = [job.expected if not told.numbers else other]
        try:
            caught = assert_caught_or_right(ends, deviating, *expected)
            if not told.numbers:
                stated = opened(clean.frames, deviating)
                for key, size in opened(seen.frames, deviating).items():
                    assert size == stated[key], key
        except BaseException as error:
            raise AssertionError((name, seed, way, deviating)) from error
        begun = told.told or (alter is plan and plan.altered)
        end = "never" if not begun else "caught" if caught else "right" if ends.results else "waits"
        found[f"{'lies' if lies else 'frames'}: {way}: {end}"] += 1
    return found


@pytest.mark.parametrize("name", JOBS)
def test_whatever_is_planned_is_caught_or_changes_nothing(name: str) -> None:
    found = campaign(name, range(8))
    assert sum(number for kind, number in found.items() if kind.endswith("caught")) > 2

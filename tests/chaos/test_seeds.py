"""Whole federations under simulated faults: what a seed began it ends with the exact result or with a clear error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.examples import in_turn

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = int(os.environ.get("COMINE_CHAOS_SEEDS", "36"))
CHUNK: Final = 6  # seeds of one test, so that it ends within its time on a busy machine
FIRST: Final = int(os.environ.get("COMINE_CHAOS_FIRST", "0"))
ONCE_FAILED: Final = {
    7: "a coordinator's clock was set back, and its job waited for as long again",
    28: "a party ended a job while others were asked for its turn, and the coordinator met a fault of its own",
    980912126: "an audit log that lacked the end of a job of a moment ago went unnoticed",
    303: "a call that was given up before its request came was a fault of the node",
}
EASY: Final = (2, 24)
"""One of which nothing happens that matters, and one in which what happens is over soon."""


def simulated(*seeds: object) -> list[dict[str, Any]]:
    """How seeds end, in a process of their own, whose clocks are simulated."""
    command = [sys.executable, "-m", "tests.chaos", *map(str, seeds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def failures(courses: list[dict[str, Any]]) -> list[str]:
    """What to do about seeds that failed."""
    return [f"python -m tests.chaos {course['seed']}: {course['failure']}" for course in courses if course["failure"]]


@pytest.mark.costly
def test_seeds_that_once_failed() -> None:
    seeds = [*in_turn(ONCE_FAILED, 3), *EASY]
    found = simulated(*seeds)
    assert not failures(found)
    assert [course["seed"] for course in found] == seeds


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(SEEDS // CHUNK))
def test_seeds(chunk: int) -> None:
    first = FIRST + chunk * CHUNK
    print(f"seeds {first}:{CHUNK}")
    found = simulated(f"{first}:{CHUNK}")
    assert not failures(found)
    assert len(found) == CHUNK


@pytest.mark.slow
def test_a_seed_repeats_exactly() -> None:
    once, again = simulated("3:6"), simulated("3:6")
    for course in (*once, *again):
        del course["cpu_s"]
    assert once == again

"""Whole federations under simulated faults: what a seed began it ends with the exact result or with a clear error."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.examples import in_turn

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = int(os.environ.get("COMINE_CHAOS_SEEDS", "25"))
CHUNK: Final = min(SEEDS, 40)  # seeds of one process, since its start costs as much as several
FIRST: Final = int(os.environ.get("COMINE_CHAOS_FIRST", "0"))
ONCE_FAILED: Final = {
    7: "a coordinator's clock was set back, and its job waited for as long again",
    28: "a party ended a job while others were asked for its turn, and the coordinator met a fault of its own",
    980912126: "an audit log that lacked the end of a job of a moment ago went unnoticed",
    303: "a call that was given up before its request came was a fault of the node",
}
REPEATED: Final = FIRST + 24
"""What happens is over soon; a seed of `test_seeds`, too."""


@functools.cache
def course_of_chunk(chunk: int) -> list[dict[str, Any]]:
    """How the seeds of a chunk end."""
    first = FIRST + chunk * CHUNK
    print(f"seeds {first}:{CHUNK}")
    return simulated(f"{first}:{CHUNK}")


def simulated(*seeds: object) -> list[dict[str, Any]]:
    """How seeds end, in a process of their own, whose clocks are simulated."""
    command = [sys.executable, "-m", "tests.chaos", *map(str, seeds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@functools.cache
def course_of_those_that_once_failed() -> list[dict[str, Any]]:
    """How these end, after one of `test_seeds`: a seed hangs on none before it, so that their order is another."""
    return simulated(REPEATED, *in_turn(ONCE_FAILED, 4))


def failures(courses: list[dict[str, Any]]) -> list[str]:
    """What to do about seeds that failed."""
    return [f"python -m tests.chaos {course['seed']}: {course['failure']}" for course in courses if course["failure"]]


@pytest.mark.costly
def test_seeds_that_once_failed() -> None:
    found = course_of_those_that_once_failed()
    assert not failures(found)
    assert [course["seed"] for course in found] == [REPEATED, *in_turn(ONCE_FAILED, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(SEEDS // CHUNK))
def test_seeds(chunk: int) -> None:
    found = course_of_chunk(chunk)
    assert not failures(found)
    assert len(found) == CHUNK


@pytest.mark.slow
def test_a_seed_repeats_exactly() -> None:
    once = {course["seed"]: course for course in course_of_chunk(0)}
    again = [course for course in course_of_those_that_once_failed() if course["seed"] in once]
    assert again
    for course in again:
        assert {**course, "cpu_s": 0} == {**once[course["seed"]], "cpu_s": 0}

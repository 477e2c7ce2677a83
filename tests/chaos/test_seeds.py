"""Whole federations under simulated faults: what a seed began it ends with the exact result or with a clear error."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import pytest

from tests.examples import FIRST_SEED, SEEDS, in_turn

ROOT: Final = Path(__file__).parents[2]
HALF: Final = SEEDS // 2
BEHIND: Final = ("nice", "-n", "19")  # in what the other tests leave, which cost more where more runs beside them
ONCE_FAILED: Final = {
    7: "a coordinator's clock was set back, and its job waited for as long again",
    28: "a party ended a job while others were asked for its turn, and the coordinator met a fault of its own",
    980912126: "an audit log that lacked the end of a job of a moment ago went unnoticed",
    303: "a call that was given up before its request came was a fault of the node",
    40056: "an audit log of before a session that still ran went unnoticed",
    71089: "a party that had done its part left another that stood still for two seconds, and was missed there",
    71027: "a clock that was set far forward made the other parties' certificates look expired, and them guilty",
    51502: "who had drawn noise and then got an older state folder drew it again; others refused, and nobody was named",
    50590: "a node that had run over older files got still older ones and was held to know what it did meanwhile",
    51486: "upkeep told that a disk was full, and that was taken for a fault of the node",
}
REPEATED: Final = FIRST_SEED + HALF - 1
"""Which comes in another process, too, and there first."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]  # of integration it takes most of the time


@functools.cache
def courses() -> list[dict[str, Any]]:
    """How seeds end, in processes of their own, whose clocks are simulated."""
    once_failed = [REPEATED, *in_turn(ONCE_FAILED, 4)]
    groups = f"{FIRST_SEED}:{HALF}", f"{FIRST_SEED + HALF}:{HALF}", ",".join(map(str, once_failed))
    command = [*BEHIND, sys.executable, "-m", "tests.chaos", *groups]
    print(*command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize(
    "seeds",
    [range(FIRST_SEED, FIRST_SEED + HALF), range(FIRST_SEED + HALF, FIRST_SEED + 2 * HALF)],
    ids=("first half", "second half"),
)
def test_seeds(seeds: range) -> None:
    _all_well(seeds)


def test_seeds_that_once_failed() -> None:
    _all_well(in_turn(ONCE_FAILED, 4))


def _all_well(seeds: Collection[int]) -> None:
    found = {each["seed"]: each["failure"] for each in courses() if each["seed"] in seeds}
    assert not [f"python -m tests.chaos {seed}: {failure}" for seed, failure in found.items() if failure]
    assert set(found) == set(seeds)


def test_a_seed_repeats_exactly() -> None:
    once, again = ({**each, "cpu_s": 0} for each in courses() if each["seed"] == REPEATED)
    assert again == once

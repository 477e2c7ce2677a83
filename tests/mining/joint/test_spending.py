"""What a party that deviates can make others spend: messages that swell are refused before they cost more than bytes.

Each kind of message of jobs that may deviate, in each way of `swelling`; whoever refuses names the sender, and has held
no more memory than where nobody deviates and a few frames. By hand: `spent(…)` for all cases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from link.core import MAX_BODY_BYTES
from tests.crypto.protocols.authenticated import test_lies
from tests.crypto.protocols.replicated import test_scheming
from tests.crypto.protocols.replicated.deviating_world import Ends
from tests.crypto.protocols.replicated.scheming import Recorded
from tests.crypto.protocols.replicated.swelling import WAYS, Swelling, peak_bytes
from tests.crypto.protocols.replicated.test_verified_sums import unaltered
from tests.crypto.protocols.union import test_scheming_union
from tests.examples import in_turn
from tests.mining.joint.vertical import test_scheming_columns

MOST_FRAMES = 16
"""Of `MAX_BODY_BYTES`, that may be held at once beside what an honest run holds; all parties are in this process."""


class Job(NamedTuple):
    run: Callable[..., Ends]
    deviating: tuple[str, ...]


JOBS: dict[str, Callable[[], Job]] = {
    "sums of 3": lambda: Job(test_scheming.job_of("sums of 3").run, ("south",)),
    "counts of 4": lambda: Job(test_scheming.job_of("counts of 4").run, ("east", "west")),
    "union of 4": lambda: Job(test_scheming_union.job_of("4").run, ("south", "west")),
    "columns of 4": lambda: Job(test_scheming_columns.job_of("4").run, ("north", "west")),
    "columns of 3": lambda: Job(test_scheming_columns.job_of("3").run, ("south",)),
    "two compute": lambda: Job(lambda *given: test_lies.run("2", *given), ("north",)),
    "two compute for 3": lambda: Job(lambda *given: test_lies.run("3", *given), ("south", "east")),
}


@cache
def honest(name: str) -> tuple[Job, Recorded, int]:
    """The job, its frames, and the memory that it takes."""
    job, found = JOBS[name](), Recorded()
    job.run(job.deviating, unaltered, 1, found)  # so that what is made once is made
    found.frames.clear()
    with peak_bytes() as peak:
        assert not job.run(job.deviating, unaltered, 1, found).errors
    return job, found, peak[0]


def spent(name: str, kind: str, way: str) -> str:
    """How a run in which messages of a kind swell so ends: a code, or "never" where they have nothing that does."""
    job, _, before = honest(name)
    alter = Swelling(way, kind, job.deviating)
    with peak_bytes() as peak:
        ends = job.run(job.deviating, alter, 1, lambda frame: None)
    if not alter.altered:
        return "never"
    assert ends.errors
    for error in ends.errors.values():
        assert error.code in ("E100", "E400", "E401", "E402", "E403"), (error.code, error)
        assert error.party is None or error.party in job.deviating, error
        assert len(error.message) < 1_000
    assert peak[0] < before + MOST_FRAMES * MAX_BODY_BYTES, (peak[0], before)
    return next(iter(ends.errors.values())).code


@pytest.mark.costly
@pytest.mark.parametrize("name", in_turn(JOBS, 7))
def test_what_swells_is_refused_before_it_costs_more_than_its_bytes(name: str) -> None:
    job, frames, _ = honest(name)
    cases = [(kind, way) for kind in frames.kinds(job.deviating) for way in WAYS]
    for case in in_turn(cases, 40):
        spent(name, *case)

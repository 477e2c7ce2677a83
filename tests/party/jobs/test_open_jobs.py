"""How many jobs a coordinator may have open at a node, and how often it may propose one."""

from __future__ import annotations

import asyncio

from party.jobs.limits import JobLimits
from party.jobs.open_jobs import OpenJobs
from tests.errors import fails


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def propose(jobs: OpenJobs, coordinator: str) -> None:
    async with jobs.place_for(coordinator, 100):
        pass


def test_a_coordinator_proposes_only_so_often_within_a_minute_and_others_do_not_wait_for_it() -> None:
    async def test() -> None:
        clock = Clock()
        jobs = OpenJobs("north", clock, JobLimits(4, 4, open_of_one=256, proposals_of_one=2))
        await propose(jobs, "ann")
        clock.now += 30
        await propose(jobs, "ann")
        with fails("E103", party="north"):
            await propose(jobs, "ann")
        await propose(jobs, "bob")
        clock.now += 31
        await propose(jobs, "ann")
        with fails("E103"):
            await propose(jobs, "ann")
        clock.now -= 3600  # a clock that was set back keeps nobody waiting
        await propose(jobs, "ann")

    asyncio.run(test())

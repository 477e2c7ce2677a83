"""One seed: a job under faults, the cure, and what must hold whatever went wrong."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.jobs.lifecycle import PROPOSE_S, RELEASE_S
from coordinator.jobs.retrying import RETRIES
from jobs.results.result import Result
from jobs.resumption import hindrance
from link.errors import ComineError
from tests.chaos import checks
from tests.chaos.demands import require
from tests.chaos.faults import Fault, between, bring_back, bring_up, cure, draw, happen
from tests.chaos.kinds import PARTIES, SmallJob, share
from tests.chaos.world import Template, World

END_S: Final = PROPOSE_S + RELEASE_S + 200.0  # by which every job has ended, since each state ends by itself
SETTLE_S: Final = 400.0  # within which nodes are done with jobs whose coordinator knows their end


@dataclass(frozen=True)
class Course:
    """How a simulation went.

    Attributes:
        seed: Its seed.
        job: The job's name.
        faults: What went wrong.
        end: How the job ended under them: "result", or the code of the error.
        trace: What happened, line by line.
        logs: What the nodes have logged.
        steps: How many the loop has taken.
        failure: What should not be so; empty where all is well.
    """

    seed: int
    job: str
    faults: Sequence[Fault]
    end: str
    trace: Sequence[str]
    logs: str
    steps: int
    failure: str = ""


class Usual:
    """What each job gives, and how long it takes, where nothing goes wrong."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self._known: dict[str, tuple[bytes, float]] = {}

    def of(self, job: SmallJob) -> tuple[bytes, float]:
        """The packed result and the seconds of simulated time."""
        if job.name not in self._known:
            template = self._template
            with World.running(template, seed=0, state=template.folder / "usual") as world:

                async def once() -> tuple[bytes, float]:
                    await asyncio.gather(*(world.start(party) for party in PARTIES))
                    begun = world.loop.now
                    result = await world.run(job.spec)
                    if isinstance(result, ComineError):
                        raise AssertionError(f"{job.name}: {result.message}\n{world.told()}")
                    return checks.packed(result), world.loop.now - begun

                self._known[job.name] = world.loop.run(once(), END_S)
        return self._known[job.name]


def job_of(template: Template, seed: int) -> SmallJob:
    """Which job a seed runs."""
    return _drawn(template, seed)[0]


def _drawn(template: Template, seed: int) -> tuple[SmallJob, tuple[str, ...]]:
    chance = random.Random(f"job {seed}")
    names = sorted(template.jobs)
    job = template.jobs[chance.choices(names, [share(name) for name in names])[0]]
    return job, (chance.choice(PARTIES),) if chance.random() < 0.25 else ()


def simulate(template: Template, usual: Usual, seed: int) -> Course:
    """One seed."""
    job, relayed = _drawn(template, seed)
    expected, usual_s = usual.of(job)
    faults = draw(seed, usual_s, relayed=relayed)
    state = template.folder / f"seed{seed}-{os.getpid()}"
    with World.running(template, seed=seed, state=state, relayed=frozenset(relayed)) as world:
        end, failure = ["nothing"], ""
        try:
            world.loop.run(_scenario(world, job, expected, faults, end), 3 * END_S)
        except Exception as error:  # which is what is to be told
            if not isinstance(error, AssertionError):
                world.say("".join(checks.places(error)))
            failure = f"{type(error).__name__}: {error}"
        return Course(seed, job.name, faults, end[0], tuple(world.trace), world.told(), world.loop.steps, failure)


async def _scenario(world: World, job: SmallJob, expected: bytes, faults: Sequence[Fault], end: list[str]) -> None:
    await asyncio.gather(*(world.start(party) for party in PARTIES))
    between(faults, world)
    begun = world.loop.now
    happening = [world.loop.create_task(happen(fault, world)) for fault in faults]
    by_itself = random.Random(f"retries {world.seed}").random() < 0.5
    outcome = await world.run(job.spec, RETRIES if by_itself else 0)
    for folder in world.store.jobs()[:1]:
        world.say(f"{folder.record().job.retried} attempts by itself")
    end[0] = outcome.code if isinstance(outcome, ComineError) else "result"
    world.say(f"the job ends with {outcome.message if isinstance(outcome, ComineError) else outcome!r}")
    require(world.loop.now - begun <= END_S, f"the job took {world.loop.now - begun:.0f} s")
    checks.outcome(outcome, job, expected)
    if isinstance(outcome, ComineError):
        checks.guilty(outcome, faults)
    world.faults_last = False
    for task in happening:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*happening, return_exceptions=True)
    cure(world)
    for party in PARTIES:
        await _running_again(world, party)
    await checks.settled(world, SETTLE_S)
    if isinstance(outcome, ComineError):
        await _once_more(world, job, expected, faults)
        await checks.settled(world, SETTLE_S)
    checks.all_nodes(world, job, faults)


async def _running_again(world: World, party: str) -> None:
    if world.runs(party) and world.nodes[party].server is not None:
        return
    problem = await bring_up(party, world)
    if problem is not None and any(world.folder.glob(f"{party}.right*")):
        bring_back(world, party)
        problem = await bring_up(party, world)
    require(problem is None, f"{party} does not start although all is well: {problem}")


async def _once_more(world: World, job: SmallJob, expected: bytes, faults: Sequence[Fault]) -> None:
    """The job goes on, where it can, or is run anew."""
    (folder,) = world.store.jobs()[:1] or (None,)
    again: Result | ComineError | None = None
    if folder is not None:
        kept = folder.record()
        code = "" if kept.job.problem is None else kept.job.problem.code
        why = kept.job.hindrance(checks.now()) or hindrance(kept.spec, code, kept.job.attempt)
        world.say(f"another attempt: {why or 'it can go on'}")
        if not why:
            again = await world.resume(folder)
            if isinstance(again, ComineError):
                world.say(f"the attempt ends with {again.code} {again.message}")
                checks.may_not_go_on(again, world, faults)
            await checks.settled(world, SETTLE_S)
    if not isinstance(again, Result):
        again = await world.run(job.spec)
    require(isinstance(again, Result), f"although all is well, the job fails: {again!r}")
    checks.outcome(again, job, expected)
    world.say("the job has its result")

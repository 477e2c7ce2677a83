"""Processes that are killed or stand still at any moment of a job: a few by chance at each run, all where asked for."""

from __future__ import annotations

import itertools
import os
import random
import secrets
import signal
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from mining.reference.pooled import brute_force
from tests.integration.processes import Organisations, Process, Ran
from tests.party.nodes import DATA

pytestmark = pytest.mark.slow

COORDINATOR: Final = "hub"
MOMENTS: Final = ("proposal accepted", "job started", "result written", "job succeeded")
SIGNALS: Final = (signal.SIGKILL, signal.SIGSTOP)
SOME: Final = 3
CODES: Final = (10, 20, 50, 60)


class Case(NamedTuple):
    """What happens to whom, and when.

    Attributes:
        victim: A party, or the coordinator.
        number: The signal.
        moment: The line in the log of north after which that is.
        later_s: For so many seconds.
    """

    victim: str
    number: signal.Signals
    moment: str
    later_s: float


def cases() -> list[Case]:
    """All of them, or a few."""
    seed = int(os.environ.get("COMINE_CHAOS_FIRST", secrets.randbelow(10**9)))
    chance = random.Random(seed)
    victims = (*DATA, COORDINATOR)
    every = [Case(*chosen, chance.uniform(0, 0.5)) for chosen in itertools.product(victims, SIGNALS, MOMENTS)]
    return every if "COMINE_ALL_KILLS" in os.environ else chance.sample(every, SOME)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    made = Organisations.create(tmp_path_factory.mktemp("killed"), DATA)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_job_ends_exact_or_with_a_clear_error_and_the_next_is_exact(world: Organisations) -> None:
    for case in cases():
        print(case)
        _is_survived(world, case)


def _is_survived(world: Organisations, case: Case) -> None:
    seen = len(world.nodes["north"].lines)
    job = world.job(deadline="60s", recipients='["all"]')
    begun = world.begin(job)
    world.nodes["north"].until(case.moment, after=seen)
    threading.Event().wait(case.later_s)  # any moment will do
    victim = begun if case.victim == COORDINATOR else world.nodes[case.victim]
    victim.send(case.number)
    if case.victim == COORDINATOR:
        _of_the_coordinator(world, begun, case)
        return
    if case.number is signal.SIGKILL:
        victim.kill()
        world.start(case.victim)
        ran = begun.end()
    else:
        threading.Event().wait(case.later_s)
        victim.send(signal.SIGCONT)
        ran = begun.end()
    _is_clear(world, ran, case.victim)
    _is_exact(world, world.run_here(job))


def _of_the_coordinator(world: Organisations, begun: Process, case: Case) -> None:
    if case.number is signal.SIGKILL:
        begun.kill()
    else:
        threading.Event().wait(case.later_s)
        begun.send(signal.SIGCONT)
        _is_clear(world, begun.end(), COORDINATOR)
    _is_exact(world, world.run_here())


def _is_clear(world: Organisations, ran: Ran, victim: str) -> None:
    if ran.code == 0:
        _is_exact(world, ran)
        return
    assert ran.code in CODES
    others = [name for name in DATA if name != victim]
    assert victim in ran.sentence or not any(f"{name} was lost" in ran.sentence for name in others), ran.sentence


def _is_exact(world: Organisations, ran: Ran) -> None:
    assert ran.code == 0, ran.err
    found = (world.folder / "out" / "itemsets.csv").read_text().count("\n") - 1
    assert found == len(brute_force([row for rows in DATA.values() for row in rows], 36))

"""Which jobs go on by themselves: those that lost what comes back, in the time and the number of attempts they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.lifecycle import Decided, Ended, Event, Problem, Reported, Signal, Stand, step
from coordinator.jobs.records.store import Record
from coordinator.jobs.retrying import RETRIES, goes_on, pause_s
from coordinator.jobs.runner import draft
from jobs.loading import job_of
from link.pki.authority import Authority
from tests.party.nodes import weekly

IDENTITY = Authority.create().issue("hub", "coordinator")
LOST = Problem("E200", "south was lost", "south")


def lost(problem: Problem = LOST, before: tuple[Event, ...] = (), **itemsets: Any) -> Record:
    """A job of three parties that ran and ended early, at the moment 0 of its own clock."""
    record = draft(weekly(itemsets=itemsets, deadline="60s"), IDENTITY, 600.0, retries=RETRIES)
    record.job = record.job._replace(expires=600.0, until=600.0)
    decided = [Decided(party, True) for party in record.spec.job.parties]
    for event in (Signal.TAKEN_UP, *decided, Signal.STARTED, *before, Ended(problem)):
        record.job, _ = step(record.job, event, 1.0)
    return record


@pytest.mark.parametrize(
    ("problem", "again"),
    [
        (LOST, True),
        (Problem("E500", "the job was cancelled at south: its node is stopping", "south"), True),
        (Problem("E500", "the job was cancelled at the coordinator"), False),
        (Problem("E201", "another answers in the place of south", "south"), False),
        (Problem("E101", "the data of south cannot be read", "south"), False),
        (Problem("E103", "the disk of south is full", "south"), False),
        (Problem("E400", "south broke the protocol", "south"), False),
        (Problem("E600", "it did not end within its deadline"), False),
        (Problem("E700", "a fault", "south"), False),
    ],
)
def test_what_passes_is_waited_for_and_nothing_else(problem: Problem, again: bool) -> None:
    assert goes_on(lost(problem), 2.0) is again


def test_only_within_the_deadline_and_so_often() -> None:
    assert goes_on(lost(), 59.0)
    assert not goes_on(lost(), 60.0)
    assert not goes_on(replace(lost(), retries=0), 2.0)
    assert not goes_on(lost(before=(Reported("south", Stand.DONE),)), 2.0)
    pauses = []
    record = lost()
    while goes_on(record, 2.0):
        record.job, _ = step(record.job, Signal.RETRIED, 2.0)
        pauses.append(pause_s(record.job))
        record.job, _ = step(record.job, Ended(LOST), 2.0)
    assert pauses == [1.0, 2.0, 4.0]


def test_jobs_with_noise_and_with_hidden_items_go_on_too() -> None:
    assert goes_on(lost(universe="hidden"), 2.0)
    contents = weekly(deadline="60s").model_dump(mode="json", by_alias=True)
    contents["privacy"] = {"model": "distributed", "epsilon": "0.5", "delta": "1e-6"}
    assert goes_on(replace(lost(), spec=job_of(contents, "the test", Path())), 2.0)  # whose noise is the very same

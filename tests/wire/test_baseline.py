"""No protocol's and no job's frames change under the same wire version."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from jobs.run import PartyRun
from link.executor import ThreadExecutor
from link.version import WINDOW, WIRE_VERSION, Window
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, job, run_job
from tests.wire.baseline import EARLIER, frozen, speaking
from tests.wire.jobs import JOBS, Wire, play, played
from tests.wire.protocols import PROTOCOLS

pytestmark = pytest.mark.usefixtures("real_groups")

CHANGED = """
The frames of {name} are not what they were. Nobody asked for this? Then something leaks, costs or reveals more or less
than before: find out what. If the change is meant, nodes of old and new versions may not understand each other: raise
WIRE_VERSION in link/version.py, go through docs/protocols and CHANGELOG.md, and run `python -m tests.wire`.
"""

AFTER = """
The frames of {name} are not what nodes that know no version after {version} send. Where both are to be spoken, what
has changed is for later versions alone; else raise the first version of WINDOW in link/version.py.
"""
BEFORE = {int(path.stem): frozen(path) for path in sorted(EARLIER.glob("*.json"))}
RUNS = [
    (version, kind, name) for version, runs in BEFORE.items() for kind in ("protocols", "jobs") for name in runs[kind]
]


def test_the_baseline_is_of_this_version_and_has_all_protocols() -> None:
    assert frozen()["wire_version"] == WIRE_VERSION, "run `python -m tests.wire`"
    assert frozen()["protocols"].keys() == PROTOCOLS.keys()
    assert frozen()["jobs"].keys() == JOBS.keys()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_frames_are_those_of_the_baseline(name: str) -> None:
    assert PROTOCOLS[name].digests() == frozen()["protocols"][name], CHANGED.format(name=name)


@pytest.mark.parametrize("name", JOBS)
def test_frames_of_jobs_are_those_of_the_baseline(name: str) -> None:
    assert asdict(Wire.of(*played(name))) == frozen()["jobs"][name], CHANGED.format(name=name)


def test_every_version_of_the_window_has_a_baseline() -> None:
    assert [*BEFORE] == [*range(WINDOW.oldest, WINDOW.latest)], "run `python -m tests.wire`"
    assert [runs["wire_version"] for runs in BEFORE.values()] == [*map(str, BEFORE)]


@pytest.mark.parametrize(("version", "kind", "name"), RUNS)
def test_who_speaks_an_earlier_version_sends_what_was_sent_then(version: int, kind: str, name: str) -> None:
    with speaking(Window.read(BEFORE[version]["wire_version"], BEFORE[version]["oldest_version"])):
        found = PROTOCOLS[name].digests() if kind == "protocols" else asdict(Wire.of(*play(name)))
    assert found == BEFORE[version][kind][name], AFTER.format(name=name, version=version)


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_change_nothing_on_the_wire(workers: int) -> None:
    frames: list[Frame] = []
    executor = ThreadExecutor(workers)
    try:
        runs = asyncio.run(run_job(job(**JOBS["one-shot"]), DATA, executor, seed=1, observe=frames.append))
    finally:
        executor.close()
    assert Wire.of(frames, runs) == Wire(**frozen()["jobs"]["one-shot"])


@pytest.mark.parametrize("variant", JOBS)
def test_reported_costs_are_those_of_the_frames(variant: str) -> None:
    """A session estimates the lengths of a frame's numbers: at most some bytes a frame."""
    frames, runs = played(variant)
    for party, run in runs.items():
        assert isinstance(run, PartyRun)
        out, into = ([f for f in frames if getattr(f, end) == party] for end in ("sender", "receiver"))
        assert abs(run.costs.bytes_sent - sum(f.ByteSize() for f in out)) <= 24 * len(out)
        assert abs(run.costs.bytes_received - sum(f.ByteSize() for f in into)) <= 24 * len(into)


def test_another_seed_gives_another_transcript() -> None:
    frames: list[Frame] = []
    runs = run_still(run_job(job(**JOBS["catalogue"]), DATA, InlineExecutor(), seed=2, observe=frames.append))
    found = Wire.of(frames, runs)
    before = Wire(**frozen()["jobs"]["catalogue"])
    assert found.head != before.head
    assert (found.rounds, found.sent) == (before.rounds, before.sent)

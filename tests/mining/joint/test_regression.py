"""Bytes, rounds and the very transcript of whole jobs are as they were: nothing on the wire changes unnoticed."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from functools import cache

import pytest

from jobs.run import PartyRun
from link.executor import ThreadExecutor
from link.receipts import LANE as RECEIPTS
from link.session import HELLO_LANE
from protos.v1.link_pb2 import Frame, Hello
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, STRATEGIES, job, run_job

HOW_TO_UPDATE = """
The wire of a joint job is not what it was. Nobody asked for this? Then something leaks, costs or tells more or less
than before: find out what. If the change is meant, it is one of the protocol: old and new nodes may not understand each
other, a statement may say something else, documented costs may be wrong. So raise WIRE_VERSION where a peer of the old
version would fail, go through docs/protocols and CHANGELOG.md, and then put this into
tests/mining/joint/test_regression.py:

    "{variant}": Wire("{head}", {rounds}, {sent}),
"""


@dataclass(frozen=True)
class Wire:
    """What a job puts on the wire, receipts and proofs apart: these hold certificates, which are new each time.

    Attributes:
        head: SHA-256 over all frames in the order of sender, receiver, lane and number.
        rounds: Of every party, receipts included.
        sent: Bytes of each party's frames.
    """

    head: str
    rounds: int
    sent: dict[str, int]


FROZEN = {
    "level-wise": Wire(
        "444b1ec137eb29d0b12d773127b22579cfb8814f12bcf6733d87111738dbe26f",
        14,
        {"north": 33818, "south": 50710, "east": 50707},
    ),
    "one-shot": Wire(
        "8002870689a1c9bbbf022b94184587f72930e73995664a0524d62711b7ca2938",
        22,
        {"north": 65944, "south": 100002, "east": 100002},
    ),
    "thinned": Wire(
        "11f7fcb69a8fc53ff0ebfb21ec00c43504e8478dc8c8b456b0bc19410485537a",
        30,
        {"north": 98334, "south": 149382, "east": 149385},
    ),
    "catalogue": Wire(
        "199a91fb760f58520827eb705c3e57555d1ae508a90ee6f8bbb0309c6d9743ea",
        6,
        {"north": 1558, "south": 1558, "east": 1552},
    ),
    "supports": Wire(
        "4512c33d483863d61997f3b9fe9bd302fd70b870fcc5c06c5c199777943a0e5b",
        22,
        {"north": 56238, "south": 79022, "east": 50823},
    ),
    "frequent": Wire(
        "0f427a61fae3c1541ced785ea4e3c8ada5826fa37f280d309108fed0b1a3800a",
        20,
        {"north": 55798, "south": 78582, "east": 50385},
    ),
}

VARIANTS = {
    **{name: {**variant, "disclose": "candidates"} for name, variant in STRATEGIES.items()},
    "supports": {"strategy": "level-wise"},
    "frequent": {"strategy": "level-wise", "disclose": "frequent"},
}


def wire(frames: list[Frame], runs: dict[str, PartyRun | BaseException]) -> Wire:
    rounds = set()
    for run in runs.values():
        assert isinstance(run, PartyRun), run
        rounds.add(run.costs.rounds)
    digest, sent = hashlib.sha256(), dict.fromkeys(DATA, 0)
    for frame in sorted(frames, key=lambda f: (f.sender, f.receiver, f.lane, f.seq)):
        if frame.lane == f"/{RECEIPTS}":
            continue
        sent[frame.sender] += _without(frame, "proof").ByteSize()
        digest.update(_without(frame, "proof", "spec_digest").SerializeToString(deterministic=True))
    (number,) = rounds
    return Wire(digest.hexdigest(), number, sent)


def _without(frame: Frame, *fields: str) -> Frame:
    """The frame as it would be under any certificates or specification: a new setting of jobs changes no protocol.

    Its mark follows from the rest.
    """
    plain = Frame()
    plain.CopyFrom(frame)
    plain.ClearField("mark")
    if frame.lane != HELLO_LANE:
        return plain
    hello = Hello.FromString(frame.body)
    for name in fields:
        hello.ClearField(name)
    plain.body = hello.SerializeToString(deterministic=True)
    return plain


@cache
def played(variant: str) -> tuple[list[Frame], dict[str, PartyRun | BaseException]]:
    """All frames, and each party's run."""
    frames: list[Frame] = []
    runs = run_still(run_job(job(**VARIANTS[variant]), DATA, InlineExecutor(), seed=1, observe=frames.append))
    return frames, runs


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_wire_is_as_it_was(variant: str) -> None:
    found = wire(*played(variant))
    assert found == FROZEN.get(variant), HOW_TO_UPDATE.format(
        variant=variant, head=found.head, rounds=found.rounds, sent=found.sent
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_change_nothing_on_the_wire(workers: int) -> None:
    frames: list[Frame] = []
    executor = ThreadExecutor(workers)
    try:
        runs = asyncio.run(run_job(job(**VARIANTS["one-shot"]), DATA, executor, seed=1, observe=frames.append))
    finally:
        executor.close()
    assert wire(frames, runs) == FROZEN["one-shot"]


@pytest.mark.parametrize("variant", VARIANTS)
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
    runs = run_still(run_job(job(**VARIANTS["catalogue"]), DATA, InlineExecutor(), seed=2, observe=frames.append))
    found = wire(frames, runs)
    assert found.head != FROZEN["catalogue"].head
    assert (found.rounds, found.sent) == (FROZEN["catalogue"].rounds, FROZEN["catalogue"].sent)

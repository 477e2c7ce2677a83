"""Small jobs on the wire, the same from the same seed: what a change of how protocols are combined is noticed by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from jobs.run import PartyRun
from link.core import Receiver, Transport
from link.session import HELLO_LANE
from link.transcripts.receipts import LANE as RECEIPTS
from protos.v1.link_pb2 import Frame, Hello
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, STRATEGIES, job, run_job
from tests.faulty_world import Rewrite

Runs = Mapping[str, PartyRun | BaseException]

JOBS: Final[dict[str, dict[str, Any]]] = {
    **{name: {**variant, "disclose": "candidates"} for name, variant in STRATEGIES.items()},
    "supports": {"strategy": "level-wise"},
    "frequent": {"strategy": "level-wise", "disclose": "frequent"},
}


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

    @classmethod
    def of(cls, frames: Iterable[Frame], runs: Runs) -> Wire:
        """What these frames are."""
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
        return cls(digest.hexdigest(), number, sent)


@dataclass(frozen=True)
class _Rewriting:
    """Changes what a party sends on its way."""

    inner: Transport
    rewrite: Rewrite

    def attach(self, receiver: Receiver) -> None:
        """As the one inside."""
        self.inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        """What becomes of the frame."""
        await self.inner.send(to, self.rewrite(frame))

    async def close(self) -> None:
        """As the one inside."""
        await self.inner.close()


def ends(variant: str, rewrite: Rewrite) -> Runs:
    """How it ends at each party where frames are changed on their way."""
    changed = run_job(
        job(**JOBS[variant]), DATA, InlineExecutor(), seed=1, wrap=lambda _, inner: _Rewriting(inner, rewrite)
    )
    return run_still(changed)


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


def play(variant: str) -> tuple[list[Frame], Runs]:
    """All frames, and each party's run."""
    frames: list[Frame] = []
    runs = run_still(run_job(job(**JOBS[variant]), DATA, InlineExecutor(), seed=1, observe=frames.append))
    return frames, runs


played = cache(play)

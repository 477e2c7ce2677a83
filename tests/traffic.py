"""Holds what was planned of a session to what it sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import agree
from link.core import FRAME_OVERHEAD_BYTES
from link.costs import Costs
from link.session import Session
from link.traffic import ALLOWANCE, TOLERANCE, Traffic
from protos.v1.link_pb2 import Frame
from tests.world import run_parties


class Part(Protocol):
    """What a party does on a lane, with the secrets and the agreements that it has with each other party."""

    async def __call__(self, lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any: ...


def within(planned: int, actual: int, peers: int) -> bool:
    """Whether a plan's bytes are good: to `TOLERANCE`, and `ALLOWANCE` for each peer."""
    return abs(planned - actual) <= TOLERANCE * actual + ALLOWANCE * peers


def assert_planned(traffic: Traffic, costs: Mapping[str, Costs], rounds: range = range(1)) -> None:
    """Both directions of every party; rounds, of which a run may take as many more as `rounds` holds."""
    for party, actual in costs.items():
        for planned, moved in (
            (traffic.bytes_sent(party), actual.bytes_sent),
            (traffic.bytes_received(party), actual.bytes_received),
        ):
            assert within(planned, moved, len(traffic.parties) - 1), (party, planned, moved)
    assert max(actual.rounds for actual in costs.values()) - traffic.rounds in rounds


def costs_of(parties: tuple[str, ...], part: Part, **options: Any) -> dict[str, Costs]:
    """What each party sends and gets below the lane that the part is given, and the rounds that it adds."""
    frames, rounds = list[Frame](), dict[str, int]()

    async def role(session: Session) -> None:
        secrets, pairs = await agree(session), dict[str, TwoParty]()
        for peer in session.others:
            both = tuple(name for name in parties if name in (session.me, peer))
            pairs[peer] = TwoParty(session.lane("-".join(both)), (both[0], both[1]))
        lane = session.lane("work")
        before = lane.costs.rounds
        await part(lane, secrets, pairs)
        rounds[session.me] = lane.costs.rounds - before

    run_parties(parties, role, observe=frames.append, deadline_s=240, **options)
    return costs_below(parties, "/work", frames, rounds)


def costs_below(
    parties: Iterable[str], lane: str, frames: Iterable[Frame], rounds: Mapping[str, int]
) -> dict[str, Costs]:
    """What each party sends and gets on a lane and below it, with the rounds that were counted."""
    sent, received = Counter[str](), Counter[str]()
    for frame in frames:
        if frame.lane.startswith(lane):
            names = sum(map(len, (frame.sender, frame.receiver, frame.lane, frame.type)))
            size = len(frame.body) + len(frame.session) + names + FRAME_OVERHEAD_BYTES
            sent[frame.sender] += size
            received[frame.receiver] += size
    return {party: Costs(sent[party], received[party], rounds[party], 0.0) for party in parties}

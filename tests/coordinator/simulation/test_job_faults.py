"""Whatever happens to the frames and parties of a whole job: the pooled result or an error that says who, never a hang.

In memory, time stands still, so every run is the same on every machine and waiting costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from link.core import Transport
from link.errors import ComineError, DeadlineExceeded, PeerError
from link.executor import ThreadExecutor
from link.transports.faulty import Crashed, FaultyTransport, Schedule
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import Hang, InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, STRATEGIES, job, run_job, supports
from tests.examples import examples, spread
from tests.mining.joint.oracle import pooled_supports
from tests.schedules import benign, harmful

PARTIES = tuple(DATA)
WAYS = STRATEGIES | {"three compute": {"strategy": "level-wise", "helper": "east"}}
BOTH = ("level-wise", "one-shot")
EXPECTED = pooled_supports(DATA, Decimal("0.2"))
N_ROWS = sum(map(len, DATA.values()))
SEEDED = settings(deadline=None, derandomize=True)
CROSSED = [("north", "level-wise"), ("south", "one-shot"), ("east", "three compute")]

Ends = dict[str, PartyRun | BaseException]


@dataclass(frozen=True)
class Loses(Schedule):
    """Loses one frame: the one of this number to this peer."""

    peer: str = ""
    number: int = 0

    def hits(self, fault: str, peer: str, number: int) -> bool:
        return fault == "drop" and (peer, number) == (self.peer, self.number)


@cache
def spec_of(strategy: str) -> JobSpec:
    return job(**WAYS[strategy])


def in_memory(strategy: str, schedules: Mapping[str, Schedule], seed: int = 0) -> Ends:
    def wrap(party: str, transport: Transport) -> Transport:
        return FaultyTransport(transport, schedules.get(party, Schedule()))

    return run_still(run_job(spec_of(strategy), DATA, InlineExecutor(), seed=seed, wrap=wrap))


def over_grpc(
    strategy: str, schedules: Mapping[str, Schedule], *, deadline: str = "1m", patience_s: float = 20
) -> Ends:
    def wrap(party: str, transport: Transport) -> Transport:
        return FaultyTransport(transport, schedules.get(party, Schedule()))

    async def bounded() -> Ends:
        executor = ThreadExecutor(2)
        try:
            async with asyncio.timeout(90):
                spec = job(deadline=deadline, **WAYS[strategy])
                return await run_job(spec, DATA, executor, kind="grpc", wrap=wrap, patience_s=patience_s)
        finally:
            executor.close()

    return asyncio.run(bounded())


def in_turn_of(number: int) -> range:
    """Some of so many frames, at each of which a whole job is run."""
    return spread(number, number // 10, number // 5)


def right(end: object) -> bool:
    return isinstance(end, PartyRun) and end.outcome.n_rows == N_ROWS and supports(end) == EXPECTED


def assert_right_or_clear(ends: Ends) -> None:
    for party, end in ends.items():
        if isinstance(end, ComineError):
            assert end.party in PARTIES, (party, end)
            assert end.party in end.message, (party, end)
            assert end.message.isprintable(), (party, end)
        elif not _crashed(end):
            assert right(end), (party, end)


def _crashed(end: object) -> bool:
    if isinstance(end, BaseExceptionGroup):  # it died in several steps at once
        return end.subgroup(Crashed) is not None
    return isinstance(end, Crashed)


@cache
def frames_by_sender(strategy: str) -> dict[str, list[str]]:
    """The receivers of a party's frames, in the order in which it sends them when nothing goes wrong."""
    sent: dict[str, list[str]] = defaultdict(list)

    def observe(frame: Frame) -> None:
        sent[frame.sender].append(frame.receiver)

    ends = run_still(run_job(spec_of(strategy), DATA, InlineExecutor(), observe=observe))
    assert all(map(right, ends.values()))
    return sent


schedules_of_benign = st.fixed_dictionaries({}, optional=dict.fromkeys(PARTIES, benign))
schedules_of_harmful = st.fixed_dictionaries({}, optional=dict.fromkeys(PARTIES, harmful(40)))


# -- faults that the link repairs ------------------------------------------------------------------------------------
@examples(8, 15, derandomize=True)
@given(st.sampled_from(sorted(STRATEGIES)), schedules_of_benign)
def test_benign_faults_change_nothing(strategy: str, schedules: dict[str, Schedule]) -> None:
    ends = in_memory(strategy, schedules)
    assert all(map(right, ends.values())), ends


@examples(2, 3, derandomize=True)
@given(st.sampled_from(BOTH), schedules_of_benign)
def test_benign_faults_change_nothing_over_grpc(strategy: str, schedules: dict[str, Schedule]) -> None:
    ends = over_grpc(strategy, schedules)
    assert all(map(right, ends.values())), ends


# -- a party that dies -----------------------------------------------------------------------------------------------
@pytest.mark.costly
@pytest.mark.parametrize(("party", "strategy"), CROSSED)
def test_a_crash_at_any_frame_is_laid_at_the_right_door(strategy: str, party: str) -> None:
    """At frames in turn, and at the last one."""
    number = len(frames_by_sender(strategy)[party])
    for crash_at in {*in_turn_of(number), number - 1}:
        ends = in_memory(strategy, {party: Schedule(crash_at=crash_at)})
        assert_right_or_clear(ends)
        assert _crashed(ends[party]), (crash_at, ends[party])
        told = [end for name, end in ends.items() if name != party]
        assert any(isinstance(end, PeerError) for end in told), (crash_at, ends)
        for end in told:
            if isinstance(end, ComineError):
                assert (type(end), end.party) == (PeerError, party), (crash_at, ends)
            else:
                assert crash_at >= number - len(PARTIES) + 1, (crash_at, ends)  # only receipts were left


@pytest.mark.parametrize(("strategy", "party", "share"), [("level-wise", "south", 0.9)])
def test_a_crash_is_laid_at_the_right_door_over_grpc(strategy: str, party: str, share: float) -> None:
    crash_at = int(share * (len(frames_by_sender(strategy)[party]) - 2))
    ends = over_grpc(strategy, {party: Schedule(crash_at=crash_at)}, patience_s=2)
    assert _crashed(ends[party]), ends
    for name in set(PARTIES) - {party}:
        end = ends[name]
        assert isinstance(end, PeerError), (name, end)
        assert end.party == party, (name, end)


# -- a frame that is lost for good -----------------------------------------------------------------------------------
@pytest.mark.costly
@pytest.mark.parametrize(("sender", "strategy"), CROSSED)
def test_a_lost_frame_ends_at_the_deadline(strategy: str, sender: str) -> None:
    """The receiver names the sender; whoever waits for somebody else waits for one that waits for the receiver."""
    receivers = frames_by_sender(strategy)[sender]
    for place in in_turn_of(len(receivers)):
        receiver, number = receivers[place], receivers[:place].count(receivers[place])
        ends = in_memory(strategy, {sender: Loses(peer=receiver, number=number)})
        assert_right_or_clear(ends)
        assert isinstance(ends[receiver], DeadlineExceeded), (place, ends)
        assert ends[receiver].party == sender, (place, ends)
        for name, end in ends.items():
            if isinstance(end, PartyRun):
                assert place >= len(receivers) - len(PARTIES) + 1, (place, ends)  # all but receipts was done
            else:
                assert isinstance(end, DeadlineExceeded), (name, end)
                assert receiver in _blamed(name, ends), (name, ends)


def _blamed(name: str, ends: Ends) -> set[str]:
    """Who is reached by following who waited for whom."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        end = ends[name]
        if isinstance(end, ComineError):
            assert end.party is not None
            name = end.party
    return seen


# -- everything at once ----------------------------------------------------------------------------------------------
@examples(10, 20, derandomize=True)
@given(st.sampled_from(sorted(STRATEGIES)), schedules_of_harmful)
def test_harmful_faults(strategy: str, schedules: dict[str, Schedule]) -> None:
    assert_right_or_clear(in_memory(strategy, schedules))


@settings(SEEDED, max_examples=2)
@given(st.sampled_from(BOTH), schedules_of_harmful)
def test_harmful_faults_over_grpc(strategy: str, schedules: dict[str, Schedule]) -> None:
    assert_right_or_clear(over_grpc(strategy, schedules, deadline="2s", patience_s=0.3))


def test_equal_schedules_end_equally() -> None:
    schedules = {party: Schedule(seed=7, drop=0.05, delay=0.2, duplicate=0.3, reorder=0.3) for party in PARTIES}
    first, second = (in_memory("one-shot", schedules) for _ in range(2))
    assert {p: str(e) for p, e in first.items()} == {p: str(e) for p, e in second.items()}
    assert any(isinstance(end, ComineError) for end in first.values())


def test_a_hang_would_be_found() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Hang):
        run_still(wait_for_ever())

"""Whatever happens to frames and parties: the right result or a clear error, never a hang, never a wrong result."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.core import Transport
from link.errors import ComineError, DeadlineExceeded, PeerError
from link.session import Session
from link.transports.conformance.kit import ABC
from link.transports.conformance.messages import Chunk, Note
from link.transports.faulty import Crashed, EmulatedLink, FaultyTransport, Schedule
from link.transports.memory import Hub
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.link.kits import Wire, greet, run
from tests.schedules import benign, harmful
from tests.world import terms, transports

TERMS = terms(ABC)


async def _role(s: Session) -> int:
    """A sum of what each party says in each of three rounds, and a bulk message each way."""
    for peer in s.others:
        await s.lane("bulk").send_array(peer, Chunk, np.full(200_000, len(s.me), np.uint64))
    total = 0
    for number in range(3):
        await s.broadcast(Note(number=number + ord(s.me)))
        total += sum(m.number for m in (await s.gather(Note)).values()) + number + ord(s.me)
    bulk = s.lane("bulk")
    for peer in s.others:
        total += int((await bulk.recv_array(peer, Chunk, np.uint64, (200_000,))).sum())
    return total


RIGHT = 3 * sum(map(ord, ABC)) + 3 * (0 + 1 + 2) + 2 * 200_000


async def _party(name: str, transport: Transport, deadline_s: float) -> int:
    session = await greet(name, transport, TERMS, deadline_s=deadline_s)
    try:
        return await _role(session)
    except ComineError as error:
        await session.abort(error)
        raise


async def _outcomes(
    kind: str, schedules: dict[str, Schedule], deadline_s: float, patience_s: float = 20
) -> dict[str, object]:
    async with transports(ABC, kind, TERMS.job_id, patience_s=patience_s) as inner:
        faulty = {p: FaultyTransport(t, schedules.get(p, Schedule())) for p, t in inner.items()}
        done = await asyncio.gather(*(_party(p, t, deadline_s) for p, t in faulty.items()), return_exceptions=True)
        await asyncio.gather(*(t.close() for t in faulty.values()))
        return dict(zip(ABC, done, strict=True))


def _judge(outcomes: dict[str, object]) -> None:
    for party, outcome in outcomes.items():
        if isinstance(outcome, ComineError):
            assert outcome.message.isprintable(), party
        else:
            assert isinstance(outcome, Crashed) or outcome == RIGHT, (party, outcome)


@settings(max_examples=20, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ABC, benign)))
def test_benign_faults_change_nothing_in_memory(schedules):
    assert run(_outcomes("memory", schedules, 20)) == dict.fromkeys(ABC, RIGHT)


@settings(max_examples=6, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ABC, benign)))
def test_benign_faults_change_nothing_over_grpc(schedules):
    assert run(_outcomes("grpc", schedules, 20)) == dict.fromkeys(ABC, RIGHT)


@examples(10, 20)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ABC, harmful(12))))
def test_harmful_faults_in_memory(schedules):
    _judge(run(_outcomes("memory", schedules, 0.4)))


@examples(3, 6)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ABC, harmful(12))))
def test_harmful_faults_over_grpc(schedules):
    _judge(run(_outcomes("grpc", schedules, 0.8, patience_s=0.3)))


@pytest.mark.parametrize("crash_at", [0, 1, 2, 5, 9, 11])
def test_a_crash_is_told_to_the_others(crash_at):
    outcomes = run(_outcomes("memory", {"b": Schedule(crash_at=crash_at)}, 20))
    assert isinstance(outcomes["b"], Crashed)
    for party in ("a", "c"):
        outcome = outcomes[party]
        assert outcome == RIGHT or (isinstance(outcome, PeerError) and outcome.message == "b was lost")


def test_a_lost_frame_ends_at_the_deadline():
    outcomes = run(_outcomes("memory", {"b": Schedule(drop=1)}, 0.2))
    assert all(isinstance(outcome, DeadlineExceeded) for outcome in outcomes.values())


def test_a_schedule_is_replayed():
    async def pattern(seed: int) -> list[int]:
        wire = Wire()
        faulty = FaultyTransport(wire, Schedule(seed=seed, drop=0.3, duplicate=0.3, reorder=0.3, delay_s=0.001))
        for seq in range(60):
            await faulty.send("b", Frame(seq=seq))
        await faulty.close()
        return [frame.seq for frame in wire.sent]

    first = run(pattern(1))
    assert first == run(pattern(1))
    assert first != run(pattern(2))
    assert first != sorted(first)


def test_without_faults_nothing_changes():
    async def main() -> None:
        wire = Wire()
        faulty = FaultyTransport(wire, Schedule())
        for seq in range(100):
            await faulty.send("b", Frame(seq=seq))
        await faulty.close()
        assert [frame.seq for frame in wire.sent] == list(range(100))

    run(main())


def test_after_a_crash_nothing_leaves():
    async def main() -> None:
        wire = Wire()
        faulty = FaultyTransport(wire, Schedule(crash_at=1))
        await faulty.send("b", Frame())
        with pytest.raises(Crashed):
            await faulty.send("b", Frame())
        await faulty.send("b", Frame())
        await faulty.close()
        assert len(wire.sent) <= 1

    run(main())


def test_an_emulated_link_takes_its_time():
    """Two round trips of 2 × 20 ms, and 250 kB at 10 Mbit/s."""

    async def main() -> float:
        loop, hub = asyncio.get_running_loop(), Hub()
        slow = {p: EmulatedLink(hub.endpoint(p), 0.02, 10e6) for p in ("a", "b")}
        agreed = terms(("a", "b"))
        a, b = await asyncio.gather(*(greet(p, t, agreed) for p, t in slow.items()))
        began = loop.time()

        async def ask() -> None:
            await a.send_array("b", Chunk, np.zeros(250_000, np.uint8))
            await a.recv("b", Note)
            await a.send("b", Note())
            await a.recv("b", Note)

        async def answer() -> None:
            await b.recv_array("a", Chunk, np.uint8, (250_000,))
            await b.send("a", Note())
            await b.recv("a", Note)
            await b.send("a", Note())

        await asyncio.gather(ask(), answer())
        took = loop.time() - began
        await asyncio.gather(*(t.close() for t in slow.values()))
        return took

    assert run(main()) >= 4 * 0.02 + 8 * 250_000 / 10e6

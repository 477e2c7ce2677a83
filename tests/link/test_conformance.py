"""What every transport must give a session. One suite, all transports."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from link import core
from link.disclosure import Declared
from link.errors import (
    DeadlineExceeded,
    JobCancelled,
    LimitExceeded,
    MalformedMessage,
    PolicyDenied,
    ProtocolViolation,
    UndeclaredDisclosure,
    UnexpectedMessage,
)
from link.pki.authority import Authority
from link.receipts import Receipts
from link.session import Session
from protos.v1.link_pb2 import Receipt
from tests.link.kits import AB, ABC, BENIGN, KITS, each, run, sessions
from tests.link.messages import Chunk, Leak, Note
from tests.world import run_parties

pytestmark = pytest.mark.parametrize("kit", KITS)


def test_frames_of_a_lane_arrive_in_order(kit):
    async def role(s: Session) -> dict[str, list[int]]:
        for number in range(50):
            await s.broadcast(Note(number=number))
        return {p: [(await s.recv(p, Note)).number for _ in range(50)] for p in s.others}

    async def main():
        async with sessions(kit) as world:
            for got in (await each(world, role)).values():
                assert all(numbers == list(range(50)) for numbers in got.values())

    run(main())


def test_lanes_are_independent(kit):
    async def role(s: Session) -> tuple[int, int]:
        (peer,) = s.others
        one, two = s.lane("one"), s.lane("two")
        await one.send(peer, Note(number=1))
        await two.send(peer, Note(number=2))
        second, first = await two.recv(peer, Note), await one.recv(peer, Note)
        return first.number, second.number

    async def main():
        async with sessions(kit, AB) as world:
            assert set((await each(world, role)).values()) == {(1, 2)}

    run(main())


def test_concurrent_subprotocols(kit):
    async def one(lane: Session, depth: int) -> int:
        total = 0
        for number in range(depth):
            await lane.broadcast(Note(number=number))
            total += sum(m.number for m in (await lane.gather(Note)).values())
        return total

    async def role(s: Session) -> list[int]:
        return await asyncio.gather(*(one(s.lane(f"part-{i}"), 3 + i) for i in range(8)))

    async def main():
        async with sessions(kit) as world:
            expected = [2 * sum(range(3 + i)) for i in range(8)]
            assert all(got == expected for got in (await each(world, role)).values())

    run(main())


async def _many_lanes(s: Session, lanes: int, width: int) -> None:
    """A message each way on so many lanes, `width` of them at a time."""
    (peer,) = s.others

    async def one_after_another(first: int) -> None:
        for number in range(first, lanes, width):
            lane = s.lane(f"part/batch-{number}")
            await lane.send(peer, Note(number=number))
            assert (await lane.recv(peer, Note)).number == number

    await asyncio.gather(*(one_after_another(first) for first in range(width)))


def test_a_session_uses_more_lanes_than_may_be_open_at_once(kit, monkeypatch):
    monkeypatch.setattr(core, "MAX_LANES", 16)

    async def main():
        async with sessions(kit, AB) as world:
            await each(world, lambda s: _many_lanes(s, 100, 8))

    run(main())


@pytest.mark.slow
def test_a_session_uses_twenty_thousand_lanes(kit, monkeypatch):
    monkeypatch.setitem(KITS, "faulty-grpc", ("grpc", replace(BENIGN, cut=0.0005)))  # each cut takes half a second
    authority, width = Authority.create(), 16 if "faulty" in kit else 1

    async def role(s: Session) -> list[tuple[str, int]]:
        await _many_lanes(s, 20_000, width)
        receipts = Receipts(s, authority.issue(s.me))
        await receipts.exchange()
        (account,) = receipts.accounts().values()
        return [(head.lane, head.frames) for head in Receipt.FromString(account.mine.receipt).sent]

    async def main():
        async with sessions(kit, AB, deadline_s=600) as world:
            for heads in (await each(world, role)).values():
                assert heads == [("/part/*", 20_000), ("hello", 1)]

    asyncio.run(main())


def test_lanes_that_nobody_waits_for_end_the_session(kit, monkeypatch):
    monkeypatch.setattr(core, "MAX_LANES", 16)

    async def main():
        async with sessions(kit, AB) as world:
            a, b = world["a"], world["b"]
            waiting = asyncio.create_task(a.lane("awaited").recv("b", Note))
            for number in range(17):
                await b.lane(str(number)).send("a", Note())
            with pytest.raises(LimitExceeded, match="b opened more than 16 lanes") as ended:
                await waiting
            assert ended.value.party == "b"

    run(main())


def test_bulk_both_ways_before_anyone_reads(kit):
    values = {p: np.random.default_rng(ord(p)).integers(0, 2**63, 1 << 20, dtype=np.uint64) for p in AB}

    async def role(s: Session) -> bool:
        (peer,) = s.others
        await s.send_array(peer, Chunk, values[s.me])
        return np.array_equal(await s.recv_array(peer, Chunk, np.uint64, (1 << 20,)), values[peer])

    async def main():
        async with sessions(kit, AB) as world:
            assert all((await each(world, role)).values())

    run(main())


def test_empty_messages_and_arrays(kit):
    async def role(s: Session) -> tuple[int, ...]:
        (peer,) = s.others
        await s.send(peer, Note())
        await s.send_array(peer, Chunk, np.empty((0, 3), np.uint64))
        assert await s.recv(peer, Note) == Note()
        return (await s.recv_array(peer, Chunk, np.uint64, (0, 3))).shape

    async def main():
        async with sessions(kit, AB) as world:
            assert set((await each(world, role)).values()) == {(0, 3)}

    run(main())


def test_what_is_not_the_expected_message_is_refused(kit):
    def small(note) -> None:
        if note.number > 9:
            raise ValueError("a number below 10 was expected")

    async def main():
        async with sessions(kit, AB) as world:
            a, b = world["a"], world["b"]
            await b.lane("type").send("a", Chunk(data=b"x"))
            await b.lane("check").send("a", Note(number=10))
            await b.lane("stream").send_stream("a", [Note(), Note()])
            await b.lane("size").send_array("a", Chunk, np.zeros(3, np.uint64))
            await b.lane("long").send_array("a", Chunk, np.zeros(3, np.uint64))
            bad = b.lane("bytes")
            await bad._core.transmit("a", bad.path, Note, b"\xff\xff", last=True, round_=1)
            with pytest.raises(UnexpectedMessage, match="b sent Chunk where Note was expected"):
                await a.lane("type").recv("b", Note)
            with pytest.raises(MalformedMessage, match="a number below 10") as refused:
                await a.lane("check").recv("b", Note, small)
            assert refused.value.party == "b"
            with pytest.raises(UnexpectedMessage, match="a stream where one Note"):
                await a.lane("stream").recv("b", Note)
            with pytest.raises(MalformedMessage, match="less"):
                await a.lane("size").recv_array("b", Chunk, np.uint64, (4,))
            with pytest.raises(MalformedMessage, match="more"):
                await a.lane("long").recv_array("b", Chunk, np.uint64, (2,))
            with pytest.raises(MalformedMessage, match="cannot be read"):
                await a.lane("bytes").recv("b", Note)

    run(main())


def test_a_stream_has_a_limit(kit):
    async def main():
        async with sessions(kit, AB) as world:
            await world["b"].send_stream("a", [Note(data=bytes(1000)) for _ in range(5)])
            with pytest.raises(ProtocolViolation, match="more than 2500 bytes"):
                async for _ in world["a"].recv_stream("b", Note, limit=2500):
                    pass

    run(main())


def test_the_deadline_names_who_was_waited_for(kit):
    async def main():
        async with sessions(kit, deadline_s=1) as world:
            with pytest.raises(DeadlineExceeded, match="waited for Note of c") as late:
                await world["a"].recv("c", Note)
            assert late.value.party == "c"

    run(main())


def test_an_abort_reaches_all_peers(kit):
    async def main():
        async with sessions(kit) as world:
            waits = [asyncio.create_task(world[p].lane("deep").recv("c", Note)) for p in ("a", "b")]
            await asyncio.sleep(0)
            await world["c"].abort(PolicyDenied("c may not do this"))
            for wait in waits:
                with pytest.raises(PolicyDenied, match="c may not do this") as told:
                    await wait
                assert told.value.party == "c"
            with pytest.raises(PolicyDenied):
                await world["c"].send("a", Note())

    run(main())


def test_a_failure_wakes_every_wait(kit):
    async def main():
        async with sessions(kit) as world:
            a = world["a"]
            waits = [asyncio.create_task(a.lane(f"{p}{i}").recv(p, Note)) for p in a.others for i in range(5)]
            await asyncio.sleep(0)
            a.fail(JobCancelled("the operator cancelled the job"))
            for outcome in await asyncio.gather(*waits, return_exceptions=True):
                assert isinstance(outcome, JobCancelled)

    run(main())


def test_a_cancelled_party_can_still_tell_why(kit):
    async def main():
        async with sessions(kit, AB) as world:
            task = asyncio.create_task(world["a"].recv("b", Note))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await world["a"].abort(JobCancelled("cancelled at a"))
            with pytest.raises(JobCancelled, match="cancelled at a"):
                await world["b"].recv("a", Note)

    run(main())


DECLARED = (
    Declared("sum", frozenset(AB), "integer", 4, "at the end"),
    Declared("secret", frozenset({"c"}), "integer", 1, "at the end"),
)


def test_openings_are_enforced_where_they_leave(kit):
    async def main():
        async with sessions(kit, AB, declared=DECLARED) as world:
            a, b = world["a"], world["b"]
            before = a.costs.bytes_sent
            with pytest.raises(UndeclaredDisclosure, match="'max'"):
                await a.open("max", np.arange(1))
            with pytest.raises(UndeclaredDisclosure, match="more than 4"):
                await a.open("sum", np.arange(5))
            with pytest.raises(UndeclaredDisclosure, match="to b, who may not"):
                await a.open("secret", np.arange(1))
            with pytest.raises(UndeclaredDisclosure, match=r"only Session\.open"):
                await a.send("b", Leak(value=3))
            assert a.costs.bytes_sent == before
            assert a.ledger.record == []
            await a.open("sum", np.arange(3))
            assert list(await b.receive_opened("a", "sum", np.int64, (3,))) == [0, 1, 2]
            await a.lane("later").open("sum", np.arange(1))
            with pytest.raises(UndeclaredDisclosure, match="more than 4"):
                await a.open("sum", np.arange(1))
            assert [(o.label, o.number, o.recipients) for o in a.ledger.record] == [
                ("sum", 3, ("b",)),
                ("sum", 1, ("b",)),
            ]

    run(main())


def test_openings_are_enforced_where_they_arrive(kit):
    async def main():
        async with sessions(kit, AB, declared=DECLARED) as world:
            a, b = world["a"], world["b"]
            with pytest.raises(UndeclaredDisclosure, match="a opened 'max'"):
                await b.receive_opened("a", "max", np.int64, (1,))
            await a.open("sum", np.arange(3))
            with pytest.raises(MalformedMessage, match="2 values of 'sum'"):
                await b.receive_opened("a", "sum", np.int64, (2,))

    run(main())


async def _protocol(s: Session) -> int:
    """Three rounds, two lanes, some bulk."""
    bulk = s.lane("bulk")
    for peer in s.others:
        await bulk.send_array(peer, Chunk, np.full(300_000, ord(s.me), np.uint64))
    total = 0
    for number in range(3):
        await s.broadcast(Note(number=number + ord(s.me)))
        total += sum(m.number for m in (await s.gather(Note)).values())
    for peer in s.others:
        total += int((await bulk.recv_array(peer, Chunk, np.uint64, (300_000,)))[0])
    return total


def test_both_ends_record_the_same(kit):
    async def main():
        async with sessions(kit) as world:
            await each(world, _protocol)
            for a in ABC:
                for b in set(ABC) - {a}:
                    sent = world[a].transcript.heads(b, "sent")
                    assert sent == world[b].transcript.heads(a, "received")
                    assert [head.lane for head in sent] == ["", "/bulk", "hello"]

    run(main())


def test_receipts_end_a_job(kit):
    authority = Authority.create()

    async def role(s: Session) -> set[str]:
        await _protocol(s)
        receipts = Receipts(s, authority.issue(s.me))
        await receipts.exchange()
        return {peer for peer, account in receipts.accounts().items() if account.theirs is not None}

    async def main():
        async with sessions(kit) as world:
            got = await each(world, role)
            assert got == {p: set(ABC) - {p} for p in ABC}

    run(main())


def test_rounds_and_bytes_do_not_depend_on_timing(kit):
    async def main():
        async with sessions(kit) as world:
            await each(world, _protocol)
            return {p: (s.costs.rounds, s.costs.bytes_sent) for p, s in world.items()}

    assert run(main()) == run(_expected())


async def _expected() -> dict[str, tuple[int, int]]:
    async with sessions("memory") as world:
        await each(world, _protocol)
        return {p: (s.costs.rounds, s.costs.bytes_sent) for p, s in world.items()}


def test_the_helper_runs_parties_and_raises_the_root_error(kit):
    transport, _ = KITS[kit]

    async def fine(s: Session) -> str:
        await s.broadcast(Note(number=1))
        await s.gather(Note)
        return s.me

    async def broken(s: Session) -> str:
        raise ArithmeticError("this one")

    assert run_parties(ABC, fine, transport=transport) == {p: p for p in ABC}
    with pytest.raises(ArithmeticError, match="this one"):
        run_parties(ABC, {"a": fine, "b": broken, "c": fine}, transport=transport)

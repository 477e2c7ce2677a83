"""The checks: each takes a transport under test, and raises an `AssertionError` where it is none for a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import numpy as np

from link.core import Transport
from link.disclosure import Declared
from link.errors import (
    DeadlineExceeded,
    JobCancelled,
    MalformedMessage,
    PolicyDenied,
    ProtocolViolation,
    UndeclaredDisclosure,
    UnexpectedMessage,
)
from link.pki.authority import Authority
from link.session import Session
from link.transcripts.receipts import Receipts
from link.transports.conformance.kit import AB, ABC, Kit, each, refused, require
from link.transports.conformance.messages import Chunk, Leak, Note
from link.transports.memory import Hub

Check = Callable[[Kit], Coroutine[Any, Any, None]]

_LIMIT_S: Final = 30  # of a check: one that hangs fails
_BULK: Final = 1 << 20  # words


def run(check: Check, kit: Kit) -> None:
    """Runs one check.

    Raises:
        AssertionError: The transport does not pass it.
        TimeoutError: It hangs.
    """

    async def bounded() -> None:
        async with asyncio.timeout(_LIMIT_S):
            await check(kit)

    asyncio.run(bounded())


async def frames_of_a_lane_arrive_in_order(kit: Kit) -> None:
    """Whatever the transport does to frames on their way."""

    async def role(s: Session) -> list[list[int]]:
        for number in range(50):
            await s.broadcast(Note(number=number))
        return [[(await s.recv(peer, Note)).number for _ in range(50)] for peer in s.others]

    async with kit.sessions() as world:
        for got in (await each(world, role)).values():
            require(got == [list(range(50))] * 2, "messages of a lane come in another order")


async def lanes_are_independent(kit: Kit) -> None:
    """What comes first on one lane may be read after what comes later on another."""

    async def role(s: Session) -> tuple[int, int]:
        (peer,) = s.others
        one, two = s.lane("one"), s.lane("two")
        await one.send(peer, Note(number=1))
        await two.send(peer, Note(number=2))
        second, first = await two.recv(peer, Note), await one.recv(peer, Note)
        return first.number, second.number

    async with kit.sessions(AB) as world:
        require(set((await each(world, role)).values()) == {(1, 2)}, "messages of two lanes are taken for each other")


async def parts_run_at_the_same_time(kit: Kit) -> None:
    """Eight parts of a protocol on lanes of their own, each with several rounds."""

    async def one(lane: Session, depth: int) -> int:
        total = 0
        for number in range(depth):
            await lane.broadcast(Note(number=number))
            total += sum(m.number for m in (await lane.gather(Note)).values())
        return total

    async def role(s: Session) -> list[int]:
        return await asyncio.gather(*(one(s.lane(f"part-{i}"), 3 + i) for i in range(8)))

    async with kit.sessions() as world:
        expected = [2 * sum(range(3 + i)) for i in range(8)]
        require(all(got == expected for got in (await each(world, role)).values()), "messages of parts are mixed up")


async def bulk_goes_both_ways_before_anyone_reads(kit: Kit) -> None:
    """Nobody reads before it has sent: a transport that waits for readers would never go on."""
    values = {p: np.arange(_BULK, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15 + ord(p)) for p in AB}

    async def role(s: Session) -> bool:
        (peer,) = s.others
        await s.send_array(peer, Chunk, values[s.me])
        return np.array_equal(await s.recv_array(peer, Chunk, np.uint64, (_BULK,)), values[peer])

    async with kit.sessions(AB) as world:
        require(all((await each(world, role)).values()), "an array comes as another one")


async def messages_and_arrays_may_be_empty(kit: Kit) -> None:
    """They come all the same."""

    async def role(s: Session) -> tuple[int, ...]:
        (peer,) = s.others
        await s.send(peer, Note())
        await s.send_array(peer, Chunk, np.empty((0, 3), np.uint64))
        require(await s.recv(peer, Note) == Note(), "an empty message comes as another one")
        return (await s.recv_array(peer, Chunk, np.uint64, (0, 3))).shape

    async with kit.sessions(AB) as world:
        require(set((await each(world, role)).values()) == {(0, 3)}, "an empty array comes as another one")


async def what_is_not_the_expected_message_is_refused(kit: Kit) -> None:
    """Of another type, kind, size or content."""

    def small(note: Any) -> None:
        if note.number > 9:
            raise ValueError("a number below 10 was expected")

    async with kit.sessions(AB) as world:
        a, b = world["a"], world["b"]
        await b.lane("type").send("a", Chunk(data=b"x"))
        await b.lane("check").send("a", Note(number=10))
        await b.lane("stream").send_stream("a", [Note(), Note()])
        await b.lane("size").send_array("a", Chunk, np.zeros(3, np.uint64))
        await b.lane("long").send_array("a", Chunk, np.zeros(3, np.uint64))
        bad = b.lane("bytes")
        await bad.core.transmit("a", bad.path, Note, b"\xff\xff", last=True, round_=1)
        with refused(UnexpectedMessage, "b sent Chunk where Note was expected"):
            await a.lane("type").recv("b", Note)
        with refused(MalformedMessage, "a number below 10", party="b"):
            await a.lane("check").recv("b", Note, small)
        with refused(UnexpectedMessage, "a stream where one Note"):
            await a.lane("stream").recv("b", Note)
        with refused(MalformedMessage, "less"):
            await a.lane("size").recv_array("b", Chunk, np.uint64, (4,))
        with refused(MalformedMessage, "more"):
            await a.lane("long").recv_array("b", Chunk, np.uint64, (2,))
        with refused(MalformedMessage, "cannot be read"):
            await a.lane("bytes").recv("b", Note)


async def a_stream_has_a_limit(kit: Kit) -> None:
    """A peer that sends more than was agreed on is stopped."""
    async with kit.sessions(AB) as world:
        await world["b"].send_stream("a", [Note(data=bytes(1000)) for _ in range(5)])
        with refused(ProtocolViolation, "more than 2500 bytes"):
            async for _ in world["a"].recv_stream("b", Note, limit=2500):
                pass


async def the_deadline_names_who_was_waited_for(kit: Kit) -> None:
    """A party that sends nothing is named, and not blamed: it may wait for another."""
    async with kit.sessions(deadline_s=1) as world:
        with refused(DeadlineExceeded, "; c may have been kept waiting itself", party="c"):
            await world["a"].recv("c", Note)


async def an_abort_reaches_all_peers(kit: Kit) -> None:
    """With its reason, wherever they wait; nothing is sent after it."""
    async with kit.sessions() as world:
        waits = [asyncio.create_task(world[p].lane("deep").recv("c", Note)) for p in AB]
        await asyncio.sleep(0)
        await world["c"].abort(PolicyDenied("c may not do this"))
        for wait in waits:
            with refused(PolicyDenied, "c may not do this", party="c"):
                await wait
        with refused(PolicyDenied, "c may not do this"):
            await world["c"].send("a", Note())


async def a_failure_wakes_every_wait(kit: Kit) -> None:
    """All who wait for any peer on any lane hear of it."""
    async with kit.sessions() as world:
        a = world["a"]
        waits = [asyncio.create_task(a.lane(f"{p}{i}").recv(p, Note)) for p in a.others for i in range(5)]
        await asyncio.sleep(0)
        a.fail(JobCancelled("the operator cancelled the job"))
        met = await asyncio.gather(*waits, return_exceptions=True)
        require(all(isinstance(each, JobCancelled) for each in met), "a wait goes on after the session has failed")


async def a_cancelled_party_can_still_say_why(kit: Kit) -> None:
    """A wait that is cancelled leaves the transport as it was."""
    async with kit.sessions(AB) as world:
        task = asyncio.create_task(world["a"].recv("b", Note))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        require(task.cancelled(), "a wait that is cancelled ends otherwise")
        await world["a"].abort(JobCancelled("cancelled at a"))
        with refused(JobCancelled, "cancelled at a"):
            await world["b"].recv("a", Note)


_DECLARED: Final = (
    Declared("sum", frozenset(AB), "integer", 4, "at the end"),
    Declared("secret", frozenset({"c"}), "integer", 1, "at the end"),
)


async def openings_are_enforced_where_they_leave(kit: Kit) -> None:
    """What the statement does not declare is not sent."""
    async with kit.sessions(AB, declared=_DECLARED) as world:
        a, b = world["a"], world["b"]
        before = a.costs.bytes_sent
        with refused(UndeclaredDisclosure, "'max'"):
            await a.open("max", np.arange(1))
        with refused(UndeclaredDisclosure, "more than 4"):
            await a.open("sum", np.arange(5))
        with refused(UndeclaredDisclosure, "to b, who may not"):
            await a.open("secret", np.arange(1))
        with refused(UndeclaredDisclosure, "only Session.open"):
            await a.send("b", Leak(value=3))
        require(a.costs.bytes_sent == before, "something was sent that the statement does not declare")
        require(not a.ledger.record, "something is recorded as opened that was refused")
        await a.open("sum", np.arange(3))
        got = await b.receive_opened("a", "sum", np.int64, (3,))
        require(got.tolist() == [0, 1, 2], "what was opened comes as something else")
        await a.lane("later").open("sum", np.arange(1))
        with refused(UndeclaredDisclosure, "more than 4"):
            await a.open("sum", np.arange(1))
        opened = [(each.label, each.number, each.recipients) for each in a.ledger.record]
        require(opened == [("sum", 3, ("b",)), ("sum", 1, ("b",))], "the record is not of what was opened")


async def openings_are_enforced_where_they_arrive(kit: Kit) -> None:
    """What the statement does not declare is not taken."""
    async with kit.sessions(AB, declared=_DECLARED) as world:
        a, b = world["a"], world["b"]
        with refused(UndeclaredDisclosure, "a opened 'max'"):
            await b.receive_opened("a", "max", np.int64, (1,))
        await a.open("sum", np.arange(3))
        with refused(MalformedMessage, "2 values of 'sum'"):
            await b.receive_opened("a", "sum", np.int64, (2,))


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


async def both_ends_record_the_same(kit: Kit) -> None:
    """Of each pair of parties and direction, lane by lane."""
    async with kit.sessions() as world:
        await each(world, _protocol)
        for a in ABC:
            for b in set(ABC) - {a}:
                sent = world[a].transcript.heads(b, "sent")
                require(sent == world[b].transcript.heads(a, "received"), f"{a} has sent what {b} did not receive")
                require([head.lane for head in sent] == ["", "/bulk", "hello"], "the record has other lanes")


async def receipts_end_a_job(kit: Kit) -> None:
    """All parties sign the same of their frames."""
    authority = Authority.create()

    async def role(s: Session) -> set[str]:
        await _protocol(s)
        receipts = Receipts(s, authority.issue(s.me))
        await receipts.exchange()
        return {peer for peer, account in receipts.accounts().items() if account.theirs is not None}

    async with kit.sessions() as world:
        got = await each(world, role)
        require(got == {p: set(ABC) - {p} for p in ABC}, "a party lacks the receipt of another")


async def rounds_and_bytes_do_not_depend_on_timing(kit: Kit) -> None:
    """They are those of a transport in memory."""

    @asynccontextmanager
    async def in_memory(parties: Sequence[str], job_id: bytes) -> AsyncIterator[Mapping[str, Transport]]:  # noqa: ARG001
        hub = Hub()
        yield {party: hub.endpoint(party) for party in parties}

    async def costs(of: Kit) -> dict[str, tuple[int, int]]:
        async with of.sessions() as world:
            await each(world, _protocol)
            return {party: (s.costs.rounds, s.costs.bytes_sent) for party, s in world.items()}

    require(await costs(kit) == await costs(Kit(in_memory, kit.random)), "rounds or bytes are others than in memory")


CHECKS: Final[tuple[Check, ...]] = (
    frames_of_a_lane_arrive_in_order,
    lanes_are_independent,
    parts_run_at_the_same_time,
    bulk_goes_both_ways_before_anyone_reads,
    messages_and_arrays_may_be_empty,
    what_is_not_the_expected_message_is_refused,
    a_stream_has_a_limit,
    the_deadline_names_who_was_waited_for,
    an_abort_reaches_all_peers,
    a_failure_wakes_every_wait,
    a_cancelled_party_can_still_say_why,
    openings_are_enforced_where_they_leave,
    openings_are_enforced_where_they_arrive,
    both_ends_record_the_same,
    receipts_end_a_job,
    rounds_and_bytes_do_not_depend_on_timing,
)
"""All of them."""

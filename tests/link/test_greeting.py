"""What parties must agree on before a session begins, and what may reach a session at all."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import tracemalloc
from dataclasses import replace

import pytest

from link import core
from link.core import MAX_AHEAD, MAX_BODY_BYTES, MAX_BUFFERED_BYTES, MAX_LANES, MAX_ROUND
from link.errors import (
    ComineError,
    DeadlineExceeded,
    IdentityError,
    LimitExceeded,
    MalformedMessage,
    PolicyDenied,
    UnexpectedMessage,
    VersionMismatch,
)
from link.session import Session
from link.transcripts.transcript import header_of, mark_of
from link.transports.conformance.kit import AB, ABC
from link.transports.conformance.messages import Note
from link.transports.memory import Hub
from link.version import WIRE_VERSION
from protos.v1.link_pb2 import Abort, Frame, Hello
from tests.errors import fails
from tests.link.kits import Wire, greet, run
from tests.world import terms

pytestmark = pytest.mark.turn(3)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"suite": "other"}, "cryptographic suite"),
        ({"spec_digest": bytes(32)}, "job specification"),
        ({"parties": ("b", "a")}, "list of parties"),
        ({"attempt": 2}, "attempt"),
    ],
)
def test_a_difference_ends_the_session(change, what):
    async def main():
        hub = Hub()
        agreed = terms(AB)
        outcomes = await asyncio.gather(
            greet("a", hub.endpoint("a"), agreed),
            greet("b", hub.endpoint("b"), replace(agreed, **change)),
            return_exceptions=True,
        )
        for outcome, peer in zip(outcomes, ("b", "a"), strict=True):
            assert isinstance(outcome, VersionMismatch)
            assert outcome.party == peer
            assert what in outcome.message

    run(main())


def test_another_job_is_not_greeted():
    async def main():
        hub = Hub()
        agreed = terms(AB)
        outcomes = await asyncio.gather(
            greet("a", hub.endpoint("a"), agreed),
            greet("b", hub.endpoint("b"), replace(agreed, job_id=bytes(32))),
            return_exceptions=True,
        )
        assert all(isinstance(outcome, UnexpectedMessage) for outcome in outcomes)

    run(main())


def test_an_absent_peer_is_named():
    async def main():
        with pytest.raises(DeadlineExceeded) as late:
            await greet("a", Hub().endpoint("a"), terms(AB), deadline_s=0.1)
        assert late.value.party == "b"

    run(main())


def test_no_two_sessions_of_a_job_share_an_id():
    async def session_ids(seed):
        hub = Hub()
        made = await asyncio.gather(*(greet(p, hub.endpoint(p), terms(AB), seed=seed) for p in AB))
        return {s.id for s in made}

    first, second = run(session_ids(1)), run(session_ids(2))
    assert len(first) == len(second) == 1
    assert first != second


def test_frames_that_come_before_the_session_began_are_kept():
    class Late:
        """Keeps b's greeting from c until released, as a slow network would."""

        def __init__(self, inner):
            self.inner, self.held, self.receiver = inner, [], None

        def attach(self, receiver):
            self.receiver = receiver
            self.inner.attach(self)

        def deliver(self, peer, frame):
            if peer == "b" and frame.lane == "hello":
                self.held.append((peer, frame))
            else:
                self.receiver.deliver(peer, frame)

        def fail(self, error):
            self.receiver.fail(error)

        async def send(self, to, frame):
            await self.inner.send(to, frame)

        async def close(self, *, hurried=False):
            await self.inner.close(hurried=hurried)

    async def main():
        hub = Hub()
        late = Late(hub.endpoint("c"))
        agreed = terms(ABC)
        waiting = asyncio.create_task(greet("c", late, agreed))
        a, b = await asyncio.gather(*(greet(p, hub.endpoint(p), agreed) for p in AB))
        for number in range(3):
            await a.send("c", Note(number=number))
            await b.send("c", Note(number=number))
        assert not waiting.done()
        for held in late.held:
            late.receiver.deliver(*held)
        c = await waiting
        for peer in AB:
            assert [(await c.recv(peer, Note)).number for _ in range(3)] == [0, 1, 2]

    run(main())


class _Played:
    """Party a, whose peer b is played by the test."""

    def __init__(self) -> None:
        self.wire, self.agreed = Wire(), terms(AB)

    async def begin(self, ahead_bytes: int = MAX_BUFFERED_BYTES) -> Session:
        task = asyncio.create_task(greet("a", self.wire, self.agreed, ahead_bytes=ahead_bytes))
        await self.wire.attached.wait()
        self.receive(self.hello())
        return await task

    def receive(self, frame: Frame) -> None:
        self.wire.receiver.deliver("b", frame)

    def hello(self, **change) -> Frame:
        fields = {
            "job_id": self.agreed.job_id,
            "attempt": 1,
            "nonce": bytes(16),
            "spec_digest": self.agreed.spec_digest,
            "parties": AB,
            "version": WIRE_VERSION,
            "suite": self.agreed.suite,
        } | change
        body = Hello(**fields).SerializeToString()
        return Frame(
            session=self.agreed.job_id,
            sender="b",
            receiver="a",
            lane="hello",
            type="comine.v1.Hello",
            body=body,
            last=True,
            round=1,
        )

    @staticmethod
    def frame(of: Session, **change) -> Frame:
        fields = {
            "session": of.id,
            "sender": "b",
            "receiver": "a",
            "lane": "/x",
            "type": Note.DESCRIPTOR.full_name,
            "body": b"",
            "last": True,
            "round": 1,
        } | change
        made = Frame(**fields)
        if "mark" not in change:
            made.mark = mark_of(header_of(made))
        return made


@pytest.mark.parametrize(
    ("change", "error"),
    [({"version": "0"}, VersionMismatch), ({"nonce": bytes(8)}, MalformedMessage), ({"nonce": b""}, MalformedMessage)],
)
def test_bad_greetings(change, error):
    async def main():
        played = _Played()
        task = asyncio.create_task(greet("a", played.wire, played.agreed))
        await played.wire.attached.wait()
        played.receive(played.hello(**change))
        with pytest.raises(error):
            await task
        assert [f.type for f in played.wire.sent] == ["comine.v1.Hello", "comine.v1.Abort"]

    run(main())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sender": "c"}, IdentityError),
        ({"mark": b""}, MalformedMessage),
        ({"mark": bytes(8)}, MalformedMessage),
        ({"receiver": "c"}, UnexpectedMessage),
        ({"session": bytes(32)}, UnexpectedMessage),
        ({"seq": MAX_AHEAD + 1}, LimitExceeded),
        ({"body": bytes(MAX_BODY_BYTES + 1)}, LimitExceeded),
        ({"round": MAX_ROUND + 1}, LimitExceeded),
        ({"type": Abort.DESCRIPTOR.full_name, "body": b"\xff"}, MalformedMessage),
        (
            {"type": Abort.DESCRIPTOR.full_name, "body": Abort(code="E300", message="no").SerializeToString()},
            PolicyDenied,
        ),
        ({"type": Abort.DESCRIPTOR.full_name, "body": Abort(code="?", message="no").SerializeToString()}, ComineError),
    ],
)
def test_frames_that_end_the_session(change, error):
    async def main():
        played = _Played()
        session = await played.begin()
        waiting = asyncio.create_task(session.recv("b", Note))
        await asyncio.sleep(0)
        played.receive(_Played.frame(session, **change))
        with pytest.raises(error) as ended:
            await waiting
        assert ended.value.party == "b"
        with pytest.raises(error):
            await session.send("b", Note())

    run(main())


def test_a_type_that_floods_a_terminal_is_told_in_short():
    async def main():
        played = _Played()
        session = await played.begin()
        waiting = asyncio.create_task(session.recv("b", Note))
        await asyncio.sleep(0)
        played.receive(_Played.frame(session, lane="", type="\x1b[2J" + "x" * (1 << 20)))
        with pytest.raises(UnexpectedMessage) as ended:
            await waiting
        assert len(ended.value.message) < 2_000
        assert ended.value.message.isprintable()

    run(main())


def test_a_reason_to_abort_is_made_printable_and_short():
    async def main():
        played = _Played()
        session = await played.begin()
        body = Abort(code="E500", message="\x1b[31mred\n" + "x" * 5000).SerializeToString()
        played.receive(_Played.frame(session, type=Abort.DESCRIPTOR.full_name, body=body))
        with pytest.raises(ComineError) as ended:
            await session.recv("b", Note)
        assert ended.value.message.isprintable()
        assert len(ended.value.message) == core.MAX_REASON

    run(main())


def test_order_and_copies_do_not_matter():
    async def main():
        played = _Played()
        session = await played.begin()
        for seq in (2, 0, 0, 1, 2, 1):
            played.receive(_Played.frame(session, seq=seq, body=Note(number=seq).SerializeToString()))
        lane = session.lane("x")
        assert [(await lane.recv("b", Note)).number for _ in range(3)] == [0, 1, 2]
        (hello, mine) = session.transcript.heads("b", "received")[::-1]
        assert (hello.lane, mine.lane, mine.frames) == ("hello", "/x", 3)

    run(main())


def test_a_peer_cannot_open_lanes_without_end():
    async def main():
        played = _Played()
        session = await played.begin()
        for number in range(MAX_LANES):
            played.receive(_Played.frame(session, lane=f"/{number}"))
        await session.lane("0").send("b", Note())
        played.receive(_Played.frame(session, lane="/one too many"))
        with fails("E403") as ended:
            await session.lane("0").send("b", Note())
        assert ended.value.party == "b"


def test_lanes_that_are_read_make_room_for_others():
    async def main():
        played = _Played()
        session = await played.begin()
        for number in range(3 * MAX_LANES):
            played.receive(_Played.frame(session, lane=f"/{number}"))
            await session.lane(str(number)).recv("b", Note)
        for number in range(MAX_LANES):  # the second frames: those who read the first ones have long gone
            played.receive(_Played.frame(session, lane=f"/{number}", seq=1))
        await session.lane("0").send("b", Note())
        played.receive(_Played.frame(session, lane=f"/{MAX_LANES}", seq=1))
        with fails("E403", party="b"):
            await session.lane("0").send("b", Note())

    run(main())


def test_frames_before_their_turn_keep_their_lane_open(monkeypatch):
    monkeypatch.setattr(core, "MAX_LANES", 3)

    async def main():
        played = _Played()
        session = await played.begin()
        for number in range(3):
            for seq in (0, 2):
                played.receive(_Played.frame(session, lane=f"/{number}", seq=seq))
            await session.lane(str(number)).recv("b", Note)
        played.receive(_Played.frame(session, lane="/0", seq=1))
        assert [await session.lane("0").recv("b", Note) for _ in range(2)] == [Note(), Note()]
        played.receive(_Played.frame(session, lane="/3"))
        await session.send("b", Note())
        played.receive(_Played.frame(session, lane="/4"))
        with fails("E403", party="b"):
            await session.send("b", Note())

    run(main())


def test_copies_of_frames_long_read_are_dropped():
    async def main():
        played = _Played()
        session = await played.begin()
        frames = [_Played.frame(session, seq=seq, body=Note(number=seq).SerializeToString()) for seq in range(3)]
        played.receive(frames[0])
        played.receive(frames[1])
        assert [(await session.lane("x").recv("b", Note)).number for _ in range(2)] == [0, 1]
        before = session.costs.bytes_received, session.transcript.heads("b", "received")
        forged = _Played.frame(session, seq=1, body=Note(number=9).SerializeToString())
        for copy in (frames[0], frames[1], forged):
            played.receive(copy)
        assert before == (session.costs.bytes_received, session.transcript.heads("b", "received"))
        played.receive(frames[2])
        assert (await session.lane("x").recv("b", Note)).number == 2

    run(main())


def test_a_lane_leaves_little_behind():
    """At this party, less than 800 bytes a peer and lane, where a frame went and a frame came."""

    async def main():
        played = _Played()
        session = await played.begin()

        async def use(numbers: range) -> None:
            for number in numbers:
                lane = session.lane(f"part/batch-{number}/step")
                await lane.send("b", Note(number=number))
                played.wire.sent.clear()
                played.receive(_Played.frame(session, lane=lane.path))
                await lane.recv("b", Note)

        await use(range(100))
        gc.collect()
        tracemalloc.start()
        try:
            await use(range(100, 3100))
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / 3000
        finally:
            tracemalloc.stop()

    assert run(main()) < 800

    run(main())


async def _with_bodies(played: _Played, session: Session) -> None:
    for seq in range(6):
        played.receive(_Played.frame(session, seq=seq, body=bytes(1000)))


async def _with_names(played: _Played, session: Session) -> None:
    for number in range(6):
        played.receive(_Played.frame(session, lane=f"/{number}" + "x" * 1000))


async def _little_by_little(played: _Played, session: Session) -> None:
    for seq in range(40):
        played.receive(_Played.frame(session, seq=seq, body=Note(data=bytes(500)).SerializeToString()))
        await session.lane("x").recv("b", Note)
    await _with_names(played, session)


@pytest.mark.parametrize("fill", [_with_bodies, _with_names, _little_by_little])
def test_a_peer_cannot_fill_the_memory(fill):
    async def main():
        played = _Played()
        session = await played.begin(ahead_bytes=5000)
        await fill(played, session)
        with fails("E403", party="b"):
            await session.lane("y").recv("b", Note)

    run(main())


@pytest.mark.parametrize("body", [0, 100, 10_000, 100_000])
@pytest.mark.parametrize("disorder", [False, True])
def test_what_waits_takes_no_more_memory_than_it_counts(body, disorder):
    """However small the frames are, and whether they are in order."""
    most = 1_000_000

    async def main():
        played = _Played()
        session = await played.begin(ahead_bytes=most)
        core_ = session.core
        gc.collect()
        tracemalloc.start()
        try:
            number = 0
            while core_.failure is None:
                lane, seq = divmod(number, 1000)
                frame = _Played.frame(session, lane=f"/{lane}", seq=seq + disorder, body=bytes(body))
                played.receive(frame)
                del frame
                number += 1
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert isinstance(core_.failure, LimitExceeded)
        assert number > most // (body + 1200)
        assert held < 1.25 * most

    run(main())


def test_nobody_is_blamed_for_what_another_has_sent():
    """Of two peers that are ahead, before and after the session begins."""

    def frame(of, sender, number):
        lane = f"/{number}"
        made = Frame(session=of.id, sender=sender, receiver="a", lane=lane, type=Note.DESCRIPTOR.full_name, round=1)
        made.body, made.last = bytes(1000), True
        made.mark = mark_of(header_of(made))
        return made

    async def main():
        hub = Hub()
        a, _, _ = await asyncio.gather(*(greet(p, hub.endpoint(p), terms(ABC), ahead_bytes=20_000) for p in ABC))
        for number in range(11):
            a.core.deliver("c", frame(a, "c", number))
        a.core.deliver("b", frame(a, "b", 0))
        assert a.core.failure is None
        while a.core.failure is None:
            number += 1
            a.core.deliver("c", frame(a, "c", number))
            a.core.deliver("b", frame(a, "b", 0))
        assert a.core.failure.party == "c"

    run(main())


def test_randomness_depends_on_lane_and_purpose_alone():
    async def main():
        hub = Hub()
        a, _ = await asyncio.gather(*(greet(p, hub.endpoint(p), terms(AB)) for p in AB))
        one, two = a.lane("one"), a.lane("two")
        drawn = [
            s.randomness(purpose).bytes(8)
            for s, purpose in ((one, "mask"), (two, "mask"), (one, "mask"), (one, "blind"))
        ]
        assert len(set(drawn)) == 4

        again = Hub()
        b, _ = await asyncio.gather(*(greet(p, again.endpoint(p), terms(AB)) for p in AB))
        assert b.lane("two").randomness("mask").bytes(8) == drawn[1]

    run(main())


def test_a_frame_counts_about_what_protobuf_writes():
    async def main():
        played = _Played()
        session = await played.begin()
        for size in (0, 10, 1000, 1 << 20):
            before = session.costs.bytes_sent
            await session.lane(hashlib.sha256(b"%d" % size).hexdigest()).send("b", Note(data=bytes(size)))
            assert abs(session.costs.bytes_sent - before - played.wire.sent[-1].ByteSize()) < 16

    run(main())

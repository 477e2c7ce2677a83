from __future__ import annotations

import asyncio

import pytest

from link.core import HELD_FRAME_BYTES
from link.errors import ComineError, IdentityError, InputDataError, LimitExceeded, MalformedMessage, PeerError
from link.transports.memory import Hub
from party.jobs.job_transport import MAX_EARLY_BYTES, JobTransport
from protos.v1.link_pb2 import Abort, Frame
from tests.errors import fails

JOB = bytes(32)
PARTIES = ("north", "south", "east")


class Recorder:
    """A session that only listens."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.error: ComineError | None = None

    def deliver(self, peer: str, frame: Frame) -> None:
        self.frames.append(frame)

    def fail(self, error: ComineError) -> None:
        self.error = error


def frame(seq: int = 0, size: int = 10) -> Frame:
    return Frame(sender="south", receiver="north", lane="/task", seq=seq, body=bytes(size), round=seq + 1)


def test_what_comes_before_the_session_is_handed_to_it_in_order() -> None:
    async def test() -> None:
        hub, session = Hub(), Recorder()
        north, south = (JobTransport(hub.endpoint(name), JOB, name, PARTIES) for name in ("north", "south"))
        await south.send("north", frame(0))
        await south.send("north", frame(1))
        north.attach(session)
        await south.send("north", frame(2))
        assert [f.seq for f in session.frames] == [0, 1, 2]
        sizes = sum(f.ByteSize() for f in session.frames)
        assert south.costs().bytes_sent == north.costs().bytes_received == sizes
        assert north.costs().rounds == 3

    asyncio.run(test())


def test_a_loss_before_the_session_is_told_to_it() -> None:
    async def test() -> None:
        hub, session = Hub(), Recorder()
        north = JobTransport(hub.endpoint("north"), JOB, "north", PARTIES)
        hub.crash("south")
        north.attach(session)
        assert isinstance(session.error, PeerError)
        assert session.error.party == "south"

    asyncio.run(test())


def test_work_before_the_session_is_given_up_when_a_peer_ends_the_job() -> None:
    async def test() -> None:
        hub = Hub()
        north, south = (JobTransport(hub.endpoint(name), JOB, name, PARTIES) for name in ("north", "south"))
        given_up = asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()

        waiting = asyncio.create_task(north.before_session(work()))
        await asyncio.sleep(0)
        await south.abort(InputDataError("south cannot read its dataset"), ("north",))
        with fails("E101", party="south") as caught:
            await waiting
        assert caught.value.party == "south"
        await asyncio.wait_for(given_up.wait(), 10)

    asyncio.run(test())


def test_who_passes_an_end_on_is_not_blamed_for_it() -> None:
    """East makes up that south's data ended the job; north's word of it is at south's before east's own."""

    async def test() -> None:
        hub = Hub()
        north, south, east = (JobTransport(hub.endpoint(name), JOB, name, PARTIES) for name in PARTIES)
        await east.abort(InputDataError("south cannot read its dataset", party="south"), ("north",))
        with fails("E101", party="east") as heard:
            await north.before_session(asyncio.Event().wait())
        await north.abort(heard.value, ("south",))
        await east.abort(InputDataError("south cannot read its dataset", party="south"), ("south",))
        with fails("E101") as passed_on:
            await south.before_session(asyncio.Event().wait())
        assert (passed_on.value.party, passed_on.value.reporter) == ("east", "north")

    asyncio.run(test())


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"body": b"\xff"}, MalformedMessage, "without a reason that can be read"),
        ({"sender": "east"}, IdentityError, "in another party's name"),
        (
            {"body": Abort(code="E101", message="a\x1b[2J" * 999, party="a stranger").SerializeToString()},
            InputDataError,
            "a",
        ),
    ],
)
def test_a_wrong_end_before_the_session_is_laid_at_its_senders_door(
    changes: dict[str, object], error: type[ComineError], words: str
) -> None:
    async def test() -> None:
        hub, session = Hub(), Recorder()
        north = JobTransport(hub.endpoint("north"), JOB, "north", PARTIES)
        end = Frame(sender="south", receiver="north", lane="abort", type=Abort.DESCRIPTOR.full_name)
        for field, value in changes.items():
            setattr(end, field, value)
        hub.carry("south", "north", end)
        north.attach(session)
        assert type(session.error) is error
        assert session.error.party == "south"
        assert words in session.error.message
        assert session.error.message.isprintable()
        assert len(session.error.message) <= 1000

    asyncio.run(test())


def test_work_before_the_session_gives_its_result() -> None:
    async def work() -> int:
        return 7

    async def test() -> None:
        assert await JobTransport(Hub().endpoint("north"), JOB, "north", PARTIES).before_session(work()) == 7

    asyncio.run(test())


def test_a_peer_cannot_fill_the_memory_before_the_session() -> None:
    async def test() -> None:
        hub, session = Hub(), Recorder()
        north = JobTransport(hub.endpoint("north"), JOB, "north", PARTIES)
        for seq in range(4):
            hub.carry("south", "north", frame(seq, MAX_EARLY_BYTES // 3))
        north.attach(session)
        assert isinstance(session.error, LimitExceeded)
        assert len(session.frames) < 3

    asyncio.run(test())


@pytest.mark.parametrize("size", [0, 10_000])
def test_no_peer_is_blamed_for_what_another_has_sent_before_the_session(size: int) -> None:
    async def test() -> None:
        hub, session = Hub(), Recorder()
        north = JobTransport(hub.endpoint("north"), JOB, "north", PARTIES)
        most = MAX_EARLY_BYTES // (frame(1, size).ByteSize() + HELD_FRAME_BYTES)
        for seq in range(most - 1):
            hub.carry("south", "north", frame(seq, size))
        for seq in range(most - 1):
            hub.carry("east", "north", Frame(sender="east", receiver="north", lane="/task", seq=seq, body=bytes(size)))
        for seq in range(most, most + 3):
            hub.carry("south", "north", frame(seq, size))
        north.attach(session)
        assert isinstance(session.error, LimitExceeded)
        assert session.error.party == "south"

    asyncio.run(test())


def test_an_abort_without_a_session_reaches_every_peer() -> None:
    async def test() -> None:
        hub = Hub()
        heard = {name: Recorder() for name in ("south", "east")}
        for name, session in heard.items():
            JobTransport(hub.endpoint(name), JOB, name, PARTIES).attach(session)
        north = JobTransport(hub.endpoint("north"), JOB, "north", PARTIES)
        assert not north.aborted
        await north.abort(InputDataError("north cannot read its dataset"), ("south", "east"))
        assert north.aborted
        for session in heard.values():
            (abort,) = session.frames
            assert abort.type == Abort.DESCRIPTOR.full_name
            assert Abort.FromString(abort.body).code == "E101"

    asyncio.run(test())

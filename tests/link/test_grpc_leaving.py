"""A party that has done its part, and peers that stand still, have lost its farewell or never began."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager

import grpc
import pytest

from link.transports import grpc_stream, grpc_transport
from link.transports.conformance.kit import AB
from link.transports.grpc_stream import Conversation
from protos.v1.link_pb2 import Acknowledge, Envelope, Farewell
from tests.link.grpc_nodes import HELLO, TERMS, Failed, framed, identities
from tests.link.kits import run
from tests.world import nodes

ACKNOWLEDGED = Envelope(acknowledge=Acknowledge(received=1))
STILL_S = 0.3  # for which the peer stands still: several times as long as one that hurries waits here


class _Stream:
    """A stream on which the peer says what a test puts into `said`, until that is `grpc.aio.EOF`; what it heard."""

    def __init__(self, *said):
        self.said, self.heard = asyncio.Queue(), []
        for envelope in said:
            self.said.put_nowait(envelope)

    async def read(self):
        if isinstance(said := await self.said.get(), Exception):
            raise said
        return said if said is grpc.aio.EOF else said.SerializeToString()

    async def write(self, message):
        self.heard.append(Envelope.FromString(message).WhichOneof("content"))

    async def until_heard(self, content):
        while content not in self.heard:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


async def _said_all():
    pass


@asynccontextmanager
async def _talking(stream, half_close):
    """A conversation with one frame under way over `stream`, and what serves it."""
    conversation = Conversation(TERMS.job_id, "b", "a", 20.0, Failed())
    serving = asyncio.create_task(conversation.serve(stream, half_close))
    await conversation.send(framed(sender="b", receiver="a").frame)
    await stream.until_heard("frame")
    try:
        yield conversation, serving
    finally:
        conversation.end()
        with contextlib.suppress(asyncio.InvalidStateError):
            await serving


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(grpc_stream, "HURRY_S", STILL_S / 4)


@pytest.mark.parametrize("half_close", [None, _said_all], ids=["accepted", "dialled"])
def test_a_peer_that_stands_still_is_waited_for(half_close):
    """Otherwise it would lack the last frames, and take a party for lost that has done its part."""

    async def main():
        stream = _Stream(HELLO)
        async with _talking(stream, half_close) as (conversation, serving):
            leaving = asyncio.create_task(conversation.leave())
            await asyncio.sleep(STILL_S)
            assert not conversation.over
            stream.said.put_nowait(ACKNOWLEDGED)
            stream.said.put_nowait(Envelope(farewell=Farewell()))
            stream.said.put_nowait(grpc.aio.EOF)
            await leaving
            assert await serving
            assert conversation.acknowledged == 1

    run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_who_hurries_does_not_wait_for_it_even_where_another_does(waits):
    async def main():
        async with _talking(_Stream(HELLO), None) as (conversation, _):
            waiting = [asyncio.create_task(conversation.leave())] if waits else []
            await asyncio.sleep(0)
            await conversation.leave(hurried=True)
            await asyncio.gather(*waiting)
            assert conversation.over
            assert not conversation.at_peace

    run(main())


def test_a_farewell_that_is_lost_is_said_again():
    """The peer was away for so long that the stream broke, and may still have much to do after that."""

    async def main():
        first, second = _Stream(HELLO), _Stream()
        async with _talking(first, _said_all) as (conversation, serving):
            leaving = asyncio.create_task(conversation.leave())
            first.said.put_nowait(ACKNOWLEDGED)
            await first.until_heard("farewell")
            first.said.put_nowait(asyncio.InvalidStateError())
            with pytest.raises(asyncio.InvalidStateError):
                await serving
            assert not conversation.over
            resumed = Envelope(resume=HELLO.resume)
            resumed.resume.received = 1
            second.said.put_nowait(resumed)
            again = asyncio.create_task(conversation.serve(second, _said_all))
            await second.until_heard("farewell")
            second.said.put_nowait(grpc.aio.EOF)
            await leaving
            assert await again

    run(main())


def test_the_answers_of_a_node_keep_nobody_waiting_who_leaves():
    """They say that somebody may start the job there yet, which only a party that stays can wait for."""

    async def main():
        conversation = Conversation(TERMS.job_id, "b", "a", 20.0, Failed())
        await conversation.send(framed(sender="b", receiver="a").frame)
        began = conversation.lost_at
        await asyncio.sleep(0.001)
        conversation.there()
        lost_at = conversation.lost_at
        assert lost_at > began
        leaving = asyncio.create_task(conversation.leave())
        await asyncio.sleep(0.001)
        conversation.there()
        assert conversation.lost_at == lost_at
        conversation.end()
        await leaving

    run(main())


@pytest.mark.parametrize("leaving", AB)
def test_a_peer_that_never_began_the_job_is_lost_to_who_leaves(leaving, monkeypatch):
    monkeypatch.setattr(grpc_transport, "GRACE_S", STILL_S / 4)  # after which its node says that it has no such job

    async def main():
        other = "a" if leaving == "b" else "b"
        async with nodes(identities(*AB), patience_s=STILL_S) as links:
            transport, receiver = links[leaving].open(TERMS.job_id, AB), Failed()
            transport.attach(receiver)
            await transport.send(other, framed(sender=leaving, receiver=other).frame)
            await transport.close()
            assert not transport.conversations[other].at_peace
            assert (await receiver.error()).party == other

    run(main())


def test_a_node_that_stops_hurries():
    async def main():
        async with nodes(identities(*AB)) as links:
            transport = links["b"].open(TERMS.job_id, AB)
            transport.attach(Failed())
            await transport.send("a", framed(sender="b", receiver="a").frame)  # who has not opened the job
            closing = asyncio.create_task(transport.close())
            await asyncio.sleep(STILL_S)
            assert not closing.done()
            await links["b"].close()
            await closing
            assert not transport.conversations["a"].at_peace

    run(main())

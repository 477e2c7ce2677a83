"""Streams between processes that break, and peers that break their rules."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.errors import LimitExceeded, PeerError, ProtocolViolation
from link.transports import grpc_stream, grpc_transport
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Chunk, Note
from link.transports.grpc_channel import SERVER_OPTIONS, dial, server_credentials
from link.transports.grpc_stream import enclose
from link.transports.grpc_transport import NodeLink
from protos.v1.link_pb2 import Acknowledge, Envelope, Frame, Resume
from tests.errors import fails
from tests.link.grpc_nodes import (
    AUTHORITY,
    EXCHANGE,
    HELLO,
    TERMS,
    Failed,
    all_acknowledged,
    framed,
    identities,
    pair,
    serving,
    speak,
)
from tests.link.kits import run
from tests.world import nodes


@pytest.mark.parametrize("cutting", AB)
def test_broken_streams_lose_and_repeat_nothing(cutting):
    values = np.random.default_rng(1).integers(0, 2**63, 3 << 20, dtype=np.uint64)

    async def main():
        async with pair() as (_, opened, a, b):

            async def send(s, to):
                await s.send_array(to, Chunk, values)

            async def receive(s, frm):
                return await s.recv_array(frm, Chunk, np.uint64, values.shape)

            async def cut():
                for _ in range(4):
                    await asyncio.sleep(0.03)
                    opened[cutting].cut("b" if cutting == "a" else "a")

            _, _, _, got_a, got_b = await asyncio.gather(
                send(a, "b"), send(b, "a"), cut(), receive(a, "b"), receive(b, "a")
            )
            assert np.array_equal(got_a, values)
            assert np.array_equal(got_b, values)
            assert a.transcript.heads("b", "sent") == b.transcript.heads("a", "received")
            assert a.transcript.heads("b", "received") == b.transcript.heads("a", "sent")

    run(main())


def test_senders_wait_for_acknowledgements(monkeypatch):
    monkeypatch.setattr(grpc_stream, "WINDOW_BYTES", 1 << 20)
    values = np.zeros(1 << 20, np.uint64)

    async def main():
        async with pair() as (_, opened, a, b):
            held = 0

            async def send(s, to):
                nonlocal held
                for _ in range(4):
                    await s.send_array(to, Chunk, values)
                    held = max(held, opened[s.me].conversations[to].pending_bytes)

            await asyncio.gather(send(a, "b"), send(b, "a"))
            assert held < (1 << 20) + (2 << 20)
            for s, frm in ((a, "b"), (b, "a")):
                for _ in range(4):
                    assert not (await s.recv_array(frm, Chunk, np.uint64, values.shape)).any()

    run(main())


def test_what_was_acknowledged_is_forgotten(monkeypatch):
    monkeypatch.setattr(grpc_stream, "ACKNOWLEDGE_S", 0.001)

    async def main():
        async with pair() as (_, opened, a, b):
            for number in range(600):
                await a.send("b", Note(number=number))
            for _ in range(600):
                await b.recv("a", Note)
            talk = opened["a"].conversations["b"]
            await all_acknowledged(talk)

    run(main())


@pytest.mark.parametrize(
    ("envelopes", "error"),
    [
        ([Envelope(resume=Resume(job_id=TERMS.job_id, received=1))], ProtocolViolation),
        ([HELLO, HELLO], ProtocolViolation),
        ([HELLO, Envelope()], ProtocolViolation),
        ([HELLO, b"\xff\xff"], ProtocolViolation),
        ([HELLO, Envelope(acknowledge=Acknowledge(received=1))], ProtocolViolation),
        ([HELLO, framed(body=bytes(5 << 20))], LimitExceeded),
        ([HELLO, framed(body=bytes(7 << 20))], LimitExceeded),
    ],
    ids=["beyond", "twice", "empty", "junk", "never sent", "too long", "far too long"],
)
def test_violations_end_the_session_and_name_the_peer(envelopes, error):
    async def main():
        async with nodes(identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            receiver = Failed()
            links["b"].open(TERMS.job_id, AB).attach(receiver)
            speaking = asyncio.create_task(speak(AUTHORITY.issue("a"), links["b"].addresses["b"], envelopes))
            found = await receiver.error()
            assert isinstance(found, error)
            assert found.party == "a"
            status, _ = await speaking
            assert status is grpc.StatusCode.ABORTED

    run(main())


@pytest.mark.parametrize("size", [5 << 20, 15 << 20, 40 << 20])
def test_a_peer_that_is_dialled_and_sends_too_much_is_named(size):
    async def answer(_, context):
        await context.read()
        await context.write(Envelope(resume=Resume(job_id=TERMS.job_id)).SerializeToString())
        await context.write(framed(sender="b", receiver="a", body=bytes(size)).SerializeToString())
        await context.read()

    async def main():
        server = grpc.aio.server(options=SERVER_OPTIONS)
        method = grpc.stream_stream_rpc_method_handler(answer)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(grpc_transport.SERVICE, {"Exchange": method}),)
        )
        port = server.add_secure_port("127.0.0.1:0", server_credentials(AUTHORITY.issue("b")))
        async with serving(server):
            link, receiver = NodeLink(AUTHORITY.issue("a"), {"b": f"127.0.0.1:{port}"}), Failed()
            link.open(TERMS.job_id, AB).attach(receiver)
            found = await receiver.error()
            assert (type(found), found.party) == (LimitExceeded, "b")
            await link.close()

    run(main())


@pytest.mark.parametrize("size", [5 << 20, 40 << 20])
@pytest.mark.parametrize("sending", AB)
def test_a_party_that_would_send_too_much_finds_it_first(sending, size, monkeypatch):
    other = "a" if sending == "b" else "b"

    def swollen(frame):
        return bytes(size) if frame.lane.endswith("big") else enclose(frame)

    async def main():
        async with pair() as (_, _, a, b):
            monkeypatch.setattr(grpc_stream, "enclose", swollen)
            sender, receiver = (a, b) if sending == "a" else (b, a)
            waiting = asyncio.create_task(receiver.lane("big").recv(sending, Note))
            with fails("E403", party=sending) as found:
                await sender.lane("big").send(other, Note())
            await sender.abort(found.value)
            with fails("E403", party=sending):
                await waiting

    run(main())


@pytest.mark.parametrize("sending", AB)
def test_what_grpc_cuts_off_is_laid_at_its_senders_door(sending, monkeypatch):
    """Above the limit of gRPC the accepting end cannot know why the stream broke, and must not be blamed for that."""
    other = "a" if sending == "b" else "b"
    monkeypatch.setattr(grpc_stream, "MAX_ENVELOPE_BYTES", 16 << 20)

    async def main():
        async with pair() as (_, opened, a, b), asyncio.TaskGroup() as group:
            opened["b"].conversations["a"].be_patient(0.5)  # which is all that ends its wait
            group.create_task(opened[sending].conversations[other].send(framed(body=bytes(9 << 20)).frame))
            for session, peer in ((a, "b"), (b, "a")):
                with pytest.raises((LimitExceeded, PeerError)) as found:
                    await session.recv(peer, Note)
                if session.me == "a":  # which dials, and so is told by gRPC
                    assert (type(found.value), found.value.party) == (LimitExceeded, sending)
                elif sending == "a":
                    assert (type(found.value), found.value.party) == (PeerError, "a")

    run(main())


def test_a_peer_that_forgets_what_it_had_is_found():
    async def main():
        async with nodes(identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport, receiver = links["b"].open(TERMS.job_id, AB), Failed()
            transport.attach(receiver)
            await transport.send("a", framed(sender="b", receiver="a").frame)
            async with dial(AUTHORITY.issue("a"), "b", links["b"].addresses["b"]) as channel:
                call = channel.stream_stream(EXCHANGE)()
                await call.write(HELLO.SerializeToString())
                for _ in range(2):
                    await call.read()
                await call.write(Envelope(acknowledge=Acknowledge(received=1)).SerializeToString())
                await call.write(Envelope(acknowledge=Acknowledge(received=0)).SerializeToString())
                found = await receiver.error()
            assert isinstance(found, ProtocolViolation)
            assert "fewer frames than before" in found.message

    run(main())


def test_a_peer_that_takes_what_it_gets_drop_by_drop_is_left_all_the_same(monkeypatch):
    monkeypatch.setattr(grpc_stream, "LEAVE_S", 0.0)

    async def main():
        async with nodes(identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport = links["b"].open(TERMS.job_id, AB)
            transport.attach(Failed())
            async with dial(AUTHORITY.issue("a"), "b", links["b"].addresses["b"]) as channel:
                call = channel.stream_stream(EXCHANGE)()
                await call.write(HELLO.SerializeToString())
                assert Envelope.FromString(await call.read()).HasField("resume")
                for seq in range(1000):
                    await transport.send("a", framed(sender="b", receiver="a", seq=seq).frame)
                for _ in range(1000):
                    await call.read()
                closing = asyncio.ensure_future(transport.close())
                acknowledged = 0
                while not closing.done():
                    acknowledged += 1
                    with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                        await call.write(Envelope(acknowledge=Acknowledge(received=acknowledged)).SerializeToString())
                    await asyncio.sleep(0.01)
                assert acknowledged < 1000

    run(main())


def test_the_newest_stream_counts():
    async def main():
        async with nodes(identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            receiver = Failed()
            links["b"].open(TERMS.job_id, AB).attach(receiver)
            identity, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            async with dial(identity, "b", address) as one, dial(identity, "b", address) as two:
                calls = []
                for received, channel in enumerate((one, two)):
                    calls.append(call := channel.stream_stream(EXCHANGE)())
                    await call.write(HELLO.SerializeToString())
                    assert Envelope.FromString(await call.read()).resume.received == received
                    await call.write(framed(seq=received).SerializeToString())
                    while len(receiver.frames) == received:  # noqa: ASYNC110 - its arrival is what is awaited
                        await asyncio.sleep(0.001)
                with contextlib.suppress(grpc.aio.AioRpcError):
                    while await calls[0].read() is not grpc.aio.EOF:  # an acknowledgement, maybe: the status is behind
                        pass
                assert await calls[0].code() is grpc.StatusCode.ABORTED
            assert [frame.seq for _, frame in receiver.frames] == [0, 1]

    run(main())


@given(st.binary(max_size=300), st.text(max_size=200), st.integers(0, 2**64 - 1))
def test_enclosing_is_what_protobuf_writes(body, lane, seq):
    frame = Frame(session=hashlib.sha256(body).digest(), lane=lane, seq=seq, body=body)
    assert enclose(frame) == Envelope(frame=frame).SerializeToString()


def test_enclosing_large_frames():
    frame = Frame(body=bytes(1 << 21))
    assert enclose(frame) == Envelope(frame=frame).SerializeToString()
    assert enclose(Frame()) == Envelope(frame=Frame()).SerializeToString()

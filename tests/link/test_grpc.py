"""What only streams between processes can suffer: strangers, liars, lost peers, broken streams."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import hashlib
from contextlib import asynccontextmanager

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.errors import DeadlineExceeded, LimitExceeded, PeerError, ProtocolViolation
from link.pki.authority import Authority
from link.pki.trust import Trust
from link.transports import grpc_channel, grpc_stream, grpc_transport
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Chunk, Note
from link.transports.grpc_channel import SERVER_OPTIONS, channel_credentials, dial, server_credentials
from link.transports.grpc_stream import Conversation, enclose
from link.transports.grpc_transport import NodeLink
from link.transports.serving import Serving
from protos.v1.link_pb2 import Acknowledge, Envelope, Farewell, Frame, Resume
from tests.errors import fails
from tests.examples import slowly
from tests.link.kits import greet, run
from tests.proxy import Proxy
from tests.world import nodes, terms

AUTHORITY = Authority.create()
TERMS = terms(AB)
EXCHANGE = "/comine.v1.Link/Exchange"


def _identities(*names):
    return {name: AUTHORITY.issue(name) for name in names}


@asynccontextmanager
async def _pair(*, patience_s=20):
    """Two nodes with established sessions. They are patient until then, however busy the machine is."""
    async with nodes(_identities(*AB)) as links:
        opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
        a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
        for p, other in (AB, AB[::-1]):
            links[p].patience_s = patience_s
            opened[p].conversations[other].be_patient(patience_s)
        yield links, opened, a, b


@asynccontextmanager
async def _serving(server):
    serving = Serving(server)
    await serving.start()
    try:
        yield
    finally:
        await serving.stop(None)


class _Failed:
    """A receiver that waits for the error with which a session ends, and counts what is delivered."""

    def __init__(self):
        self.frames, self._error = [], asyncio.get_running_loop().create_future()

    def deliver(self, peer, frame):
        self.frames.append((peer, frame))

    def fail(self, error):
        if not self._error.done():
            self._error.set_result(error)

    async def error(self):
        return await self._error


async def _speak(identity, address, envelopes, server_name="b"):
    """Dials b and says `envelopes`; returns the status that b answers with, and what it said before."""
    heard = []
    async with dial(identity, server_name, address) as channel:
        call = channel.stream_stream(EXCHANGE)()
        try:
            for envelope in envelopes:
                await call.write(envelope if isinstance(envelope, bytes) else envelope.SerializeToString())
            while (answer := await call.read()) is not grpc.aio.EOF:
                heard.append(Envelope.FromString(answer))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        return await call.code(), heard


HELLO = Envelope(resume=Resume(job_id=TERMS.job_id, received=0))


def _frame(**change):
    return Envelope(frame=Frame(**({"session": TERMS.job_id, "sender": "a", "receiver": "b", "lane": "x"} | change)))


def test_a_node_tells_of_all_that_it_has_read_of_a_peer():
    sizes, big = [], b"x" * (1 << 20)

    async def main():
        async with nodes(_identities(*AB)) as links:
            links["b"].read = lambda peer, size: sizes.append((peer, size))
            opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
            a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
            for _ in range(3):
                await a.send("b", Note(data=big))
                await b.recv("a", Note)

    run(main())
    assert len({peer for peer, _ in sizes}) == 1
    assert 3 << 20 <= sum(size for _, size in sizes) < (3 << 20) + 4096


# -- who is at the other end -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (AUTHORITY.issue("aa"), grpc.StatusCode.PERMISSION_DENIED),  # of this federation, but not of the job
        (AUTHORITY.issue("z"), grpc.StatusCode.PERMISSION_DENIED),  # its name says that it is dialled
        (AUTHORITY.issue("b"), grpc.StatusCode.PERMISSION_DENIED),  # the node itself
        (AUTHORITY.issue("a", "coordinator"), grpc.StatusCode.PERMISSION_DENIED),
        (AUTHORITY.issue("a", valid_days=-1), grpc.StatusCode.UNAVAILABLE),
        (
            dataclasses.replace(Authority.create().issue("a"), trust=Trust(AUTHORITY.certificate_pem)),
            grpc.StatusCode.UNAVAILABLE,
        ),
    ],
    ids=["stranger", "wrong direction", "self", "coordinator", "outdated", "foreign"],
)
def test_callers_that_are_refused(caller, status):
    async def main():
        async with nodes(_identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport, receiver = links["b"].open(TERMS.job_id, AB), _Failed()
            transport.attach(receiver)
            assert await _speak(caller, links["b"].addresses["b"], [HELLO]) == (status, [])
            assert receiver.frames == []

    run(main())


def test_a_caller_without_certificate_is_refused():
    async def main():
        async with nodes(_identities("b")) as links:
            credentials = grpc.ssl_channel_credentials(AUTHORITY.certificate_pem)
            options = [("grpc.ssl_target_name_override", "b")]
            async with grpc.aio.secure_channel(links["b"].addresses["b"], credentials, options) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await channel.stream_stream(EXCHANGE)().read()
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE

    run(main())


def test_a_party_that_speaks_in_anothers_name_ends_the_session():
    abc = ("a", "b", "c")

    async def main():
        async with nodes(_identities("c")) as links:
            links["c"].addresses |= {"a": "127.0.0.1:1", "b": "127.0.0.1:1"}
            agreed = terms(abc)
            task = asyncio.create_task(greet("c", links["c"].open(agreed.job_id, abc), agreed))
            lie = _frame(session=agreed.job_id, sender="a", receiver="c", lane="hello")
            resume = Envelope(resume=Resume(job_id=agreed.job_id))
            speaking = asyncio.create_task(
                _speak(AUTHORITY.issue("b"), links["c"].addresses["c"], [resume, lie], server_name="c")
            )
            with fails("E201", party="b") as found:
                await task
            assert found.value.party == "b"
            await links["c"].close()
            await speaking

    run(main())


@pytest.mark.parametrize(
    "answering",
    [
        AUTHORITY.issue("c"),
        AUTHORITY.issue("b", valid_days=-1),
        AUTHORITY.issue("b", "coordinator"),
        dataclasses.replace(Authority.create().issue("b"), trust=Trust(AUTHORITY.certificate_pem)),
    ],
    ids=["another party", "outdated", "coordinator", "foreign"],
)
def test_who_answers_in_anothers_place_is_found(answering):
    async def main():
        async with nodes({"a": AUTHORITY.issue("a"), "b": answering}) as links:
            with fails("E201", party="b") as found:
                await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)
            assert found.value.party == "b"
            assert links["a"].addresses["b"] in found.value.message

    run(main())


def test_a_refusal_is_told():
    async def main():
        async with nodes(_identities("a", "b", "c")) as links:
            links["b"].open(TERMS.job_id, ("b", "c")).attach(_Failed())
            with fails("E201"):
                await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)

    run(main())


# -- peers that are not there ------------------------------------------------------------------------------------------
def test_a_peer_that_is_never_there_is_named_with_its_address():
    async def main():
        async with nodes(_identities("a"), patience_s=0.3) as links:
            links["a"].addresses["b"] = "127.0.0.1:1"
            with fails("E200", party="b") as lost:
                await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)
            assert lost.value.party == "b"

    run(main())


def test_a_peer_that_never_dials_is_named():
    async def main():
        async with nodes(_identities("b"), patience_s=0.2) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            with fails("E200", party="a"):
                await greet("b", links["b"].open(TERMS.job_id, AB), TERMS)

    run(main())


@pytest.mark.parametrize("waiting", slowly(AB, now=[0]))
def test_a_node_that_answers_and_has_no_job_yet_is_waited_for(waiting, monkeypatch):
    """Who has to start the job there may be late; so the wait ends by the job's deadline and not by patience."""
    monkeypatch.setattr(grpc_transport, "GRACE_S", 0.2)

    async def main():
        async with nodes(_identities(*AB), patience_s=1.5) as links:
            with pytest.raises(DeadlineExceeded):
                await greet(waiting, links[waiting].open(TERMS.job_id, AB), TERMS, deadline_s=4)

    run(main())


def test_a_node_may_be_later_than_its_peer():
    async def main():
        async with nodes(_identities(*AB)) as links:
            early = asyncio.create_task(greet("a", links["a"].open(TERMS.job_id, AB), TERMS))
            while not links["b"].awaited:  # noqa: ASYNC110 - the stream's arrival at b is what the test is about
                await asyncio.sleep(0.001)
            late = await greet("b", links["b"].open(TERMS.job_id, AB), TERMS)
            assert (await early).id == late.id

    run(main())


@pytest.mark.parametrize("dying", AB)
def test_a_peer_that_dies_is_missed(dying):
    async def main():
        async with _pair(patience_s=0.5) as (_, opened, a, b):
            left = b if dying == "a" else a
            waiting = asyncio.create_task(left.recv(dying, Note))
            await opened[dying].crash()
            with fails("E200", party=dying) as lost:
                await waiting
            assert lost.value.party == dying

    run(main())


@pytest.mark.parametrize(
    ("heard_before_s", "lost_after_s"),
    [(0, 20), (3, 17), (10, 10), (60, 10)],  # cut; cut amid silence; frozen; busy for a minute, and then cut
)
def test_patience_counts_from_what_was_heard_last(heard_before_s, lost_after_s):
    async def main():
        conversation = Conversation(TERMS.job_id, "b", "a", 20.0, _Failed())
        now = asyncio.get_running_loop().time()

        async def ends():
            conversation.heard = asyncio.get_running_loop().time() - heard_before_s
            return grpc.aio.EOF

        stream = _Ending()
        stream.read = ends
        await conversation.serve(stream, None, HELLO)
        assert conversation.lost_at is not None
        assert now + lost_after_s <= conversation.lost_at <= now + lost_after_s + 5
        conversation.end()

    run(main())


def test_peers_that_are_silent_tell_each_other_what_they_know(monkeypatch):
    monkeypatch.setattr(grpc_stream, "HEARTBEAT_S", 0.05)

    async def main():
        async with _pair() as (_, opened, a, b):
            await a.send("b", Note(number=7))
            assert (await b.recv("a", Note)).number == 7
            for one, other in (("a", "b"), ("b", "a")):
                talk = opened[one].conversations[other]
                before = talk.heard
                while talk.heard == before:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await b.send("a", Note(number=8))
            assert (await a.recv("b", Note)).number == 8

    run(main())


def test_who_is_busy_is_not_taken_for_dead():
    """Nobody runs any Python for longer than a connection may be silent, and the streams stay the same."""

    async def main():
        async with _pair(patience_s=1.0) as (_, opened, a, b):
            await a.send("b", Note(number=7))
            assert (await b.recv("a", Note)).number == 7
            streams = [opened[p].conversations[q].generation for p, q in (AB, AB[::-1])]
            ctypes.PyDLL(None).usleep((grpc_channel.SILENCE_S + grpc_channel.ANSWER_S + 3) * 1_000_000)
            await asyncio.sleep(0.5)
            assert [opened[p].conversations[q].generation for p, q in (AB, AB[::-1])] == streams
            await b.send("a", Note(number=8))
            assert (await a.recv("b", Note)).number == 8

    run(main())


class _Ending:
    """An accepted stream on which the dialling party says `said`, after which gRPC tells of its end and of no fault."""

    def __init__(self, *said):
        self._said = [envelope.SerializeToString() for envelope in said]

    async def read(self):
        return self._said.pop(0) if self._said else grpc.aio.EOF

    async def write(self, message):
        pass


@pytest.mark.parametrize("in_peace", [True, False])
def test_a_stream_that_ends_without_a_farewell_was_lost(in_peace):
    """So a dialling party that dies looks at times, and its peer would wait for it until the job's deadline."""

    async def main():
        receiver = _Failed()
        conversation = Conversation(TERMS.job_id, "b", "a", 0.05, receiver)
        said = [Envelope(farewell=Farewell())] if in_peace else []
        assert await conversation.serve(_Ending(*said), None, HELLO) is in_peace
        assert conversation.at_peace is conversation.over is in_peace
        if not in_peace:
            with fails("E200", party="a"):
                raise await receiver.error()

    run(main())


def test_a_peer_that_leaves_in_peace_is_not_missed():
    async def main():
        async with _pair() as (_, opened, a, b):
            await b.send("a", Note(number=7))
            await opened["b"].close()
            talk = opened["a"].conversations["b"]
            await talk.wait_until_over(20)
            assert talk.at_peace
            assert talk.lost_at is None
            await a.send("b", Note())
            assert (await a.recv("b", Note)).number == 7

    run(main())


async def _acknowledged(talk):
    while talk.pending_bytes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


def test_a_farewell_may_find_the_stream_broken():
    async def main():
        async with _pair() as (_, opened, a, b):
            await b.send("a", Note(number=7))
            assert (await a.recv("b", Note)).number == 7
            talk = opened["b"].conversations["a"]
            await _acknowledged(talk)
            opened["b"].cut("a")
            await opened["b"].close()
            await opened["a"].conversations["b"].wait_until_over(20)
            assert opened["a"].conversations["b"].at_peace
            await a.send("b", Note())

    run(main())


class _Deaf:
    """A stream that breaks where it would end."""

    def __init__(self, stream):
        self._stream, self.write = stream, stream.write

    async def read(self):
        if (message := await self._stream.read()) is grpc.aio.EOF:
            raise asyncio.InvalidStateError
        return message


def test_a_lost_farewell_is_repeated():
    """b ends the stream while a writes: a's stream breaks with an error instead of ending in peace."""

    async def main():
        async with _pair() as (_, opened, a, b):
            await b.send("a", Note(number=7))
            assert (await a.recv("b", Note)).number == 7
            talk, real = opened["a"].conversations["b"], opened["a"].conversations["b"].serve

            async def deaf(duplex, *arguments):
                talk.serve = real
                return await real(_Deaf(duplex), *arguments)

            opened["a"].cut("b")
            talk.serve = deaf
            await opened["b"].close()
            await talk.wait_until_over(20)
            assert talk.at_peace
            await a.send("b", Note())

    run(main())


def test_a_job_needs_addresses_and_runs_once():
    async def main():
        async with nodes(_identities(*AB)) as links:
            with fails("E200", party="c"):
                links["a"].open(TERMS.job_id, ("a", "c"))
            first = links["a"].open(TERMS.job_id, AB)
            with fails("E200"):
                links["a"].open(TERMS.job_id, AB)
            await first.close()
            links["a"].open(TERMS.job_id, AB)

    run(main())


def test_a_job_can_run_again_after_its_end():
    async def main():
        async with nodes(_identities(*AB)) as links:
            for _ in range(3):
                opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
                a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
                await a.send("b", Note(number=3))
                assert (await b.recv("a", Note)).number == 3
                await asyncio.gather(*(t.close() for t in opened.values()))

    run(main())


# -- broken streams ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cutting", AB)
def test_broken_streams_lose_and_repeat_nothing(cutting):
    values = np.random.default_rng(1).integers(0, 2**63, 3 << 20, dtype=np.uint64)

    async def main():
        async with _pair() as (_, opened, a, b):

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
        async with _pair() as (_, opened, a, b):
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
        async with _pair() as (_, opened, a, b):
            for number in range(600):
                await a.send("b", Note(number=number))
            for _ in range(600):
                await b.recv("a", Note)
            talk = opened["a"].conversations["b"]
            await _acknowledged(talk)

    run(main())


# -- peers that break the rules of the stream --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("envelopes", "error"),
    [
        ([Envelope(resume=Resume(job_id=TERMS.job_id, received=1))], ProtocolViolation),
        ([HELLO, HELLO], ProtocolViolation),
        ([HELLO, Envelope()], ProtocolViolation),
        ([HELLO, b"\xff\xff"], ProtocolViolation),
        ([HELLO, Envelope(acknowledge=Acknowledge(received=1))], ProtocolViolation),
        ([HELLO, _frame(body=bytes(5 << 20))], LimitExceeded),
        ([HELLO, _frame(body=bytes(7 << 20))], LimitExceeded),
    ],
    ids=["beyond", "twice", "empty", "junk", "never sent", "too long", "far too long"],
)
def test_violations_end_the_session_and_name_the_peer(envelopes, error):
    async def main():
        async with nodes(_identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            receiver = _Failed()
            links["b"].open(TERMS.job_id, AB).attach(receiver)
            speaking = asyncio.create_task(_speak(AUTHORITY.issue("a"), links["b"].addresses["b"], envelopes))
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
        await context.write(_frame(sender="b", receiver="a", body=bytes(size)).SerializeToString())
        await context.read()

    async def main():
        server = grpc.aio.server(options=SERVER_OPTIONS)
        method = grpc.stream_stream_rpc_method_handler(answer)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(grpc_transport.SERVICE, {"Exchange": method}),)
        )
        port = server.add_secure_port("127.0.0.1:0", server_credentials(AUTHORITY.issue("b")))
        async with _serving(server):
            link, receiver = NodeLink(AUTHORITY.issue("a"), {"b": f"127.0.0.1:{port}"}), _Failed()
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
        async with _pair() as (_, _, a, b):
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
        async with _pair() as (_, opened, a, b), asyncio.TaskGroup() as group:
            opened["b"].conversations["a"].be_patient(0.5)  # which is all that ends its wait
            group.create_task(opened[sending].conversations[other].send(_frame(body=bytes(9 << 20)).frame))
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
        async with nodes(_identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport, receiver = links["b"].open(TERMS.job_id, AB), _Failed()
            transport.attach(receiver)
            await transport.send("a", _frame(sender="b", receiver="a").frame)
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


@pytest.mark.parametrize("first", [b"\xff", b"", _frame().SerializeToString()], ids=["junk", "empty", "frame"])
def test_a_stream_must_begin_with_its_job(first):
    async def main():
        async with nodes(_identities("b")) as links:
            status, heard = await _speak(AUTHORITY.issue("a"), links["b"].addresses["b"], [first])
            assert (status, heard) == (grpc.StatusCode.INVALID_ARGUMENT, [])

    run(main())


def test_streams_for_unknown_jobs_are_few(monkeypatch):
    monkeypatch.setattr(grpc_transport, "MAX_EARLY_STREAMS", 2)

    async def main():
        async with nodes(_identities("b")) as links, asyncio.TaskGroup() as group:
            a, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            for _ in range(2):
                group.create_task(_speak(a, address, [HELLO]))
            while links["b"].early.get("a") != 2:  # noqa: ASYNC110 - the arrival of both is what is awaited
                await asyncio.sleep(0.001)
            assert await _speak(a, address, [HELLO]) == (grpc.StatusCode.NOT_FOUND, [])
            links["b"].addresses["a"] = address
            links["b"].open(TERMS.job_id, AB).attach(_Failed())
            await links["b"].close()

    run(main())


def test_streams_of_one_peer_are_few_whatever_it_says_over_them(monkeypatch):
    monkeypatch.setattr(grpc_transport, "MAX_STREAMS", 3)

    async def main():
        async with nodes(_identities("b")) as links:
            a, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            async with dial(a, "b", address) as one, dial(a, "b", address) as two:
                silent = [channel.stream_stream(EXCHANGE)() for channel in (one, two, two)]
                while links["b"].streams["a"] != 3:  # noqa: ASYNC110 - the arrival of all is what is awaited
                    await asyncio.sleep(0.001)
                assert await _speak(a, address, [HELLO]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, [])
                silent[0].cancel()
                while links["b"].streams["a"] == 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                status, _ = await _speak(a, address, [b"junk"])
                assert status is grpc.StatusCode.INVALID_ARGUMENT

    monkeypatch.setattr(grpc_transport, "MAX_FIRST", 4)
    run(main())


def test_a_peer_that_takes_what_it_gets_drop_by_drop_is_left_all_the_same(monkeypatch):
    monkeypatch.setattr(grpc_stream, "LEAVE_S", 0.0)

    async def main():
        async with nodes(_identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport = links["b"].open(TERMS.job_id, AB)
            transport.attach(_Failed())
            async with dial(AUTHORITY.issue("a"), "b", links["b"].addresses["b"]) as channel:
                call = channel.stream_stream(EXCHANGE)()
                await call.write(HELLO.SerializeToString())
                assert Envelope.FromString(await call.read()).HasField("resume")
                for seq in range(1000):
                    await transport.send("a", _frame(sender="b", receiver="a", seq=seq).frame)
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
        async with nodes(_identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            receiver = _Failed()
            links["b"].open(TERMS.job_id, AB).attach(receiver)
            identity, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            async with dial(identity, "b", address) as one, dial(identity, "b", address) as two:
                calls = []
                for received, channel in enumerate((one, two)):
                    calls.append(call := channel.stream_stream(EXCHANGE)())
                    await call.write(HELLO.SerializeToString())
                    assert Envelope.FromString(await call.read()).resume.received == received
                    await call.write(_frame(seq=received).SerializeToString())
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


@asynccontextmanager
async def _echoing():
    """The address of the node of b, which answers another service beside its link."""
    server = grpc.aio.server()
    link = NodeLink(AUTHORITY.issue("b"), {})
    link.register(server)

    async def echo(request, context):
        return request

    handler = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("other", {"Echo": handler}),))
    port = server.add_secure_port("127.0.0.1:0", grpc_channel.server_credentials(link.identity))
    async with _serving(server):
        yield f"127.0.0.1:{port}"


def test_credentials_serve_other_services_on_the_same_port():
    """A coordinator may call the node; only the frames of jobs are closed to it."""

    async def main():
        boss = AUTHORITY.issue("boss", "coordinator")
        options = [("grpc.ssl_target_name_override", "b")]
        async with (
            _echoing() as address,
            grpc.aio.secure_channel(address, channel_credentials(boss), options) as channel,
        ):
            assert await channel.unary_unary("/other/Echo")(b"x") == b"x"

    run(main())


def test_a_handshake_may_take_longer_than_a_second():
    """As on a busy machine, or on a path of some hundred milliseconds: a call is not over before it has begun."""

    async def main():
        async with (
            _echoing() as address,
            Proxy(address, delay_s=0.4) as path,
            dial(AUTHORITY.issue("boss", "coordinator"), "b", path.address) as channel,
        ):
            assert await channel.unary_unary("/other/Echo")(b"x") == b"x"

    run(main())

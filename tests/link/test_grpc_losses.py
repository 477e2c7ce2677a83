"""Peers that are not there, that die, that are silent, or whose stream ends without a farewell."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes

import grpc
import pytest

from link.errors import DeadlineExceeded
from link.transports import grpc_channel, grpc_stream, grpc_transport
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Note
from link.transports.grpc_stream import Conversation
from protos.v1.link_pb2 import Envelope, Farewell
from tests.errors import fails
from tests.examples import slowly
from tests.link.grpc_nodes import HELLO, TERMS, Failed, all_acknowledged, identities, pair
from tests.link.kits import greet, run
from tests.world import nodes


def test_a_peer_that_is_never_there_is_named_with_its_address():
    async def main():
        async with nodes(identities("a"), patience_s=0.3) as links:
            links["a"].addresses["b"] = "127.0.0.1:1"
            with fails("E200", party="b") as lost:
                await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)
            assert lost.value.party == "b"

    run(main())


def test_a_peer_that_never_dials_is_named():
    async def main():
        async with nodes(identities("b"), patience_s=0.2) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            with fails("E200", party="a"):
                await greet("b", links["b"].open(TERMS.job_id, AB), TERMS)

    run(main())


@pytest.mark.parametrize("waiting", slowly(AB, now=[0]))
def test_a_node_that_answers_and_has_no_job_yet_is_waited_for(waiting, monkeypatch):
    """Who has to start the job there may be late; so the wait ends by the job's deadline and not by patience."""
    monkeypatch.setattr(grpc_transport, "GRACE_S", 0.2)

    async def main():
        async with nodes(identities(*AB), patience_s=1.5) as links:
            with pytest.raises(DeadlineExceeded):
                await greet(waiting, links[waiting].open(TERMS.job_id, AB), TERMS, deadline_s=4)

    run(main())


def test_a_node_may_be_later_than_its_peer():
    async def main():
        async with nodes(identities(*AB)) as links:
            early = asyncio.create_task(greet("a", links["a"].open(TERMS.job_id, AB), TERMS))
            while not links["b"].awaited:  # noqa: ASYNC110 - the stream's arrival at b is what the test is about
                await asyncio.sleep(0.001)
            late = await greet("b", links["b"].open(TERMS.job_id, AB), TERMS)
            assert (await early).id == late.id

    run(main())


@pytest.mark.parametrize("dying", AB)
def test_a_peer_that_dies_is_missed(dying):
    async def main():
        async with pair(patience_s=0.5) as (_, opened, a, b):
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
        conversation = Conversation(TERMS.job_id, "b", "a", 20.0, Failed())
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
        async with pair() as (_, opened, a, b):
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
        async with pair(patience_s=1.0) as (_, opened, a, b):
            await a.send("b", Note(number=7))
            assert (await b.recv("a", Note)).number == 7
            streams = [opened[p].conversations[q].generation for p, q in (AB, AB[::-1])]
            ctypes.PyDLL(None).usleep((grpc_channel.SILENCE_S + grpc_channel.ANSWER_S + 3) * 1_000_000)
            await asyncio.sleep(0.5)
            assert [opened[p].conversations[q].generation for p, q in (AB, AB[::-1])] == streams
            await b.send("a", Note(number=8))
            assert (await a.recv("b", Note)).number == 8

    run(main())


def test_a_path_that_is_cut_in_silence_is_given_up_long_before_grpc_would():
    """Also while data flow. By itself gRPC would wait for a minute."""

    class Source(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            async def send(_, context):
                while True:
                    await context.write(bytes(1 << 16))

            return grpc.unary_stream_rpc_method_handler(send)

    async def main():
        cut, over, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def carry(reader, writer):
            while data := await reader.read(1 << 16):
                if cut.is_set():
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()

        async def come(reader, writer):
            there, back = await asyncio.open_connection("127.0.0.1", port)
            ways = [asyncio.create_task(carry(reader, back)), asyncio.create_task(carry(there, writer))]
            await over.wait()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, back):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()
            closed.set()

        server = grpc.aio.server(options=grpc_channel.SERVER_OPTIONS)
        server.add_generic_rpc_handlers((Source(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        path = await asyncio.start_server(come, "127.0.0.1", 0)
        address = f"127.0.0.1:{path.sockets[0].getsockname()[1]}"
        async with grpc.aio.insecure_channel(address, options=grpc_channel.CHANNEL_OPTIONS) as channel:
            call = channel.unary_stream("/source/flow")(b"")
            for _ in range(64):
                await call.read()
            cut.set()

            async def read_on():
                while True:
                    await call.read()

            with pytest.raises(grpc.aio.AioRpcError, match="ping timeout"):
                await asyncio.wait_for(read_on(), 2 * grpc_transport.PATIENCE_S)  # the machine may be busy
        over.set()
        await closed.wait()
        path.close()
        await server.stop(None)

    assert grpc_channel.SILENCE_S + grpc_channel.ANSWER_S <= grpc_transport.PATIENCE_S / 2  # see `Conversation`
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
        receiver = Failed()
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
        async with pair() as (_, opened, a, b):
            await b.send("a", Note(number=7))
            await opened["b"].close()
            talk = opened["a"].conversations["b"]
            await talk.wait_until_over(20)
            assert talk.at_peace
            assert talk.lost_at is None
            await a.send("b", Note())
            assert (await a.recv("b", Note)).number == 7

    run(main())


def test_a_farewell_may_find_the_stream_broken():
    async def main():
        async with pair() as (_, opened, a, b):
            await b.send("a", Note(number=7))
            assert (await a.recv("b", Note)).number == 7
            talk = opened["b"].conversations["a"]
            await all_acknowledged(talk)
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
        async with pair() as (_, opened, a, b):
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
        async with nodes(identities(*AB)) as links:
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
        async with nodes(identities(*AB)) as links:
            for _ in range(3):
                opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
                a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
                await a.send("b", Note(number=3))
                assert (await b.recv("a", Note)).number == 3
                await asyncio.gather(*(t.close() for t in opened.values()))

    run(main())

"""Who may open a stream to a node, and who is taken for whom."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import grpc
import pytest

from link.pki.authority import Authority
from link.pki.trust import Trust
from link.transports import grpc_channel, grpc_transport
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Note
from link.transports.grpc_channel import channel_credentials, dial
from link.transports.grpc_transport import NodeLink
from protos.v1.link_pb2 import Envelope, Resume
from tests.errors import fails
from tests.link.grpc_nodes import AUTHORITY, EXCHANGE, HELLO, TERMS, Failed, framed, identities, serving, speak
from tests.link.kits import greet, run
from tests.proxy import Proxy
from tests.world import nodes, terms


def test_a_node_tells_of_all_that_it_has_read_of_a_peer():
    sizes, big = [], b"x" * (1 << 20)

    async def main():
        async with nodes(identities(*AB)) as links:
            links["b"].read = lambda peer, size: sizes.append((peer, size))
            opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
            a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
            for _ in range(3):
                await a.send("b", Note(data=big))
                await b.recv("a", Note)

    run(main())
    assert len({peer for peer, _ in sizes}) == 1
    assert 3 << 20 <= sum(size for _, size in sizes) < (3 << 20) + 4096


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
        async with nodes(identities("b")) as links:
            links["b"].addresses["a"] = "127.0.0.1:1"
            transport, receiver = links["b"].open(TERMS.job_id, AB), Failed()
            transport.attach(receiver)
            assert await speak(caller, links["b"].addresses["b"], [HELLO]) == (status, [])
            assert receiver.frames == []

    run(main())


def test_a_caller_without_certificate_is_refused():
    async def main():
        async with nodes(identities("b")) as links:
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
        async with nodes(identities("c")) as links:
            links["c"].addresses |= {"a": "127.0.0.1:1", "b": "127.0.0.1:1"}
            agreed = terms(abc)
            task = asyncio.create_task(greet("c", links["c"].open(agreed.job_id, abc), agreed))
            lie = framed(session=agreed.job_id, sender="a", receiver="c", lane="hello")
            resume = Envelope(resume=Resume(job_id=agreed.job_id))
            speaking = asyncio.create_task(
                speak(AUTHORITY.issue("b"), links["c"].addresses["c"], [resume, lie], server_name="c")
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
        async with nodes(identities("a", "b", "c")) as links:
            links["b"].open(TERMS.job_id, ("b", "c")).attach(Failed())
            with fails("E201"):
                await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)

    run(main())


@pytest.mark.parametrize("first", [b"\xff", b"", framed().SerializeToString()], ids=["junk", "empty", "frame"])
def test_a_stream_must_begin_with_its_job(first):
    async def main():
        async with nodes(identities("b")) as links:
            status, heard = await speak(AUTHORITY.issue("a"), links["b"].addresses["b"], [first])
            assert (status, heard) == (grpc.StatusCode.INVALID_ARGUMENT, [])

    run(main())


def test_streams_for_unknown_jobs_are_few(monkeypatch):
    monkeypatch.setattr(grpc_transport, "MAX_EARLY_STREAMS", 2)

    async def main():
        async with nodes(identities("b")) as links, asyncio.TaskGroup() as group:
            a, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            for _ in range(2):
                group.create_task(speak(a, address, [HELLO]))
            while links["b"].early.get("a") != 2:  # noqa: ASYNC110 - the arrival of both is what is awaited
                await asyncio.sleep(0.001)
            assert await speak(a, address, [HELLO]) == (grpc.StatusCode.NOT_FOUND, [])
            links["b"].addresses["a"] = address
            links["b"].open(TERMS.job_id, AB).attach(Failed())
            await links["b"].close()

    run(main())


def test_streams_of_one_peer_are_few_whatever_it_says_over_them(monkeypatch):
    monkeypatch.setattr(grpc_transport, "MAX_STREAMS", 3)

    async def main():
        async with nodes(identities("b")) as links:
            a, address = AUTHORITY.issue("a"), links["b"].addresses["b"]
            async with dial(a, "b", address) as one, dial(a, "b", address) as two:
                silent = [channel.stream_stream(EXCHANGE)() for channel in (one, two, two)]
                while links["b"].streams["a"] != 3:  # noqa: ASYNC110 - the arrival of all is what is awaited
                    await asyncio.sleep(0.001)
                assert await speak(a, address, [HELLO]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, [])
                silent[0].cancel()
                while links["b"].streams["a"] == 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                status, _ = await speak(a, address, [b"junk"])
                assert status is grpc.StatusCode.INVALID_ARGUMENT

    monkeypatch.setattr(grpc_transport, "MAX_FIRST", 4)
    run(main())


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
    async with serving(server):
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

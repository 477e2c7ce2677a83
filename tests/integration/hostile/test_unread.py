"""Bytes of a member that are no message: a node ends the connection over which they come, and serves the others."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import pytest

from link.pki.identity import Identity
from protos.v1 import control_pb2
from tests.party.nodes import running

pytestmark = pytest.mark.turn(3)

MOST = 1 << 30  # bytes that are sent at the most
SENDERS = 6
BUSY = 64  # pieces of long work for others: more than asyncio has threads
SLACK = 512 << 20  # beyond what a node lets come: what comes between two looks of a busy machine, and rests in sockets


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"")
TAKEN = _frame(4, 1, 0, b"")
FIELDS = {
    b":method": b"POST",
    b":scheme": b"https",
    b":path": b"/grpc.health.v1.Health/Check",
    b":authority": b"north",
    b"content-type": b"application/grpc",
    b"te": b"trailers",
}
CALL = _frame(1, 4, 1, b"".join(_literal(*each) for each in FIELDS.items())) + _frame(0, 1, 1, bytes(5))
BEGUN = _frame(1, 0, 3, b"\x82")  # headers that do not end here
FLOODS = {
    "long headers": (BEGUN, _frame(9, 0, 3, (b"\0\x04name\x7f\x80\x7e" + b"v" * 16384)[:16000])),
    "short headers": (BEGUN, _frame(9, 0, 3, _literal(b"a", b"v" * 100) * 150)),
    "frames of no kind": (b"", _frame(64, 32, 0, bytes(16384))),
}


def _flood(
    identity: Identity,
    folder: Path,
    address: str,
    first: bytes,
    again: bytes,
    *,
    over: threading.Event,
    most: int = MOST,
    pause_s: float = 0,
) -> int:
    """Says one thing, and another one again and again until the node ends a connection; how many bytes were sent."""
    pem = folder / f"{threading.get_ident()}.pem"
    pem.write_bytes(identity.key_pem + identity.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(pem)
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    again, sent = again * (6 if pause_s else 64), 0
    with context.wrap_socket(socket.create_connection((host, int(port)))) as connection:
        try:
            connection.sendall(HELLO)
            connection.recv(1 << 14)  # the node's settings: gRPC ends by itself what does not take them within a minute
            connection.sendall(TAKEN + first)
            while sent < most and not over.is_set():
                connection.sendall(again)
                sent += len(again)
                time.sleep(pause_s)
        except OSError:
            over.set()
    return sent


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.parametrize("known", [False, True], ids=["from the first byte", "after a good call"])
def test_bytes_that_are_no_message_end_their_connection(tmp_path: Path, kind: str, *, known: bool) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            member = nodes.authority.issue("aaa", "client")
            first, again = FLOODS[kind]
            first = (CALL if known else b"") + first
            other = nodes.clients["north"]
            await other.stub.Describe(control_pb2.DescribeRequest(challenge=bytes(32)))
            flood = partial(_flood, member, tmp_path, nodes.addresses["north"], first, again, over=threading.Event())
            assert await asyncio.to_thread(flood) < SLACK
            await other.stub.Describe(control_pb2.DescribeRequest(challenge=bytes(32)))  # over the same connection
            async with asyncio.timeout(60):
                while "connections closed" not in nodes.logs["north"].getvalue():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            lines = [json.loads(each) for each in nodes.logs["north"].getvalue().splitlines()]
            (line,) = [each for each in lines if each["event"] == "connections closed"]
            who = {"caller": "aaa"} if known else {"address": "127.0.0.1"}
            assert who.items() <= line.items()
            assert (line["connections"], line["why"], line["level"]) == (1, "unread", "warning")

    asyncio.run(test())


def test_a_node_whose_loop_is_busy_ends_the_connection_too(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            member, (first, again) = nodes.authority.issue("aaa", "client"), FLOODS["long headers"]
            flood = partial(_flood, member, tmp_path, nodes.addresses["north"], first, again, over=threading.Event())
            flooding = asyncio.create_task(asyncio.to_thread(flood))
            while not flooding.done():
                time.sleep(2)  # noqa: ASYNC251 - as long work would
                await asyncio.sleep(0)
            assert await flooding < SLACK

    asyncio.run(test())


def test_headers_that_come_slowly_and_never_end_end_their_connections(tmp_path: Path) -> None:
    """Less than 1 MiB a second over each of several connections: nothing of it leaves memory by itself."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            member, address = nodes.authority.issue("aaa", "client"), nodes.addresses["north"]
            first, again = FLOODS["short headers"]
            loop, over, done = asyncio.get_running_loop(), threading.Event(), threading.Event()
            flood = partial(
                _flood, member, tmp_path, address, first, again, over=over, most=SLACK // SENDERS, pause_s=0.1
            )
            working = asyncio.gather(*(asyncio.to_thread(done.wait) for _ in range(BUSY)))
            try:
                with ThreadPoolExecutor(SENDERS) as senders:
                    await asyncio.gather(*(loop.run_in_executor(senders, flood) for _ in range(SENDERS)))
            finally:
                done.set()
                await working
            assert over.is_set()
            async with asyncio.timeout(60):
                while "connections closed" not in nodes.logs["north"].getvalue():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    asyncio.run(test())


def test_whoever_sends_much_that_is_read_keeps_its_connection(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["north"]
            propose = client.channel.unary_unary("/comine.v1.Control/Propose")
            for _ in range(25):
                with pytest.raises(grpc.aio.AioRpcError):
                    await propose(bytes(3_900_000))  # 98 MB, within a second or two
            assert "connections closed" not in nodes.logs["north"].getvalue()

    asyncio.run(test())

"""Two nodes with established sessions over gRPC, and strangers who speak to one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import grpc

from link.pki.authority import Authority
from link.transports.conformance.kit import AB
from link.transports.grpc_channel import dial
from link.transports.serving import Serving
from protos.v1.link_pb2 import Envelope, Frame, Resume
from tests.link.kits import greet
from tests.world import nodes, terms

AUTHORITY = Authority.create()
TERMS = terms(AB)
EXCHANGE = "/comine.v1.Link/Exchange"


def identities(*names):
    return {name: AUTHORITY.issue(name) for name in names}


@asynccontextmanager
async def pair(*, patience_s=20):
    """Two nodes with established sessions. They are patient until then, however busy the machine is."""
    async with nodes(identities(*AB)) as links:
        opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
        a, b = await asyncio.gather(*(greet(p, opened[p], TERMS) for p in AB))
        for p, other in (AB, AB[::-1]):
            links[p].patience_s = patience_s
            opened[p].conversations[other].be_patient(patience_s)
        yield links, opened, a, b


@asynccontextmanager
async def serving(server):
    serving = Serving(server)
    await serving.start()
    try:
        yield
    finally:
        await serving.stop(None)


class Failed:
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


async def speak(identity, address, envelopes, server_name="b"):
    """Dials b and says `envelopes`; returns the status that b answers with, and what it said before."""
    while True:
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
            # A write that fails because the stream has ended takes the place of the status by which it ended.
            if (status := await call.code()) is not grpc.StatusCode.INTERNAL:
                return status, heard


HELLO = Envelope(resume=Resume(job_id=TERMS.job_id, received=0))


def framed(**change):
    return Envelope(frame=Frame(**({"session": TERMS.job_id, "sender": "a", "receiver": "b", "lane": "x"} | change)))


async def all_acknowledged(talk):
    while talk.pending_bytes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)

"""What one certificate can make a node take in: its memory is bounded, and so is what goes on after a revocation."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from google.protobuf.descriptor import MethodDescriptor

import link.pki.identity
from link.errors import IdentityError
from link.pki.authority import Authority
from link.pki.identity import Identity, Role
from link.pki.trust import Trust
from link.transports.grpc_channel import channel_credentials
from party.node.interceptors import Gate
from party.node.logs import open_log
from protos.v1 import anonymization_pb2, control_pb2, frequency_pb2, shuffle_pb2
from tests.errors import fails
from tests.examples import in_turn
from tests.integration.processes import Organisations
from tests.party.nodes import DATA, refused, running, weekly

pytestmark = pytest.mark.turn(5)

CALLS = 256
BOUND_KB = 64 << 10  # of what the memory of a node may grow by, of some gigabytes that are sent

STREAMS = [
    method
    for module in (control_pb2, frequency_pb2, shuffle_pb2, anonymization_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if method.server_streaming
]


def _peak_kb(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


async def _flood(identity: Identity, address: str, method: str, body: bytes) -> list[grpc.StatusCode]:
    """Calls over eight connections at once; how each ended."""
    options = [("grpc.ssl_target_name_override", "north"), ("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.secure_channel(address, channel_credentials(identity), options) for _ in range(8)]

    async def one(channel: grpc.aio.Channel) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await channel.stream_stream(method)(iter([body])).read()
        return ended.value.code()

    try:
        return await asyncio.gather(*(one(channel) for channel in channels for _ in range(CALLS // len(channels))))
    finally:
        for channel in channels:
            await channel.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "method", "first", "again", "times"),
    in_turn(
        [
            ("client", "/comine.v1.Control/Propose", b"\x0a", b"\x00", 15 << 20),
            ("client", "/comine.v1.Control/Propose", b"\x0a", b"\x00", 7 << 20),
            ("coordinator", "/comine.v1.Control/Propose", b"\x0a", b"\x00", 4_000_000),  # who may call it
            ("coordinator", "/comine.v1.Control/Start", b"", b"\x1a\x00", 2_000_000),  # two million empty approvals
            ("client", "/comine.v1.FrequencyEstimation/Describe", b"\x0a", b"\x00", 7 << 20),
            ("client", "/comine.v1.Shuffler/Submit", b"", b"\x1a\x00", 2_000_000),
            ("client", "/grpc.health.v1.Health/Check", b"\x0a", b"\x00", 7 << 20),
            ("party", "/comine.v1.Link/Exchange", b"\x0a", b"\x00", 7 << 20),
        ],
        4,
    ),
)
def test_no_certificate_exhausts_memory(
    tmp_path: Path, role: Role, method: str, first: bytes, again: bytes, times: int
) -> None:
    body = first + again * times
    world = Organisations.create(tmp_path, {name: DATA[name] for name in ("north", "south")})
    try:
        world.start("north")
        pid = world.nodes["north"].popen.pid
        before = _peak_kb(pid)
        codes = asyncio.run(_flood(world.authority.issue("aaa", role), world.addresses["north"], method, body))
        assert len(codes) == CALLS
        grown = _peak_kb(pid) - before
        assert grown < BOUND_KB
    finally:
        world.stop()


def _revoke(authority: Authority, pki: Path, identity: Identity) -> None:
    authority.revoke(pki, [x509.load_pem_x509_certificate(identity.certificate_pem).serial_number])


def test_a_revoked_coordinator_hears_no_more_of_a_job_that_it_watches(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["north"]
            job_id = await client.propose(weekly())
            watching = client.stub.Watch(control_pb2.WatchRequest(job_id=job_id))
            assert (await watching.read()).state == control_pb2.APPROVED
            _revoke(nodes.authority, tmp_path / "pki", client.identity)
            host = nodes.nodes["north"].host
            await host.cancel(await host.find(job_id, "analyst"), "a reason for friends")
            refusal = await refused(watching.read())
            assert refusal.code == "E201"
            assert "the certificate of analyst was revoked" in refusal.sentence

    asyncio.run(test())


class _Later:
    """The module `datetime`, two days later."""

    UTC, timedelta = dt.UTC, dt.timedelta

    class datetime(dt.datetime):  # noqa: N801
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            return dt.datetime.now(tz) + dt.timedelta(days=2)


class _Context:
    def __init__(self, identity: Identity) -> None:
        self._proof = {"x509_pem_cert": [identity.certificate_pem]}

    def auth_context(self) -> Any:
        return self._proof

    def peer(self) -> str:
        return "ipv4:10.0.0.1:7101"

    async def abort(self, _: object, sentence: str, __: object) -> None:
        raise IdentityError(sentence)


@pytest.mark.parametrize("why", ["was revoked", "expired on"])
@pytest.mark.parametrize("method", STREAMS, ids=lambda method: method.full_name)
def test_a_certificate_that_ends_ends_every_stream_of_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: MethodDescriptor, why: str
) -> None:
    """Whatever a method yields: what comes after the certificate was revoked, or has expired, does not leave."""
    authority = Authority.create()
    authority.write(tmp_path)
    ca = tmp_path / "ca.crt"
    trust = Trust.load(ca.read_bytes(), ca)
    gate = Gate(Identity("north", "party", b"", b"", trust), open_log("north"))

    async def ended(role: Role) -> str:
        caller = authority.issue(f"some-{role}", role, valid_days=1)

        async def answers(*_: object) -> AsyncIterator[str]:
            yield "before"
            if why == "was revoked":
                _revoke(authority, tmp_path, caller)
            else:
                two_days_later.setattr(link.pki.identity, "dt", _Later)
            yield "after"

        kind = "stream_stream" if method.client_streaming else "unary_stream"
        handler = getattr(grpc, f"{kind}_rpc_method_handler")(answers, bytes, bytes)

        async def handled(_: object) -> Any:
            return handler

        class Details:
            method = f"/{service}/{name}"
            invocation_metadata = ()

        guarded = await gate.intercept_service(handled, Details())  # type: ignore[arg-type]

        async def requests() -> AsyncIterator[Any]:
            yield guarded.request_deserializer(b"")

        heard = guarded.stream_stream(requests(), _Context(caller))
        try:
            assert await anext(heard) == "before"
        except IdentityError:
            return "not open to this role"
        with fails("E201"):
            await anext(heard)
        return "ended"

    service, name = method.containing_service.full_name, method.name
    roles: tuple[Role, ...] = ("coordinator", "client", "party")
    found = []
    for role in roles:
        with monkeypatch.context() as two_days_later:
            found.append(asyncio.run(ended(role)))
    assert "ended" in found

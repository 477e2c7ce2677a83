"""Who may do what at a relay, and how much of it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import relay.limits
import relay.members
import relay.server
from link.pki.authority import Authority, write_identity
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.relay.address import RelayAddress, shown
from link.relay.calling import RelayFault, call, look
from link.relay.gateway import local_address
from link.relay.handshake import MOST_BYTES, TOKEN_BYTES, hello, read, read_incoming
from link.transports.grpc_errors import silent
from protos.v1.relay_pb2 import (
    RELAY_REASON_DISPLACED,
    RELAY_REASON_IDENTITY,
    RELAY_REASON_STOPPING,
    RelayAccept,
    RelayAnswer,
    RelayChallenge,
    RelayDial,
    RelayHello,
)
from relay.config import LimitsSection
from relay.limits import Refused, Use
from tests.errors import fails
from tests.party.files import free_ports
from tests.relay.relays import LISTEN, NAME, World, served


def test_an_address_is_read_as_it_was_written() -> None:
    for address in (RelayAddress("relay.example:443"), RelayAddress("[::1]:1", "a&b=c", Path("/a b/c?d.crt"))):
        assert RelayAddress.parse(address.text) == address
        assert shown(address.text) == f"the relay {address.place}"
    assert RelayAddress.parse("north.example:7101") is None
    assert shown("north.example:7101") == "north.example:7101"


def test_bytes_pass_both_ways(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        for role in ("party", "coordinator", "client"):
            caller = w.member("south", role)
            listening = await w.listen()
            dialled, accepted, incoming = await w.meet(listening, "north", caller)
            assert (incoming.role, incoming.name) == (role, "south")
            for one, another in ((dialled, accepted), (accepted, dialled)):
                await one.send(b"some")
                assert await another.recv() == b"some"
            await dialled.close()
            with pytest.raises(ConnectionClosed):
                await accepted.recv()
            await listening.close()

    served(tmp_path, test)


@pytest.mark.parametrize(
    ("proxy", "code"),
    [
        ("http://ann:secret@127.0.0.1:{free}", "E200"),
        ("socks5://ann:secret@127.0.0.1:1", "E100"),
        ("secret", "E100"),
        ("http://ann:secret@[", "E100"),
        ("http://ann:secret@proxy.example:99999", "E100"),
    ],
)
def test_a_proxy_that_is_not_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, code: str
) -> None:
    async def test(w: World) -> None:
        monkeypatch.setenv("https_proxy", proxy.format(free=free_ports(1)[0]))
        monkeypatch.setenv("no_proxy", "")
        with fails(code) as caught:
            await look(w.member("south"), w.address)
        assert "secret" not in str(caught.value)
        monkeypatch.setenv("no_proxy", NAME)
        await look(w.member("south"), w.address)

    served(tmp_path, test)


def test_other_proxies_than_https_proxy_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(w: World) -> None:
        monkeypatch.setenv("socks_proxy", "socks5://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "")
        await look(w.member("south"), w.address)

    served(tmp_path, test)


def test_a_party_that_is_not_connected_is_said_to_be_so(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        with fails("E200", party="north"):
            await call(w.member("hub", "coordinator"), w.address, RelayDial(to="north"))

    served(tmp_path, test)


def test_members_of_another_federation_see_the_same_as_of_names_that_nobody_has(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        await w.listen("north")
        stranger = replace(w.member("hub", "coordinator", w.other))
        with fails("E200", party="north"):
            await call(stranger, w.address, RelayDial(to="north"))

    served(tmp_path, test)


def test_only_parties_listen(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        for role in ("coordinator", "client"):
            for action in (LISTEN, RelayAccept(token=bytes(TOKEN_BYTES))):
                with fails("E201"):
                    await call(w.member("north", role), w.address, action)

    served(tmp_path, test)


async def greeted(w: World, change: Callable[[RelayHello], None], action: object = LISTEN) -> RelayAnswer:
    """What the relay answers to the hello of south, changed on the way."""
    trusting = ssl.create_default_context(cafile=w.address.ca)
    async with connect(f"wss://{w.address.place}/", ssl=trusting, compression=None) as connection:
        challenge = read(RelayChallenge, await connection.recv())
        sent = hello(w.member("south"), NAME, challenge.nonce, action)  # type: ignore[arg-type]
        change(sent)
        await connection.send(sent.SerializeToString())
        return read(RelayAnswer, await connection.recv())


def test_no_other_name_action_or_signature_passes(tmp_path: Path) -> None:
    """A party cannot listen under another's name, nor use what was signed for something else."""

    def named(sent: RelayHello) -> None:
        sent.name = "north"

    def another_action(sent: RelayHello) -> None:
        sent.dial.to = "north"

    def another_party(sent: RelayHello) -> None:
        sent.dial.to = "east"

    def another_certificate(sent: RelayHello) -> None:
        sent.name, sent.certificate = "north", Authority.create().issue("north").certificate_pem

    def another_federation(sent: RelayHello) -> None:
        sent.authority = bytes(32)

    def no_action(sent: RelayHello) -> None:
        sent.ClearField("listen")

    def no_certificate(sent: RelayHello) -> None:
        sent.certificate = b"none"

    async def test(w: World) -> None:
        for change in (named, another_action, another_certificate, another_federation, no_action, no_certificate):
            assert (await greeted(w, change)).refusal.reason == RELAY_REASON_IDENTITY, change
        assert (await greeted(w, another_party, RelayDial(to="north"))).refusal.reason == RELAY_REASON_IDENTITY
        earlier: list[RelayHello] = []
        assert (await greeted(w, earlier.append)).WhichOneof("content") == "ready"
        assert (await greeted(w, lambda sent: sent.CopyFrom(earlier[0]))).refusal.reason == RELAY_REASON_IDENTITY

    served(tmp_path, test)


def test_a_token_is_good_once_for_one_party_and_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(w: World) -> None:
        listening, hub = await w.listen(), w.member("hub", "coordinator")

        async def refused(name: str, token: bytes) -> None:
            with fails("E200"):
                await call(w.member(name), w.address, RelayAccept(token=token))

        *_, incoming = await w.meet(listening, "north", hub)
        await refused("north", incoming.token)  # once more
        await refused("north", bytes(TOKEN_BYTES))  # guessed
        await refused("north", b"")
        dialled = asyncio.create_task(call(hub, w.address, RelayDial(to="north")))
        incoming = read_incoming(await listening.recv())
        await refused("south", incoming.token)  # another's
        await call(w.member("north"), w.address, RelayAccept(token=incoming.token))
        await dialled
        monkeypatch.setattr(relay.members, "TOKEN_S", 0.1)
        monkeypatch.setattr(relay.server, "TOKEN_S", 0.1)
        with fails("E200", party="north"):
            await call(hub, w.address, RelayDial(to="north"))
        await refused("north", read_incoming(await listening.recv()).token)  # too late

    served(tmp_path, test)


def test_a_party_that_does_not_take_a_connection_is_named_and_not_the_relay_that_answers(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        listening, hub = await w.listen(), w.member("hub", "coordinator")
        socket_path = local_address(hub, "north", w.address.text).removeprefix("unix:")
        _, writer = await asyncio.open_unix_connection(socket_path)
        await listening.recv()  # the relay has answered and asks north, which does nothing
        with fails("E200", party="north"):
            raise silent("north", w.address.text)
        writer.close()

    served(tmp_path, test)


def test_the_socket_of_a_certificate_that_has_ended_is_closed_once_another_dials(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        def dialled(identity: Identity) -> Path:
            return Path(local_address(identity, "north", w.address.text).removeprefix("unix:"))

        ended, good = w.authority.issue("hub", "coordinator", valid_days=-1), w.member("hub", "coordinator")
        before, now = dialled(ended), dialled(good)
        assert (before.exists(), now.exists()) == (False, True)
        another = dialled(w.member("other", "coordinator"))
        assert dialled(good) == now
        assert len({before, now, another}) == 3
        for path in (now, another):
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()

    served(tmp_path, test)


def test_of_two_connections_of_a_party_the_newer_one_counts(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        older = await w.listen()
        newer = await w.listen()
        answer = read(RelayAnswer, await older.recv())
        with pytest.raises(ConnectionClosed):
            await older.recv()
        assert answer.refusal.reason == RELAY_REASON_DISPLACED
        await w.meet(newer, "north", w.member("hub", "coordinator"))

    served(tmp_path, test)


def test_a_revoked_party_is_not_connected(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        north = w.member("north")
        await call(north, w.address, LISTEN)
        w.authority.revoke(tmp_path / "pki", [read_certificate(north.certificate_pem).serial_number])
        with fails("E200", party="north"):
            await call(w.member("hub", "coordinator"), w.address, RelayDial(to="north"))
        with fails("E201"):
            await call(north, w.address, LISTEN)

    served(tmp_path, test)


def test_a_relay_of_another_name_is_not_signed_to(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        with fails("E201"):
            await call(w.member("north"), replace(w.address, name="another"), LISTEN)

    served(tmp_path, test)


def test_a_relay_whose_certificate_is_not_good_gets_nothing(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        with fails("E200"):
            await call(w.member("north"), replace(w.address, ca=tmp_path / "other" / "ca.crt"), LISTEN)

    served(tmp_path, test)


def test_a_file_of_a_relays_authority_that_is_none_is_named(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        (tmp_path / "authority.crt").write_text("no certificate")
        for file in ("authority.crt", "none.crt"):
            with fails("E100"):
                await call(w.member("north"), replace(w.address, ca=tmp_path / file), LISTEN)

    served(tmp_path, test)


def test_the_federations_own_authority_is_good_for_a_relay(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        await call(w.member("north"), replace(w.address, ca=None), LISTEN)

    served(tmp_path, test)


def test_who_dials_too_much_is_refused_alone(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        listening, hub = await w.listen(), w.member("hub", "coordinator")
        await w.meet(listening, "north", hub)
        with fails("E200"):
            await call(hub, w.address, RelayDial(to="north"))
        await w.meet(listening, "north", w.member("hub", "client"))  # another member

    served(tmp_path, test, "streams = 1")


def test_who_dials_too_often_is_refused(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        hub = w.member("hub", "coordinator")
        with pytest.raises(RelayFault, match="not connected"):
            await call(hub, w.address, RelayDial(to="north"))
        with fails("E200"):
            await call(hub, w.address, RelayDial(to="north"))

    served(tmp_path, test, "dials = 1")


def test_who_has_sent_too_much_today_sends_no_more(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        listening, hub = await w.listen(), w.member("hub", "coordinator")
        dialled, accepted, _ = await w.meet(listening, "north", hub)
        await dialled.send(bytes(900))
        assert await accepted.recv() == bytes(900)
        await dialled.send(bytes(101))
        with pytest.raises(ConnectionClosed):
            await accepted.recv()

    served(tmp_path, test, "bytes_per_day = 1000")


def test_a_connection_over_which_nothing_comes_ends(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        listening = await w.listen()
        dialled, _, _ = await w.meet(listening, "north", w.member("hub", "coordinator"))
        with pytest.raises(ConnectionClosed):
            await dialled.recv()

    served(tmp_path, test, "idle = 1")


def test_limits_of_a_member() -> None:
    now, today = [0.0], [dt.date(2026, 1, 1)]
    use = Use(LimitsSection(streams=2, dials=3, bytes_per_day=10), lambda: now[0], lambda: today[0])
    with use.stream(), use.stream():
        with pytest.raises(Refused, match="streams"), use.stream():
            pass
        with pytest.raises(Refused, match="dials"), use.stream():
            pass
        now[0] = 20.0
    with use.stream():
        asyncio.run(use.send(10))
        with pytest.raises(Refused, match="bytes"):
            asyncio.run(use.send(1))
    assert not use.idle
    today[0], now[0] = dt.date(2026, 1, 2), 100.0
    assert use.idle
    asyncio.run(use.send(10))
    assert not use.idle


def test_a_rate_makes_the_sender_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    use = Use(LimitsSection(bytes_per_second=1 << 20), lambda: 0.0)
    for _ in range(3):
        asyncio.run(use.send(1 << 20))
    assert slept == [1.0, 2.0, 3.0]


def test_what_is_no_handshake_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are none, that are too long, and those that never come."""
    monkeypatch.setattr(relay.server, "HANDSHAKE_S", 0.5)

    async def test(w: World) -> None:
        trusting = ssl.create_default_context(cafile=w.address.ca)
        for message in (b"\xff" * 10, "text", bytes(20 << 10), bytes(MOST_BYTES + 1), None):
            async with connect(f"wss://{w.address.place}/", ssl=trusting, compression=None) as connection:
                await connection.recv()
                with contextlib.suppress(ConnectionClosed):
                    if message is not None:
                        await connection.send(message)
                with pytest.raises(ConnectionClosed):
                    await connection.recv()
        await w.listen()

    served(tmp_path, test)


def test_strangers_beyond_their_number_are_closed_before_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay.limits, "MOST_STRANGERS", 3)

    async def test(w: World) -> None:
        host, _, port = w.address.place.rpartition(":")
        listening = await w.listen()  # has proved who it is
        strangers = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        with pytest.raises(RelayFault):
            await call(w.member("south"), w.address, LISTEN)
        for _, writer in strangers:
            writer.transport.abort()
        for _ in range(600):  # until the relay has seen it
            with contextlib.suppress(RelayFault):
                await call(w.member("south"), w.address, LISTEN)
                break
            await asyncio.sleep(0.05)
        await w.meet(listening, "north", w.member("hub", "coordinator"))

    served(tmp_path, test)


def test_a_relay_that_stops_keeps_nobody_waiting_who_has_only_dialled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay.server, "HANDSHAKE_S", 1e6)

    async def test(w: World) -> None:
        host, _, port = w.address.place.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))  # and says nothing, not even TLS
        await w.listen()  # comes later
        await w.relay.stop()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()

    served(tmp_path, test)


def test_a_relay_that_nobody_runs_is_named(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with fails("E200") as caught:
        asyncio.run(call(Authority.create().issue("north"), RelayAddress(f"127.0.0.1:{port}"), LISTEN))
    assert caught.value.party is None


def test_what_answers_and_is_no_relay_is_named() -> None:
    async def test() -> None:
        async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-2.0-OpenSSH\r\n")
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0, family=socket.AF_INET)
        async with server:
            place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with fails("E200"):
                await call(Authority.create().issue("north"), RelayAddress(place), LISTEN)

    asyncio.run(test())


def test_a_relay_reads_its_file_anew_and_lets_go_on_what_is_open(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        file = tmp_path / "relay.toml"
        before = file.read_text()
        there, gone = await w.listen("north"), await call(w.member("east", authority=w.other), w.address, LISTEN)
        dialled, accepted, _ = await w.meet(there, "north", w.member("south"))
        write_identity(w.authority.issue("relay", hosts=[NAME]), tmp_path / "pki", force=True)
        file.write_text(
            before.partition('[[federation]]\nname = "other"')[0].replace("[limits]", "[limits]\nstreams = 1")
        )
        await w.relay.reload(file)
        assert read(RelayAnswer, await gone.recv()).refusal.reason == RELAY_REASON_STOPPING
        with fails("E201"):
            await call(w.member("east", authority=w.other), w.address, LISTEN)
        await dialled.send(b"some")
        assert await accepted.recv() == b"some"
        with fails("E200"):  # the one that is open is all that it may have
            await call(w.member("south"), w.address, RelayDial(to="north"))
        assert await shown_certificate(w.address) == (tmp_path / "pki" / "relay.crt").read_bytes()
        for line in ('name = "another"', 'listen = "127.0.0.1:1"'):
            key = line.split()[0]
            file.write_text(re.sub(f"(?m)^{key} = .*$", line, before, count=1))
            with fails("E100"):
                await w.relay.reload(file)
        await dialled.send(b"more")
        assert await accepted.recv() == b"more"

    served(tmp_path, test)


async def shown_certificate(address: RelayAddress) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = address.place.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        return ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(True)).encode()
    finally:
        writer.close()

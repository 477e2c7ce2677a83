"""A relay and files of nodes that only it connects."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from websockets.asyncio.client import ClientConnection

from link.logs.structured import open_structured
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity
from link.relay.address import RelayAddress
from link.relay.calling import call
from link.relay.handshake import read_incoming
from protos.v1.relay_pb2 import RelayAccept, RelayDial, RelayIncoming, RelayListen
from relay.config import RelayConfig
from relay.log import KINDS
from relay.server import Relay
from tests.party.files import PARTIES, free_ports

NAME = "127.0.0.1"
LISTEN = RelayListen()


def relay_toml(port: int, limits: str = "") -> str:
    """The contents of `relay.toml` beside the files of a federation."""
    return f"""
[relay]
listen = "127.0.0.1:{port}"
name = "{NAME}"
certificate = "pki/relay.crt"
key = "pki/relay.key"
drain = 0
[limits]
{limits}
[[federation]]
name = "retail"
ca = "pki/ca.crt"
"""


def by_relay(
    folder: Path, port: int, parties: Collection[str] = PARTIES, *, limits: str = "", dialled: int | None = None
) -> Callable[[Authority], None]:
    """Changes the files of a federation so that a relay connects these parties, and writes the relay's own.

    Args:
        folder: Of the files.
        port: At which the relay listens.
        parties: Which it connects.
        limits: Lines of `[limits]`.
        dialled: The port to which members dial, where something is between.
    """

    def prepare(authority: Authority) -> None:
        write_identity(authority.issue("relay", hosts=[NAME]), folder / "pki")
        (folder / "relay.toml").write_text(relay_toml(port, limits))
        federation = folder / "federation.toml"
        text = federation.read_text()
        for name in parties:
            text = re.sub(rf'(name = "{name}"\n)address = .*\n', r"\1", text)
            node = folder / f"{name}.toml"
            node.write_text(re.sub(r"listen = .*\n", "", node.read_text()))
        federation.write_text(f'{text}[relay]\naddress = "{NAME}:{dialled or port}"\n')

    return prepare


@asynccontextmanager
async def relaying(folder: Path) -> AsyncIterator[tuple[Relay, io.StringIO]]:
    """The relay of a folder, while it runs in this event loop, and its log."""
    log = io.StringIO()
    relay = Relay(RelayConfig.load(folder / "relay.toml"), open_structured(KINDS, log, relay=NAME))
    await relay.start()
    try:
        yield relay, log
    finally:
        await relay.stop()


@dataclass
class World:
    """A running relay, and the authorities of the two federations that it serves."""

    relay: Relay
    authority: Authority
    other: Authority
    address: RelayAddress

    def member(self, name: str, role: str = "party", authority: Authority | None = None) -> Identity:
        return (authority or self.authority).issue(name, role)  # type: ignore[arg-type]

    async def listen(self, name: str = "north") -> ClientConnection:
        return await call(self.member(name), self.address, LISTEN)

    async def meet(
        self, listening: ClientConnection, name: str, caller: Identity
    ) -> tuple[ClientConnection, ClientConnection, RelayIncoming]:
        """Both ends of a connection that a caller dials to a party that listens, and how it was announced."""
        dialled = asyncio.create_task(call(caller, self.address, RelayDial(to=name)))
        incoming = read_incoming(await listening.recv())
        accepted = await call(self.member(name), self.address, RelayAccept(token=incoming.token))
        return await dialled, accepted, incoming


@asynccontextmanager
async def world(folder: Path, limits: str = "") -> AsyncIterator[World]:
    (port,) = free_ports(1)
    authority, other = Authority.create(), Authority.create()
    authority.write(folder / "pki")
    other.write(folder / "other")
    write_identity(authority.issue("relay", hosts=[NAME]), folder / "pki")
    federation = '[[federation]]\nname = "other"\nca = "other/ca.crt"\n'
    (folder / "relay.toml").write_text(relay_toml(port, limits) + federation)
    ca = folder / "pki" / "ca.crt"
    async with relaying(folder) as (running, _):
        yield World(running, authority, other, RelayAddress(f"127.0.0.1:{port}", ca=ca))


def served(folder: Path, test: Callable[[World], Awaitable[None]], limits: str = "") -> None:
    async def run() -> None:
        async with world(folder, limits) as found:
            await test(found)

    asyncio.run(run())

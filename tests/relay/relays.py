"""A relay and files of nodes that only it connects."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from link.logs.structured import open_structured
from link.pki.authority import Authority, write_identity
from relay.config import RelayConfig
from relay.log import KINDS
from relay.server import Relay
from tests.party.files import PARTIES

NAME = "127.0.0.1"


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

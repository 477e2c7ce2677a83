"""Files of a small federation for tests of the node."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Final

from link.pki.authority import Authority, write_identity

PARTIES = ("north", "south", "east")

COORDINATOR: Final = """[coordinator]
ca = "pki/ca.crt"
certificate = "pki/analyst.crt"
key = "pki/analyst.key"
"""

# Neither those that systems give to outgoing connections nor those of `comine demo`.
_PORTS: Final = range(10_000, 20_000)
_OWN: Final = 200


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on, and that no other process of tests will take before a node does."""
    found: list[int] = []
    while len(found) < number:
        port = next(_own_ports())
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


@cache
def _own_ports() -> Iterator[int]:
    """Ports of this process, one after the other: it holds the lock of a file that stands for them until it ends."""
    folder = Path(tempfile.gettempdir()) / "comine-test-ports"
    folder.mkdir(exist_ok=True)
    for first in _PORTS[::_OWN]:
        lock = (folder / str(first)).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        _LOCKS.append(lock)
        return cycle(port for port in range(first, first + _OWN) if port != _NO_BROWSER)
    raise RuntimeError(f"all ports of tests are taken; see who holds the files in {folder}")


_LOCKS: Final[list[object]] = []
_NO_BROWSER: Final = 10080  # a port at which browsers open no page


def party_toml(name: str, port: int = 7101, *, policy: str = "", dataset: str = "", party: str = "") -> str:
    """The contents of a node's file."""
    return f"""
[party]
name = "{name}"
listen = "127.0.0.1:{port}"
state_dir = "state/{name}"
federation = "federation.toml"
{party}
[tls]
ca = "pki/ca.crt"
certificate = "pki/{name}.crt"
key = "pki/{name}.key"
[[dataset]]
name = "baskets"
kind = "transactions"
source = "{name}.dat"
format = "basket"
{dataset}
[policy]
approve = "auto"
tasks = ["itemsets", "rules"]
{policy}
"""


def federation_toml(ports: Sequence[int], parties: Iterable[str] = PARTIES) -> str:
    """The contents of `federation.toml`."""
    members = "".join(
        f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n' for name, port in zip(parties, ports, strict=True)
    )
    return f'[federation]\nname = "retail"\n{members}'


def write_federation(
    folder: Path, data: dict[str, Sequence[Sequence[str]]], *, policy: str = "", party: str = ""
) -> Authority:
    """Writes certificates, data and configuration of all parties; returns the authority."""
    authority = Authority.create()
    authority.write(folder / "pki")
    ports = free_ports(len(data))
    (folder / "federation.toml").write_text(federation_toml(ports, data))
    for (name, rows), port in zip(data.items(), ports, strict=True):
        write_identity(authority.issue(name), folder / "pki")
        (folder / f"{name}.dat").write_text("".join(" ".join(row) + "\n" for row in rows))
        (folder / f"{name}.toml").write_text(party_toml(name, port, policy=policy, party=party))
    return authority

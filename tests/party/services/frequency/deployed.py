"""A node that collects, as a process of its own, with the certificates of its analyst, a gateway and a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from client.connection import Connection
from coordinator.frequency.service import FrequencyNode
from link.pki.authority import write_identity
from link.pki.identity import Identity
from tests.integration.processes import Organisations, Ran, command

NODE = "north"
POLICY = "[frequency]\nmax_epsilon = 8.0\n"
GATEWAYS = '[access]\ngateways = { fleet = 1000000000 }\nread = ["reader"]\n'


class Deployed(Organisations):
    """The node's files and process, and the commands of those who use it."""

    @property
    def address(self) -> str:
        """HOST:PORT of the node."""
        return self.addresses[NODE]

    def identity(self, name: str) -> Identity:
        """Somebody's certificate and key."""
        pki = self.folder / "pki"
        return Identity.load(pki / "ca.crt", pki / f"{name}.crt", pki / f"{name}.key")

    def coordinator(self, name: str = "hub") -> FrequencyNode:
        """A coordinator's calls."""
        return FrequencyNode(self.identity(name), NODE, self.address)

    def connection(self, name: str = "fleet", *, attempts: int = 5) -> Connection:
        """A client's connection."""
        return Connection(self.identity(name), NODE, self.address, attempts=attempts)

    def comine(self, *words: object) -> Ran:
        """`comine frequency …` as the analyst."""
        return command("frequency", *words, cwd=self.folder)


@contextmanager
def deployed(folder: Path, policy: str = POLICY) -> Iterator[Deployed]:
    """The files, and the running node for as long as the context lasts."""
    made = Deployed.create(folder, {NODE: [["a", "b"]]}, policy=policy)
    assert isinstance(made, Deployed)
    for name in ("fleet", "phone"):
        write_identity(made.authority.issue(name, "client"), folder / "pki")
    write_identity(made.authority.issue("reader", "coordinator"), folder / "pki")
    try:
        made.start()
        yield made
    finally:
        made.stop()

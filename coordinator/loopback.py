"""A federation on this machine: every party a process with a folder, keys, a port and data of its own.

For the demo and for benchmarks. The processes are ordinary nodes, `comine party serve`, that talk over real ports under
mutual TLS; only the network between them is short.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from link.authority import Authority, write_identity
from link.errors import InternalError, PeerError, ResourceError

COORDINATOR: Final = "coordinator"
_STOP_S: Final = 15  # a node ends within 10 s of SIGTERM
_HOST: Final = "127.0.0.1"


@dataclass
class LoopbackFederation:
    """The folders of a federation, and its nodes while they run.

    Attributes:
        folder: Holds `authority`, `coordinator` and one folder per party.
        parties: Names, in the order of the federation file.
        nodes: The running processes.
    """

    folder: Path
    parties: tuple[str, ...]
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls, folder: Path, dataset: str, sources: Mapping[str, Path], *, separator: str | None = None
    ) -> LoopbackFederation:
        """Makes the authority, the certificates and all configuration files.

        Args:
            folder: Created if need be.
            dataset: The name under which every party serves its data.
            sources: Each party's basket file.
            separator: Between the items of a line; blanks by default.

        Raises:
            ResourceError: The folder cannot be written.
            ConfigurationError: It holds an authority already.
        """
        federation = cls(folder, tuple(sources))
        try:
            federation._write(dataset, sources, separator)
        except OSError as error:
            raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
        return federation

    @property
    def file(self) -> Path:
        """The coordinator's federation file."""
        return self.folder / COORDINATOR / "federation.toml"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Starts all nodes and stops them at the end, whatever happens; wait for readiness with `coordinator`'s check.

        Raises:
            InternalError: A node did not end as it was asked to, or with another exit code than 0.
        """
        try:
            for name in self.parties:
                self._start(name)
            yield
        except BaseException:
            self._stop()
            raise
        unclean = self._stop()
        if unclean:
            name, code = unclean[0]
            raise InternalError(f"the node of {name} ended with exit code {code}; its log is {self.log(name)}")

    def check_alive(self) -> None:
        """Raises `PeerError` where a node has ended by itself; its log tells why."""
        for name, node in self.nodes.items():
            if node.poll() is not None:
                raise PeerError(
                    f"the node of {name} ended with exit code {node.returncode}: {_last_line(self.log(name))}",
                    party=name,
                )

    def log(self, party: str) -> Path:
        """Where a node's log goes."""
        return self.folder / party / "node.log"

    def _start(self, name: str) -> None:
        home = self.folder / name
        with self.log(name).open("wb") as log:
            self.nodes[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", "comine", "party", "serve", "party.toml"],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _stop(self) -> list[tuple[str, int]]:
        """Ends all nodes; returns those that did not end cleanly."""
        for node in self.nodes.values():
            if node.poll() is None:
                node.terminate()
        codes = {}
        for name, node in self.nodes.items():
            try:
                codes[name] = node.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                node.kill()
                codes[name] = node.wait()
        self.nodes.clear()
        return [(name, code) for name, code in codes.items() if code]

    def _write(self, dataset: str, sources: Mapping[str, Path], separator: str | None) -> None:
        authority = Authority.create()
        authority.write(self.folder / "authority")
        addresses = dict(zip(self.parties, free_addresses(len(self.parties)), strict=True))
        members = "".join(f'\n[[party]]\nname = "{name}"\naddress = "{at}"\n' for name, at in addresses.items())
        for name in (*self.parties, COORDINATOR):
            home = self.folder / name
            home.mkdir(parents=True, exist_ok=True)
            (home / "ca.crt").write_bytes(authority.certificate_pem)
            party = name in addresses
            write_identity(authority.issue(name, "party" if party else "coordinator", [_HOST] if party else []), home)
            credentials = f'ca = "ca.crt"\ncertificate = "{name}.crt"\nkey = "{name}.key"\n'
            own = "" if party else f"\n[coordinator]\n{credentials}"
            (home / "federation.toml").write_text(f'[federation]\nname = "loopback"\n{own}{members}')
            if party:
                text = _party_file(name, addresses[name], credentials, dataset, sources[name], separator)
                (home / "party.toml").write_text(text)


def free_addresses(number: int) -> list[str]:
    """Addresses on the loopback whose ports are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind((_HOST, 0))
        return [f"{_HOST}:{each.getsockname()[1]}" for each in sockets]


def _party_file(name: str, address: str, tls: str, dataset: str, source: Path, separator: str | None) -> str:
    between = "" if separator is None else f"separator = {json.dumps(separator)}\n"
    return f"""\
[party]
name = "{name}"
listen = "{address}"
state_dir = "state"
federation = "federation.toml"

[tls]
{tls}
[[dataset]]
name = "{dataset}"
kind = "transactions"
source = {json.dumps(str(source))}
format = "basket"
{between}
[policy]
approve = "auto"
tasks = ["itemsets", "rules"]
"""


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{log} is empty"

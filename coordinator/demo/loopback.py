"""A federation on this machine: every party a process with a folder, keys, a port and data of its own.

For the demo and for benchmarks. The processes are ordinary nodes, `comine party serve`, that communicate over real
ports under mutual TLS; only the network between them is short.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from coordinator.doctor import examine
from crypto.primitives.randomness import Randomness
from jobs.federation import Credentials, Federation
from link.errors import InternalError, PeerError, ResourceError
from link.files.toml_text import quoted
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity
from mining.public_sizes import NOTHING, PublicSizes

COORDINATOR: Final = "coordinator"
_STOP_S: Final = 15  # a node ends within 10 s of SIGTERM
_READY_S: Final = 300.0  # a cold or busy machine loads for long, or data are large; a node that ends is told at once
_RETRY_S: Final = 0.1
_BASKETS: Final = {"format": "basket"}
_HOST: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 32_768)


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
        cls,
        folder: Path,
        dataset: str,
        sources: Mapping[str, Path],
        *,
        written: Mapping[str, Mapping[str, str]] | None = None,
        public: Mapping[str, PublicSizes] | None = None,
    ) -> LoopbackFederation:
        """Makes the authority, the certificates and all configuration files.

        Args:
            folder: Created if need be.
            dataset: The name under which every party serves its data.
            sources: Each party's file.
            written: By party what its file is and how it is written, as keys of `[[dataset]]`; baskets by default.
            public: By party, what it publishes of its size; nothing by default.

        Raises:
            ResourceError: The folder cannot be written.
            ConfigurationError: It holds an authority already.
        """
        federation = cls(folder, tuple(sources))
        try:
            federation._write(dataset, sources, written or {}, public or {})
        except OSError as error:
            raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
        return federation

    @property
    def file(self) -> Path:
        """The coordinator's federation file."""
        return self.folder / COORDINATOR / "federation.toml"

    @property
    def addresses(self) -> dict[str, str]:
        """HOST:PORT by party."""
        return dict(Federation.load(self.file).addresses)

    def identity(self) -> Identity:
        """The coordinator's."""
        return self._credentials.identity()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Starts all nodes and stops them at the end, whatever happens; `ready` waits for them.

        Within `run_interruptibly` signals wait until a process that is being started is one of the nodes; elsewhere an
        exception that a signal raises in the midst of it would leave that process behind.

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

    async def ready(self) -> None:
        """Waits until every node is reachable, identified and ready, as `comine doctor` finds out.

        Raises:
            PeerError: A node ended by itself, or is not ready in time; the sentence says why.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + _READY_S
        identity, credentials, addresses = self.identity(), self._credentials, self.addresses
        while True:
            checks = await examine(identity, credentials, addresses)
            if all(check.ready for check in checks):
                return
            self._check_alive()
            if loop.time() > end:
                party, problem = next((check.party, check.problem) for check in checks if not check.ready)
                raise PeerError(f"not all nodes were ready after {_READY_S:g} s: {problem}", party=party)
            await asyncio.sleep(_RETRY_S)

    def _check_alive(self) -> None:
        for name, node in self.nodes.items():
            if node.poll() is not None:
                raise PeerError(
                    f"the node of {name} ended with exit code {node.returncode}: {_last_line(self.log(name))}",
                    party=name,
                )

    def log(self, party: str) -> Path:
        """Where a node's log goes."""
        return self.folder / party / "node.log"

    @property
    def _credentials(self) -> Credentials:
        credentials = Federation.load(self.file).coordinator
        if credentials is None:
            raise InternalError(f"{self.file} has no [coordinator] table")
        return credentials

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

    def _write(
        self,
        dataset: str,
        sources: Mapping[str, Path],
        written: Mapping[str, Mapping[str, str]],
        public: Mapping[str, PublicSizes],
    ) -> None:
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
                publish = public.get(name, NOTHING).coarse().as_toml()
                text = _party_file(
                    name, addresses[name], credentials, dataset, sources[name], written.get(name, _BASKETS), publish
                )
                (home / "party.toml").write_text(text)


def free_addresses(number: int) -> list[str]:
    """Addresses on the loopback whose ports are free now.

    They are none of those that systems give to outgoing connections: before a node listens at one of these, another
    program, or another node that dials, may have it.
    """
    found: list[str] = []
    for place in Randomness.from_os().permutation(len(_PORTS)).tolist():
        port = _PORTS[place]
        if len(found) == number:
            break
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((_HOST, port))
            found.append(f"{_HOST}:{port}")
    return found


def _party_file(
    name: str, address: str, tls: str, dataset: str, source: Path, written: Mapping[str, str], publish: str
) -> str:
    how = "".join(f"{key} = {quoted(value)}\n" for key, value in {"kind": "transactions", **written}.items())
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
source = {quoted(str(source))}
{how}
{publish}
[policy]
approve = "auto"
tasks = ["itemsets", "rules"]
"""


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{log} is empty"

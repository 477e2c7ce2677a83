"""The frequency service of a real node: reports acknowledged durably, estimates under that load, memory, recovery."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.settings import Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from coordinator.frequency.load import Gateway, Load, Measured, load_test
from coordinator.frequency.service import FrequencyNode
from jobs.collections.spec import CollectionSpec
from link.errors import PeerError
from link.pki.authority import Authority, write_identity
from protos.v1.frequency_pb2 import FrequencyRequest

NODE = "north"
GATEWAY = "fleet"
VALUES = 1024
EPSILON = 1
REPORTS = 1_000_000
MANY = 10_000_000
QUICK = 50_000
MECHANISMS = ("grr", "olh", "hr")


@dataclass(frozen=True)
class Collecting:
    """A node that collects, and who sends to it.

    Attributes:
        federation: Its folders and process.
        gateway: Who sends.
    """

    federation: LoopbackFederation
    gateway: Gateway

    @classmethod
    def prepare(cls, folder: Path) -> Collecting:
        """Makes the files of a node and a gateway."""
        (folder / "rows.dat").write_text("a b\n", encoding="utf-8")
        made = LoopbackFederation.prepare(folder, "baskets", {NODE: folder / "rows.dat"})
        with (folder / NODE / "party.toml").open("a", encoding="utf-8") as file:
            file.write("\n[frequency]\nmax_epsilon = 8.0\n")
        home = folder / GATEWAY
        home.mkdir()
        write_identity(Authority.read(folder / "authority").issue(GATEWAY, "client"), home)
        files = (folder / NODE / "ca.crt", home / f"{GATEWAY}.crt", home / f"{GATEWAY}.key")
        return cls(made, Gateway(NODE, made.addresses[NODE], *files))

    def start(self) -> None:
        """Starts the node, or starts it again."""
        home = self.federation.folder / NODE
        with self.federation.log(NODE).open("ab") as log:
            self.federation.nodes[NODE] = subprocess.Popen(
                [sys.executable, "-P", "-m", "comine", "party", "serve", "party.toml"], cwd=home, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Ends the node at once."""
        process = self.federation.nodes.pop(NODE)
        process.kill()
        process.wait()

    @contextlib.asynccontextmanager
    async def node(self) -> AsyncIterator[FrequencyNode]:
        """The coordinator's calls."""
        found = FrequencyNode(self.federation.identity(), NODE, self.gateway.address)
        try:
            yield found
        finally:
            await found.close()

    async def load(self, name: str, mechanism: str, load: Load) -> Measured:
        """A new collection under load."""
        contents = {
            "collection": {"name": name, "mechanism": mechanism, "epsilon": EPSILON, "size": VALUES},
            "access": {"gateways": {GATEWAY: 10 * MANY}},
        }
        async with self.node() as node:
            collection = await node.create(CollectionSpec.model_validate(contents), b"")
            return await load_test(node, collection, self.gateway, load)

    async def recovered(self, name: str, reports: int) -> float:
        """Seconds from the start after a SIGKILL to the first estimate, which must be of all reports."""
        self.kill()
        began = time.perf_counter()
        self.start()
        async with self.node() as node:
            while True:
                with contextlib.suppress(PeerError):
                    estimates = await node.estimate(FrequencyRequest(collection=name))
                    break
                await asyncio.sleep(0.02)
        if estimates.head.reports != reports:
            raise RuntimeError(f"{estimates.head.reports:,} reports were there after the restart, not {reports:,}")
        return time.perf_counter() - began


@contextlib.contextmanager
def collecting() -> Iterator[Collecting]:
    """A running node, whose files are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        made = Collecting.prepare(Path(name))
        made.start()
        try:
            asyncio.run(made.federation.ready())
            yield made
        finally:
            made.kill()


def run(settings: Settings) -> list[Table]:
    """Each mechanism under load on a node of its own, then a collection of 10^7 reports."""
    reports = QUICK if settings.quick else REPORTS
    cases = [(mechanism, reports, batch) for mechanism in MECHANISMS for batch in (1024, 8192)]
    cases += [] if settings.quick else [("grr", MANY, 8192), ("olh", MANY, 8192)]
    table = Table(
        f"Frequency service: {VALUES:,} values at ε = {EPSILON}, one TLS connection of this machine",
        (
            "mechanism",
            "reports",
            "a batch",
            "acknowledged a second",
            "estimates meanwhile",
            "p50 ms",
            "p99 ms",
            "longest ms",
            "node's peak MB",
            "after kill -9 s",
            "error / theory",
        ),
        notes=[
            "acknowledged = on the node's disk (fsync); the sender perturbs meanwhile, on the same machine",
            "estimates of all values while reports come, one after the other, 50 ms apart, over another connection",
            "after kill -9 = from the node's new start to an estimate of all reports, the start of Python included",
        ],
    )
    for mechanism, number, batch in cases:
        settings.tell(f"{number:,} reports by {mechanism}, {batch:,} a batch")
        with collecting() as made:
            measured = asyncio.run(made.load("load", mechanism, Load(number, batch)))
            recovery = asyncio.run(made.recovered("load", number))
        table.add(mechanism, number, batch, *_figures(measured), recovery, _ratio(measured))
    return [table]


def _figures(measured: Measured) -> tuple[float | int | None, ...]:
    latencies = (measured.latency(share) for share in (0.5, 0.99, 1.0))
    peak = None if measured.peak_bytes is None else measured.peak_bytes / 1e6
    return (
        round(measured.rate),
        len(measured.latencies),
        *(None if each is None else 1000 * each for each in latencies),
        peak,
    )


def _ratio(measured: Measured) -> float | None:
    if measured.rmse is None or measured.theory_rmse is None:
        return None
    return measured.rmse / measured.theory_rmse

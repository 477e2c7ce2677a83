"""Reports through two shufflers, as processes over TLS: sealed, taken durably, shuffled twice, collected and opened."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import Piece, new_private_key, open_piece, public_key_of
from ldp.shuffling.batch import digest
from ldp.shuffling.onion import wrap
from ldp.shuffling.route import Route
from ldp.shuffling.statement import check_chain, read_key
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.runtime.process_executor import ProcessExecutor
from link.transports.grpc_channel import dial
from protos.v1 import shuffle_pb2 as pb
from protos.v1.shuffle_pb2_grpc import ShufflerStub

SHUFFLERS = ("north", "south")
SIZE = 64
REPORTS = 1_000_000
QUICK = 5_000
MESSAGE = 4096  # reports
PIECE = 4096


@dataclass(frozen=True)
class Passed:
    """Seconds, and counts.

    Attributes:
        submitted: Until the first shuffler had acknowledged all reports; it has taken its layer off by then.
        arrived: From then on, until the analyst had all of them from the second one.
        opened: From then on, until the analyst had read them, on all cores.
        cpu: Processor time of both nodes.
        reports: That the analyst has read.
    """

    submitted: float
    arrived: float
    opened: float
    cpu: float
    reports: int


def run(settings: Settings) -> list[Table]:
    """One batch through two shufflers."""
    n = QUICK if settings.quick else REPORTS
    table = Table(
        f"Shuffler: reports of {SIZE} bytes through two shufflers, both on this machine, over TLS",
        ("reports", "seal s", "first shuffler s", "second one s", "both s", "analyst opens s", "nodes' CPU s"),
        notes=[
            "seal: three layers, on all cores; in use it is spread over the senders' devices",
            "first shuffler: until all are acknowledged, which is on disk and without its layer",
            "second one: from then on, until all have been shuffled twice, forwarded, and collected by the analyst",
        ],
    )
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        table.add(*asyncio.run(_measured(Path(name), n, settings)))
    return [table]


async def _measured(folder: Path, n: int, settings: Settings) -> tuple[float | int, ...]:
    with _nodes(folder) as made:
        await made.ready()
        analyst, fleet = made.identity(), Authority.read(folder / "authority").issue("fleet", "client")
        collector_key = new_private_key(Randomness.from_os())
        route = Route(
            name="bench",
            id=Randomness.from_os().bytes(16),
            shufflers=SHUFFLERS,
            collector=f"coordinator/{analyst.name}",
            collector_key=public_key_of(collector_key),
            size=SIZE,
            minimum=1000,
            gateways=(("client/fleet", n),),
        )
        executor = ProcessExecutor()
        try:
            keys = [await _created(analyst, made, route, hop) for hop in range(len(SHUFFLERS))]
            settings.tell(f"sealing {n:,} reports")
            began = time.perf_counter()
            sealed = await executor.map(
                partial(_sealed, route=route, keys=keys), [range(i, min(i + PIECE, n)) for i in range(0, n, PIECE)]
            )
            sealing = time.perf_counter() - began
            settings.tell("shuffling them")
            passed = await _passed(
                made, route, analyst, fleet, [row for piece in sealed for row in piece], collector_key
            )
        finally:
            executor.close()
    if passed.reports != n:
        raise RuntimeError(f"{passed.reports:,} of {n:,} reports have arrived")
    both = passed.submitted + passed.arrived
    return n, sealing, passed.submitted, passed.arrived, both, passed.opened, passed.cpu


async def _passed(
    made: LoopbackFederation,
    route: Route,
    analyst: Identity,
    fleet: Identity,
    sealed: list[bytes],
    collector_key: bytes,
) -> Passed:
    n = len(sealed)
    executor = ProcessExecutor()
    async with _calls(fleet, made, 0) as sender, _calls(analyst, made, 0) as first, _calls(analyst, made, 1) as last:
        began = time.perf_counter()
        messages = (
            pb.SealedReports(route=route.name, reports=sealed[start : start + MESSAGE])
            for start in range(0, n, MESSAGE)
        )
        taken = sum([receipt.taken async for receipt in sender.Submit(messages)])
        submitted = time.perf_counter()
        if taken != n:
            raise RuntimeError(f"{taken:,} of {n:,} reports were taken")
        await first.Flush(pb.FlushRequest(route=route.name))
        while True:
            if found := [part async for part in last.Collect(pb.CollectRequest(route=route.name))]:
                break
            await asyncio.sleep(0.1)
        batch = np.frombuffer(b"".join(part.reports for part in found), np.uint8).reshape(found[0].head.reports, -1)
        check_chain(found[0].head.statements, route, 1, len(batch), digest(batch), analyst.trust)
        arrived = time.perf_counter()
        cpu = sum(_cpu_s(process.pid) for process in made.nodes.values())
        context, width = route.context(len(SHUFFLERS)), batch.shape[1]
        pieces = [
            Piece(batch[i : i + PIECE].tobytes(), width, collector_key, context) for i in range(0, len(batch), PIECE)
        ]
        readable = sum(sum(flags) for _, flags in await executor.map(open_piece, pieces))
        executor.close()
        return Passed(submitted - began, arrived - submitted, time.perf_counter() - arrived, cpu, readable)


def _sealed(numbers: range, *, route: Route, keys: list[bytes]) -> list[bytes]:
    reports: NDArray[np.uint8] = np.zeros((len(numbers), SIZE), np.uint8)
    reports[:, :8] = np.fromiter(numbers, "<u8").view(np.uint8).reshape(-1, 8)
    return [row.tobytes() for row in wrap(reports, route, keys)]


async def _created(analyst: Identity, made: LoopbackFederation, route: Route, hop: int) -> bytes:
    async with _calls(analyst, made, hop) as calls:
        created = await calls.Create(pb.CreateRouteRequest(document=route.document()))
        return read_key(created.key, route, hop, analyst.trust)


@contextlib.asynccontextmanager
async def _calls(identity: Identity, made: LoopbackFederation, hop: int) -> AsyncIterator[Any]:
    name = SHUFFLERS[hop]
    async with dial(identity, name, made.addresses[name]) as channel:
        yield ShufflerStub(channel)


@contextlib.contextmanager
def _nodes(folder: Path) -> Iterator[LoopbackFederation]:
    (folder / "rows.dat").write_text("a b\n", encoding="utf-8")
    made = LoopbackFederation.prepare(folder, "baskets", dict.fromkeys(SHUFFLERS, folder / "rows.dat"))
    for name in SHUFFLERS:
        with (folder / name / "party.toml").open("a", encoding="utf-8") as file:
            file.write('\n[shuffler]\nmin_batch = 1000\ngateways = ["client/fleet"]\n')
    with made.running():
        yield made


def _cpu_s(pid: int) -> float:
    """Seconds of processor time of a process and all its children."""
    total = 0.0
    for each in [pid, *_children(pid)]:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, found) for each in (child, *_children(child))]

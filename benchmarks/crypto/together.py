"""Three parties of a protocol: in one process, in three over loopback TLS, and over an emulated wide-area network."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from benchmarks.crypto.protocols import Plan, Timing, node, take_part
from benchmarks.settings import PARTIES, ROOT
from coordinator.demo.loopback import LoopbackFederation
from link.core import Transport
from link.executor import ThreadExecutor
from link.transports.faulty import EmulatedLink
from link.transports.memory import Hub

LATENCY_S, BITS_PER_S = 0.020, 100e6
Wrap = Callable[[Transport], Transport]


def in_memory(plan: Plan, wrap: Wrap = lambda transport: transport) -> Timing:
    """All parties in this process, frames handed over in memory."""

    async def run() -> list[list[Timing]]:
        hubs: dict[bytes, Hub] = {}
        executor = ThreadExecutor()

        def opener(name: str) -> Callable[[bytes], Transport]:
            return lambda job_id: wrap(hubs.setdefault(job_id, Hub()).endpoint(name))

        try:
            return await asyncio.gather(*(take_part(plan, name, opener(name), executor) for name in PARTIES))
        finally:
            executor.close()

    return slowest(asyncio.run(run()))


def processor_s(plan: Plan, repeats: int = 4) -> float:
    """Seconds of the processor that a run takes of all parties together, with nothing but the protocol in them."""
    taken = []
    for number in (1, repeats + 1):  # the first has what is done once
        begun = time.process_time()
        in_memory(replace(plan, repeats=number))
        taken.append(time.process_time() - begun)
    return (taken[1] - taken[0]) / repeats


def wide_area(plan: Plan, latency_s: float = LATENCY_S, bits_per_s: float = BITS_PER_S) -> Timing:
    """All parties in this process, frames as slow as over 20 ms and 100 Mbit/s, or another network."""
    return in_memory(plan, lambda transport: EmulatedLink(transport, latency_s, bits_per_s))


def over_tls(plan: Plan) -> Timing:
    """All parties in this process, frames over the loopback under mutual TLS."""

    async def run(federation: LoopbackFederation) -> list[list[Timing]]:
        executor = ThreadExecutor()
        addresses = federation.addresses
        async with AsyncExitStack() as stack:
            links = {
                name: await stack.enter_async_context(node(federation.folder / name, name, addresses))
                for name in PARTIES
            }
            parts = [
                take_part(plan, name, partial(link.open, parties=PARTIES), executor) for name, link in links.items()
            ]
            try:
                return await asyncio.gather(*parts)
            finally:
                executor.close()

    with tempfile.TemporaryDirectory(prefix="comine-bench-") as folder:
        return slowest(asyncio.run(run(_federation(Path(folder)))))


def in_processes(plan: Plan) -> Timing:
    """Every party a process of its own, frames over the loopback under mutual TLS."""
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        folder = Path(name)
        federation = _federation(folder)
        given = {"plan": asdict(plan), "folder": str(folder), "addresses": federation.addresses}
        (folder / "plan.json").write_text(json.dumps(given))
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.crypto.protocols", str(folder / "plan.json"), party],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for party in PARTIES
        ]
        try:
            outputs = [process.communicate(timeout=600)[0] for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if any(process.returncode for process in processes):
            raise RuntimeError(f"a party of the protocol '{plan.protocol}' failed")
        return slowest([[Timing(**timing) for timing in json.loads(output)] for output in outputs])


def slowest(timings: Iterable[Iterable[Timing]]) -> Timing:
    """The best run, each run as slow as its slowest party; bytes of all parties together."""
    runs = zip(*timings, strict=True)
    return min(
        (
            Timing(max(t.seconds for t in run), sum(t.bytes_sent for t in run), max(t.rounds for t in run))
            for run in map(list, runs)
        ),
        key=lambda timing: timing.seconds,
    )


def _federation(folder: Path) -> LoopbackFederation:
    return LoopbackFederation.prepare(folder, "none", {name: Path("none") for name in PARTIES})

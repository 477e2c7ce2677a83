"""Computations of two parties on shares, each party a process of its own, over the loopback under mutual TLS.

As a module it is one party: `python -m benchmarks.crypto.two_party PLAN.json NAME`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.crypto.protocols import node
from benchmarks.settings import PARTIES, ROOT
from coordinator.demo.loopback import LoopbackFederation
from crypto.params import STANDARD_128
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.and_triples import make_triples
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.multiplication import dot_product, multiply
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.secure_sum import word_for
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.ot_extension import fill_up, receive_random, send_random
from link.core import Terms, Transport
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.faulty import EmulatedLink
from link.transports.grpc_transport import NodeLink
from link.transports.memory import Hub
from protos.v1.secure_sum_pb2 import AgreementKey

HOLDERS = PARTIES[:2]
LATENCY_S, BITS_PER_S = 0.020, 100e6

Open = Callable[[bytes], Transport]


@dataclass(frozen=True)
class Task:
    """What the two parties do together.

    Attributes:
        name: "agreement", "transfers", "triples", "products", "dot product" or "comparisons".
        number: How many.
        width: Of comparisons, in bits.
        field_bits: k of the extensions.
        repeats: Runs, each in a session of its own, after the agreement upon seeds.
    """

    name: str
    number: int
    width: int = 64
    field_bits: int = DEFAULT_FIELD_BITS
    repeats: int = 5


@dataclass(frozen=True)
class Cost:
    """What a run cost both parties.

    Attributes:
        seconds: Wall time of the slower.
        cpu_s: Processor time of both processes together, all threads.
        bytes_sent: Of both.
        rounds: The longest chain of messages.
    """

    seconds: float
    cpu_s: float
    bytes_sent: int
    rounds: int


async def take_part(task: Task, me: str, open_transport: Open, executor: ThreadExecutor) -> list[Cost]:
    """This party's runs."""
    costs = []
    for attempt in range(1, task.repeats + 1):
        job_id = hashlib.sha256(b"two parties %d" % attempt).digest()
        transport = open_transport(job_id)
        session = await Session.establish(
            Terms(job_id, attempt, job_id, HOLDERS, STANDARD_128.suite),
            me,
            transport,
            random=Randomness.from_os(),
            executor=executor,
        )
        parties = TwoParty(session.lane("agreement"), HOLDERS, field_bits=task.field_bits)
        if task.name != "agreement":
            await make_triples(session.lane("first"), parties, 128)  # agrees upon the seeds of both directions
        work = _work(task, session.lane("work"), parties)
        ready = session.lane("ready")
        await ready.broadcast(AgreementKey())
        await ready.gather(AgreementKey)
        before, start, cpu = session.costs, time.perf_counter(), time.process_time()
        await work()
        seconds, cpu, after = time.perf_counter() - start, time.process_time() - cpu, session.costs
        await ready.broadcast(AgreementKey())  # nobody leaves before all have what they were sent
        await ready.gather(AgreementKey)
        costs.append(Cost(seconds, cpu, after.bytes_sent - before.bytes_sent, after.rounds - before.rounds))
        await transport.close()
    return costs


def _work(task: Task, lane: Session, parties: TwoParty) -> Callable[[], Awaitable[Any]]:
    values = AdditiveShare(Randomness.from_os().uint64(task.number), parties.me, HOLDERS)
    match task.name:
        case "agreement":
            return lambda: make_triples(lane, parties, 128)
        case "transfers":
            return lambda: _transfers(lane, parties, task.number)
        case "triples":
            return lambda: make_triples(lane, parties, task.number)
        case "products":
            return lambda: multiply(lane, parties, values, values)
        case "dot product":
            bits = values.values % 2 == 1
            return lambda: dot_product(lane, parties, bits)
        case "comparisons":
            word = word_for((1 << task.width) - 1)
            share = AdditiveShare(values.values.astype(word), parties.me, HOLDERS)
            return lambda: at_least(lane, parties, share, 89, task.width)
    raise ValueError(f"there is no task '{task.name}'")


async def _transfers(lane: Session, parties: TwoParty, number: int) -> None:
    """Random transfers of 16-byte messages from the first holder; nothing is kept."""
    if parties.is_first:
        async for _ in send_random(lane, parties.peer, await parties.sending(lane), number):
            pass
    else:
        choices = fill_up(Randomness.from_os().uint64(number) % 2 == 1)
        async for _ in receive_random(lane, parties.peer, await parties.receiving(lane), choices):
            pass


def in_processes(task: Task) -> Cost:
    """The best run of two processes over the loopback under mutual TLS."""
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        folder = Path(name)
        federation = LoopbackFederation.prepare(folder, "none", {name: Path("none") for name in HOLDERS})
        given = {"task": asdict(task), "folder": str(folder), "addresses": federation.addresses}
        (folder / "task.json").write_text(json.dumps(given))
        command = [sys.executable, "-m", "benchmarks.crypto.two_party", str(folder / "task.json")]
        processes = [
            subprocess.Popen([*command, party], cwd=ROOT, stdout=subprocess.PIPE, text=True) for party in HOLDERS
        ]
        try:
            outputs = [process.communicate(timeout=600)[0] for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if any(process.returncode for process in processes):
            raise RuntimeError(f"a party of '{task.name}' failed")
        return _best([[Cost(**cost) for cost in json.loads(output)] for output in outputs])


def wide_area(task: Task) -> Cost:
    """Both parties in this process, frames as slow as over 20 ms and 100 Mbit/s; processor time is not told apart."""

    async def run() -> list[list[Cost]]:
        hubs: dict[bytes, Hub] = {}
        executor = ThreadExecutor()

        def opener(name: str) -> Open:
            return lambda job_id: EmulatedLink(hubs.setdefault(job_id, Hub()).endpoint(name), LATENCY_S, BITS_PER_S)

        try:
            return await asyncio.gather(*(take_part(task, name, opener(name), executor) for name in HOLDERS))
        finally:
            executor.close()

    return _best(asyncio.run(run()))


def _best(costs: list[list[Cost]]) -> Cost:
    """The fastest run, as slow as its slower party; and the least processor time of any run."""
    runs = [
        Cost(max(a.seconds, b.seconds), a.cpu_s + b.cpu_s, a.bytes_sent + b.bytes_sent, max(a.rounds, b.rounds))
        for a, b in zip(*costs, strict=True)
    ]
    fastest = min(runs, key=lambda cost: cost.seconds)
    return Cost(fastest.seconds, min(cost.cpu_s for cost in runs), fastest.bytes_sent, fastest.rounds)


async def _party(task: Task, folder: Path, name: str, addresses: dict[str, str]) -> list[Cost]:
    executor = ThreadExecutor()

    def opener(link: NodeLink) -> Open:
        return lambda job_id: link.open(job_id, HOLDERS)

    async with node(folder / name, name, addresses) as link:
        costs = await take_part(task, name, opener(link), executor)
    executor.close()
    return costs


def main() -> None:
    """One of the two parties; prints its costs as JSON."""
    given = json.loads(Path(sys.argv[1]).read_text())
    costs = asyncio.run(_party(Task(**given["task"]), Path(given["folder"]), sys.argv[2], given["addresses"]))
    print(json.dumps([asdict(cost) for cost in costs]))


if __name__ == "__main__":
    main()

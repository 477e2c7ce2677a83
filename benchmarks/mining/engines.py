"""Products of private columns by each engine, each party a process of its own, over the loopback under mutual TLS.

As a module it is one party: `python -m benchmarks.mining.engines TASK.json NAME`.
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

import numpy as np
from numpy.typing import NDArray

from benchmarks.crypto import heu
from benchmarks.crypto.protocols import node
from benchmarks.settings import PARTIES, ROOT, Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from crypto.params import STANDARD_128
from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.randomness import Randomness
from crypto.protocols.comparison.multiplication import dot_product
from crypto.protocols.comparison.two_party import TwoParty, pairs_of
from crypto.protocols.products import dealer
from crypto.protocols.products.ot_matrix import all_pairs, pair_products
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.products.shared_products import spanning_products
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from link.core import Terms
from link.executor import ThreadExecutor
from link.session import Session
from protos.v1.secure_sum_pb2 import AgreementKey

HOLDERS = PARTIES[:2]
DENSITY = 0.2
TRANSFERS_TARGET_S, TRANSFERS_TARGET_GB, REPLICATED_TARGET_S = 3.5, 0.6, 2.0
DOT_ROWS, DOT_TARGET = 10_000, 300  # the target: times as fast as sf-heu encrypts the bits of one column, on one core


@dataclass(frozen=True)
class Task:
    """What the parties do together.

    Attributes:
        engine: "transfers", "dealer", "replicated", "all parties" or "dot product".
        rows: Length of the columns.
        columns: Of each party; all pairs of them are counted, with "all parties" one of each party together.
        field_bits: k of the extensions.
        repeats: Runs, each in a session of its own, after the agreement upon seeds.
    """

    engine: str
    rows: int
    columns: int = 1
    field_bits: int = DEFAULT_FIELD_BITS
    repeats: int = 3

    @property
    def parties(self) -> tuple[str, ...]:
        """Who takes part."""
        return HOLDERS if self.engine in ("transfers", "dot product") else PARTIES


@dataclass(frozen=True)
class Cost:
    """What a run cost a party, or all of them.

    Attributes:
        seconds: Wall time, of the slowest.
        cpu_s: Processor time, of all threads; of all processes together.
        bytes_sent: Of all.
        rounds: The longest chain of messages.
    """

    seconds: float
    cpu_s: float
    bytes_sent: int
    rounds: int

    @classmethod
    def of_all(cls, costs: tuple[Cost, ...]) -> Cost:
        """The parties' costs of one run, as one."""
        return cls(
            max(cost.seconds for cost in costs),
            sum(cost.cpu_s for cost in costs),
            sum(cost.bytes_sent for cost in costs),
            max(cost.rounds for cost in costs),
        )


class Party:
    """One party's data and agreements in one session."""

    def __init__(self, task: Task, session: Session, secrets: PairwiseSecrets) -> None:
        self.task, self.secrets, self.me = task, secrets, session.me
        random = np.random.default_rng(task.parties.index(session.me))
        self.bits: NDArray[np.bool_] = random.random((task.columns, task.rows)) < DENSITY
        self.columns = pack_bits(self.bits)
        agreements = session.lane("agreements")
        self.pairs = pairs_of(agreements)
        if session.me in HOLDERS:
            peer = HOLDERS[session.me == HOLDERS[0]]
            self.pairs[peer] = TwoParty(agreements.lane("holders"), HOLDERS, field_bits=task.field_bits)
            self.two: TwoParty | None = self.pairs[peer]
        else:
            self.two = None

    async def prepare(self) -> None:
        """Agrees upon all seeds that will be used."""
        for peer in sorted(self.pairs):
            if self.task.engine == "all parties" or {self.me, peer} == set(HOLDERS):
                await self.pairs[peer].prepare()

    async def work(self, lane: Session) -> Any:
        """The task."""
        task, counted = self.task, all_pairs(self.task.columns, self.task.columns)
        match task.engine:
            case "replicated":
                itemsets = [dict(zip(HOLDERS, map(int, pair), strict=True)) for pair in counted]
                return await spanning_counts(lane, self.secrets, PARTIES, self.two, self.columns, task.rows, itemsets)
            case "all parties":
                together = [dict.fromkeys(PARTIES, column) for column in range(task.columns)]
                arguments = (self.pairs, self.columns, task.rows, together, HOLDERS)
                return await spanning_products(lane, self.secrets, *arguments)
            case "dealer" if self.two is None:
                return await dealer.deal(lane, self.secrets, HOLDERS, rows=task.rows, pairs=counted)
        assert self.two is not None
        match task.engine:
            case "transfers":
                return await pair_products(lane, self.two, self.columns, task.rows, counted)
            case "dealer":
                third = PARTIES[2]
                return await dealer.pair_products(lane, self.secrets, self.two, third, self.columns, task.rows, counted)
            case "dot product":
                return await dot_product(lane, self.two, self.bits[0])
        raise ValueError(f"there is no engine '{task.engine}'")


async def _party(task: Task, folder: Path, name: str, addresses: dict[str, str]) -> list[Cost]:
    costs, executor = [], ThreadExecutor()
    async with node(folder / name, name, addresses) as link:
        for attempt in range(1, task.repeats + 1):
            job_id = hashlib.sha256(b"engines %d" % attempt).digest()
            transport = link.open(job_id, task.parties)
            terms = Terms(job_id, attempt, job_id, task.parties, STANDARD_128.suite)
            session = await Session.establish(terms, name, transport, random=Randomness.from_os(), executor=executor)
            party = Party(task, session, await agree(session))
            await party.prepare()
            costs.append(await _timed(session, lambda lane, party=party: party.work(lane)))
            await transport.close()
    executor.close()
    return costs


async def _timed(session: Session, work: Callable[[Session], Awaitable[Any]]) -> Cost:
    ready = session.lane("ready")
    await ready.broadcast(AgreementKey())
    await ready.gather(AgreementKey)
    lane = session.lane("work")
    before, start, cpu = session.costs, time.perf_counter(), time.process_time()
    await work(lane)
    seconds, cpu, after = time.perf_counter() - start, time.process_time() - cpu, session.costs
    await ready.broadcast(AgreementKey())  # nobody leaves before all have what they were sent
    await ready.gather(AgreementKey)
    return Cost(seconds, cpu, after.bytes_sent - before.bytes_sent, after.rounds - before.rounds)


def in_processes(task: Task) -> Cost:
    """The fastest run of one process a party, over the loopback under mutual TLS; the least processor time of any."""
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        folder = Path(name)
        federation = LoopbackFederation.prepare(folder, "none", {party: Path("none") for party in task.parties})
        given = {"task": asdict(task), "folder": str(folder), "addresses": federation.addresses}
        (folder / "task.json").write_text(json.dumps(given))
        command = [sys.executable, "-m", "benchmarks.mining.engines", str(folder / "task.json")]
        processes = [
            subprocess.Popen([*command, party], cwd=ROOT, stdout=subprocess.PIPE, text=True) for party in task.parties
        ]
        try:
            outputs = [process.communicate(timeout=600)[0] for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if any(process.returncode for process in processes):
            raise RuntimeError(f"a party of '{task.engine}' failed")
    by_party = [[Cost(**cost) for cost in json.loads(output)] for output in outputs]
    runs = [Cost.of_all(run) for run in zip(*by_party, strict=True)]
    fastest = min(runs, key=lambda cost: cost.seconds)
    return Cost(fastest.seconds, min(cost.cpu_s for cost in runs), fastest.bytes_sent, fastest.rounds)


def run(settings: Settings) -> list[Table]:
    """All pairs of two parties' columns by each engine; one pair of short columns; columns of three parties."""
    rows, columns = (5_000, 10) if settings.quick else (100_000, 50)
    table = Table(
        f"Products of private columns, density {DENSITY}: one process a party, loopback TLS",
        (
            *("engine", "rows", "products", "seconds", "target s", "CPU s, all", "MB", "target MB", "rounds"),
            *("sf-heu s", "×", "target ×"),
        ),
        notes=[
            "seeds of extensions are agreed upon beforehand, once a session; dealing and sharing of columns are in it",
            f"sf-heu: {DOT_ROWS:,} encryptions of a bit at 2048 bits, processor time; a product by it takes longer",
        ],
    )
    pairs, repeats = columns * columns, settings.repeats
    in_heu = heu.operations(settings, 2048).get("encryption of a bit")
    if in_heu is None:
        table.notes.append(heu.SKIPPED)
    alone = None if in_heu is None else in_heu * DOT_ROWS
    tasks = [
        *(
            (f"transfers, k = {k}", Task("transfers", rows, columns, k, repeats), pairs, (TRANSFERS_TARGET_S, 600))
            for k in (DEFAULT_FIELD_BITS, 4)
        ),
        ("dealer", Task("dealer", rows, columns, repeats=repeats), pairs, (None, None)),
        ("replicated", Task("replicated", rows, columns, repeats=repeats), pairs, (REPLICATED_TARGET_S, None)),
        ("all parties", Task("all parties", rows, 10, repeats=repeats), 10, (None, None)),
        ("dot product", Task("dot product", DOT_ROWS, repeats=3 * repeats), 1, (None, None)),
        ("transfers, one pair", Task("transfers", DOT_ROWS, repeats=3 * repeats), 1, (None, None)),
    ]
    for name, task, products, (seconds, megabytes) in tasks:
        settings.tell(f"products, {name}")
        cost = in_processes(task)
        beside = (
            (alone, alone / cost.seconds, DOT_TARGET) if alone is not None and products == 1 else (None, None, None)
        )
        table.add(
            *(name, task.rows, products, cost.seconds, seconds, cost.cpu_s),
            *(cost.bytes_sent / 1e6, megabytes, cost.rounds, *beside),
        )
    return [table]


def main() -> None:
    """One of the parties; prints its costs as JSON."""
    given = json.loads(Path(sys.argv[1]).read_text())
    costs = asyncio.run(_party(Task(**given["task"]), Path(given["folder"]), sys.argv[2], given["addresses"]))
    print(json.dumps([asdict(cost) for cost in costs]))


if __name__ == "__main__":
    main()

"""Intersection of two parties' identifiers beside OpenMined PSI and SPU, of more parties', and the other alignments.

As a module it is one run of ours, all parties in one process, which talk over TLS:
`python -m benchmarks.crypto.psi ROWS PROTOCOL PARTIES`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final, TypedDict

import numpy as np

from benchmarks.crypto.protocols import node
from benchmarks.measure import cores, run_process
from benchmarks.settings import PARTIES, ROOT, Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from crypto.params import STANDARD_128
from crypto.primitives.randomness import Randomness
from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.common_rows import Rows
from crypto.protocols.alignment.disclosure import Mode, declared
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from link.core import Terms
from link.executor import ThreadExecutor
from link.session import Session

PEERS: Final = {  # by name what it is in Python, and the script that runs it
    "OpenMined PSI": ("private_set_intersection.python", "openmined_intersection.py"),
    "SPU": ("spu.psi", "spu_intersection.py"),
}
NAMES: Final = (*PARTIES, *(f"party{number}" for number in range(len(PARTIES), 6)))
MORE: Final = (3, 5)  # parties
LABEL = "aligned"
FEW_ROWS, ROWS, MANY_ROWS = 10_000, 100_000, 1_000_000
TARGET: Final = 2.0  # times as fast as the peer
OVER_THE_GROUP: Final = "the same over the group alone"
PROTOCOLS: Final = ("alignment, intersection", OVER_THE_GROUP)
ON_SHARES: Final[dict[str, Mode]] = {"alignment, cardinality": "cardinality", "alignment, union": "union"}


class Costs(TypedDict):
    """Of a peer: seconds, processor seconds, and bytes where it says how many."""

    seconds: float
    cpu_s: float
    bytes: float | None


@dataclass(frozen=True)
class Cost:
    """What one run cost.

    Attributes:
        seconds: Wall time.
        cpu_s: Processor time of all parties.
        bytes_sent: By all.
        peak_mb: Of the process, identifiers included.
    """

    seconds: float
    cpu_s: float
    bytes_sent: int
    peak_mb: float


def run(settings: Settings) -> list[Table]:
    """Lists of which half is common, by ours and by the peer; then longer ones by ours."""
    few, rows, many = (300, 1_000, 3_000) if settings.quick else (FEW_ROWS, ROWS, MANY_ROWS)
    table = Table(
        f"Intersection of two parties' identifiers, half of them common, {cores()} cores",
        ("what", "rows each", "seconds", "× peer", "target ×", "CPU s, both", "bytes an identifier", "peak MB"),
        notes=[
            "both parties are in one process and talk over loopback TLS; × peer: OpenMined PSI's seconds beside ours",
            "OpenMined PSI tells one party what is common and works on one core; SPU and ours tell both",
            "SPU reads and writes files, and does not say how much it sends",
        ],
    )
    theirs = dict[str, Costs]()
    for peer in PEERS:
        costs = _peer(settings, peer, rows)
        if costs is None:
            table.notes.append(f"{peer} is not installed; `make bench-peers` installs it")
        theirs.update(costs or {})
    for name, cost in theirs.items():
        octets = cost["bytes"] / (2 * rows) if cost["bytes"] is not None else None
        table.add(name, rows, cost["seconds"], None, None, cost["cpu_s"], octets, None)
    older = [cost["seconds"] for peer, cost in theirs.items() if peer.startswith("OpenMined")]
    for size, name in product((few, rows, many), PROTOCOLS):
        if size == many and name == OVER_THE_GROUP:
            continue
        settings.tell(f"{name}, {size}")
        own = _ours(size, name, 2, settings.repeats if size == rows else 1)
        ratio, target = None, None
        if older and size == rows and name != OVER_THE_GROUP:
            ratio, target = min(older) / own.seconds, TARGET
        table.add(name, size, own.seconds, ratio, target, own.cpu_s, own.bytes_sent / (2 * size), own.peak_mb)
    return [table, _of_more(settings, rows), _on_shares(settings, few, rows)]


def _of_more(settings: Settings, rows: int) -> Table:
    """By ours, among more parties."""
    table = Table(
        f"Intersection of several parties' identifiers, {rows} each, half of them common, {cores()} cores",
        ("what", "parties", "seconds", "CPU s, all", "MB sent, all", "peak MB"),
        notes=["all parties are in one process and talk over loopback TLS"],
    )
    name = PROTOCOLS[0]
    for parties in MORE:
        settings.tell(f"{name}, {parties} parties, {rows}")
        own = _ours(rows, name, parties, 1)
        table.add(name, parties, own.seconds, own.cpu_s, own.bytes_sent / 1e6, own.peak_mb)
    return table


def _on_shares(settings: Settings, few: int, rows: int) -> Table:
    """By ours, what is compared on shares."""
    table = Table(
        f"Cardinality and union of several parties' identifiers, half of them common, {cores()} cores",
        ("what", "parties", "rows each", "seconds", "CPU s, all", "MB sent, all", "peak MB"),
        notes=["all parties are in one process and talk over loopback TLS"],
    )
    for name, parties, size in product(ON_SHARES, (2, MORE[0]), (few, rows)):
        settings.tell(f"{name}, {parties} parties, {size}")
        own = _ours(size, name, parties, 1)
        table.add(name, parties, size, own.seconds, own.cpu_s, own.bytes_sent / 1e6, own.peak_mb)
    return table


def _peer(settings: Settings, name: str, rows: int) -> dict[str, Costs] | None:
    """A peer's costs by its variants; None where it is not installed."""
    python, (package, script) = settings.peers_python, PEERS[name]
    if python is None:
        return None
    try:
        run_process([python, "-c", f"import {package}"])
    except RuntimeError:
        return None
    settings.tell(f"{name}, {rows}")
    path = Path(__file__).parent.parent / "peers" / script
    found: dict[str, Costs] = json.loads(run_process([python, path, str(rows)]).output)
    return {f"{name}, {variant}": costs for variant, costs in found.items()}


def _ours(rows: int, protocol: str, parties: int, repeats: int) -> Cost:
    command = [sys.executable, "-m", "benchmarks.crypto.psi", str(rows), protocol, str(parties)]
    runs = [Cost(**json.loads(run_process(command, cwd=ROOT).output)) for _ in range(repeats)]
    return min(runs, key=lambda cost: cost.seconds)


async def _align(rows: int, protocol: str, number: int) -> Cost:
    """All parties' parts, checked."""
    holders, mode = NAMES[:number], ON_SHARES.get(protocol, "intersection")
    align = getattr(alignment, mode)
    starts = {name: rows // 2 * place // (number - 1) for place, name in enumerate(holders)}
    if protocol == OVER_THE_GROUP:
        alignment.LONG_LISTS = sys.maxsize  # type: ignore[misc]
    executor = ThreadExecutor()
    terms = Terms(bytes(32), 1, bytes(32), holders, STANDARD_128.suite)
    held = {name: [b"r%09d" % (start + number) for number in range(rows)] for name, start in starts.items()}

    async def part(party: str) -> tuple[Rows | int, int]:
        session = await Session.establish(
            terms,
            party,
            links[party].open(terms.job_id, holders),
            random=Randomness.from_os(),
            executor=executor,
            declared=declared(mode, holders, holders[0], rows, LABEL),
        )
        secrets = await agree(session)
        agreed = (secrets, *([] if mode == "intersection" else [pairs_of(session)]))
        found = await align(session, *agreed, held[party], merger=holders[0], bound=rows, label=LABEL)
        return found, session.costs.bytes_sent

    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="comine-bench-")))
        federation = LoopbackFederation.prepare(folder, "none", {name: Path("none") for name in holders})
        links = {
            name: await stack.enter_async_context(node(folder / name, name, federation.addresses)) for name in holders
        }
        start, cpu = time.perf_counter(), time.process_time()
        found = dict(zip(holders, await asyncio.gather(*map(part, holders)), strict=True))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    executor.close()
    if not _is_right(mode, [np.asarray(each) for each, _ in found.values()], [*starts.values()], rows):
        raise RuntimeError(f"the {mode} is wrong")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return Cost(seconds, cpu, sum(sent for _, sent in found.values()), peak_mb)


def _is_right(mode: Mode, found: list[Rows], starts: list[int], rows: int) -> bool:
    """Whether this came out of lists of identifiers that begin at these numbers."""
    common = rows - rows // 2
    if mode == "cardinality":
        return all(each == common for each in found)
    numbers = [np.where(each < 0, -1, each + start) for each, start in zip(found, starts, strict=True)]
    if mode == "intersection":
        return len(numbers[0]) == common and all(np.array_equal(numbers[0], other) for other in numbers)
    at = np.max(numbers, axis=0)
    one_each = all((each[each >= 0] == at[each >= 0]).all() for each in numbers)
    return one_each and np.array_equal(np.sort(at[at >= 0]), np.arange(starts[-1] + rows))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_align(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))))

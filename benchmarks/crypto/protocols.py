"""One protocol at one party, timed from a common start: the same code for threads of one process and for processes.

As a module it is one party of a loopback federation: `python -m benchmarks.crypto.protocols PLAN.json NAME`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from benchmarks.settings import PARTIES
from crypto.params import STANDARD_128
from crypto.primitives.randomness import Randomness
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.masked_maximum import LABEL as LIMITS_LABEL
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.sums.ring_sum import ring_sum
from crypto.protocols.sums.secure_sum import secure_sum
from crypto.protocols.union.prefix_union import prefix_union
from link.core import Terms, Transport
from link.disclosure import Declared
from link.executor import ThreadExecutor
from link.pki.identity import Identity
from link.session import Session
from link.transports.grpc_channel import SERVER_OPTIONS, server_credentials
from link.transports.grpc_transport import NodeLink
from link.transports.serving import Serving
from mining.data.loading import load_transactions
from mining.joint.disclosure import openings
from mining.joint.horizontal.mine import mine
from mining.joint.parameters import HorizontalMining, Security
from protos.v1.secure_sum_pb2 import AgreementKey

DECLARED = tuple(
    Declared(label, frozenset(PARTIES), "benchmark values", 1 << 40, "now") for label in ("bench", LIMITS_LABEL)
)
ELEMENT_BYTES = 16

Work = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Plan:
    """What the parties do together.

    Attributes:
        protocol: "sum", "ring", "prefixes" or "joint".
        size: Values of a sum, elements of each party's set; unused by "joint".
        bound: The public bound of a union.
        repeats: How often; the first run warms up where there are several.
        data: For "joint": each party's basket file.
        min_support: For "joint": a count.
        helper: For "joint": who computes beside the two computing parties.
        catalogue: For "joint": the items of a public catalogue, in order; none, where the parties find the items.
        security: For "joint": against whom it holds.
    """

    protocol: str
    size: int = 0
    bound: int | None = None
    repeats: int = 1
    data: Mapping[str, str] | None = None
    min_support: int = 1
    helper: str | None = None
    catalogue: tuple[str, ...] = ()
    security: Security = "semi-honest"


@dataclass(frozen=True)
class Timing:
    """What one run cost one party.

    Attributes:
        seconds: From the moment when all were ready.
        bytes_sent: In that time.
        rounds: In that time.
    """

    seconds: float
    bytes_sent: int
    rounds: int


async def take_part(
    plan: Plan, me: str, open_transport: Callable[[bytes], Transport], executor: ThreadExecutor
) -> list[Timing]:
    """Runs this party's part `plan.repeats` times, each in a session of its own."""
    timings = []
    for attempt in range(1, plan.repeats + 1):
        job_id = hashlib.sha256(b"benchmark %d" % attempt).digest()
        transport = open_transport(job_id)
        task, rows = None, None
        if plan.protocol == "joint":
            task = HorizontalMining(
                plan.min_support, PARTIES, PARTIES[0], PARTIES[:2], helper=plan.helper, security=plan.security
            )
            if plan.catalogue:
                task = replace(task, universe="catalogue", catalogue=plan.catalogue)
            if plan.catalogue or task.is_verified:
                task = replace(task, strategy="level-wise")
            rows = plan.data
        session = await Session.establish(
            Terms(job_id, attempt, job_id, PARTIES, STANDARD_128.suite),
            me,
            transport,
            random=Randomness.from_os(),
            executor=executor,
            declared=openings(task, PARTIES) if task else DECLARED,
        )
        if task is not None and rows is not None:
            data = load_transactions(Path(rows[me]), "basket")
            work: Work = partial(mine, session.lane("task"), data, task)
        else:
            work = _work(plan, session, await agree(session.lane("keys")), attempt)
        await _all_ready(session)
        before, start = session.costs, time.perf_counter()
        await work()
        seconds, after = time.perf_counter() - start, session.costs
        timings.append(Timing(seconds, after.bytes_sent - before.bytes_sent, after.rounds - before.rounds))
        await transport.close()
    return timings


def _work(plan: Plan, session: Session, secrets: PairwiseSecrets, attempt: int) -> Work:
    random = Randomness.from_os()
    if plan.protocol == "prefixes":
        elements = set_of(session.me, plan.size, attempt)
        return lambda: prefix_union(
            session.lane("union"),
            secrets,
            pairs_of(session.lane("pairs")),
            elements,
            bound=plan.bound,
            label="bench",
            max_element_bytes=ELEMENT_BYTES,
        )
    values = random.uint64(plan.size)
    if plan.protocol == "ring":
        return lambda: ring_sum(session.lane("ring"), values, label="bench")
    return lambda: secure_sum(session.lane("sum"), secrets, values, label="bench")


def set_of(party: str, size: int, attempt: int) -> list[bytes]:
    """A set of which one third is common to all parties; another one in every attempt, as a node meets it first."""
    owners = ["all" if number % 3 == 0 else party for number in range(size)]
    names = (f"{attempt} {owner} {number}" for number, owner in enumerate(owners))
    return [hashlib.sha256(name.encode()).digest()[:ELEMENT_BYTES] for name in names]


async def _all_ready(session: Session) -> None:
    lane = session.lane("ready")
    await lane.broadcast(AgreementKey())
    await lane.gather(AgreementKey)


@contextlib.asynccontextmanager
async def node(home: Path, name: str, addresses: Mapping[str, str]) -> AsyncIterator[NodeLink]:
    """A node's link on its port of the loopback, with the keys of its folder."""
    identity = Identity.load(home / "ca.crt", home / f"{name}.crt", home / f"{name}.key")
    link = NodeLink(identity, addresses)
    server = grpc.aio.server(options=list(SERVER_OPTIONS))
    link.register(server)
    server.add_secure_port(addresses[name], server_credentials(identity))
    serving = Serving(server)
    await serving.start()
    try:
        yield link
    finally:
        await link.close()
        await serving.stop(None)


async def _party(plan: Plan, folder: Path, name: str, addresses: Mapping[str, str]) -> list[Timing]:
    executor = ThreadExecutor()
    async with node(folder / name, name, addresses) as link:
        timings = await take_part(plan, name, lambda job_id: link.open(job_id, PARTIES), executor)
    executor.close()
    return timings


def main() -> None:
    """One party of a loopback federation; prints its timings as JSON."""
    given = json.loads(Path(sys.argv[1]).read_text())
    timings = asyncio.run(_party(Plan(**given["plan"]), Path(given["folder"]), sys.argv[2], given["addresses"]))
    print(json.dumps([asdict(timing) for timing in timings]))


if __name__ == "__main__":
    main()

"""A whole job of three parties, as nodes run it, over transports that a test may wrap."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from crypto.primitives.randomness import Randomness
from jobs.data import Data
from jobs.loading import job_of
from jobs.run import PartyRun, run_party
from jobs.spec.job import JobSpec
from link.core import Transport
from link.executor import Executor
from link.pki.authority import Authority
from link.pki.identity import Identity
from mining.data.tables import Table
from mining.data.transactions import Transactions
from protos.v1.link_pb2 import Frame
from tests.mining.joint.oracle import Rows
from tests.world import transports

Wrap = Callable[[str, Transport], Transport]

DATA: dict[str, Rows] = {
    "north": [["a", "b", "c"], ["a", "b"], ["c"], ["d"]] * 6,
    "south": [["a", "b", "c"], ["b", "c"], ["e"]] * 7,
    "east": [["a", "c"], ["a", "b", "c", "f"]] * 5,
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "level-wise": {"strategy": "level-wise"},
    "one-shot": {"strategy": "one-shot"},
    "thinned": {"strategy": "level-wise", "thin": True},
    "catalogue": {"strategy": "level-wise", "universe": "the catalogue", "catalogue": list("abcdef")},
}
VERIFIED: dict[str, Any] = {**STRATEGIES["catalogue"], "helper": "east", "security": "malicious"}
BETWEEN_TWO: dict[str, Any] = {**STRATEGIES["catalogue"], "security": "malicious"}


def job(
    data: Mapping[str, Rows] = DATA,
    *,
    min_support: int | str = "0.2",
    bound: int | None = 8,
    deadline: str = "30m",
    recipients: tuple[str, ...] = ("all",),
    helper: str = "none",
    security: str = "semi-honest",
    **itemsets: Any,
) -> JobSpec:
    """A job over these parties."""
    contents = {
        "job": {
            "name": "test",
            "task": "itemsets",
            "parties": list(data),
            "dataset": "baskets",
            "recipients": list(recipients),
            "deadline": deadline,
        },
        "itemsets": {"min_support": min_support, **itemsets},
        "union": {} if bound is None else {"bound": bound},
        "trust": {"helper": helper, "security": security},
    }
    return job_of(contents, "the test", Path())


@cache
def identities(parties: tuple[str, ...]) -> dict[str, Identity]:
    """What the parties sign receipts with."""
    authority = Authority.create()
    return {party: authority.issue(party) for party in parties}


async def run_job(
    spec: JobSpec,
    data: Mapping[str, Rows | Data],
    executor: Executor,
    *,
    seed: int = 0,
    kind: Literal["memory", "grpc"] = "memory",
    wrap: Wrap = lambda party, transport: transport,
    observe: Callable[[Frame], None] | None = None,
    patience_s: float = 20,
) -> dict[str, PartyRun | BaseException]:
    """Runs every party to its end, whatever happens to the others; its run, or what it raised."""
    parties, source = spec.job.parties, Randomness.from_seed(seed)
    signers = identities(parties)
    job_id = hashlib.sha256(b"job %d" % seed).digest()  # not the specification's: a new setting changes no transcript

    def ignore(step: str, done: int, total: int) -> None:
        pass

    async with transports(parties, kind, job_id, observe, patience_s=patience_s) as inner:
        wrapped = {party: wrap(party, transport) for party, transport in inner.items()}
        ends = await asyncio.gather(
            *(
                run_party(
                    spec,
                    _encoded(data[party]),
                    wrapped[party],
                    job_id=job_id,
                    attempt=1,
                    identity=signers[party],
                    random=source.derive(party),
                    executor=executor,
                    progress=ignore,
                )
                for party in parties
            ),
            return_exceptions=True,
        )
        await asyncio.gather(*(transport.close() for transport in wrapped.values()))
    return dict(zip(parties, ends, strict=True))


def _encoded(given: Rows | Data) -> Data:
    return given if isinstance(given, Transactions | Table) else Transactions.from_rows(given)


def supports(run: PartyRun) -> dict[frozenset[str], int]:
    """What a learner found."""
    assert run.outcome.finding is not None
    return {frozenset(itemset): count for itemset, count in run.outcome.finding.itemsets.rows()}

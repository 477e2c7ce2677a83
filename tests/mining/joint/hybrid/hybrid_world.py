"""Runs of mining by perturbed records inside one test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.session import Session
from mining.data.transactions import Transactions
from mining.joint.estimated import EstimatedOutcome
from mining.joint.hybrid.disclosure import openings
from mining.joint.hybrid.mine import mine
from mining.joint.hybrid.parameters import HybridMining
from protos.v1.link_pb2 import Frame
from tests.mining.joint.oracle import Rows
from tests.world import run_parties

PARTIES = ("north", "south", "east")
ITEMS = tuple("abcdefgh")
SEEN = {"a": 0.8, "b": 0.65, "c": 0.5, "d": 0.1, "e": 0.08, "f": 0.05, "g": 0.03, "h": 0.01}
TASK = HybridMining(
    model="local",
    catalogue=ITEMS,
    k=3,
    search="svim",
    epsilon=6.0,
    delta=0.0,
    most_local=8.0,
    analyst="north",
    shufflers=(),
    colluding=0,
    learners=PARTIES,
)


def shuffled(shufflers: Sequence[str] = ("east",), **changes: Any) -> HybridMining:
    """The same task in the shuffle model."""
    return replace(TASK, **{"model": "shuffle", "delta": 1e-6, "shufflers": tuple(shufflers), **changes})


def baskets(n: int, seed: int) -> Rows:
    """Rows that hold each item with its own probability."""
    held = np.random.default_rng(seed).random((n, len(ITEMS))) < list(SEEN.values())
    return [[item for item, holds in zip(ITEMS, row, strict=True) if holds] for row in held.tolist()]


def run(
    data: Mapping[str, Rows],
    task: HybridMining = TASK,
    *,
    seed: int = 0,
    observe: Callable[[Frame], None] | None = None,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, EstimatedOutcome]:
    """The outcome at each party."""
    return outcomes(mine, openings, data, task, seed=seed, observe=observe, transport=transport)


def outcomes(mines: Any, opens: Any, data: Mapping[str, Rows], task: Any, **how: Any) -> dict[str, EstimatedOutcome]:
    """What a task of estimates finds at each party."""

    async def role(session: Session) -> EstimatedOutcome:
        found: EstimatedOutcome = await mines(session.lane("task"), Transactions.from_rows(data[session.me]), task)
        return found

    return run_parties(list(data), role, declared=opens(task, tuple(data)), **how)


def job(parties: Sequence[str] = PARTIES, privacy: Mapping[str, Any] | None = None, **tables: Any) -> JobSpec:
    """A job of that kind; the tables are changed as given."""
    contents = {
        "job": {
            "name": "test",
            "task": "itemsets",
            "parties": list(parties),
            "dataset": "baskets",
            "partition": "hybrid",
            "recipients": ["all"],
            **tables.pop("job", {}),
        },
        "itemsets": {"top_k": 3, "universe": "items", "catalogue": list(ITEMS), **tables.pop("itemsets", {})},
        "privacy": {"model": "local", "epsilon": 4, **(privacy or {})},
        **tables,
    }
    return job_of(contents, "the test", Path())

"""Results of jobs of all kinds, as if nodes had run them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.primitives.randomness import Randomness
from jobs.consent import approve, propose
from jobs.data import Data
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from mining.data.transactions import Transactions
from tests.jobs.audit.world import DATA, PARTIES
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation import anonymisation_jobs_world, anonymisation_world

RULES = {"min_confidence": "0.5", "measures": ["confidence", "lift", "conviction", "cosine"]}
SEED = 7


def baskets() -> dict[str, Data]:
    return {party: Transactions.from_rows(rows * 20) for party, rows in DATA.items()}


def basket_job(task: str = "rules", **tables: Any) -> JobSpec:
    contents: dict[str, Any] = {
        "job": {"name": "j", "task": task, "parties": list(PARTIES), "dataset": "baskets"},
        "itemsets": {"min_support": "0.2"},
        **({"rules": RULES} if task == "rules" else {}),
    }
    for name, more in tables.items():
        contents[name] = contents.get(name, {}) | more
    return job_of(contents, "the test", Path())


def _supports() -> tuple[JobSpec, dict[str, Data]]:
    return basket_job(), baskets()


def _frequent() -> tuple[JobSpec, dict[str, Data]]:
    spec = basket_job(
        "itemsets", itemsets={"disclose": "frequent"}, job={"task": "rules"}, rules={"min_confidence": "0.5"}
    )
    return spec, baskets()


def _most_frequent() -> tuple[JobSpec, dict[str, Data]]:
    return basket_job(itemsets={"top_k": 5}), baskets()


def _noisy() -> tuple[JobSpec, dict[str, Data]]:
    privacy = {"model": "distributed", "epsilon": "2", "delta": "1e-6", "colluding": 1}
    return basket_job(job={"partition": "hybrid"}, privacy=privacy, rules={"min_confidence": "0.3"}), baskets()


def _vertical() -> tuple[JobSpec, dict[str, Data]]:
    rows = model_jobs_world.people(60, 1)
    held = {"class": "north", "smoker": "south", "town": "east"}
    tables = model_jobs_world.columns(rows, held, {"north": {3}, "south": {4, 5}, "east": set()})
    named = {"name": "j", "task": "rules", "parties": list(PARTIES), "dataset": "people", "partition": "vertical"}
    contents = {"job": named, "itemsets": {"min_support": "0.1"}, "rules": {"min_confidence": "0.3"}}
    return job_of(contents, "the test", Path()), dict(tables)


def _grouped() -> tuple[JobSpec, dict[str, Data]]:
    """north and south hold the columns of some people each; not all of theirs are at east, and none is at both."""
    rows = model_jobs_world.people(60, 1)
    held = {"class": "north", "smoker": "north", "town": "east"}
    here, there, labs = set(range(30, 60)), set(range(40)), set(range(10))
    table = model_jobs_world.columns(rows, held, {"north": here, "east": labs})
    table["south"] = model_jobs_world.columns(rows, held, {"north": there, "east": labs})["north"]
    named = {"name": "j", "task": "rules", "parties": list(PARTIES), "dataset": "people", "partition": "vertical"}
    contents = {
        "job": named,
        "align": {"mode": "union"},
        "groups": {"clinics": ["north", "south"], "registry": ["east"]},
        "itemsets": {"min_support": "0.1"},
        "rules": {"min_confidence": "0.3"},
    }
    return job_of(contents, "the test", Path()), dict(table)


def _alignment() -> tuple[JobSpec, dict[str, Data]]:
    _, tables = _vertical()
    named = {"name": "j", "task": "align", "parties": list(PARTIES), "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, "align": {"mode": "union"}}, "the test", Path()), tables


def _model() -> tuple[JobSpec, dict[str, Data]]:
    rows = model_jobs_world.people(60, 1)
    return model_jobs_world.job("naive-bayes"), dict(model_jobs_world.parted(rows, [20, 40], PARTIES))


def _release() -> tuple[JobSpec, dict[str, Data]]:
    owners = np.random.default_rng(1).integers(0, 3, 60)
    tables = anonymisation_world.parted(anonymisation_world.people(60, 3), owners, PARTIES)
    return anonymisation_jobs_world.job(), dict(tables)


JOBS = {
    "supports": (_supports, "rules.csv"),
    "frequent": (_frequent, "rules.csv"),
    "top-k": (_most_frequent, "rules.parquet"),
    "noisy": (_noisy, "rules.csv"),
    "vertical": (_vertical, "rules.csv"),
    "grouped": (_grouped, "rules.csv"),
    "alignment": (_alignment, None),
    "model": (_model, "model.json"),
    "release": (_release, "release.csv"),
}


def agreed(spec: JobSpec, data: dict[str, Data], authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Result:
    """The result of a job of nodes: as of a simulation whose certificates are the federation's, with consents."""
    make: Callable[[], Authority] = lambda: authority  # noqa: E731
    monkeypatch.setattr("coordinator.jobs.simulation.simulate.Authority.create", make)
    result = asyncio.run(simulate_job(spec, data, seed=SEED))
    nonce = Randomness.from_seed(SEED).derive("nonce").bytes(16)
    analyst = authority.issue("analyst", "coordinator")
    given = {
        party: approve(result.job_id, "analyst", authority.issue(party), decided=int(time.time()), by="policy")
        for party in spec.job.parties
    }
    proposal = propose(spec, analyst, nonce=nonce, expiry=0)
    return replace(
        result, simulated=False, seed=None, alignments={}, proposal=proposal, approvals=given, signer=analyst
    )

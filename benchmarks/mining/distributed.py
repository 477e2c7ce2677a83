"""Jobs under distributed noise, with all of their code: what they find of the reference baskets, and their costs.

The parties of a job run in one process, so the processor time is that of all three together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np

from benchmarks.datasets import Case, available, lines, minimum_count
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from mining.counting import count_itemsets
from mining.data.transactions import Transactions
from mining.estimates import NORMAL_95, EstimatedItemsets
from mining.joint.distributed.parameters import DEFAULT_LENGTH
from mining.miner import frequent_itemsets

SEEDS = 10
DELTA = "1e-6"
COLLUDING = 1
CASES = tuple(
    Case(data, Decimal(support))
    for data, support in (
        *(("retail", "0.005"), ("retail", "0.01"), ("kosarak100k", "0.01"), ("mushroom", "0.4")),
        *(("groceries", "0.01"), ("T10I4D100K", "0.005")),
    )
)

Found = frozenset[frozenset[str]]


@dataclass(frozen=True)
class _Way:
    """How a job is set up.

    Attributes:
        epsilon: ε.
        public: Whether the items are a public catalogue.
        noise: Its law.
    """

    epsilon: str
    public: bool = True
    noise: str = "discrete-gaussian"

    @property
    def name(self) -> str:
        """As in the tables."""
        items = "public items" if self.public else "named items"
        return f"ε = {self.epsilon}, {items}" + (", Skellam" if self.noise == "skellam" else "")


EPSILONS = tuple(map(_Way, ("0.5", "1.0", "2.0", "4.0")))
WAYS = (*EPSILONS, _Way("2.0", public=False), _Way("2.0", noise="skellam"))


def run(settings: Settings) -> list[Table]:
    """Each of the data that are here, by ε; all ways for the first of them."""
    table = Table(
        f"Frequent itemsets under distributed noise, {len(PARTIES)} parties of which {COLLUDING} may collude",
        (
            "data, job",
            "exact",
            "found",
            "F1",
            "± se",
            "precision",
            "recall",
            "coverage",
            "least",
            "deviation",
            "MB sent",
            "s",
        ),
        notes=[
            f"means of {SEEDS} seeds, δ = {DELTA}, itemsets of up to {DEFAULT_LENGTH} items; exact: all of any length",
            "coverage: 95 % intervals that hold the exact support; least: in the worst seed; deviation: the median",
            "MB sent: by all parties; s: processor time of all of them",
        ],
    )
    for case in available(CASES[:1] if settings.quick else CASES):
        data = Transactions.from_rows(line.split() for line in lines(case))
        exact: Found = frozenset(
            frozenset(itemset) for itemset, _ in frequent_itemsets(data, minimum_count(case, data.n_rows)).rows()
        )
        for way in WAYS if case is CASES[0] else EPSILONS:
            settings.tell(f"{case.name}, {way.name}")
            _measure(table, case, way, data, exact, 1 if settings.quick else SEEDS)
    return [table]


def _measure(table: Table, case: Case, way: _Way, data: Transactions, exact: Found, seeds: int) -> None:
    spec, dealt = _job(case, way, data), _dealt(data)
    scores, sizes, covered, deviations, sent, began = [], [], [], [], 0, time.process_time()
    for seed in range(seeds):
        result = asyncio.run(simulate_job(spec, dealt, seed=seed))
        tables = result.tables.get("itemsets")
        assert tables is not None
        found: Found = frozenset(frozenset(itemset) for itemset in tables["itemset"].to_pylist())
        right = len(found & exact)
        scores.append((2 * right / (len(found) + len(exact)), right / max(len(found), 1), right / len(exact)))
        sizes.append(len(found))
        assert result.finding is not None
        off, deviation = _errors(result.finding.estimated.itemsets, data)
        covered.append(float(np.mean(np.abs(off) <= NORMAL_95 * deviation)))
        deviations.append(float(np.median(deviation)))
        sent += sum(costs.bytes_sent for costs in result.parties.values())
    f1, precision, recall = np.mean(scores, axis=0).tolist()
    error = float(np.std([score[0] for score in scores], ddof=1)) / seeds**0.5 if seeds > 1 else None
    seconds = (time.process_time() - began) / seeds
    table.add(
        f"{case.name}, {way.name}",
        *(len(exact), round(float(np.mean(sizes))), f1, error, precision, recall),
        *(float(np.mean(covered)), min(covered), float(np.mean(deviations)), sent / seeds / 1e6, seconds),
    )


def _errors(found: EstimatedItemsets, data: Transactions) -> tuple[np.ndarray, np.ndarray]:
    """By how much each count is off, and its deviation."""
    true = count_itemsets(data.onto(found.items), [sets for sets, _, _ in found.levels])
    counts, deviations = (np.concatenate([level[at] for level in found.levels]) for at in (1, 2))
    return counts - np.concatenate(true), deviations


def _job(case: Case, way: _Way, data: Transactions) -> JobSpec:
    itemsets: dict[str, object] = {"min_support": str(case.support)}
    if way.public:
        itemsets |= {"universe": "items.txt", "catalogue": list(data.items)}
    contents = {
        "job": {
            "name": "benchmark",
            "task": "itemsets",
            "parties": list(PARTIES),
            "dataset": "baskets",
            "partition": "hybrid",
        },
        "itemsets": itemsets,
        "privacy": {
            "model": "distributed",
            "epsilon": way.epsilon,
            "delta": DELTA,
            "colluding": COLLUDING,
            "noise": way.noise,
        },
    }
    return job_of(contents, "the benchmark", Path())


def _dealt(data: Transactions) -> Mapping[str, Transactions]:
    """Rows to the parties in turn."""
    rows = np.arange(data.n_rows)
    return {party: _at(data, rows[number :: len(PARTIES)]) for number, party in enumerate(PARTIES)}


def _at(data: Transactions, rows: np.ndarray) -> Transactions:
    lengths = data.lengths[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
    return Transactions(data.items, offsets, data.indices[np.repeat(data.offsets[rows], lengths) + within])

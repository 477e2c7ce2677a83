"""Jobs that mine perturbed records, with all of their code: what they find of the reference baskets, and their costs.

The parties of a job run in one process, so the processor time is that of all three together.
"""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.datasets import Case, available, lines
from benchmarks.privacy.sets import COPIES, EPSILONS, PUBLISHED, SIMULATED, K
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from ldp.sets.metrics import f1, ncr
from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets

SEEDS = {"svim": 6, "svsm": 6, "shuffle": 2}
DELTA = "1e-6"
LEAST = 0.05  # support of itemsets among which the most frequent are looked for

Truth = list[tuple[str, ...]]
"""The k most frequent itemsets, the most frequent first."""


def run(settings: Settings) -> list[Table]:
    """The most frequent items, and itemsets, of many baskets, where the data are here."""
    table = Table(
        f"The {K} most frequent items, or itemsets, of baskets at three parties, by jobs",
        ("search, model, ε", "baskets", "local ε", "n", "F1", "± se", "bar", "NCR", "± se", "bar", "MB sent", "s"),
        notes=[
            f"items: kosarak100k {COPIES} times, bars measured with simulated reports of SVIM; itemsets: kosarak36k, "
            "bars what the code reaches that the authors of SVSM published",
            f"means of {SEEDS['svim']} seeds, shuffled of {SEEDS['shuffle']}, δ = {DELTA}, one shuffler; n: reports "
            "behind which a record hides",
            "MB sent: by all parties; s: processor time of all of them, with the sealing of every report",
        ],
    )
    large, small = (Case(name, Decimal(1)) for name in ("kosarak100k", "kosarak36k"))
    if available((large,)):
        rows = transactions(lines(large), 1 if settings.quick else COPIES)
        for epsilon in EPSILONS:
            f1_bar, ncr_bar, _ = SIMULATED["SVIM"][epsilon]
            _measure(table, rows, "svim", "local", epsilon, (f1_bar, ncr_bar), settings)
        _measure(table, rows, "svim", "shuffle", 1.0, (0.91, None), settings)
    if available((small,)):
        rows = transactions(lines(small), 1)
        for epsilon in EPSILONS:
            _measure(table, rows, "svsm", "local", epsilon, PUBLISHED[epsilon], settings)
    return [table]


def _measure(
    table: Table,
    rows: Transactions,
    search: str,
    model: str,
    epsilon: float,
    bars: tuple[float | None, float | None],
    settings: Settings,
) -> None:
    settings.tell(f"{search}, {model}, ε = {epsilon:g}")
    seeds = 1 if settings.quick else SEEDS["shuffle" if model == "shuffle" else search]
    spec, data, truth = _job(rows, search, model, epsilon), dealt(rows), _most_frequent(rows, search)
    scores, sent, began = [], 0, time.process_time()
    for seed in range(seeds):
        result = asyncio.run(simulate_job(spec, data, seed=seed))
        found = _found(result)
        scores.append((f1(found, truth), ncr(found, truth)))
        sent += sum(costs.bytes_sent for costs in result.parties.values())
    spent = (time.process_time() - began) / seeds
    assert result.finding is not None
    cost = result.finding.estimated.spent
    means = np.mean(scores, axis=0).tolist()
    errors = (np.std(scores, axis=0, ddof=1) / np.sqrt(seeds)).tolist() if seeds > 1 else [None, None]
    table.add(
        f"{search}, {model}, ε = {epsilon:g}",
        *(rows.n_rows, cost.local_epsilon, cost.n),
        *(means[0], errors[0], bars[0]),
        *(means[1], errors[1], bars[1]),
        *(sent / seeds / 1e6, spent),
    )


def _job(rows: Transactions, search: str, model: str, epsilon: float) -> JobSpec:
    privacy = {"model": model, "search": search, "epsilon": str(epsilon)}
    contents = {
        "job": {
            "name": "benchmark",
            "task": "itemsets",
            "parties": list(PARTIES),
            "dataset": "baskets",
            "partition": "hybrid",
        },
        "itemsets": {"top_k": K, "universe": "items.txt", "catalogue": list(rows.items)},
        "privacy": privacy | ({"delta": DELTA} if model == "shuffle" else {}),
    }
    return job_of(contents, "the benchmark", Path())


def _found(result: Result) -> Truth:
    table = result.tables.get("itemsets")
    assert table is not None
    return [tuple(itemset) for itemset in table["itemset"].to_pylist()]


def _most_frequent(rows: Transactions, search: str) -> Truth:
    least = 1 if search == "svim" else int(LEAST * rows.n_rows)
    known = frequent_itemsets(rows, least, max_length=1 if search == "svim" else None)
    ranked = sorted(known.rows(), key=lambda each: (-(each[1] or 0), each[0]))
    return [itemset for itemset, _ in ranked[:K]]


def dealt(rows: Transactions) -> dict[str, Transactions]:
    """Consecutive rows to each party: copies one after the other, so that all hold about the same."""
    bounds = np.linspace(0, rows.n_rows, len(PARTIES) + 1).astype(int).tolist()
    return {party: rows.between(a, b) for party, (a, b) in zip(PARTIES, pairwise(bounds), strict=True)}


def transactions(texts: list[str], copies: int) -> Transactions:
    """Baskets in text, so many times."""
    rows = [line.split() for line in texts]
    items, codes = np.unique(np.array([item for row in rows for item in row]), return_inverse=True)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    owners = np.concatenate([owners + copy * len(rows) for copy in range(copies)])
    return Transactions.from_occurrences(items.tolist(), owners, np.tile(codes, copies), copies * len(rows))

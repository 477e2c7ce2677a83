"""One job under several privacy models on the reference baskets, as `comine compare` runs it.

The parties of a job run in one process; seconds are of the slowest, while all share this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from benchmarks.datasets import Case, available, lines
from benchmarks.privacy.hybrid import dealt, transactions
from benchmarks.privacy.sets import COPIES, K
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Cell, Table
from coordinator.comparison.compare import Comparison, Measured, compare
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.kinds.packages import PrivacyModel
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from mining.data.transactions import Transactions

SEEDS = 2
DELTA = "1e-6"


@dataclass(frozen=True)
class _Comparison:
    """A job and the models under which it is run.

    Attributes:
        case: The baskets, and the least support.
        copies: How many times they are there.
        itemsets: More of its table.
        models: Beside the exact one; the job is written for the last.
        epsilons: Each with all of them.
    """

    case: Case
    copies: int
    itemsets: Mapping[str, object]
    models: Sequence[PrivacyModel]
    epsilons: Sequence[Decimal]


COMPARISONS = (
    _Comparison(Case("retail", Decimal("0.005")), 1, {}, ("distributed",), (Decimal(1), Decimal(2), Decimal(4))),
    _Comparison(
        Case("kosarak100k", Decimal("0.005")),
        COPIES,
        {"top_k": K, "max_length": 1},
        ("local", "shuffle", "distributed", "blended"),
        (Decimal(1), Decimal(4)),
    ),
)


def run(settings: Settings) -> list[Table]:
    """All comparisons whose data are here."""
    return [_table(each, settings) for each in COMPARISONS if available((each.case,))]


def _table(each: _Comparison, settings: Settings) -> Table:
    copies, seeds = (1, 1) if settings.quick else (each.copies, SEEDS)
    rows = transactions(lines(each.case), copies)
    settings.tell(f"models: {each.case.name}")
    comparison = asyncio.run(_compare(each, rows, seeds))
    assert comparison.truth.finding is not None
    table = Table(
        f"{each.case.name}, {copies} times: {rows.n_rows:,} baskets at {len(PARTIES)} parties, "
        f"{len(comparison.truth.finding.itemsets)} itemsets",
        (
            "model",
            "ε",
            "F1",
            "NCR",
            "mean error",
            "RMS error",
            "intervals hold",
            "report ε",
            "result ε",
            "MB sent",
            "s",
        ),
        notes=[
            f"means of {seeds} seeds, δ = {DELTA}, one party may collude, one shuffler; blended: one party opted in",
            "errors: of supports of true itemsets that were found; s: of the slowest party",
        ],
    )
    for measured in comparison.measured:
        table.add(*_row(measured))
    for missing in comparison.not_run:
        table.notes.append(f"{missing.model}: {missing.error.message}")
    return table


async def _compare(each: _Comparison, rows: Transactions, seeds: int) -> Comparison:
    data = dealt(rows)

    async def run_one(spec: JobSpec, seed: int | None) -> Result:
        return await simulate_job(spec, data, seed=seed)

    return await compare(_job(each, rows), each.models, each.epsilons, run_one, range(1, seeds + 1))


def _job(each: _Comparison, rows: Transactions) -> JobSpec:
    contents: dict[str, dict[str, object]] = {
        "job": {
            "name": "benchmark",
            "task": "itemsets",
            "parties": list(PARTIES),
            "dataset": "baskets",
            "partition": "hybrid",
        },
        "itemsets": {
            "min_support": str(each.case.support),
            "universe": "items.txt",
            "catalogue": list(rows.items),
            **each.itemsets,
        },
        "privacy": {"model": each.models[-1], "epsilon": "1", "delta": DELTA},
    }
    if "blended" in each.models:
        contents["privacy"]["opted_in"] = [PARTIES[1]]
    return job_of(contents, "the benchmark", Path())


def _row(measured: Measured) -> list[Cell]:
    spent = measured.spent
    names = ("f1", "ncr", "mean_absolute", "root_mean_square", "covered")
    return [
        measured.model,
        None if measured.epsilon is None else float(measured.epsilon),
        *(measured.mean(name) for name in names),
        None if spent is None else spent.local_epsilon,
        None if spent is None else spent.epsilon,
        measured.bytes_sent / 1e6,
        measured.seconds,
    ]

"""Jobs under distributed noise, from the specification to what is told: simulated, and on the reference baskets."""

from __future__ import annotations

import asyncio
import gzip
import pathlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.data import Data
from jobs.kinds.noisy.parameters import distributed_mining
from jobs.loading import job_of
from jobs.results.record import cautions
from jobs.results.result import Result
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.core import Transport
from link.errors import ComineError
from link.transports.faulty import FaultyTransport, Schedule
from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.errors import fails

pytestmark = pytest.mark.turn(6)

PARTIES = ("north", "south", "east")


def job(partition: str = "hybrid", task: str = "itemsets", **tables: dict[str, Any]) -> JobSpec:
    """A job under distributed noise; tables are added to, or made."""
    contents: dict[str, Any] = {
        "job": {
            "name": "noisy",
            "task": task,
            "parties": list(PARTIES),
            "dataset": "baskets",
            "partition": partition,
        },
        "itemsets": {"min_support": "0.1"},
        "privacy": {"model": "distributed", "epsilon": "2", "delta": "1e-6", "colluding": 1},
    }
    for name, more in tables.items():
        contents[name] = contents.get(name, {}) | more
    return job_of(contents, "job.toml", Path())


def baskets(rows: int, seed: int) -> Transactions:
    """Up to seven items a row, the first ones common."""
    random = np.random.default_rng(seed)
    return Transactions.from_rows(
        [f"item{i}" for i in range(7) if random.random() < 0.8 / (1 + i)] for _ in range(rows)
    )


def data(rows: int = 1500) -> dict[str, Data]:
    return {party: baskets(rows // (1 + seed), seed) for seed, party in enumerate(PARTIES)}


def simulated(spec: JobSpec, given: dict[str, Data], seed: int = 1) -> Result:
    return asyncio.run(simulate_job(spec, given, seed=seed))


@pytest.mark.parametrize(("contributions", "cut"), [([1], [1, 2]), ([7, 1], [2]), ([7, 21, 35], []), (None, [])])
def test_what_the_jobs_own_contributions_cut_off_is_told(contributions: list[int] | None, cut: list[int]) -> None:
    given = {"epsilon": "8"} | ({} if contributions is None else {"contributions": contributions})
    result = simulated(job(itemsets={"max_length": 2, "min_support": "0.06"}, privacy=given), data(3000))
    told = cautions(result)
    assert [sentence.partition(" itemsets of ")[2][0] for sentence in told] == [str(length) for length in cut]
    assert all("raise it, or leave it out" in sentence for sentence in told)


@pytest.mark.parametrize("partition", ["horizontal", "hybrid"])
@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
def test_a_job_tells_estimates_and_what_they_cost(partition: str, noise: str) -> None:
    spec = job(partition, "rules", rules={"min_confidence": "0.3"}, privacy={"noise": noise})
    result = simulated(spec, data())
    assert result.finding is not None
    spent = result.finding.estimated.spent
    assert (spent.model, spent.epsilon, spent.delta, spent.local_epsilon) == ("distributed", 2.0, 1e-6, None)
    assert ("Skellam" in spent.bound) == (noise == "skellam")
    table, rules = result.tables.get("itemsets"), result.tables.get("rules")
    assert table is not None
    assert rules is not None
    assert table.column_names[-3:] == ["deviation", "low", "high"]
    assert ["item0", "item1"] in table["itemset"].to_pylist()
    assert rules.num_rows
    n_rows = result.n_rows
    assert n_rows is not None
    assert abs(n_rows - 2750) < 500
    assert all(deviation > 0 for deviation in table["deviation"].to_pylist())


def test_items_are_left_out_by_pattern() -> None:
    excluded = {"exclude": ["item0"], "universe": "items.txt", "catalogue": ["item0", "item1", "item2"]}
    result = simulated(job(itemsets=excluded), data())
    assert result.tables.get("itemsets") is not None
    assert {item for itemset in result.tables["itemsets"]["itemset"].to_pylist() for item in itemset} == {
        "item1",
        "item2",
    }


def test_the_result_goes_to_recipients_alone() -> None:
    result = simulated(job(job={"recipients": ["south"]}), data())
    assert result.finding is not None  # a simulation shows what the learner got


@pytest.mark.parametrize("partition", ["horizontal", "hybrid"])
@pytest.mark.parametrize("task", ["itemsets", "rules"])
def test_no_job_declares_an_exact_opening(partition: str, task: str) -> None:
    rules = {"rules": {"min_confidence": "0.5"}} if task == "rules" else {}
    declared = {line.label for line in statement(job(partition, task, **rules)).declared}
    assert declared == {"noisy_rows", "items", "noisy_sizes", "noisy_supports", "steps_kept"}


def test_the_statement_of_a_job() -> None:
    prose = " ".join(statement(job(job={"recipients": ["coordinator"]})).exact_prose())
    assert (
        "coordinator learns the itemsets whose noisy supports are large enough, with these, and N with noise" in prose
    )
    assert "ε = 2 and δ = 1e-06 of a record" in prose
    assert "Collusion: the budget holds against each single party, which knows its own noise" in prose
    assert "all of these follow from what is opened with noise" in prose


@pytest.mark.parametrize(
    "tables",
    [
        {"itemsets": {"universe": "hidden"}},
        {"itemsets": {"universe": "all-items"}},
        {"itemsets": {"disclose": "frequent"}},
        {"itemsets": {"lambda": "0.5"}},
        {"itemsets": {"max_length": 21}},
        {"union": {"bound": 9}},
        {"trust": {"compute": ["south", "east"]}},
        {"privacy": {"local_epsilon": "1"}},
        {"privacy": {"noise": "skellam", "delta": "1e-13"}},
    ],
)
def test_what_means_nothing_or_would_tell_too_much_is_refused(tables: dict[str, Any]) -> None:
    with fails("E100"):
        distributed_mining(job(**tables))


def test_a_job_without_a_least_support_finds_the_k_largest() -> None:
    result = simulated(job(itemsets={"top_k": 5, "min_support": None}), data())
    assert result.tables.get("itemsets") is not None
    assert result.tables["itemsets"].num_rows == 5


def test_parameters_follow_the_job() -> None:
    task = distributed_mining(job(privacy={"contributions": [9, 8]}, itemsets={"max_length": 3, "top_k": 7}))
    assert (task.epsilon, task.delta, task.min_support) == (Decimal(2), Decimal("1e-6"), Decimal("0.1"))
    assert (task.top_k, task.max_length, task.colluding, task.contributions) == (7, 3, 1, (9, 8))
    assert task.learners == PARTIES  # nobody else is a recipient


# -- the reference baskets ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_retail_with_one_of_three_colluding(shared_data: pathlib.Path, public: bool) -> None:
    """F1 against the exact result.

    It is 0.950 with public items and 0.942 without, with standard deviations of 0.0065 and 0.0050 for one seed
    (measured over 10): 0.92 is more than four of them below. The seed is fixed besides.
    """
    with gzip.open(shared_data / "transactions" / "retail.dat.gz", "rt") as file:
        rows = [line.split() for line in file]
    whole = Transactions.from_rows(rows)
    true = {frozenset(itemset) for itemset, _ in frequent_itemsets(whole, 441).rows()}
    assert len(true) == 580
    items = {"min_support": "0.005"} | ({"universe": "items", "catalogue": list(whole.items)} if public else {})
    given: dict[str, Data] = {p: Transactions.from_rows(rows[at::3]) for at, p in enumerate(PARTIES)}
    table = simulated(job("horizontal", itemsets=items), given, 0).tables.get("itemsets")
    assert table is not None
    found = {frozenset(itemset) for itemset in table["itemset"].to_pylist()}
    assert 2 * len(found & true) / (len(found) + len(true)) >= 0.92


@pytest.mark.parametrize("victim", PARTIES)
def test_a_party_that_is_lost_ends_the_job(victim: str) -> None:
    """It dies at each lane of the run, before its first frame there: survivors name it, or were done before."""
    given, spec = data(300), job(itemsets={"max_length": 2}, privacy={"epsilon": "16"})  # so that noise leaves pairs
    lanes = [f"/task/{name}" for name in ("keys/pairwise", "rows", "items", "level-1", "level-2")]
    for lane in lanes:
        dies = Schedule(crash_at=0, crash_lane=lane)

        def wrap(party: str, transport: Transport, schedule: Schedule = dies) -> Transport:
            return FaultyTransport(transport, schedule if party == victim else Schedule())

        ends = run_still(run_job(spec, given, InlineExecutor(), wrap=wrap))
        for party, end in ends.items():
            if party != victim:
                assert isinstance(end, ComineError), (lane, end)
                assert end.party == victim


def test_equal_transcripts_at_all_parties() -> None:
    ends = run_still(run_job(job(), data(300), InlineExecutor()))
    for party, end in ends.items():
        assert isinstance(end, PartyRun)
        assert set(end.receipts_from) == set(PARTIES) - {party}
    packed = {run.outcome.finding.pack() for run in ends.values() if isinstance(run, PartyRun)}
    assert len(packed) == 1

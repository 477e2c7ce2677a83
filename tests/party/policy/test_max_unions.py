"""Unions of the same rows are counted: the noise on what two parties have in common averages out over them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from crypto.protocols.union.disclosure import deviation, leakage
from crypto.protocols.union.lists import EPSILON_COMMON, common_fakes
from jobs.kinds.charge import charge
from jobs.kinds.columns.kind import Columns
from jobs.kinds.kind import Unions
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from jobs.union_limit import blurred_merges
from party.config import PartyConfig
from party.policy.judge import Judge
from party.services.anonymization.releases import Releases
from party.state.ledger import Entry, Ledger
from party.state.remembered import remembered
from party.state.store import Store
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job as release
from tests.party.files import PARTIES, party_toml
from tests.party.nodes import running, weekly

SHOP = 'kind = "table"\nsource = "north.csv"\nformat = "csv"\nid = "id"\n'
BASKETS = 'kind = "transactions"\nsource = "north.dat"\nformat = "basket"\n'
TWICE = f'[[dataset]]\nname = "twin"\n{SHOP}'
HIDDEN = {"universe": "hidden"}  # whose items are aligned, which shows nobody anything
CATALOGUE = {"universe": "the catalogue", "catalogue": ["a", "b"], "strategy": "level-wise"}


@pytest.fixture(autouse=True)
def merging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Column groups of three unite their items so that a merger sees how many each two others share.

    None of comine's own kinds does so, but one of another distribution might.
    """
    without = Columns.unions

    def unions(kind: Columns, spec: JobSpec) -> Unions:
        larger = any(len(members) > 2 for members in spec.groups.values())
        return without(kind, spec)._replace(
            merges=int(larger), otherwise='mode = "intersection" and groups of two parties'
        )

    monkeypatch.setattr(Columns, "unions", unions)


def grouped(*parties: str, dataset: str = "baskets") -> JobSpec:
    """Of a column group of these parties, and of one more party."""
    group, named = list(parties or PARTIES), {"name": "weekly", "task": "itemsets", "partition": "vertical"}
    named |= {"parties": [*group, "lab"], "dataset": dataset}
    contents = {"job": named, "itemsets": {"min_support": 20}, "align": {"mode": "union"}}
    return job_of({**contents, "groups": {"shops": group, "labs": ["lab"]}}, "job.toml", Path())


def job(*, dataset: str = "baskets", **itemsets: object) -> JobSpec:
    """Over rows."""
    named = {"name": "weekly", "task": "itemsets", "parties": list(PARTIES), "dataset": dataset}
    return job_of({"job": named, "itemsets": {"min_support": 20, **itemsets}}, "job.toml", Path())


def noisy() -> JobSpec:
    named = {"name": "weekly", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    private = {"model": "distributed", "epsilon": "1", "delta": "1e-6"}
    return job_of({"job": named, "itemsets": {"min_support": 20}, "privacy": private}, "job.toml", Path())


def columns(*parties: str, mode: str) -> JobSpec:
    named = {"name": "j", "task": "align", "parties": [*parties], "dataset": "baskets", "partition": "vertical"}
    return job_of({"job": named, "align": {"mode": mode}}, "job.toml", Path())


def others() -> tuple[JobSpec, ...]:
    """Jobs that show nobody what two others share."""
    return grouped("north", "south"), job(**CATALOGUE), job(**HIDDEN), job(), noisy()


@contextmanager
def node(folder: Path, policy: str = "") -> Iterator[tuple[Judge, Ledger]]:
    path = folder / "north.toml"
    path.write_text(party_toml("north", policy=policy).replace(BASKETS, SHOP).replace("[policy]", f"{TWICE}[policy]"))
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(contextlib.closing(Store.open(folder / "node.db")))
        ledger = stack.enter_context(contextlib.closing(Ledger.open(folder / "node.db")))
        releases = stack.enter_context(contextlib.closing(Releases.open(folder / "releases.db", "north")))
        yield Judge(PartyConfig.load(path), (*PARTIES, "lab"), store, ledger, releases), ledger


def start(ledger: Ledger, spec: JobSpec, number: int, attempt: int = 1) -> bytes:
    """As `charging.charge_start` does."""
    job_id, named = number.to_bytes(32, "big"), spec.job
    ledger.record(Entry(job_id, attempt, 5.0, named.dataset, named.name, "analyst", charge(spec), blurred_merges(spec)))
    return job_id


@pytest.mark.parametrize(("policy", "most"), [("", 16), ("max_unions = 3\n", 3)])
def test_so_many_unions_may_start_also_where_the_policy_says_nothing(tmp_path: Path, policy: str, most: int) -> None:
    for number in range(most):
        with node(tmp_path, policy) as (judge, ledger):  # a restart each time
            judge.decide(grouped(), "analyst")
            start(ledger, grouped(), number)
            for place, spec in enumerate(others()):  # none of which counts
                start(ledger, spec, 1000 + 5 * number + place)
    with node(tmp_path, policy) as (judge, _):
        with fails("E300"):
            judge.decide(grouped(), "analyst")
        with fails("E300", party="north"):
            judge.decide(grouped(dataset="twin"), "analyst")  # another name for the same rows
        judge.decide(grouped("north", "south"), "analyst")
        verdicts = judge.verdicts(grouped("north", "south"), "analyst")
        assert "max_unions" not in {verdict.rule for verdict in verdicts}


def test_a_job_counts_with_each_attempt_and_is_not_judged_by_the_one_that_begins(tmp_path: Path) -> None:
    with node(tmp_path, "max_unions = 2\n") as (judge, ledger):
        first = start(ledger, grouped(), 1)
        start(ledger, grouped(), 1)  # told twice
        assert ledger.unions(["baskets"]) == 1
        judge.decide(grouped(), "analyst", job_id=first, attempt=2)
        start(ledger, grouped(), 1, attempt=2)
        judge.decide(grouped(), "analyst", job_id=first, attempt=2)
        with fails("E300", party="north"):
            judge.decide(grouped(), "analyst", job_id=first, attempt=3)  # which draws other fakes
        with fails("E300", party="north"):
            judge.decide(grouped(), "analyst")


def test_jobs_that_start_at_once_do_not_pass_the_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path, policy="max_jobs = 1\n") as nodes:
            jobs = [await nodes.agree(weekly()) for _ in range(2)]
            host = nodes.nodes["north"].host
            judge, begun = host.context.consent.judge, []
            real = judge.decide

            def slow(*given: Any, **named: Any) -> Any:
                begun.append(real(*given, **named))
                time.sleep(0.2)  # long enough for the other to be judged, too, were it not made to wait
                return begun[-1]

            monkeypatch.setattr(judge, "decide", slow)
            north = nodes.clients["north"]
            ends = await asyncio.gather(*(north.start(*job) for job in jobs), return_exceptions=True)
            (end,) = [end for end in ends if end is not None]
            assert isinstance(end, grpc.aio.AioRpcError)
            assert "rule max_jobs" in str(end.details())
            assert len(begun) == 1
            for job_id, _ in jobs:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await north.cancel(job_id)

    asyncio.run(main())


def test_what_is_pruned_counts_for_ever(tmp_path: Path) -> None:
    with node(tmp_path) as (_, ledger):
        start(ledger, grouped(), 1)
        ledger.connection.execute("DELETE FROM charges")
        assert ledger.unions(["baskets"]) == 1
        assert ledger.unions(["visits"]) == 0
        assert ledger.unions(["visits", "baskets"]) == 1


def test_alignments_and_unions_by_prefixes_do_not_count() -> None:
    for mode in ("intersection", "cardinality", "union"):
        assert blurred_merges(columns("north", "south", "east", mode=mode)) == 0
    assert blurred_merges(job(**CATALOGUE, thin=True)) == 0
    for universe in ("hidden", "hidden-all", "frequent-items", "all-items"):
        assert blurred_merges(job(universe=universe)) == 0
    assert blurred_merges(noisy()) == 0


def test_a_union_that_shows_a_merger_something_counts() -> None:
    assert blurred_merges(grouped()) == 1
    assert remembered(grouped().canonical()).merges == 1  # also where the database was lost
    assert blurred_merges(grouped("north", "south")) == 0


def test_a_release_does_not_count() -> None:
    assert blurred_merges(release(PARTIES)) == 0
    assert blurred_merges(release(PARTIES, keys="union")) == 0


def test_jobs_of_other_parties_and_coordinators_count_together(tmp_path: Path) -> None:
    """What a merger knows of two parties is the same whoever else takes part, and whoever asks."""
    with node(tmp_path, "max_unions = 4\n") as (judge, ledger):
        for number, others in enumerate((("south", "east"), ("south", "west"), ("east", "west"), ("west", "south"))):
            judge.decide(grouped("north", "south", "east"), f"analyst {number}")
            start(ledger, grouped("north", *others), number)
        for parties in (("north", "south", "east"), ("east", "north", "south")):
            with fails("E300", party="north"):
                judge.decide(grouped(*parties), "somebody else")


def test_unions_that_were_not_counted_are_counted_once_and_never_fewer(tmp_path: Path) -> None:
    with node(tmp_path) as (_, ledger):
        start(ledger, grouped(), 1)
        assert not ledger.has_all_unions
        ledger.recount_unions({"baskets": 3, "visits": 2, "others": 0})
        assert ledger.has_all_unions
        ledger.recount_unions({"baskets": 1})
        assert [ledger.unions([name]) for name in ("baskets", "visits", "others")] == [3, 2, 0]


def test_the_verdict_and_the_statement_say_what_the_mean_tells(tmp_path: Path) -> None:
    with node(tmp_path) as (judge, ledger):
        for number in range(15):
            start(ledger, grouped(), number)
        (said,) = [verdict.allows for verdict in judge.verdicts(grouped(), "analyst") if verdict.rule == "max_unions"]
        assert said == "16 on the same rows in all, and this would be number 16: the merger's mean is off by 0.7"
    (line,) = [line.exact for line in leakage(PARTIES, "north") if "every two other parties" in line.exact]
    assert "a standard deviation of 2.8; over n jobs on the same rows the mean of these is off by 2.8/√n only" in line


def test_the_deviation_is_that_of_the_fakes() -> None:
    """Of 4,000 draws it is within 15 %, eight deviations of its own (kurtosis 6), but with probability below 2^-40."""
    source, fakes = Randomness.from_seed(3), common_fakes(EPSILON_COMMON)
    drawn = [fakes.sample(source) for _ in range(4000)]
    assert np.std(drawn) == pytest.approx(deviation(1), rel=0.15)
    assert deviation(9) == pytest.approx(deviation(1) / 3)
    assert deviation(1) == pytest.approx(sqrt(2 * np.exp(-0.5)) / (1 - np.exp(-0.5)))

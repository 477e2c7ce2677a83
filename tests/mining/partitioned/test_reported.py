"""Perturbed records of rows in blocks: every record answers as in memory, by the same law, and is reported once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.reports import Reports
from ldp.sets.padding import PaddingAndSampling
from link.session import Session
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.estimated import EstimatedOutcome, pack_estimates
from mining.joint.hybrid.disclosure import openings
from mining.joint.hybrid.groups import check_sizes
from mining.joint.hybrid.mine import mine
from mining.joint.hybrid.own_records import OwnRecords, own_records
from mining.joint.hybrid.parameters import HybridMining
from mining.partitioned.cores import Cores
from mining.partitioned.processes import Processes
from tests.examples import examples
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, SEEN, TASK, baskets, shuffled
from tests.mining.partitioned.world import PARTITIONS, evenly, partitioned, ragged
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

SEARCHES = ["svim", "svsm", "ldp-miner", "privset", "wheel"]
KEY = bytes(range(32))


def records(data: Rows, task: HybridMining = TASK, seed: int = 5) -> OwnRecords:
    return own_records(data, task.catalogue, task.plan(task.epsilon), Randomness.from_seed(seed))


def certain(task: HybridMining) -> PaddingAndSampling:
    """A mechanism of so large an ε that its reports say what records hold."""
    return PaddingAndSampling(len(task.catalogue), 16.0, 1, oracle="grr")


@pytest.mark.parametrize("search", SEARCHES)
@given(st.integers(0, 60), st.data())
@examples(1, 8)
def test_every_record_answers_in_its_phases(search: str, n_rows: int, draw: st.DataObject) -> None:
    task = replace(TASK, search=search)  # type: ignore[arg-type]
    plan = task.plan(task.epsilon)
    data = Transactions.from_rows(baskets(n_rows, 1)).onto(ITEMS)
    blocks = records(partitioned(data, draw.draw(ragged(n_rows))), task)
    assert check_sizes(blocks.sizes, plan) == n_rows
    mechanism = plan.phase([]).mechanism
    for number, size in enumerate(blocks.sizes):
        pieces = list(blocks.reports(number, mechanism, KEY))
        assert sum(map(len, pieces)) == size
        if size:
            assert len(Aggregator(mechanism).add(Reports.concatenated(pieces))) == size  # type: ignore[type-var, arg-type]


def test_a_record_answers_once_and_with_what_it_holds() -> None:
    """Each record holds an item of its own, and reports say so: over all phases each item is reported once."""
    names = tuple(f"i{number:03}" for number in range(200))
    data = Transactions.from_rows([name] for name in names)
    task = replace(TASK, catalogue=names)
    for parts in PARTITIONS:
        own, mechanism = records(partitioned(data, evenly(200, parts)), task), certain(task)
        reports = [each for number in range(3) for each in own.reports(number, mechanism, KEY)]
        tally = mechanism.tally(Reports.concatenated(reports))
        assert tally[: len(names)].tolist() == [1] * len(names)


def test_groups_do_not_depend_on_blocks() -> None:
    data = Transactions.from_rows([name] for name in map(str, range(100)))
    task = replace(TASK, catalogue=tuple(sorted(map(str, range(100)))))
    said = []
    for cuts in (evenly(100, 1), evenly(100, 17), [0, 0, 40, 40, 99, 100, 100]):
        own, mechanism = records(partitioned(data, cuts), task), certain(task)
        pieces = [list(own.reports(number, mechanism, KEY)) for number in range(3)]
        said.append([mechanism.tally(Reports.concatenated(each)).tolist() for each in pieces])
    assert said[0] == said[1] == said[2]


def test_blocks_and_phases_have_noise_of_their_own() -> None:
    """The same rows in each block: were a stream used twice, blocks would report alike."""
    data = Transactions.from_rows([["a"]] * 400).onto(ITEMS)
    own = records(partitioned(data, evenly(400, 4)), replace(TASK, search="wheel"))
    mechanism = TASK.plan(1.0).phase([]).mechanism
    first, other = (list(own.reports(0, mechanism, key)) for key in (KEY, KEY[::-1]))
    assert len({piece.to_bytes() for piece in chain(first, other)}) == 8
    assert [piece.to_bytes() for piece in first] == [piece.to_bytes() for piece in own.reports(0, mechanism, KEY)]


@pytest.mark.parametrize("search", SEARCHES)
def test_reports_have_the_law_of_those_in_memory(search: str) -> None:
    """How often each value is supported, over 100 draws of 60 records in 3 blocks and in memory, by a test of
    homogeneity: a false alarm has a probability of 10⁻⁶ for each of five searches. Counts are without bias, within 5
    standard errors of 8 items: a false alarm has one below 5·10⁻⁶."""
    task = replace(TASK, search=search)  # type: ignore[arg-type]
    rows = Transactions.from_rows(baskets(60, 9)).onto(ITEMS)
    blocks = partitioned(rows, [0, 10, 10, 45, 60])
    mechanism = task.plan(2.0).phase([]).mechanism
    tallies, estimates = {"memory": [], "blocks": []}, []  # type: ignore[var-annotated]
    for seed in range(100):
        for name, data in (("memory", rows), ("blocks", blocks)):
            random = Randomness.from_seed(seed).derive(name)
            own = own_records(data, ITEMS, task.plan(2.0), random)
            reports = Reports.concatenated(list(own.reports(0, mechanism, random.derive("key").bytes(32))))
            tallies[name].append(mechanism.tally(reports).ravel())
            if name == "blocks" and search == "wheel":
                estimates.append(mechanism.estimate(mechanism.tally(reports), len(reports)).counts / len(reports))
    table = np.array([np.sum(tallies[name], axis=0) for name in ("memory", "blocks")])
    table = table[:, table.sum(axis=0) > 20]
    assert stats.chi2_contingency(table).pvalue > 1e-6
    if estimates:
        found = np.array(estimates)[:, : len(ITEMS)]
        error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - rows.item_counts() / rows.n_rows) < 5 * error).all()


@pytest.mark.parametrize("search", SEARCHES)
def test_sums_are_those_of_the_reports(search: str) -> None:
    task = replace(TASK, search=search)  # type: ignore[arg-type]
    data = Transactions.from_rows(baskets(120, 3)).onto(ITEMS)
    mechanism = task.plan(2.0).phase([]).mechanism
    for rows in (data, partitioned(data, [0, 50, 50, 120])):
        own = records(rows, task)
        reports = Reports.concatenated(list(own.reports(0, mechanism, KEY)))
        sums = Aggregator(mechanism)  # type: ignore[type-var, arg-type]
        for each in own.sums(0, mechanism, KEY):
            sums.merge(each)  # type: ignore[arg-type]
        assert sums.to_bytes() == Aggregator(mechanism).add(reports).to_bytes()  # type: ignore[type-var, arg-type]


def run(data: Mapping[str, Rows], task: HybridMining) -> dict[str, EstimatedOutcome]:
    async def role(session: Session) -> EstimatedOutcome:
        return await mine(session.lane("task"), data[session.me], task)

    return run_parties(list(data), role, declared=openings(task, tuple(data)))


@pytest.mark.parametrize(
    ("task", "parts"),
    [(TASK, 1), (TASK, 17), (shuffled(), 3), (shuffled(("south", "east")), 17)],
    ids=["local, 1", "local, 17", "one shuffler, 3", "two shufflers, 17"],
)
def test_whole_jobs(task: HybridMining, parts: int) -> None:
    """Supports of 4,500 records at ε = 6 lie within 6 of their deviations: a false alarm has one below 10⁻⁷."""
    memory = {party: Transactions.from_rows(baskets(1_500, place)) for place, party in enumerate(PARTIES)}
    data: dict[str, Rows] = {party: partitioned(own, evenly(own.n_rows, parts)) for party, own in memory.items()}
    data["south"] = memory["south"]
    outcomes = run(data, task)
    assert {each.n_rows for each in outcomes.values()} == {4_500}
    found = [each.estimated for each in outcomes.values() if each.estimated is not None]
    assert len({pack_estimates(each) for each in found}) == 1
    itemsets = found[0].itemsets
    assert set(itemsets.items) == {"a", "b", "c"}
    for sets, counts, deviations in itemsets.levels:
        for (item,), count, deviation in zip(sets.tolist(), counts, deviations, strict=True):
            assert abs(count / 4_500 - SEEN[itemsets.items[item]]) < 6 * deviation / 4_500


def test_by_processes() -> None:
    data = Transactions.from_rows(baskets(500, 4)).onto(ITEMS)
    cuts = evenly(500, 5)
    mechanism = TASK.plan(2.0).phase([]).mechanism
    here = list(records(partitioned(data, cuts)).reports(1, mechanism, KEY))
    sums = [each.to_bytes() for each in records(partitioned(data, cuts)).sums(1, mechanism, KEY)]
    rows = partitioned(data, cuts, lambda sources, lengths: Processes(sources, lengths, Cores(2)))
    try:
        there = list(records(rows).reports(1, mechanism, KEY))
        assert [each.to_bytes() for each in records(rows).sums(1, mechanism, KEY)] == sums
    finally:
        rows.close()
    assert [each.to_bytes() for each in there] == [each.to_bytes() for each in here]

"""What reports may spend, and which records answer when: from public numbers alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.accounting.shuffling import amplified_epsilon
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningPlan
from ldp.sets.size_histogram import SetSizes, size_classes
from mining.joint.hybrid.budget import central, hidden, is_kept, phase_budgets, search_plan
from mining.joint.hybrid.groups import check_sizes, drawn
from tests.errors import fails
from tests.examples import examples, in_turn
from tests.mining.joint.hybrid.hybrid_world import PARTIES, TASK, shuffled

pytestmark = pytest.mark.turn(6)

SIZES = dict(zip(PARTIES, (30_000, 30_000, 30_000), strict=True))
TASKS = {
    "svim": shuffled(epsilon=1.0),
    "svsm": shuffled(epsilon=1.0, search="svsm", k=16),
    "ldp-miner": shuffled(epsilon=1.0, search="ldp-miner"),
}


def test_a_local_report_has_all_of_epsilon() -> None:
    spent = central(TASK, SIZES)
    assert (spent.local_epsilon, spent.epsilon, spent.delta, spent.n) == (6.0, 6.0, 0.0, None)


@pytest.mark.parametrize("search", TASKS)
def test_every_phase_keeps_to_its_budget_whatever_is_announced(search: str) -> None:
    """By the proved bounds of all mechanisms that a search can announce."""
    task = TASKS[search]
    spent = central(task, SIZES)
    assert spent.local_epsilon is not None
    assert task.epsilon < spent.local_epsilon <= task.most_local
    assert 0 < spent.epsilon <= task.epsilon
    plan, budgets = search_plan(task, SIZES), phase_budgets(task, SIZES)
    by_phase = [plan.epsilon_of(number) for number in range(len(plan.shares))]
    assert spent.local_epsilon == max(by_phase) * (1 if plan.divides_users else 2)
    assert is_kept(plan.phase([]).mechanism, budgets[0])
    for number, width in {"svim": {1: 6}, "svsm": {1: 8, 3: 32}, "ldp-miner": {}}[search].items():
        assert is_kept(SetSizes(width, by_phase[number], ends=size_classes(width)), budgets[number])
        assert by_phase[number] < min(by_phase[0], by_phase[number + 1])  # which have more reports
        for length in size_classes(width)[1:]:
            assert is_kept(PaddingAndSampling(width, by_phase[number + 1], length), budgets[number + 1])
    if not plan.divides_users:  # a record pays in every phase
        assert sum(each.delta for each in budgets) <= task.delta
        assert sum(each.epsilon for each in budgets) <= task.epsilon


def test_the_inverse_is_the_largest() -> None:
    """A hundredth more would exceed the central budget in the phase of sizes, the smallest."""
    task = shuffled(epsilon=1.0, most_local=16.0)
    spent, budgets = central(task, SIZES), phase_budgets(task, SIZES)
    assert spent.local_epsilon is not None
    more = 1.01 * spent.local_epsilon
    plan = task.plan(more)
    kept = [
        is_kept(plan.phase([]).mechanism, budgets[0]),
        is_kept(SetSizes(6, more), budgets[1]),
        is_kept(more, budgets[2]),
    ]
    assert not all(kept)


@pytest.mark.parametrize(("epsilon", "records"), [(2.0, 30_000), (1.0, 60_000)])
def test_twice_the_epsilon_or_the_records_add_some_0_7_to_what_a_report_may_spend(epsilon: float, records: int) -> None:
    """As pages and plans say."""
    few = central(TASKS["svim"], SIZES).local_epsilon
    more = central(shuffled(epsilon=epsilon), dict.fromkeys(PARTIES, records)).local_epsilon
    assert few is not None
    assert more is not None
    assert 0.5 < more - few < 1.0


COLUMNS = [(*each, column) for column, each in enumerate(product(("svim", "svsm"), (10_000, 100_000)), start=1)]


def test_no_phase_spends_more_than_its_plan() -> None:
    with fails("E100"):
        TASKS["svim"].plan(2.0, (1.0, 2.5, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("search", "records", "column"), in_turn(COLUMNS, 4))
def test_the_page_has_what_reports_may_spend(search: str, records: int, column: int) -> None:
    page = (Path(__file__).parents[2] / "docs/protocols/hybrid.md").read_text("utf-8")
    catalogue = tuple(f"{item:03}" for item in range(169))
    task = shuffled(epsilon=1.0, search=search, k=64, colluding=1, catalogue=catalogue)
    plan = search_plan(task, dict.fromkeys(PARTIES, records))
    (row,) = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 1 | "))
    assert row[column] == ", ".join(f"{plan.epsilon_of(number):.1f}" for number in range(len(plan.shares)))


def test_a_large_delta_is_enough_alone() -> None:
    spent = central(shuffled(epsilon=1.0, delta=0.999999), SIZES)
    assert (spent.epsilon, spent.delta) == (0.0, 0.999999)


@given(st.lists(st.integers(0, 5000), min_size=3, max_size=3), st.integers(0, 1))
@examples(1, 8)
def test_more_records_never_cost_more_and_colluders_never_less(sizes: list[int], colluding: int) -> None:
    task = shuffled(epsilon=1.0, colluding=colluding)
    spent = central(task, dict(zip(PARTIES, sizes, strict=True)))
    more = central(task, {party: size + 1000 for party, size in zip(PARTIES, sizes, strict=True)})
    assert spent.local_epsilon is not None
    assert more.local_epsilon is not None
    assert task.epsilon <= spent.local_epsilon <= more.local_epsilon + 1e-3
    assert (spent.epsilon, spent.delta) <= (task.epsilon, task.delta)
    ordered = sorted(sizes)[: 2 - colluding]
    least = min(
        sum(int(share * size) for size in ordered) for share in (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))
    )
    assert spent.n == max(1, least)


def test_n_leaves_out_the_largest_parties() -> None:
    reports = [10, 400, 30, 100]
    assert hidden(reports, shuffled()) == 140
    assert hidden(reports, shuffled(colluding=2)) == 10
    assert hidden([0, 0, 9], shuffled()) == 1


def test_the_bound_that_is_named_gives_the_number() -> None:
    """Of two like phases one by its own blanket, one by what any mechanism has; the first is the smaller ε."""
    spent = central(TASKS["svim"], SIZES)
    assert spent.bound in ("privacy blanket", "clones", "clones, closed form", "local randomiser")
    assert spent.n is not None
    assert spent.local_epsilon is not None
    assert spent.epsilon <= amplified_epsilon(spent.local_epsilon, spent.n, 1e-6) + 1e-5


# -- groups -----------------------------------------------------------------------------------------------------------
PLANS = {name: task.plan(1.0) for name, task in TASKS.items()}


@given(st.integers(0, 300), st.sampled_from(sorted(PLANS)), st.integers(0, 2**32))
@settings(deadline=None)
def test_groups_part_the_records_by_the_shares(records: int, name: str, seed: int) -> None:
    plan: MiningPlan = PLANS[name]
    groups = drawn(records, plan, Randomness.from_seed(seed))
    assert check_sizes([len(each) for each in groups], plan) == records
    if plan.divides_users:
        assert sorted(np.concatenate(groups).tolist()) == list(range(records))
        for group, share in zip(groups, plan.shares, strict=True):
            assert int(share * records) <= len(group) <= int(share * records) + 1
    else:
        assert all(each.tolist() == list(range(records)) for each in groups)


def test_a_record_is_in_each_phase_with_the_phases_share() -> None:
    """Also at parties of three records: of 4,000 draws each share within 5 deviations, which fails below 10⁻⁵."""
    plan = PLANS["svim"]
    draws = 4000
    counts = np.zeros((3, 3))
    for seed in range(draws):
        for phase, group in enumerate(drawn(3, plan, Randomness.from_seed(seed))):
            counts[phase, group] += 1
    for share, row in zip(map(float, plan.shares), counts, strict=True):
        assert (np.abs(row - share * draws) < 5 * np.sqrt(draws * share * (1 - share))).all()


@pytest.mark.parametrize("sizes", [[10, 0, 0], [4, 1], [4, 1, 5, 0], [6, 1, 3]])
def test_groups_of_other_sizes_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="phases"):
        check_sizes(sizes, PLANS["svim"])


def test_parties_come_to_the_same_in_any_order() -> None:
    task = replace(TASKS["svim"], learners=("south",))
    assert central(task, SIZES) == central(task, dict(reversed(SIZES.items())))

"""M follows from noisy numbers of rows by size, losses stay in bounds, and intervals cover whatever is cut."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldp.bias_aware import NORMAL
from mining.data.transactions import Transactions
from mining.joint.distributed.row_sizes import (
    HARDLY,
    MOST_CLASSES,
    Truncation,
    class_counts,
    item_truncation,
    itemset_truncation,
    largest_contributions,
    size_classes,
    usual_contributions,
)
from mining.joint.distributed.truncation import Excess, candidates_held
from tests.examples import slowly
from tests.mining.joint.distributed.distributed_world import run, task_for
from tests.mining.joint.oracle import Rows

pytestmark = pytest.mark.turn(6)

ERROR = 1e-6


@given(st.floats(0.1, 1e4), st.floats(1, 1e9), st.integers(1, 10**7), st.integers(1, 6))
def test_classes_ascend_and_are_few(of_one: float, least: float, candidates: int, length: int) -> None:
    usual = usual_contributions(length, of_one, least)
    ends = size_classes(of_one, least, candidates, None, usual)
    assert not ends or usual in ends or usual >= candidates
    assert list(ends) == sorted(set(ends))
    assert len(ends) < MOST_CLASSES
    assert all(end < candidates for end in ends)
    assert largest_contributions(ends, candidates) <= candidates


@given(st.floats(0.1, 1e4), st.floats(1, 1e9), st.integers(1, 10**7), st.floats(20, 1e6))
def test_no_class_asks_for_more_noise_than_can_be_drawn(
    of_one: float, least: float, candidates: int, drawn: float
) -> None:
    usual = usual_contributions(2, of_one, least, drawn)
    ends = size_classes(of_one, least, candidates, None, usual, drawn)
    assert largest_contributions(ends, candidates) <= drawn


@pytest.mark.parametrize("least", slowly([100.0, 300.0], now=[0]))
@pytest.mark.parametrize("of_one", [0.5, 1.0, 7.0])
def test_rows_that_hold_all_candidates_leave_a_number_of_contributions(of_one: float, least: float) -> None:
    for length, candidates in product((1, 2, 3), range(6, 300)):
        usual = usual_contributions(length, of_one, least)
        ends = size_classes(of_one, least, candidates, None, usual)
        held = class_counts(np.full(50_000, candidates), ends)
        found = (
            item_truncation(ends, held, 3.0, of_one, least, candidates, usual)
            if length == 1
            else itemset_truncation(ends, held, held, 3.0, of_one, least, candidates, usual, length == 2)
        )
        assert min(usual, candidates) <= found.most <= candidates, (length, candidates)


def test_classes_of_a_given_number() -> None:
    assert size_classes(10.0, 100.0, 50, 7, 4) == (7,)
    assert size_classes(10.0, 100.0, 7, 7, 4) == ()  # as many as there are: nothing is cut
    assert size_classes(10.0, 100.0, 5, None, 4) == ()
    assert class_counts(np.array([0, 1, 4, 5, 9, 9]), (0, 4, 8)).tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("given_most", [3, 40])
def test_a_number_that_the_job_says_stays_and_its_loss_is_bounded(given_most: int) -> None:
    held = np.array([900, 100])
    of_items = item_truncation((given_most,), held, 0.0, 5.0, 50.0, 100, 30)
    assert of_items == Truncation(given_most, 100, 100, 100)
    of_pairs = itemset_truncation((given_most,), np.array([990, 10]), held, 0.0, 5.0, 50.0, 100, 30, True)
    assert of_pairs == Truncation(given_most, 10, 100, 100)
    noisy = itemset_truncation((given_most,), np.array([990, 10]), held, 20.0, 5.0, 50.0, 100, 30, True)
    assert noisy.of_likely == pytest.approx(10 + stats.norm.isf(0.05) * 20)


def test_the_more_rows_the_less_is_cut() -> None:
    """The same distribution of sizes over more rows: supports grow, the noise does not."""
    chosen = []
    for rows in (10**4, 10**5, 10**6, 10**7):
        usual = usual_contributions(1, 10.0, rows / 100)
        ends = size_classes(10.0, rows / 100, 1000, None, usual)
        beyond = np.array([rows / (1 + end) for end in ends])  # rows with more than so many: Pareto's law
        held = -np.diff(np.rint([rows, *beyond, 0])).astype(np.int64)
        chosen.append(item_truncation(ends, held, 1.0, 10.0, rows / 100, 1000, usual).most)
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1]


@pytest.mark.parametrize("held", [3, 30, 60, 200])
def test_the_usual_number_stays_unless_another_is_clearly_better(held: int) -> None:
    """Rows that all hold so many, whose supports are near the noise: the usual 30 lose half at 60, most at 200."""
    of_one, least = 10.0, 600.0
    usual = usual_contributions(1, of_one, least)
    assert usual == 30
    ends = size_classes(of_one, least, 300, None, usual)
    found = item_truncation(ends, class_counts(np.full(10_000, held), ends), 0.0, of_one, least, 300, usual)
    assert (found.most == usual) == (held == 30)
    assert held > usual or found.of_any == 0


@given(st.lists(st.integers(0, 20_000), min_size=40, max_size=40), st.floats(5, 50), st.integers(1, 4), st.booleans())
def test_a_smaller_number_than_the_usual_one_hardly_cuts(
    rows: list[int], of_one: float, length: int, noisy: bool
) -> None:
    """Whatever the histograms say: where supports could be lost that the usual number keeps, it stays."""
    least, sigma = 1_000.0, 40.0 if noisy else 0.0
    usual = usual_contributions(length, of_one, least)
    ends = size_classes(of_one, least, 5_000, None, usual)
    held, likely = np.array(rows[: len(ends) + 1]), np.array(rows[: len(ends) + 1]) // 2
    if length == 1:
        found = item_truncation(ends, held, sigma, of_one, least, 5_000, usual)
    else:
        found = itemset_truncation(ends, likely, held, sigma, of_one, least, 5_000, usual, length == 2)
    assert found.most >= usual or found.of_any <= HARDLY * least


def test_itemsets_of_rare_long_rows_are_not_given_up() -> None:
    """Pairs in rows as of BMS-WebView-2: most hold few, but those with many make the pairs that are frequent."""
    of_one, least = 9.0, 400.0
    usual = usual_contributions(2, of_one, least)
    ends = size_classes(of_one, least, 5_000, None, usual)
    held = np.array([int(40_000 / (1 + end) ** 1.2) for end in (0, *ends)])
    assert itemset_truncation(ends, held // 4, held, 20.0, of_one, least, 5_000, usual, True).most >= usual


def test_a_larger_number_is_taken_where_much_would_be_lost() -> None:
    of_one, least = 10.0, 5_000.0
    usual = usual_contributions(1, of_one, least)
    ends = size_classes(of_one, least, 5_000, None, usual)
    held = class_counts(np.full(100_000, 6 * usual), ends)
    found = item_truncation(ends, held, 20.0, of_one, least, 5_000, usual)
    assert found.most >= 6 * usual


def test_noise_in_the_histogram_does_not_move_the_usual_number() -> None:
    of_one, least = 20.0, 1_000.0
    usual, moved = usual_contributions(1, of_one, least), 0
    ends = size_classes(of_one, least, 300, None, usual)
    for seed in range(200):
        noise = np.rint(np.random.default_rng(seed).normal(0, 60, len(ends) + 1)).astype(np.int64)
        held = class_counts(np.full(5_000, usual), ends) + noise
        moved += item_truncation(ends, held, 60.0, of_one, least, 300, usual).most != usual
    assert moved <= stats.binom.isf(ERROR, 200, 0.02)


@given(st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=25), st.integers(1, 12), st.randoms(), st.data())
def test_no_candidate_loses_more_than_its_bound(
    held: list[set[int]], most: int, random: object, data: st.DataObject
) -> None:
    """Without noise the bounds are exact: those of the first so many by rows with more than M of them."""
    rows = Transactions.from_rows([[str(item) for item in sorted(each)] for each in held])
    rows = rows.onto(tuple("01234567"))
    sets = np.array(list(combinations(range(8), data.draw(st.integers(1, 3)))), np.int32)
    order = np.array(data.draw(st.permutations(range(len(sets)))), np.int64)
    likely = data.draw(st.integers(0, len(sets)))
    sizes = [candidates_held(rows, sets, order[:number]) for number in (likely, len(sets))]
    brute = [sum(set(each) <= row for each in sets[order[:likely]].tolist()) for row in held]
    assert sizes[0].tolist() == brute
    counts = [class_counts(each, (most,)) for each in sizes]
    found = itemset_truncation((most,), counts[0], counts[1], 0.0, 1.0, 1.0, len(sets), 1, True)
    lost = Excess(sets, order, most)(rows)[order]
    assert (lost[:most] == 0).all()
    assert (lost[:likely] <= found.of_likely).all()
    assert (lost <= found.of_any).all()


def long_rows(seed: int, number: int, items: int) -> Rows:
    """Rows of items with Zipf's frequencies, of which some are very long."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, items + 1)
    sizes = np.minimum(1 + np.floor(2 * random.pareto(1.1, number)), items // 2).astype(int)
    names = [f"i{at:02}" for at in range(items)]
    shares = weights / weights.sum()
    return [[names[at] for at in random.choice(items, size, replace=False, p=shares)] for size in sizes.tolist()]


@pytest.mark.parametrize("epsilon", slowly(["0.5", "1", "4"], now=[1]))
@pytest.mark.parametrize("contributions", [None, (6, 10, 6)], ids=["chosen", "few"])
def test_intervals_cover_where_rows_are_cut(epsilon: str, contributions: tuple[int, ...] | None) -> None:
    """At least .93 of them: a job that covers .93 fails each case with a probability of `ERROR`."""
    data = {"north": long_rows(1, 2_500, 60), "south": long_rows(2, 2_500, 60)}
    pooled = [set(row) for rows in data.values() for row in rows]
    covered = []
    for seed in range(6):
        given_values = {"contributions": contributions, "max_length": 3, "colluding": 1}
        task = task_for(data, Decimal("0.03"), epsilon=Decimal(epsilon), **given_values)
        found = run(data, task, seed)["north"].estimated.itemsets
        assert found is not None
        for sets, counts, deviations in found.levels:
            named = [{found.items[item] for item in each} for each in sets.tolist()]
            true = np.array([sum(each <= row for row in pooled) for each in named])
            covered += (np.abs(counts - true) <= NORMAL * deviations).tolist()
    assert len(covered) > 100
    assert stats.binom.cdf(sum(covered), len(covered), 0.93) > ERROR, np.mean(covered)

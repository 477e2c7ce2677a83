"""Randomised baskets: reports follow what is stated, reconstructed supports are unbiased, ε is what is told."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.certify import satisfies, spent_epsilon
from ldp.domain import Domain
from ldp.sets.baskets import Baskets
from ldp.sets.itemset_reconstruction import BasketOperator, ItemsetSupport, joined
from ldp.sets.mask import Mask
from ldp.sets.select_a_size import SelectASize
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, chi_square_p
from tests.ldp.sets.contract import check_moments

pytestmark = pytest.mark.turn(6)

OPERATORS: list[BasketOperator] = [
    Mask(8, 0.9),
    Mask(8, 0.7),
    SelectASize.cut_and_paste(8, 4, 3, 0.2),
    SelectASize.amplified(8, 3.0, 4, 0.2, least=2),
    SelectASize(8, [Fraction(1, 8), Fraction(1, 4), Fraction(1, 8), Fraction(1, 2)], 0.3),
]
BASKETS = [[0, 1, 2], [0, 1], [], [3], [0, 1, 2], [0, 2, 5], [4, 5]]


@pytest.mark.parametrize(
    ("k", "weights", "variance"),
    [
        (1, (-0.125, 1.125), 0.140625),
        (2, (0.015625, -0.140625, 1.265625), 0.019775),
        (3, (-0.001953, 0.017578, -0.158203, 1.423828), 0.002781),
    ],
)
def test_published_weights_of_mask(k: int, weights: tuple[float, ...], variance: float) -> None:
    found = Mask(8, 0.9)
    assert found.weights(k) == pytest.approx(weights, abs=1e-6)
    assert found.variance(k, np.eye(k + 1)[0]) == pytest.approx(variance, abs=1e-6)


@settings(max_examples=40)
@given(st.floats(0.55, 0.99), st.integers(1, 6))
def test_weights_of_mask_in_closed_form(p: float, k: int) -> None:
    closed = [p**j * (-(1 - p)) ** (k - j) / (2 * p - 1) ** k for j in range(k + 1)]
    assert Mask(8, p).weights(k) == pytest.approx(closed, rel=1e-9)


def test_what_mask_protects() -> None:
    found = Mask(20, 0.9)
    assert found.bit_epsilon == pytest.approx(math.log(9))
    assert found.epsilon_between(range(10), range(10, 20)) == pytest.approx(43.94, abs=0.01)
    assert found.epsilon_between([1, 2], [2, 3]) == pytest.approx(2 * math.log(9))
    assert found.exact_epsilon == pytest.approx(20 * math.log(9))


def test_mask_spends_what_it_says() -> None:
    p = Mask(4, 0.8).p
    channel = [
        [math.prod(p if (x ^ y) >> i & 1 == 0 else 1 - p for i in range(4)) for y in range(16)] for x in range(16)
    ]
    assert spent_epsilon(channel) == pytest.approx(Mask(4, 0.8).exact_epsilon, rel=1e-12)


def channel_of(found: SelectASize) -> list[list[Fraction]]:
    """From all baskets of at most m items to all sets of items and dummies."""
    d, m, rho = found.domain.size, found.length, found.rho
    channel = []
    for a in range(m + 1):
        for items in combinations(range(d), a):
            basket = {*items, *range(d, d + m - a)}
            row = []
            for number in range(1 << d + m):
                report = {v for v in range(d + m) if number >> v & 1}
                kept, put_in = len(report & basket), len(report - basket)
                share = found.sizes[kept] / math.comb(m, kept)
                row.append(share * rho**put_in * (1 - rho) ** (d - put_in))
            channel.append(row)
    return channel


@pytest.mark.parametrize(
    "found",
    [
        SelectASize.cut_and_paste(4, 2, 1, 0.3),
        SelectASize.cut_and_paste(4, 2, 5, 0.1),
        SelectASize.amplified(4, 1.0, 2, 0.25),
        SelectASize.amplified(4, 2.0, 2, 0.25, least=2),
        SelectASize(4, [Fraction(1, 3)] * 3, 0.4),
    ],
)
def test_select_a_size_spends_what_it_says(found: SelectASize) -> None:
    channel = channel_of(found)
    assert all(sum(row) == 1 for row in channel)
    assert spent_epsilon(channel) == pytest.approx(found.exact_epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_amplified_operators_keep_epsilon(epsilon: float) -> None:
    for least in (1, 2):
        found = SelectASize.amplified(4, epsilon, 2, 0.2, least)
        assert satisfies(channel_of(found), epsilon)
        assert epsilon - 1e-9 <= found.exact_epsilon <= epsilon


def test_the_operator_for_pairs() -> None:
    """At ε = 1 for baskets of four items: figures of the page, and no other insertion near it does better."""
    nobody = [np.eye(k + 1)[0] for k in range(4)]
    found = {k: SelectASize.for_itemsets(100, 1.0, 4, k) for k in (1, 2, 3)}
    variances = [found[k].variance(k, nobody[k]) for k in (1, 2, 3)]
    assert variances == pytest.approx([16.47, 89.65, 69.11], rel=1e-3)
    for k in (1, 2, 3):
        assert found[k].exact_epsilon == pytest.approx(1.0)
        for rho in (0.02, 0.05, 0.1, 0.25, 0.4):
            for least in (1, 2, 3, 4):
                other = SelectASize.amplified(100, 1.0, 4, rho, least)
                assert other.variance(k, nobody[k]) > 0.97 * variances[k - 1]
    with pytest.raises(ConfigurationError):
        SelectASize.for_itemsets(100, 1.0, 4, 5)


def test_what_is_never_kept_gives_baskets_away() -> None:
    assert SelectASize(4, [Fraction(0), Fraction(1)], 0.2).exact_epsilon == math.inf


def test_cut_and_paste_has_the_published_probabilities() -> None:
    """Evfimievski et al., KDD 2002: P_j as a sum over what was cut."""
    m, cutoff, rho = 4, 2, Fraction(1, 4)
    found = SelectASize.cut_and_paste(9, m, cutoff, rho)
    for j, probability in enumerate(found.sizes):
        assert probability == sum(
            math.comb(m - i, j - i) * rho ** (j - i) * (1 - rho) ** (m - j) / (cutoff + 1)
            for i in range(min(cutoff, j) + 1)
        )
    assert sum(SelectASize.cut_and_paste(9, 3, 7, rho).sizes) == 1  # a cut of more than m items keeps all


@pytest.mark.parametrize("found", OPERATORS, ids=lambda found: type(found).__name__)
def test_reports_follow_the_transitions(found: BasketOperator) -> None:
    """Of itemsets of which a basket holds a, the report shows j: a chi-square test for each a, together at `ERROR`."""
    n, rng = 20_000, Randomness.from_seed(6)
    for k in (1, 2, 3):
        items = range(k)
        for a in range(k + 1):
            rows = found.perturb([[*range(a), 7][:3]] * n, rng)
            shown = np.unpackbits(rows, axis=1, bitorder="little")[:, list(items)].sum(axis=1)
            row = found.transition(k)[a]
            assert sum(row) == 1
            observed = np.bincount(shown.astype(np.int64), minlength=k + 1)
            assert chi_square_p(observed, np.array([float(p) for p in row]) * n) > ERROR / 10


@pytest.mark.parametrize("found", OPERATORS, ids=lambda found: type(found).__name__)
def test_supports_are_unbiased_with_the_stated_variances(found: BasketOperator) -> None:
    rng, runs, copies = Randomness.from_seed(7), 400, 40
    baskets = Baskets.of_lists(BASKETS * copies, Domain(8))
    itemsets = [(0,), (6,), (0, 1), (0, 5), (0, 1, 2), (5, 6, 7)]
    estimates = [found.supports(found.perturb(baskets, rng), itemsets) for _ in range(runs)]
    true, variances = [], []
    for items in itemsets:
        partial = np.bincount([len(set(items) & set(each)) for each in BASKETS], minlength=len(items) + 1) * copies
        true.append(partial[-1])
        variances.append(found.variance(len(items), partial))
    supports = np.array([[each.support for each in run] for run in estimates])
    check_moments(supports - np.array(true), np.array(variances))
    stated = np.array([[each.deviation**2 for each in run] for run in estimates]).mean(axis=0)
    assert stated == pytest.approx(variances, rel=0.1)


def test_mining_by_levels_finds_what_is_there() -> None:
    """Of 21,000 baskets 6,000 hold {0, 1, 2}, 3,000 {0, 1} and 3,000 {0, 2, 5}; the errors are some hundred."""
    baskets, rng = BASKETS * 3_000, Randomness.from_seed(8)
    true = {
        items: count
        for k in (1, 2, 3)
        for items in combinations(range(8), k)
        if (count := 3_000 * sum(set(items) <= set(each) for each in BASKETS)) > 5_000
    }
    assert (0, 1, 2) in true
    for found in (Mask(8, 0.8), SelectASize.amplified(8, 4.0, 3, 0.2)):
        mined = found.frequent(found.perturb(baskets, rng), 4_500 / len(baskets), longest=3)
        assert {each.items for each in mined} == set(true)
        for each in mined:
            low, high = each.interval(1 - 1e-6)
            assert low <= true[each.items] <= high


def test_slack_keeps_candidates_whose_subsets_fell_short_by_chance() -> None:
    found, rng = Mask(6, 0.75), Randomness.from_seed(9)
    rows = found.perturb([[0, 1], [0, 1], [2], [3], [4]] * 400, rng)
    few, many = (found.frequent(rows, 0.4, longest=2, slack=slack) for slack in (0.0, 5.0))
    assert {each.items for each in few} <= {each.items for each in many}


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_intervals_of_what_was_told_as_frequent_cover(epsilon: float) -> None:
    """Of rare itemsets too that noise lifts over the threshold. Intervals that cover .95 fail at `ERROR`."""
    operator, covered = SelectASize.for_itemsets(12, epsilon=epsilon, length=4, k=2), list[bool]()
    for seed in range(25):
        random = np.random.default_rng(seed)
        baskets = [sorted(random.choice(12, 3, replace=False).tolist()) for _ in range(600)]
        for each in operator.frequent(operator.perturb(baskets, Randomness.from_seed(seed)), 0.3, longest=2):
            low, high = each.interval()
            covered.append(low <= sum(set(each.items) <= set(basket) for basket in baskets) <= high)
    assert len(covered) > 60
    assert stats.binom.cdf(sum(covered), len(covered), 0.95) > ERROR, np.mean(covered)


@settings(max_examples=40)
@given(st.sets(st.frozensets(st.integers(0, 6), min_size=2, max_size=2), max_size=14))
def test_candidates_are_those_whose_subsets_are_all_there(sets: set[frozenset[int]]) -> None:
    itemsets = sorted(tuple(sorted(each)) for each in sets)
    right = [c for c in combinations(range(7), 3) if all(each in itemsets for each in combinations(c, 2))]
    assert joined(itemsets) == right


def test_intervals_are_cut_to_what_can_be() -> None:
    assert ItemsetSupport((1,), 2.0, 10.0, 15).interval() == (0.0, 15.0)
    low, high = ItemsetSupport((1,), 50.0, 10.0, 100).interval(0.6827)
    assert (low, high) == (pytest.approx(40, abs=0.01), pytest.approx(60, abs=0.01))


def test_wrong_arguments_are_refused() -> None:
    for keep in (0.5, 1.0, 0.2, Fraction(1, 2) + Fraction(1, 1 << 70)):
        with pytest.raises(ConfigurationError):
            Mask(4, keep)
    for sizes, insertion in (
        ([Fraction(1, 2)] * 3, 0.2),
        ([Fraction(1)], 0.2),
        ([Fraction(2), Fraction(-1)], 0.2),
        ([Fraction(1, 2)] * 2, 0.0),
        ([Fraction(1, 2)] * 2, 1e-30),
        ([Fraction(1, 8)] * 8, 0.2),
    ):
        with pytest.raises(ConfigurationError):
            SelectASize(4, sizes, insertion)
    with pytest.raises(ConfigurationError):
        SelectASize.cut_and_paste(4, 2, -1, 0.2)
    with pytest.raises(ConfigurationError):
        SelectASize.amplified(4, 1.0, 2, 0.2, least=3)
    found = Mask(4, 0.9)
    rows = found.perturb([[1]])
    for wrong in ([(1, 1)], [(4,)], [()], [(-1,)]):
        with pytest.raises(InputDataError):
            found.supports(rows, wrong)
    with fails("E101"):
        found.supports(rows[:0], [(1,)])
    with pytest.raises(ConfigurationError):
        found.weights(13)
    with fails("E100"):
        SelectASize.cut_and_paste(8, 4, 2, 0.2).weights(3)  # of two items that are cut at most
    for least, longest, slack in ((0.0, 2, 1.0), (1.1, 2, 1.0), (0.5, 0, 1.0), (0.5, 2, -1.0)):
        with pytest.raises(ConfigurationError):
            found.frequent(rows, least, longest=longest, slack=slack)
    with pytest.raises(ConfigurationError):
        ItemsetSupport((1,), 2.0, 1.0, 5).interval(1.0)

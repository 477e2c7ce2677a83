"""PrivSet keeps ε in exact arithmetic, draws what it states, and has the published figures where those are right."""

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
from ldp.aggregator import Aggregator
from ldp.certify import satisfies, spent_epsilon
from ldp.domain import Domain
from ldp.sets.baskets import Baskets
from ldp.sets.exact_choice import ExactChoice
from ldp.sets.privset import PrivSet
from ldp.sets.set_oracle import total_variance
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.contract import ERROR, check_reports, chi_square_p
from tests.ldp.sets.contract import check_set_estimates, check_set_sampler
from tests.ldp.test_blankets import bound, check_sums, shuffled

pytestmark = pytest.mark.turn(8)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (2, 2), (4, 2), (5, 1), (5, 3), (6, 2)])
def test_no_ratio_of_probabilities_exceeds_epsilon(d: int, m: int, epsilon: float) -> None:
    found = PrivSet(d, epsilon, m)
    channel = found.channel()
    assert satisfies(channel, epsilon)
    assert spent_epsilon(channel) == pytest.approx(found.exact_epsilon, rel=1e-12)
    assert epsilon - 1e-9 <= found.exact_epsilon <= epsilon


def test_rates_are_those_of_the_channel() -> None:
    for d, m, epsilon in ((4, 2, 1.0), (5, 3, 0.3), (6, 2, 0.1)):
        found = PrivSet(d, epsilon, m)
        reports = list(combinations(range(d + m), found.k))
        row = found.channel()[1]  # of the first item and all dummies but the last, which is element d + m − 1
        own, other = (sum(p for p, each in zip(row, reports, strict=True) if v in each) for v in (0, 1))
        assert (own, other) == (found.p, found.q)
        for held, pair in ((2, (0, d)) if m > 1 else (1, (0, 1)), (1, (0, 1)), (0, (1, 2)), (1, (0, d + m - 1))):
            both = sum(p for p, each in zip(row, reports, strict=True) if set(pair) <= set(each))
            assert both == found.both(held)


@pytest.mark.parametrize(
    ("d", "m", "epsilon", "k", "loss"),
    [
        (16, 2, 1.0, 2, 110.3557),
        (32, 4, 1.0, 2, 448.3670),
        (64, 4, 1.0, 4, 973.2108),
        (64, 8, 1.0, 2, 1799.524),
        (64, 4, 0.1, 8, 123429.5),
        (64, 4, 3.0, 1, 33.21737),
        (512, 8, 1.0, 16, 16787.34),
    ],
)
def test_the_published_choice(d: int, m: int, epsilon: float, k: int, loss: float) -> None:
    found = PrivSet(d, epsilon, m, criterion="published")
    assert found.k == k
    assert total_variance(float(found.p), float(found.q), d, m, "published") == pytest.approx(loss, rel=1e-6)


def test_the_true_variance_and_its_choice() -> None:
    found = PrivSet(64, 1.0, 4)
    assert (float(found.p), float(found.q)) == (pytest.approx(0.1160628, abs=1e-7), pytest.approx(0.0552461, abs=1e-7))
    assert found.variance(np.array([1.0, 0.0]), 1) == pytest.approx([27.73759, 14.11154], rel=1e-6)
    assert total_variance(float(found.p), float(found.q), 64, 4, "variance") == pytest.approx(1014.0890, rel=1e-6)
    better = PrivSet(512, 1.0, 8)
    assert better.k == 17
    assert total_variance(float(better.p), float(better.q), 512, 8, "variance") == pytest.approx(16995.27, rel=1e-6)
    tiny = PrivSet(4, 1.0, 2)
    assert (tiny.k, float(tiny.p), float(tiny.q)) == (
        1,
        pytest.approx(0.2880584, abs=1e-7),
        pytest.approx(0.1059708, abs=1e-7),
    )


@settings(max_examples=30)
@given(st.integers(2, 40), st.data(), st.floats(0.05, 8))
def test_k_has_the_least_variance(d: int, data: st.DataObject, epsilon: float) -> None:
    m = data.draw(st.integers(1, d))
    found = PrivSet(d, epsilon, m)

    def loss(k: int) -> float:
        grown, apart = Fraction(math.exp(epsilon)), Fraction(math.comb(d, k), math.comb(d + m, k))
        total = apart + grown * (1 - apart)
        p = grown * Fraction(k, d + m) / total
        q = (apart * Fraction(k, d) + grown * (Fraction(k, d + m) - apart * Fraction(k, d))) / total
        return float((m * p * (1 - p) + d * q * (1 - q)) / (p - q) ** 2)

    assert loss(found.k) == pytest.approx(min(map(loss, range(1, d))), rel=1e-9)


def test_a_domain_for_which_binomial_coefficients_overflow() -> None:
    found = PrivSet(4096, 0.05, 16)
    assert math.comb(4112, found.k) > 10**200
    assert 0 < found.q < found.p < 1
    reports = found.privatise([[1, 2, 3], list(range(16))] * 50, Randomness.from_seed(1))
    assert len(found.read(reports.to_bytes())) == 100


@pytest.mark.parametrize(
    ("d", "m", "epsilon"), slowly([(4, 2, 1.0), (3, 1, 0.5), (5, 3, 0.2), (5, 2, 0.1)], now=[0, 1, 2])
)
@pytest.mark.parametrize("listed", [True, False])
def test_the_sampler_draws_from_the_channel(d: int, m: int, epsilon: float, listed: bool) -> None:
    found = PrivSet(d, epsilon, m)
    found.listed = listed  # whichever of the two would be shorter
    check_set_sampler(found, Randomness.from_seed(d), 8_000)


def test_the_sampler_of_rows_in_a_larger_domain() -> None:
    """Items 0 … 3 are held, the rest is not: reports that show each have the stated probabilities, pairs too."""
    found, n = PrivSet(300, 0.05, 4), 40_000
    assert not found.listed
    reports = found.privatise([[0, 1, 2, 250]] * n, Randomness.from_seed(5))
    found.read(reports.to_bytes())
    shown = np.unpackbits(reports.fields[0], axis=1, count=304, bitorder="little").astype(np.int64)
    expected = np.full(304, float(found.q))
    expected[[0, 1, 2, 250]] = float(found.p)
    z = (shown.sum(axis=0) - n * expected) / np.sqrt(n * expected * (1 - expected))
    assert np.all(np.abs(z) < stats.norm.isf(ERROR / 304))
    for held, pair in ((2, (1, 250)), (1, (0, 303)), (0, (7, 302))):
        p = float(found.both(held))
        count = np.count_nonzero(shown[:, pair[0]] & shown[:, pair[1]])
        assert abs(count - n * p) < stats.norm.isf(ERROR) * math.sqrt(n * p * (1 - p))


SETS = [[0, 1], [0], [], [2, 0, 1], [5], [0, 9, 3]] * 150


@pytest.mark.parametrize(("m", "epsilon"), slowly([(3, 1.0), (4, 3.0), (3, 0.3)], now=[0, 1]))
def test_estimates_of_items_and_sizes(m: int, epsilon: float) -> None:
    check_set_estimates(PrivSet(12, epsilon, m), SETS, Randomness.from_seed(m))


def test_a_histogram_of_sizes() -> None:
    """Shares .3, .4, .2, .1 of n = 4·10^5 sets, within 5 standard deviations, which are below .006."""
    found, rng = PrivSet(16, 2.0, 3), Randomness.from_seed(2)
    shares = np.array([0.3, 0.4, 0.2, 0.1])
    sets = [[], [], [], [1], [2], [3], [4], [1, 5], [6, 7], [8, 9, 10]] * 40_000
    estimate = Aggregator(found).add(found.privatise(sets, rng)).estimate()
    assert np.all(np.abs(estimate.sizes - shares) < 5 * np.sqrt(found.size_variances(shares, len(sets))))
    assert estimate.sizes.sum() == pytest.approx(1)
    assert np.all(found.size_variances(shares, len(sets)) < 0.006**2)


def test_larger_sets_are_cut() -> None:
    """A set of 8 items counts a half for each if m = 4: mean over runs, at `ERROR`."""
    found, rng, runs = PrivSet(10, 2.0, 4), Randomness.from_seed(3), 200
    sets = [list(range(8))] * 500
    counts = np.array([Aggregator(found).add(found.privatise(sets, rng)).estimate().counts for _ in range(runs)])
    deviation = np.sqrt((found.variance(np.full(10, 500.0), 500) + 500 / 4) / runs)
    assert np.all(np.abs(counts.mean(axis=0)[:8] - 250) < stats.norm.isf(ERROR / 8) * deviation[:8])


def test_reports_and_states_survive_their_bytes() -> None:
    for d, m, epsilon in ((3, 1, 1.0), (40, 4, 1.0), (300, 2, 0.05)):
        check_reports(PrivSet(d, epsilon, m), [[v % d, (v + 1) % d] for v in range(300)], Randomness.from_seed(d))


def test_wrong_reports_are_refused() -> None:
    for found in (PrivSet(40, 0.3, 2), PrivSet(300, 0.05, 2)):
        reports = found.privatise([[1]], Randomness.from_seed(1))
        wrong = reports.fields[0].copy()
        wrong[0, :2] = 255 if not found.listed else wrong[0, 1]
        with fails("E101"):
            found.read(type(reports)(reports.fingerprint, (wrong,)).to_bytes())


@pytest.mark.parametrize(
    "wrong", [{"length": 0}, {"length": 9}, {"criterion": "best"}, {"domain": 1}, {"epsilon": 0.0}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        PrivSet(**{"domain": 8, "epsilon": 1.0, "length": 2, **wrong})
    with fails("E100"):
        PrivSet(1 << 16, 1.0, 2)


@pytest.mark.parametrize("wrong", [[[9]], [[-1]], ["ab"], [3], [[0.5]], [[math.nan]], [[True]], "ab", None, [None], 3])
def test_wrong_sets_are_refused(wrong: list[object]) -> None:
    with pytest.raises(InputDataError):
        PrivSet(8, 1.0, 2).privatise(wrong)


def test_texts_and_repeated_items() -> None:
    found = PrivSet(["tea", "milk", "rice"], 8.0, 2)
    reports = found.privatise([["tea", "tea"], ["milk"], set()] * 2_000, Randomness.from_seed(4))
    estimate = Aggregator(found).add(reports).estimate()
    assert [name for name, _ in estimate.top(2)] in (["tea", "milk"], ["milk", "tea"])
    assert estimate.sizes == pytest.approx([1 / 3, 2 / 3, 0], abs=0.05)
    assert found.with_params(epsilon=2.0).get_params()["length"] == 2


@pytest.mark.parametrize(("d", "m", "epsilon"), [(2, 1, 1.0), (2, 2, 0.5), (3, 1, 2.0)])
def test_shuffled_reports_are_as_private_as_the_blanket_says(d: int, m: int, epsilon: float) -> None:
    found = PrivSet(d, epsilon, m)
    check_sums(found.blanket())
    for grown in (1.0, 1.3, 2.0):
        assert shuffled(found.channel(), 2, grown) <= bound(found.blanket(), 2, grown) * (1 + 1e-9)


# -- what it rests on --------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.sets(st.integers(0, 19)), max_size=30), st.integers(1, 6), st.integers(0, 10))
def test_baskets_are_cut_to_subsets(sets: list[set[int]], length: int, seed: int) -> None:
    baskets = Baskets.of_lists(sets, Domain(20))
    cut = baskets.cut(length, Randomness.from_seed(seed))
    assert cut.sizes.tolist() == [min(len(each), length) for each in sets]
    for i, each in enumerate(sets):
        assert set(cut.codes[cut.offsets[i] : cut.offsets[i + 1]].tolist()) <= each


def test_cuts_are_uniform() -> None:
    n = 20_000
    baskets = Baskets.of_lists([[0, 2, 3, 7, 8]] * n, Domain(9)).cut(2, Randomness.from_seed(1))
    numbers = (1 << baskets.codes).reshape(n, 2).sum(axis=1)
    _, observed = np.unique(numbers, return_counts=True)
    assert len(observed) == 10
    assert chi_square_p(observed, np.full(10, n / 10)) > ERROR


@pytest.mark.parametrize("bits", [1, 2, 3, 64])
def test_an_exact_choice_follows_its_weights(bits: int) -> None:
    """Also where the first bits hardly ever decide."""
    for weights in ([1, 2, 4, 0, 3], [0, 5, 0], [1], [7, 1, 0, 0], [10**40, 3 * 10**40, 10**39]):
        choice = ExactChoice(weights, bits)
        observed = np.bincount(choice.draw(20_000, Randomness.from_seed(bits)), minlength=len(weights))
        expected = np.array([float(p) for p in choice.probabilities()]) * 20_000
        assert np.all(observed[expected == 0] == 0)
        if np.count_nonzero(expected) > 1:
            assert chi_square_p(observed[expected > 0], expected[expected > 0]) > ERROR

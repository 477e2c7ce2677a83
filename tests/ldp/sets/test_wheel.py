"""The collision mechanism keeps ε in exact arithmetic, and estimates are right over the draw of functions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.certify import satisfies, spent_epsilon
from ldp.sets.privset import PrivSet
from ldp.sets.random_functions import RandomFunctions
from ldp.sets.set_oracle import per_user
from ldp.sets.wheel import Wheel
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_reports, chi_square_p
from tests.ldp.sets.contract import check_set_estimates
from tests.ldp.test_blankets import bound, check_sums, shuffled

pytestmark = pytest.mark.turn(3)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 6.0])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (4, 2), (6, 3)])
def test_no_ratio_of_probabilities_exceeds_epsilon(d: int, m: int, epsilon: float) -> None:
    found = Wheel(d, epsilon, m)
    channel = found.channel()
    assert satisfies(channel, epsilon)
    assert spent_epsilon(channel) <= found.exact_epsilon * (1 + 1e-12)
    assert epsilon - 1e-9 <= found.exact_epsilon <= epsilon
    if found.t >= 2 * m and d >= 2 * m:  # there are two sets with nothing in common
        assert spent_epsilon(channel) == pytest.approx(found.exact_epsilon, rel=1e-12)


@settings(max_examples=60)
@given(st.integers(1, 5), st.integers(0, 6), st.floats(0.05, 8), st.data())
def test_no_ratio_exceeds_epsilon_under_any_function(m: int, more: int, epsilon: float, data: st.DataObject) -> None:
    """Two sets, all of whose elements go wherever they like."""
    found = Wheel(m + more + 1, epsilon, m)
    spread = st.lists(st.integers(0, found.t - 1), min_size=m, max_size=m)
    rows = []
    for own in (set(data.draw(spread)), set(data.draw(spread))):
        rows.append([found.p if y in own else found.other_buckets(len(own)) for y in range(found.t)])
        assert sum(rows[-1]) == 1
    assert spent_epsilon(rows) <= found.exact_epsilon


def test_what_is_drawn_given_buckets() -> None:
    """Buckets 3, 3 and 7 of t: 3 and 7 with p each, all others alike; a chi-square test."""
    found, n = Wheel(50, 1.0, 3), 60_000
    drawn = found.reported(np.tile([3, 3, 7], (n, 1)), Randomness.from_seed(1))
    expected = np.full(found.t, float(found.other_buckets(2)))
    expected[[3, 7]] = float(found.p)
    assert expected.sum() == pytest.approx(1)
    assert chi_square_p(np.bincount(drawn, minlength=found.t), expected * n) > ERROR


def test_buckets() -> None:
    """The published number is OLH's only but for rounding; the best one has less variance, by up to 5 %."""
    assert Wheel(512, 1.0, 8, criterion="published").t == int(8 * math.e + 15)
    assert [Wheel(64, 1.0, 1, criterion=each).t for each in ("published", "variance")] == [3, 4]

    def total(found: Wheel | PrivSet) -> float:
        held, other = per_user(found.p, found.q)
        return float(found.length * held + found.domain.size * other)

    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for m in (1, 2, 4, 8, 32):
            best = Wheel(1000, epsilon, m)
            gain = total(Wheel(1000, epsilon, m, criterion="published")) / total(best) - 1
            assert -1e-12 <= gain < 0.06
            near = [float(_total(1000, m, epsilon, t)) for t in (best.t - 1, best.t + 1) if t > m]
            assert total(best) <= min(near) * (1 + 1e-9)
            assert total(PrivSet(1000, epsilon, m)) < total(best)  # what its longer reports are good for


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_no_other_number_of_buckets_is_better(epsilon: float) -> None:
    for d, m in ((8, 1), (30, 5), (1000, 3)):
        best = min(range(m + 1, 2_500), key=lambda t: _total(d, m, epsilon, t))
        assert _total(d, m, epsilon, Wheel(d, epsilon, m).t) <= _total(d, m, epsilon, best) * (1 + Fraction(1, 10**12))


def _total(d: int, m: int, epsilon: float, t: int) -> Fraction:
    grown = Fraction(math.exp(epsilon))
    held, other = per_user(grown / (m * grown + t - m), Fraction(1, t))
    return m * held + d * other


SETS = [[0, 1], [0], [], [2, 0, 1], [5], [0, 9, 3]] * 150


@pytest.mark.parametrize(("m", "epsilon"), [(3, 1.0), (4, 3.0), (3, 0.3)])
def test_estimates_of_items_and_sizes(m: int, epsilon: float) -> None:
    check_set_estimates(Wheel(12, epsilon, m), SETS, Randomness.from_seed(m), runs=300)


def test_long_sets_collide_and_estimates_stay_right() -> None:
    """40 items in some 150 buckets: the number of different buckets varies; means over users at `ERROR`."""
    found, n = Wheel(60, 1.0, 40), 20_000
    estimate = Aggregator(found).add(found.privatise([list(range(40))] * n, Randomness.from_seed(8))).estimate()
    true = np.repeat([n, 0], [40, 20])
    assert np.all(np.abs(estimate.counts - true) < stats.norm.isf(ERROR / 60) * np.sqrt(found.variance(true, n)))


def test_reports_and_states_survive_their_bytes() -> None:
    for d, m, epsilon in ((3, 1, 1.0), (5_000, 4, 1.0), (300, 200, 3.0)):
        found = Wheel(d, epsilon, m)
        assert found.report_bytes <= 12
        check_reports(found, [[v % d, (v + 1) % d] for v in range(300)], Randomness.from_seed(d))


def test_wrong_reports_and_parameters_are_refused() -> None:
    found = Wheel(40, 0.3, 2)
    reports = found.privatise([[1]], Randomness.from_seed(1))
    wrong = type(reports)(reports.fingerprint, (reports.fields[0], np.full(1, found.t, reports.fields[1].dtype)))
    with fails("E101"):
        found.read(wrong.to_bytes())
    with fails("E100"):
        Wheel(2_000, 16.0, 1_000, criterion="published")
    with pytest.raises(ConfigurationError):
        Wheel(8, 1.0, 0)
    with pytest.raises(InputDataError):
        found.privatise([[40]])


@pytest.mark.parametrize(("m", "epsilon"), [(1, 1.0), (2, 0.5)])
def test_shuffled_reports_are_as_private_as_the_blanket_says(m: int, epsilon: float) -> None:
    """Given the functions, by which all buckets may be those of one set or another."""
    found = Wheel(3, epsilon, m)
    check_sums(found.blanket())
    own = [{0}, {1}, {2}, *([{0, 1}, {1, 2}] if m > 1 else [])]
    channel = [[found.p if y in each else found.other_buckets(len(each)) for y in range(found.t)] for each in own]
    for grown in (1.0, 1.3, 2.0):
        assert shuffled(channel, 2, grown) <= bound(found.blanket(), 2, grown) * (1 + 1e-9)


# -- random functions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [2, 3, 12, 1000, (1 << 31) - 1])
def test_supporters_are_counted_as_buckets_say(t: int) -> None:
    functions = RandomFunctions(t)
    seeds = functions.draw(500, Randomness.from_seed(t))
    all_buckets = functions.buckets(seeds[:, None], np.arange(30))
    assert all_buckets.min() >= 0
    assert all_buckets.max() < t
    named = all_buckets[:, 7]
    assert functions.supporters(seeds, named, 30).tolist() == (all_buckets == named[:, None]).sum(axis=0).tolist()


def test_four_values_look_independent() -> None:
    """All 3^4 joint buckets of four elements are as common: a chi-square test."""
    functions, n = RandomFunctions(3), 200_000
    buckets = functions.buckets(functions.draw(n, Randomness.from_seed(3))[:, None], np.array([0, 1, 2, 1000]))
    joint = np.bincount(buckets @ np.array([27, 9, 3, 1]), minlength=81)
    assert chi_square_p(joint, np.full(81, n / 81)) > ERROR

"""Composition of guarantees, and which reports hide each other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp.accounting.batches import Batch, collection, least_batch
from ldp.accounting.composition import Guarantee, optimal, parallel, sampled, sequential
from ldp.accounting.shuffling import amplified_epsilon
from ldp.registry import oracle
from ldp.streams.composition import amplified
from tests.errors import fails

pytestmark = pytest.mark.turn(3)


def theorem(k: int, epsilon: float, i: int) -> float:
    """δ of k-fold randomised response at (k − 2i)·ε, as Kairouz, Oh and Viswanath state it."""
    total = sum(math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon)) for j in range(i))
    return total / (1 + math.exp(epsilon)) ** k


@pytest.mark.parametrize(("k", "epsilon", "own"), [(3, 1.0, 0.0), (20, 0.3, 1e-8), (50, 0.1, 0.0), (50, 0.1, 1e-7)])
def test_equal_guarantees_compose_as_the_theorem_says(k: int, epsilon: float, own: float) -> None:
    for i in range(1, k // 2):
        spent = theorem(k, epsilon, i)
        if spent < 1e-9:
            continue  # the theorem's sum has lost too many digits in doubles
        delta = 1 - (1 - own) ** k * (1 - spent)
        found = optimal([Guarantee(epsilon, own)] * k, delta)
        assert found.delta == delta
        assert found.epsilon == pytest.approx((k - 2 * i) * epsilon, rel=1e-6, abs=1e-6)


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 2), min_size=2, max_size=8), st.floats(-30, -2))
def test_different_guarantees_compose_between_bounds(epsilons: list[float], log_delta: float) -> None:
    delta = math.exp(log_delta)
    parts = [Guarantee(each) for each in epsilons]
    found = optimal(parts, delta).epsilon
    least, most = ([Guarantee(pick(epsilons))] * len(parts) for pick in (min, max))
    assert optimal(least, delta).epsilon <= found * (1 + 1e-6)
    assert found <= min(sequential(parts).epsilon, optimal(most, delta).epsilon * (1 + 1e-3) + 1e-6)
    assert found == pytest.approx(exact(epsilons, delta), rel=2e-3, abs=1e-6)
    assert found >= exact(epsilons, delta) - 1e-9


def exact(epsilons: list[float], delta: float) -> float:
    """By enumeration of all answers."""
    outcomes = [(1.0, 0.0)]
    for each in epsilons:
        kept = 1 / (1 + math.exp(-each))
        outcomes = [
            (p * share, loss + sign * each) for p, loss in outcomes for share, sign in ((kept, 1), (1 - kept, -1))
        ]
    low, high = 0.0, sum(epsilons)
    for _ in range(60):
        middle = (low + high) / 2
        spent = sum(p * -math.expm1(min(middle - loss, 0)) for p, loss in outcomes)
        low, high = (middle, high) if spent > delta else (low, middle)
    return high


def test_composition_is_that_of_a_library_for_it() -> None:
    pld: Any = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common: Any = pytest.importorskip("dp_accounting.pld.common")
    for epsilons, tolerance in (([0.1] * 30, 1e-6), ([0.05 * (1 + i % 7) for i in range(30)], 3e-3)):
        whole = pld.identity(value_discretization_interval=1e-4)
        for each in epsilons:
            one = common.DifferentialPrivacyParameters(each, 1e-9)
            whole = whole.compose(pld.from_privacy_parameters(one, value_discretization_interval=1e-4))
        found = optimal([Guarantee(each, 1e-9) for each in epsilons], 1e-6).epsilon
        assert found == pytest.approx(whole.get_epsilon_for_delta(1e-6), rel=tolerance)


def test_check_values_of_a_library() -> None:
    """Figures that dp-accounting 0.6.0 gives, by privacy loss distributions."""
    for k, epsilon, own, expected in (
        (10, 0.1, 0, 0.999370906),
        (100, 0.1, 1e-9, 4.78772376),
        (1000, 0.01, 1e-10, 1.37281653),
    ):
        assert optimal([Guarantee(epsilon, own)] * k, 1e-6).epsilon == pytest.approx(expected, rel=1e-7)
    mixed = [Guarantee(0.05 * (1 + i % 7), 1e-9) for i in range(50)]
    assert 7.460548 <= optimal(mixed, 1e-6).epsilon <= 7.460548 * 1.002


def test_sums_and_largest() -> None:
    parts = [Guarantee(0.1, 1e-6), Guarantee(0.2, 2e-6)]
    whole = sequential(parts)
    assert Fraction(whole.epsilon) >= Fraction(0.1) + Fraction(0.2)
    assert whole.epsilon == pytest.approx(0.3)
    assert whole.delta == pytest.approx(3e-6)
    assert parallel(parts) == Guarantee(0.2, 2e-6)
    assert optimal(parts, whole.delta).epsilon <= whole.epsilon
    assert optimal([Guarantee(0.0, 1e-6)], 1e-5) == Guarantee(0.0, 1e-5)
    assert optimal([Guarantee(0.5)], 0.0) == Guarantee(0.5, 0.0)
    assert optimal([Guarantee(0.1)], 0.5).epsilon == 0


def test_sampling() -> None:
    found = sampled(Guarantee(1.0, 1e-6), 0.1)
    assert found.epsilon == pytest.approx(0.1585651, abs=1e-7)
    assert found.epsilon == amplified(1.0, 0.1)
    assert found.delta == pytest.approx(1e-7)


def test_wrong_guarantees() -> None:
    for epsilon, delta in ((-1.0, 0.0), (math.inf, 0.0), (1.0, 1.1), (1.0, math.nan)):
        with fails("E100"):
            Guarantee(epsilon, delta)
    with fails("E100"):
        parallel([])
    with fails("E100"):
        optimal([], 1e-6)
    with fails("E100"):
        optimal([Guarantee(1.0, 1e-6)] * 3, 1e-6)
    with fails("E100"):
        sampled(Guarantee(1.0), 0.0)


# -- batches ----------------------------------------------------------------------------------------------------------
def test_colluding_reports_and_small_batches_hide_nobody() -> None:
    assert Batch(1.0, 10_000).guarantee(1e-6).epsilon == pytest.approx(0.053005, abs=2e-6)
    assert Batch(1.0, 10_000, 0.2).n == 8_000
    assert Batch(1.0, 10_000, 0.2).guarantee(1e-6).epsilon == pytest.approx(0.059759, abs=2e-6)
    parts = [Batch(1.0, 1_000) for _ in range(10)]
    assert collection(parts, 1e-6).epsilon == pytest.approx(0.182412, abs=2e-6)
    assert Batch(1.0, 3, 0.9).n == 1
    assert Batch(1.0, 10, Fraction(1, 3)).n == 6


def test_the_worst_group_counts() -> None:
    olh, grr = oracle("olh", 1_000, 1.0), oracle("grr", 16, 1.0)
    whole = collection([Batch(olh, 40_000), Batch(grr, 10_000), Batch(olh, 50_000)], 1e-6)
    assert whole == Guarantee(max(amplified_epsilon(olh, 40_000, 1e-6), amplified_epsilon(grr, 10_000, 1e-6)), 1e-6)


@pytest.mark.parametrize("colluding", [0, 0.2, 0.37])
def test_the_least_batch(colluding: float) -> None:
    reports = least_batch(1.0, 0.0531, 1e-6, colluding)
    assert Batch(1.0, reports, colluding).guarantee(1e-6).epsilon <= 0.0531
    assert Batch(1.0, reports - 1, colluding).guarantee(1e-6).epsilon > 0.0531
    assert least_batch(1.0, 1.0, 1e-6) == 1


def test_wrong_batches() -> None:
    with fails("E100"):
        Batch(1.0, 0)
    with fails("E100"):
        Batch(1.0, 10, 1.0)
    with fails("E100"):
        least_batch(1.0, 0.0, 1e-6)

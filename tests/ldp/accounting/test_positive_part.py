"""The mean positive part of a sum, against exact convolutions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from ldp.accounting.positive_part import log_mean_positive_part
from ldp.accounting.rounding import float_above, float_below
from ldp.accounting.solving import crossing


def exact(values: list[int], masses: NDArray[np.float64], n: int) -> float:
    """By convolution of whole numbers; all terms are positive, so no digits are lost."""
    least, most = min(values), max(values)
    one = np.zeros(most - least + 1)
    np.add.at(one, np.array(values) - least, masses)
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, one)
    sums = np.arange(n * least, n * most + 1)
    return float(law @ np.maximum(sums, 0))


@settings(max_examples=150)
@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=5),
    st.lists(st.floats(1e-6, 1), min_size=5, max_size=5),
    st.integers(1, 40),
)
def test_it_is_never_below_the_exact_value(values: list[int], weights: list[float], n: int) -> None:
    masses = np.array(weights[: len(values)]) / sum(weights[: len(values)])
    truth = exact(values, masses, n)
    found = log_mean_positive_part(np.array(values, dtype=np.float64), masses, n)
    if truth == 0:
        assert found == -math.inf
    else:
        assert found >= math.log(truth)


@settings(max_examples=50)
@given(st.floats(1e-9, 1), st.integers(1, 10**6))
def test_draws_of_nothing_cost_nothing(p: float, n: int) -> None:
    found = log_mean_positive_part(np.array([1.0, 0.0]), np.array([p, 1 - p]), n)
    assert math.log(n * p) - 1e-9 <= found <= math.log(n * p) + 1e-4


@pytest.mark.parametrize(
    ("n", "p", "lost"),
    [(1, 0.3, 1.1), (50, 0.2, 1.03), (1_000, 0.4, 1.01), (20_000, 0.45, 1.05), (300_000, 0.49, 1.07)],
)
def test_it_is_tight_however_small_it_is(n: int, p: float, lost: float) -> None:
    wins = np.arange(n + 1)
    sums = wins - (n - wins) * lost
    above = sums > 0
    truth = float(np.exp(binom.logpmf(wins[above], n, p) - binom.logpmf(wins[above][0], n, p)) @ sums[above])
    logarithm = math.log(truth) + binom.logpmf(wins[above][0], n, p)
    found = log_mean_positive_part(np.array([1.0, -lost]), np.array([p, 1 - p]), n)
    assert logarithm - 1e-8 <= found <= logarithm + 3e-3


def test_the_work_does_not_depend_on_the_number_of_draws() -> None:
    n, mean = 10**12, -3e-6
    deviation = math.sqrt(n) / 2
    z = mean * n / deviation
    normal = deviation * (math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) + z * math.erfc(-z / math.sqrt(2)) / 2)
    found = math.exp(log_mean_positive_part(np.array([0.5 + mean, mean - 0.5]), np.array([0.5, 0.5]), n))
    assert normal <= found <= 1.02 * normal


@given(st.fractions(), st.integers(1, 10**9))
def test_floats_are_on_the_right_side(value: Fraction, divisor: int) -> None:
    each = value / divisor
    assert Fraction(float_below(each)) <= each <= Fraction(float_above(each))
    assert float_above(each) - float_below(each) <= 2 * math.ulp(abs(float(each)))


@given(st.floats(1e-6, 0.999), st.floats(1e-8, 1))
def test_a_crossing_is_found_from_its_safe_side(root: float, guess: float) -> None:
    found = crossing(lambda x: root**2 - x**2, 0.0, 1.0, guess)
    assert root <= found <= root * (1 + 2e-8)


def test_crossings_at_the_ends() -> None:
    assert crossing(lambda x: -1.0, 0.0, 1.0, 0.5) == 0.0
    assert crossing(lambda x: 1.0, 0.0, 1.0, 0.5) == pytest.approx(1.0)
    assert crossing(lambda x: 1.0 if x < 0.3 else -math.inf, 0.0, 1.0, 0.9) == pytest.approx(0.3, rel=1e-7)

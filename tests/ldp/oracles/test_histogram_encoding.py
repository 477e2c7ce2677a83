"""Histogram encodings: the noise's exact law and its variance, and THE's published values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.noise import TruncatedGeometric
from ldp.budget import exp_below
from ldp.oracles.histogram_encoding import SummationHistogramEncoding, ThresholdHistogramEncoding
from tests.errors import fails
from tests.ldp.contract import ERROR, chi_square_p


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 5.0, 10.0, 16.0])
def test_noise_has_the_variance_of_the_geometric_mechanism(epsilon: float) -> None:
    """It is 2α/(1 − α)², below the 8/ε² of Laplace noise."""
    oracle, alpha = SummationHistogramEncoding(4, epsilon), math.exp(-epsilon / 2)
    variance = oracle.variance(np.zeros(4), 1)[0]
    assert variance == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=1e-3)
    assert variance < 8 / epsilon**2


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_no_place_tells_more_than_half_the_budget(epsilon: float) -> None:
    factor = exp_below(Fraction(epsilon) / 2)
    noise = TruncatedGeometric(factor)
    zero, one = noise.outcome(0), noise.outcome(1)
    assert sum(zero.values()) == sum(one.values()) == 1
    for k, probability in zero.items():
        assert one[k] <= factor * probability
        assert probability <= factor * one[k]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_noise_is_drawn_from_its_law(epsilon: float) -> None:
    noise, n = TruncatedGeometric(exp_below(epsilon)), 200_000
    for x in (0, 1):
        drawn = noise.outputs(np.full((1, n), bool(x)), Randomness.from_seed(x))[0]
        expected = np.array([float(p) for p in noise.outcome(x).values()]) * n
        observed = np.bincount(drawn + noise.reach - 1, minlength=len(expected))
        assert chi_square_p(observed, expected) > ERROR


def test_a_budget_whose_noise_is_too_wide_is_refused() -> None:
    with fails("E100"):
        TruncatedGeometric(1 + Fraction(1, 10_000))


def test_the_best_threshold() -> None:
    oracle = ThresholdHistogramEncoding(64, 1.0)
    assert oracle.threshold == pytest.approx(0.6185533, abs=1e-6)
    assert float(oracle.p) == pytest.approx(0.5868194, abs=1e-6)
    assert float(oracle.q) == pytest.approx(0.3669888, abs=1e-6)
    assert oracle.variance(np.zeros(64), 1)[0] == pytest.approx(4.807154, abs=1e-5)
    assert oracle.exact_epsilon == pytest.approx(0.8967, abs=1e-3)

"""Noise for sums: exact samplers, what noise costs, and how several parties share it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ive

from crypto.primitives.randomness import Randomness
from ldp.accounting import discrete_gaussian
from ldp.accounting.central_noise import SharedNoise, confident_threshold, partition_threshold, sigma_for
from ldp.accounting.concentrated import (
    discreteness,
    gaussian_delta,
    gaussian_sigma,
    gumbel_rho,
    rdp_epsilon,
    skellam_epsilon,
    skellam_rdp,
    summed_gaussian_rho,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_simple_epsilon,
)
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from ldp.accounting.lazy_uniform import WORD, LazyUniform
from ldp.accounting.skellam import Skellam
from ldp.budget import exp_below
from tests.errors import fails
from tests.ldp.contract import ERROR, chi_square_p

pytestmark = pytest.mark.turn(3)

DRAWS = 200_000


# -- samplers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("parameter", [0.04, 0.25, 1, Fraction(7, 3), 10.5, 566.44])
def test_discrete_gaussian_numbers_have_its_distribution(parameter: float | Fraction) -> None:
    noise = DiscreteGaussian(parameter)
    drawn = noise.draw(DRAWS, Randomness.from_seed(1))
    reach = 4 + math.ceil(7 * math.sqrt(parameter))
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x.astype(np.float64) ** 2) / (2 * float(parameter)))
    assert np.abs(drawn).max() <= reach
    assert chi_square_p(np.bincount(drawn + reach, minlength=len(x)), weights / weights.sum() * DRAWS) > ERROR
    assert noise.variance == pytest.approx(float(weights @ x**2) / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("parameter", [10**6, Fraction(10**13, 7), 2.0**60])
def test_wide_discrete_gaussian_numbers(parameter: float | Fraction) -> None:
    drawn = DiscreteGaussian(parameter).draw(DRAWS, Randomness.from_seed(2)) / math.sqrt(parameter)
    assert stats.kstest(drawn, "norm").pvalue > ERROR
    z = (np.var(drawn) - 1) / math.sqrt(2 / DRAWS)
    assert abs(z) < stats.norm.isf(ERROR / 2)


def test_variances_of_narrow_noise() -> None:
    assert DiscreteGaussian(0.25).variance == pytest.approx(0.215013, abs=1e-6)
    assert DiscreteGaussian(1).variance == pytest.approx(0.9999998, abs=1e-7)


@pytest.mark.parametrize("parameter", [0.25, 30, Fraction(10**9, 3)])
def test_what_floating_point_decides_is_what_exact_arithmetic_does(
    parameter: float | Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With margins that send every comparison to the exact path, the same words give the same noise."""
    quick = DiscreteGaussian(parameter).draw(1_000, Randomness.from_seed(3))
    monkeypatch.setattr(discrete_gaussian, "LOG_MARGIN", 0.5 / DiscreteGaussian(parameter).scale)
    monkeypatch.setattr(discrete_gaussian, "COIN_MARGIN", 2.0)
    slow = DiscreteGaussian(parameter).draw(1_000, Randomness.from_seed(3))
    assert np.array_equal(quick, slow)


class Words:
    """A source of given words."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def uint64(self, size: int) -> np.ndarray:
        return np.array([self.words.pop(0) for _ in range(size)], dtype=np.uint64)


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(1, 3), Fraction(30), Fraction(1, 10**6)])
def test_equal_words_are_decided_by_further_bits(exponent: Fraction) -> None:
    power = exp_below(-exponent)
    words = [int(power * (1 << WORD * place)) % (1 << WORD) for place in (1, 2)]
    for further, below in ((words[1] - 1, True), (words[1] + 1, False)):
        rng = Words(further)
        assert LazyUniform(words[0], rng).below_power(exponent) == below  # type: ignore[arg-type]
        assert not rng.words
    assert LazyUniform(words[0] - 1, Words()).below_power(exponent)  # type: ignore[arg-type]
    assert not LazyUniform(words[0] + 1, Words()).below_power(exponent)  # type: ignore[arg-type]


def test_all_equal_bits_end() -> None:
    class Same(Words):
        def uint64(self, size: int) -> np.ndarray:
            self.words.append(0)
            word = int(exp_below(Fraction(-1)) * (1 << WORD * (len(self.words) + 1))) % (1 << WORD)
            return np.array([word], dtype=np.uint64)

    word = int(exp_below(Fraction(-1)) * (1 << WORD))
    assert not LazyUniform(word, Same()).below_power(Fraction(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("mu", [0.5, 25, 1_000, Fraction(10**6, 3)])
def test_skellam_numbers_have_its_distribution(mu: float | Fraction) -> None:
    noise = Skellam(mu)
    drawn = noise.draw(DRAWS, Randomness.from_seed(4))
    reach = 4 + math.ceil(8 * math.sqrt(mu))
    x = np.arange(-reach, reach + 1)
    law = ive(np.abs(x), float(mu)) if mu < 10**5 else stats.norm.pdf(x, scale=math.sqrt(mu))
    assert np.abs(drawn).max() <= reach
    assert chi_square_p(np.bincount(drawn + reach, minlength=len(x)), law / law.sum() * DRAWS) > ERROR
    assert noise.variance == mu


def test_the_table_of_poisson_numbers_is_precise() -> None:
    for rate in (Fraction(1, 4), Fraction(25, 2), Fraction(5000)):
        noise = Skellam(2 * rate)
        bounds = [0, *noise.bounds, 1 << 128]
        found = np.array([float(Fraction(b - a, 1 << 128)) for a, b in pairwise(bounds)])
        law = stats.poisson.pmf(noise.first + np.arange(len(found)), float(rate))
        assert np.abs(found - law).sum() < 1e-11  # as precise as scipy's
        assert stats.poisson.sf(noise.first + len(found) - 1, float(rate)) < 2.0**-64
        assert stats.poisson.cdf(noise.first - 1, float(rate)) < 2.0**-64


def test_tied_words_are_decided_by_further_bits() -> None:
    noise = Skellam(25)
    for place, bound in enumerate(noise.bounds):
        word, further = divmod(bound, 1 << 64)
        for low, expected in ((further - 1, place), (further, place + 1)):
            if 0 <= low < 1 << 64 and word not in [b >> 64 for b in noise.bounds if b != bound]:
                assert noise.poisson(1, Words(word, low)) == [expected]  # type: ignore[arg-type]


def test_wrong_noise() -> None:
    for wrong in (0, -1, math.nan, 2.0**61, True, "1"):
        with fails("E100"):
            DiscreteGaussian(wrong)  # type: ignore[arg-type]
        with fails("E100"):
            Skellam(wrong)  # type: ignore[arg-type]
    assert DiscreteGaussian(3).draw(0, Randomness.from_seed(1)).shape == (0,)


# -- what noise costs -------------------------------------------------------------------------------------------------
def test_conversions_from_concentrated_privacy() -> None:
    for epsilon, simple, best, sigma in ((2.0, 0.0675739, 0.0881527, 2.230476), (1.0, 0.0174689, 0.0243560, 4.224679)):
        assert zcdp_rho(epsilon, 1e-6, zcdp_simple_epsilon) == pytest.approx(simple, abs=1e-7)
        assert zcdp_rho(epsilon, 1e-6) == pytest.approx(best, abs=1e-7)
        assert gaussian_sigma(epsilon, 1e-6) == pytest.approx(sigma, abs=1e-6)
    for epsilon, simple, best in ((2.0, 2.720167, 2.381591), (1.0, 5.349980, 4.530877)):
        assert 1 / math.sqrt(2 * zcdp_rho(epsilon, 1e-6, zcdp_simple_epsilon)) == pytest.approx(simple, abs=1e-6)
        assert 1 / math.sqrt(2 * zcdp_rho(epsilon, 1e-6)) == pytest.approx(best, abs=1e-6)
    assert gaussian_sigma(4.0, 1e-6) == pytest.approx(1.193519, abs=1e-6)
    assert gumbel_rho(32, 0.1) == pytest.approx(0.04)
    assert zcdp_epsilon(gumbel_rho(32, 0.1), 1e-6) == pytest.approx(1.304991, abs=1e-6)
    assert zcdp_epsilon(0.0, 1e-6) == 0


@given(st.floats(1e-6, 50), st.floats(-60, -0.7))
def test_conversions_are_in_order(rho: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    found = zcdp_epsilon(rho, delta)
    assert found <= zcdp_simple_epsilon(rho, delta) * (1 + 1e-9)
    # A Gaussian of this ρ has the exact δ of its noise: no conversion may promise less.
    assert gaussian_delta(found, 1 / math.sqrt(2 * rho)) <= delta * (1 + 1e-6)
    if found > 0:
        assert zcdp_rho(found, delta) == pytest.approx(rho, rel=1e-6)


@given(st.floats(0.01, 16), st.floats(-60, -0.7), st.floats(0.1, 100))
def test_gaussian_noise_is_calibrated(epsilon: float, log_delta: float, sensitivity: float) -> None:
    delta = math.exp(log_delta)
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert gaussian_delta(epsilon, sigma, sensitivity) <= delta * (1 + 1e-9)
    assert gaussian_delta(epsilon, sigma * 0.999, sensitivity) > delta


def test_discrete_gaussian_noise_costs_what_is_accounted() -> None:
    """The exact δ of discrete noise, by summation, against zCDP."""
    for sigma in (1.5, 4.0):
        x = np.arange(-200, 201)
        law = np.exp(-(x**2) / (2 * sigma**2))
        law /= law.sum()
        for epsilon in (0.2, 1.0, 3.0):
            delta = float(np.maximum(law[1:] - math.exp(epsilon) * law[:-1], 0).sum())
            if delta > 1e-14:
                assert zcdp_epsilon(1 / (2 * sigma**2), delta) >= epsilon


def renyi(mu: float, order: int) -> float:
    """Of Skellam noise on counts that differ by 1, by summation."""
    x = np.arange(-400, 401)
    log_law = np.log(ive(np.abs(x), mu) + 1e-300)
    terms = order * log_law[1:] + (1 - order) * log_law[:-1]
    return float(np.log(np.exp(terms[np.abs(x[1:]) < 12 * math.sqrt(mu)]).sum())) / (order - 1)


@pytest.mark.parametrize(("mu", "order", "exact", "bound"), [(100, 8, 0.0399457, 0.040525), (25, 4, 0.0796584, 0.0852)])
def test_skellam_noise(mu: float, order: int, exact: float, bound: float) -> None:
    assert skellam_rdp(order, mu, 1, 1) == pytest.approx(bound, abs=1e-6)
    assert renyi(mu, order) == pytest.approx(exact, abs=1e-6)


def test_skellam_noise_costs_nearly_what_gaussian_noise_does() -> None:
    for mu, m in ((1_000.0, 20), (50_000.0, 400)):
        found = skellam_epsilon(mu, m, math.sqrt(m), 1e-6)
        gaussian = zcdp_epsilon(m / (2 * mu), 1e-6)
        assert gaussian <= found <= 1.1 * gaussian
    assert rdp_epsilon(lambda order: order * 0.04, 1e-6) == pytest.approx(zcdp_epsilon(0.04, 1e-6), rel=1e-3)


def test_sums_of_discrete_gaussians() -> None:
    assert discreteness(1, 3) == pytest.approx(5.4e-4, rel=0.01)
    assert discreteness(4, 3) == pytest.approx(7.2e-17, rel=0.01)
    assert discreteness(4, 1) == 0
    assert summed_gaussian_rho(100.0, 3, 1000, 2.0) == pytest.approx(2 / 300, rel=1e-12)
    assert summed_gaussian_rho(1.0, 3, 1, 1.0) > 1 / 6
    with fails("E100"):
        summed_gaussian_rho(0.9, 3, 1, 1.0)


# -- noise in shares --------------------------------------------------------------------------------------------------
def test_noise_is_split_over_the_parties_that_do_not_collude() -> None:
    shared = SharedNoise(0.0, Fraction(23.8**2) / 2, parties=3, colluding=1)
    assert math.sqrt(shared.parameter) == pytest.approx(16.829, abs=1e-3)
    assert shared.sigma == pytest.approx(29.149, abs=1e-3)


@settings(max_examples=40)
@given(
    st.floats(0.1, 8),
    st.floats(-30, -5),
    st.lists(st.tuples(st.floats(0.05, 1), st.integers(1, 500)), min_size=1, max_size=5),
    st.integers(1, 7),
    st.data(),
)
def test_calibrated_noise_keeps_the_budget(
    epsilon: float, log_delta: float, levels: list[tuple[float, int]], parties: int, data: st.DataObject
) -> None:
    delta, colluding = math.exp(log_delta), data.draw(st.integers(0, parties - 1))
    whole = sum(share for share, _ in levels)
    found = sigma_for(
        epsilon, delta, [share / whole for share, _ in levels], [m for _, m in levels], parties, colluding
    )
    assert zcdp_epsilon(sum(each.rho for each in found), delta) <= epsilon * (1 + 1e-9)
    for each, (share, m) in zip(found, levels, strict=True):
        assert each.rho == summed_gaussian_rho(float(each.parameter), parties - colluding, 10**6, math.sqrt(m))
        if each.parameter > 4:  # not held up by the least variance
            assert each.rho == pytest.approx(share / whole * zcdp_rho(epsilon, delta), rel=1e-4)
            hidden = math.sqrt(each.parameter * (parties - colluding))  # what no colluding party knows
            assert hidden == pytest.approx(math.sqrt(m / (2 * each.rho)), rel=1e-6)


def test_noise_of_one_place() -> None:
    (alone,) = sigma_for(2.0, 1e-6, [1.0], [1])
    assert alone.sigma == pytest.approx(2.381591, abs=1e-5)
    levels = sigma_for(2.0, 1e-6, (0.3, 0.35, 0.25, 0.1), (40, 60, 40, 15))
    assert [round(each.sigma) for each in levels] == [28, 31, 30, 29]


def test_thresholds() -> None:
    assert confident_threshold(0.0, 1.0, 1_000, 0.05) == pytest.approx(3.8906, abs=1e-4)
    assert confident_threshold(441, 10.0, 1_000, 0.05) == pytest.approx(441 + 38.906, abs=1e-3)
    assert partition_threshold(18.0, 20, 1e-7) == pytest.approx(104.15, abs=0.01)
    assert partition_threshold(23.8, 40, 1e-7) == pytest.approx(140.16, abs=0.01)


def test_discrete_noise_passes_a_threshold_no_more_often_than_gaussian_noise_one_lower() -> None:
    x = np.arange(-400, 401)
    for sigma in (0.7, 2.0, 9.0):
        law = np.exp(-(x**2) / (2 * sigma**2))
        tail = np.cumsum((law / law.sum())[::-1])[::-1]
        for m in range(1, int(7 * sigma)):
            assert tail[400 + m] <= stats.norm.sf(m - 1, scale=sigma)


def test_wrong_budgets() -> None:
    with fails("E100"):
        sigma_for(1.0, 1e-6, [1.0], [1], parties=3, colluding=3)
    for shares, most in (([], []), ([0.5], [1, 1]), ([0.6, 0.6], [1, 1]), ([0.0], [1])):
        with fails("E100"):
            sigma_for(1.0, 1e-6, shares, most)
    with fails("E100"):
        sigma_for(1.0, 1e-6, [1.0], [0])
    with fails("E100"):
        zcdp_rho(0.0, 1e-6)
    with fails("E100"):
        zcdp_epsilon(-1.0, 1e-6)
    with fails("E100"):
        confident_threshold(1, 1, 10, 1.0)
    with fails("E100"):
        partition_threshold(1, 0, 1e-6)
    with fails("E100"):
        gumbel_rho(0, 0.1)

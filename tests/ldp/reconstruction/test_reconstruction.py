"""Additive noise: its privacy as the papers define it, and the distributions that are reconstructed from it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from crypto.primitives.randomness import Randomness
from ldp.reconstruction.density import Density, intervals
from ldp.reconstruction.distribution import METHODS, RULES, reconstruct
from ldp.reconstruction.noise import AdditiveNoise, GaussianNoise, LaplaceNoise, UniformNoise
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR

pytestmark = pytest.mark.turn(8)

Floats = NDArray[np.float64]
NOISES = (UniformNoise(0.5), GaussianNoise(0.25), LaplaceNoise(0.2))
LAWS = {
    "uniform": stats.uniform(-0.5, 1.0),
    "gaussian": stats.norm(0, 0.25),
    "laplace": stats.laplace(0, 0.2),
}


def beta(n: int, seed: int = 3) -> Floats:
    return np.random.default_rng(seed).beta(2, 6, n)


def plateaus(n: int) -> Floats:
    """Two of them, as in Agrawal and Srikant's figures."""
    rng = np.random.default_rng(5)
    return np.where(rng.random(n) < 0.5, rng.uniform(0.1, 0.3, n), rng.uniform(0.6, 0.9, n))


def distance(one: Density, other: Density) -> float:
    """L1."""
    return 2 * one.information_loss(other)


@pytest.fixture(params=NOISES, ids=lambda noise: noise.name)
def noise(request: pytest.FixtureRequest) -> AdditiveNoise:
    found = request.param
    assert isinstance(found, AdditiveNoise)
    return found


# -- noise ------------------------------------------------------------------------------------------------------------
def test_noise_follows_its_law(noise: AdditiveNoise) -> None:
    drawn = noise.privatise(np.zeros(200_000), Randomness.from_seed(1))
    assert stats.kstest(drawn, LAWS[noise.name].cdf).pvalue > ERROR
    # It is independent of the value.
    values = beta(200_000)
    added = noise.privatise(values, Randomness.from_seed(2)) - values
    assert stats.kstest(added, LAWS[noise.name].cdf).pvalue > ERROR
    assert abs(np.corrcoef(added, values)[0, 1]) * math.sqrt(200_000) < stats.norm.isf(ERROR / 2)


def test_functions_are_those_of_the_law(noise: AdditiveNoise) -> None:
    law = LAWS[noise.name]
    points = np.linspace(-1.3, 1.3, 54)
    assert noise.density(points) == pytest.approx(law.pdf(points), abs=1e-12)
    assert noise.below(points) == pytest.approx(law.cdf(points), abs=1e-12)
    for point in points[::6]:
        integral = quad(law.cdf, -10, point, points=[-0.5, 0.0, 0.5], limit=200)[0]
        assert noise.below_integral(np.array([point]))[0] == pytest.approx(integral, abs=1e-7)


def test_confidence_intervals_and_entropy_state_the_privacy(noise: AdditiveNoise) -> None:
    law = LAWS[noise.name]
    for confidence in (0.5, 0.95, 0.999):
        half = noise.interval_width(confidence) / 2
        assert law.cdf(half) - law.cdf(-half) == pytest.approx(confidence)
        again = type(noise).of_width(2 * half, confidence)
        assert again.scale == pytest.approx(noise.scale)
    assert noise.privacy == pytest.approx(math.exp(float(law.entropy())))


def test_privacy_of_the_papers() -> None:
    # Agrawal and Srikant: widths in units of the parameter at 50 %, 95 % and 99.9 %.
    for kind, widths in ((UniformNoise, (1.0, 1.9, 1.998)), (GaussianNoise, (1.349, 3.92, 6.581))):
        found = [kind(1.0).interval_width(confidence) for confidence in (0.5, 0.95, 0.999)]
        assert found == pytest.approx(widths, abs=1e-3)
    # Agrawal and Aggarwal: noise on an interval of width w protects w; a normal one, σ·√(2πe).
    assert UniformNoise(3.0).privacy == pytest.approx(6.0)
    assert GaussianNoise(1.0).privacy == pytest.approx(4.1327, abs=1e-4)


def test_no_low_bits_leave(noise: AdditiveNoise) -> None:
    values = beta(1000)
    noisy = noise.privatise(values, Randomness.from_seed(4))
    places = noisy / noise.step
    assert np.array_equal(places, np.rint(places))
    assert noise.scale * 2.0**-20 <= noise.step <= noise.scale * 2.0**-18
    assert not np.array_equal(noise.privatise(values), noise.privatise(values))


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "1", None, True])
def test_wrong_scales_are_refused(scale: float) -> None:
    with fails("E100"):
        GaussianNoise(scale)


@pytest.mark.parametrize("values", [[math.nan], [math.inf], ["a"], [None], [[1.0]], 1.0])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(InputDataError):
        UniformNoise(1.0).privatise(values)
    with pytest.raises(InputDataError):
        reconstruct(values, UniformNoise(1.0), intervals(0, 1, 4))


def test_confidences_and_large_values_are_checked() -> None:
    for confidence in (0.0, 1.0, 2.0, math.nan):
        with fails("E100"):
            UniformNoise(1.0).interval_width(confidence)
    with fails("E101"):
        UniformNoise(1.0).privatise([1e18])


# -- densities and what they tell -------------------------------------------------------------------------------------
def test_a_density_of_values() -> None:
    found = Density.of_values([-1.0, 0.1, 0.6, 5.0], [0.0, 0.5, 1.0])
    assert found.probabilities == pytest.approx([0.5, 0.5])
    assert found.heights == pytest.approx([1.0, 1.0])
    assert found.mean == pytest.approx(0.5)
    assert found.variance == pytest.approx(1 / 12)
    assert found.below([-1, 0.25, 2]) == pytest.approx([0, 0.25, 1])
    assert found.entropy == pytest.approx(0)


@pytest.mark.parametrize("edges", [[0, 1], [0, 1, 1], [1, 0, -1], [0, math.nan, 1], [[0, 1, 2]], [], ["a"] * 3])
def test_wrong_intervals_are_refused(edges: list[float]) -> None:
    with fails("E100"):
        Density.of_values([1.0], edges)
    with fails("E101"):
        Density.of_values([], [0, 1, 2])


def test_conditional_privacy_of_uniform_values_and_noise() -> None:
    # X and Y uniform on intervals of width 1: Z is triangular, I(X; Z) = 1/2 nat, so Π(X|Z) = e^−½.
    uniform = Density(intervals(0, 1, 2), np.array([0.5, 0.5]))
    assert uniform.conditional_privacy(UniformNoise(0.5)) == pytest.approx(math.exp(-0.5), abs=1e-4)
    assert uniform.privacy_loss(UniformNoise(0.5)) == pytest.approx(1 - math.exp(-0.5), abs=1e-4)


def test_conditional_privacy_of_normal_values_and_noise() -> None:
    # I(X; Z) = ½·ln(1 + (s/σ)²).
    ends = intervals(-6, 6, 400)
    normal = Density(ends, np.diff(stats.norm.cdf(ends)) / (1 - 2 * stats.norm.sf(6)))
    assert normal.privacy == pytest.approx(GaussianNoise(1.0).privacy, rel=1e-3)
    for scale in (0.5, 1.0, 3.0):
        expected = 1 - 1 / math.sqrt(1 + 1 / scale**2)
        assert normal.privacy_loss(GaussianNoise(scale)) == pytest.approx(expected, abs=1e-3)


def test_more_noise_leaves_more_privacy(noise: AdditiveNoise) -> None:
    found = Density.of_values(beta(5000), intervals(0, 1, 20))
    left = [found.conditional_privacy(type(noise)(noise.scale * factor)) for factor in (0.1, 1, 10, 100)]
    assert all(less < more for less, more in pairwise(left))
    assert left[-1] == pytest.approx(found.privacy, rel=0.01)


@given(hnp.arrays(np.float64, (2, 6), elements=st.floats(0, 1)))
def test_information_loss_is_a_distance(weights: Floats) -> None:
    weights = weights + 1e-3
    one, other = (Density(intervals(0, 1, 6), row / row.sum()) for row in weights)
    loss = one.information_loss(other)
    assert 0 <= loss <= 1
    assert loss == pytest.approx(other.information_loss(one))
    assert one.information_loss(one) == pytest.approx(0)
    finer = Density(intervals(0, 1, 12), np.repeat(one.probabilities / 2, 2))
    assert finer.information_loss(other) == pytest.approx(loss)
    elsewhere = Density(intervals(5, 6, 6), one.probabilities)
    assert one.information_loss(elsewhere) == pytest.approx(1)


# -- reconstruction ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_a_beta_distribution_comes_back(noise: AdditiveNoise, method: str) -> None:
    values, edges = beta(20_000), intervals(0, 1, 20)
    true = Density.of_values(values, edges)
    noisy = noise.privatise(values, Randomness.from_seed(6))
    found = reconstruct(noisy, noise, edges, method=method)
    assert distance(found.density, true) < 0.25 * distance(Density.of_values(noisy, edges), true)
    assert found.density.probabilities.sum() == pytest.approx(1)
    assert found.discrepancy < stats.chi2.isf(ERROR, 255) / 255
    assert found.density.mean == pytest.approx(0.25, abs=0.02)


def test_two_plateaus_come_back_where_the_rule_of_small_changes_stops_too_early() -> None:
    values, edges, gaussian = plateaus(50_000), intervals(0, 1, 20), GaussianNoise(0.25)
    true = Density.of_values(values, edges)
    noisy = gaussian.privatise(values, Randomness.from_seed(7))
    found = {rule: reconstruct(noisy, gaussian, edges, rule=rule) for rule in ("change", "fit")}
    naive = distance(Density.of_values(noisy, edges), true)
    assert found["change"].discrepancy > 1.15
    assert distance(found["fit"].density, true) < distance(found["change"].density, true)
    assert distance(found["fit"].density, true) < 0.6 * naive


def test_the_maximum_of_the_likelihood_chases_accidents() -> None:
    values, edges, laplace = beta(2000), intervals(0, 1, 20), LaplaceNoise(0.2)
    true = Density.of_values(values, edges)
    noisy = laplace.privatise(values, Randomness.from_seed(8))
    found = {rule: reconstruct(noisy, laplace, edges, rule=rule, iterations=5000) for rule in RULES}
    assert distance(found["likelihood"].density, true) > 2 * distance(found["fit"].density, true)
    assert found["likelihood"].iterations > 20 * found["fit"].iterations


def test_values_that_no_intervals_explain_do_not_run_to_the_maximum() -> None:
    # Half of the values are one number, which uniform intervals cannot say.
    rng, edges, uniform = np.random.default_rng(14), intervals(0, 1, 20), UniformNoise(0.2)
    values = np.where(rng.random(10_000) < 0.5, 0.0, rng.uniform(0, 1, 10_000))
    found = reconstruct(uniform.privatise(values, Randomness.from_seed(14)), uniform, edges)
    assert found.discrepancy > 1.5
    assert found.iterations < 500
    assert distance(found.density, Density.of_values(values, edges)) < 0.4


def test_steps_on_the_way_to_the_maximum() -> None:
    # Errors fall, then rise; of another program, with other cells: 0.535, 0.194, 0.124 after 1, 10, 50 steps.
    values, edges, gaussian = beta(20_000), intervals(0, 1, 20), GaussianNoise(0.25)
    true = Density.of_values(values, edges)
    noisy = gaussian.privatise(values, Randomness.from_seed(9))
    errors = [
        distance(reconstruct(noisy, gaussian, edges, rule="likelihood", iterations=steps).density, true)
        for steps in (1, 10, 50)
    ]
    assert errors == pytest.approx([0.535, 0.194, 0.124], abs=0.06)


def test_the_likelihood_never_falls(noise: AdditiveNoise) -> None:
    noisy = noise.privatise(plateaus(3000), Randomness.from_seed(10))
    for method in METHODS:
        trace = reconstruct(noisy, noise, intervals(0, 1, 15), method=method).log_likelihoods
        assert all(after >= before - 1e-8 for before, after in pairwise(trace))


def test_little_noise_gives_the_histogram_back(noise: AdditiveNoise) -> None:
    values, edges = beta(20_000), intervals(0, 1, 10)
    small = type(noise)(noise.scale / 1000)
    found = reconstruct(small.privatise(values, Randomness.from_seed(11)), small, edges)
    assert distance(found.density, Density.of_values(values, edges)) < 0.03


def test_intervals_may_have_any_widths(noise: AdditiveNoise) -> None:
    values, edges = beta(50_000), np.array([0.0, 0.1, 0.2, 0.3, 0.5, 1.0])
    true = Density.of_values(values, edges)
    noisy = noise.privatise(values, Randomness.from_seed(12))
    found = reconstruct(noisy, noise, edges, iterations=300).density
    assert distance(found, true) < 0.4 * distance(Density.of_values(noisy, edges), true)


@example(1, 808)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_few_values_are_enough_to_run(n: int, seed: int) -> None:
    for noise in NOISES:
        noisy = noise.privatise(beta(n, seed), Randomness.from_seed(seed))
        for method in METHODS:
            found = reconstruct(noisy, noise, intervals(0, 1, 5), method=method, iterations=20)
            assert found.density.probabilities.sum() == pytest.approx(1)
            assert math.isfinite(found.discrepancy)


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_nobody_believes_does_no_harm(method: str) -> None:
    edges, laplace = intervals(0, 1, 20), LaplaceNoise(0.2)
    noisy = laplace.privatise(beta(2000), Randomness.from_seed(15))
    honest = reconstruct(noisy, laplace, edges, method=method).density
    found = reconstruct([*noisy, 1e300, -1e300], laplace, edges, method=method).density
    assert distance(found, honest) < 0.02


def test_a_wrong_noise_shows_in_the_discrepancy() -> None:
    noisy = GaussianNoise(0.1).privatise(beta(20_000), Randomness.from_seed(13))
    assert reconstruct(noisy, GaussianNoise(0.4), intervals(0, 1, 20), iterations=500).discrepancy > 3


def test_wrong_parameters_are_refused() -> None:
    edges, noise = intervals(0, 1, 5), UniformNoise(0.5)
    for options in ({"method": "magic"}, {"rule": "magic"}, {"iterations": 0}):
        with pytest.raises(ConfigurationError):
            reconstruct([0.5], noise, edges, **options)
    with fails("E101"):
        reconstruct([], noise, edges)
    for value in (-0.6, 1.6):
        with fails("E101"):
            reconstruct([0.5, value], noise, edges)
    assert reconstruct([0.5, -0.5, 1.5], noise, edges).density.probabilities.sum() == pytest.approx(1)

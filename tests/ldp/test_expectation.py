"""Iterative Bayesian update: check values, a likelihood that never falls, structured channels equal to plain ones."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.consistency import norm_sub
from ldp.expectation import (
    DenseLikelihood,
    DirectLikelihood,
    UnaryLikelihood,
    bayes_steps,
    fit_reports,
    iterative_bayes,
    smoothed,
)
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.unary_encoding import OptimisedUnaryEncoding, SymmetricUnaryEncoding, UnaryEncoding
from ldp.registry import oracle
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

OBSERVED = np.array([0.4, 0.3, 0.2, 0.1])


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A channel and a histogram of its outputs."""
    d, m = draw(st.integers(2, 6)), draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    channel = rng.dirichlet(np.full(m, 0.5), d)
    channel = (channel + 1e-6) / (channel + 1e-6).sum(axis=1, keepdims=True)
    return channel, rng.integers(0, 50, m) + (np.arange(m) == 0)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (1, [0.295073, 0.265024, 0.234976, 0.204927]),
        (10, [0.536744, 0.302883, 0.126945, 0.033428]),
        (100_000, [0.638437, 0.333333, 0.028230, 0]),
    ],
)
def test_check_values_of_direct_encoding(steps: int, expected: list[float]) -> None:
    found = iterative_bayes(DirectLikelihood(DirectEncoding(4, 1.0)), OBSERVED, iterations=steps, tolerance=1e-13)
    assert found.distribution == pytest.approx(expected, abs=1e-6)
    assert found.iterations == steps or found.gap <= 1e-13


def test_the_inverse_that_it_replaces_is_negative() -> None:
    grr = DirectEncoding(4, 1.0)
    inverse = grr.unbiased(np.array([4, 3, 2, 1]), 10) / 10
    assert inverse == pytest.approx([0.749186, 0.416395, 0.083605, -0.249186], abs=1e-6)


@given(problems())
@settings(max_examples=40)
def test_the_likelihood_never_falls_and_the_gap_bounds_what_it_lacks(
    problem: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    channel, histogram = problem
    steps = list(islice(bayes_steps(DenseLikelihood.of_channel(channel), histogram), 1000))
    # Rounding of a sum of some hundred logarithms.
    assert all(after.log_likelihood >= before.log_likelihood - 1e-9 for before, after in pairwise(steps))
    best = steps[-1].log_likelihood
    for step in steps:
        assert step.gap >= best - step.log_likelihood - 1e-9
        assert (step.distribution >= 0).all()
        assert step.distribution.sum() == pytest.approx(1)


@given(problems())
@settings(max_examples=25)
def test_it_ends_at_the_maximum(problem: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    channel, histogram = problem
    found = iterative_bayes(channel, histogram, iterations=200_000, tolerance=1e-4)
    assert found.gap <= 1e-4

    def loss(theta: NDArray[np.float64]) -> float:
        return -float(histogram @ np.log(np.maximum(theta @ channel, 1e-300)))

    d = len(channel)
    other = minimize(
        loss, np.full(d, 1 / d), bounds=[(0, 1)] * d, constraints={"type": "eq", "fun": lambda t: t.sum() - 1}
    )
    assert found.log_likelihoods[-1] >= -other.fun - 1.1e-4


def test_direct_encoding_is_its_channel() -> None:
    grr = DirectEncoding(5, 0.7)
    plain = DenseLikelihood.of_channel(grr.channel())
    fast = DirectLikelihood(grr)
    vector = np.array([0.1, 0.0, 3.0, 0.5, 2.0])
    assert fast.forward(vector) == pytest.approx(plain.forward(vector))
    assert fast.backward(vector) == pytest.approx(plain.backward(vector))
    assert fast.shape == plain.shape


@pytest.mark.parametrize("kind", [SymmetricUnaryEncoding, OptimisedUnaryEncoding])
def test_unary_encodings_are_their_channel(kind: type[UnaryEncoding]) -> None:
    unary = kind(5, 1.0)
    values = np.repeat(np.arange(5), [400, 300, 200, 100, 0])
    reports = unary.privatise(values, Randomness.from_seed(1))
    plain = iterative_bayes(
        unary.channel(), np.bincount(unary.outcomes(reports), minlength=32), iterations=200, tolerance=0
    )
    fast = iterative_bayes(UnaryLikelihood(unary, reports), np.ones(1000), iterations=200, tolerance=0)
    assert fast.distribution == pytest.approx(plain.distribution, abs=1e-12)
    # Both log-likelihoods differ by what does not depend on the distribution.
    assert np.diff(fast.log_likelihoods) == pytest.approx(np.diff(plain.log_likelihoods), abs=1e-8)


def test_unary_reports_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    unary = OptimisedUnaryEncoding(9, 1.0)
    reports = unary.privatise(np.arange(500) % 9, Randomness.from_seed(2))
    whole = UnaryLikelihood(unary, reports)
    monkeypatch.setattr("ldp.expectation.CHUNK", 100)
    monkeypatch.setattr("ldp.expectation.KEPT", 1000)
    parts = UnaryLikelihood(unary, reports)
    theta, weights = np.arange(1.0, 10.0), np.arange(500.0)
    assert parts.forward(theta) == pytest.approx(whole.forward(theta))
    assert parts.backward(weights) == pytest.approx(whole.backward(weights))
    assert parts.shape == (9, 500)


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "the", "hr", "ss"])
def test_fitted_frequencies_are_nearer_than_raw_ones(name: str) -> None:
    # Ten runs of a small sample: the mean error of raw estimates is a multiple of the other, whatever the seed.
    counts = np.array([1200, 500, 200, 100, 0, 0, 0, 0])
    found = oracle(name, len(counts), 1.0)
    values, true, rng = np.repeat(np.arange(8), counts), counts / counts.sum(), Randomness.from_seed(3)
    raw_error = likely_error = projected_error = 0.0
    for _ in range(10):
        reports = found.privatise(values, rng)
        raw = Aggregator(found).add(reports).estimate().frequencies
        likely = fit_reports(found, reports).distribution
        assert likely.sum() == pytest.approx(1)
        raw_error += np.square(raw - true).sum()
        projected_error += np.square(norm_sub(raw) - true).sum()
        likely_error += np.square(likely - true).sum()
    assert likely_error < 0.8 * raw_error
    assert likely_error < 1.25 * projected_error


def test_the_start_matters_to_the_path_only() -> None:
    channel = DirectEncoding(4, 1.0).channel()
    found = [
        iterative_bayes(channel, 1000 * OBSERVED, tolerance=1e-6, iterations=100_000, start=np.array(start))
        for start in ([1.0, 1, 1, 1], [1, 2, 3, 4])
    ]
    assert found[0].distribution == pytest.approx(found[1].distribution, abs=1e-4)


def test_smoothing_keeps_a_distribution() -> None:
    assert smoothed(np.array([0.0, 1.0, 0.0, 0.0])) == pytest.approx(np.array([4, 6, 3, 0]) / 13)
    assert smoothed(np.full(7, 1 / 7)) == pytest.approx(np.full(7, 1 / 7))
    found = iterative_bayes(DirectEncoding(4, 1.0).channel(), OBSERVED, iterations=50, tolerance=0, smooth=True)
    assert found.distribution.sum() == pytest.approx(1)
    assert found.distribution.min() > 0


def test_rows_that_miss_outputs_are_refused() -> None:
    # A published library builds a channel whose rows add up to 0.17, and its frequencies are off.
    grr = DirectEncoding(4, 1.0)
    wrong = np.array(grr.channel(), dtype=float) * 0.17
    with fails("E100"):
        iterative_bayes(wrong, OBSERVED)
    for table in (np.ones(3), np.zeros((0, 0)), np.array([[2.0, -1.0], [0.5, 0.5]]), np.full((2, 2), np.nan)):
        with fails("E100"):
            iterative_bayes(table, [1, 1])


@pytest.mark.parametrize("histogram", [[1, 2, 3], [0, 0, 0, 0], [1, -1, 1, 1], [1, np.nan, 1, 1], [[1, 1, 1, 1]], []])
def test_wrong_histograms_are_refused(histogram: list[float]) -> None:
    with fails("E101"):
        iterative_bayes(DirectEncoding(4, 1.0).channel(), histogram)


def test_shares_are_no_counts() -> None:
    channel = DirectEncoding(4, 1.0).channel()
    with fails("E101"):
        iterative_bayes(channel, OBSERVED)
    assert iterative_bayes(channel, OBSERVED, tolerance=1e-6).iterations > 10


def test_wrong_parameters_are_refused() -> None:
    channel = DirectEncoding(4, 1.0).channel()
    for start in ([1, 1, 1, 0], [1, 1, 1], [1, 1, 1, np.inf]):
        with fails("E100"):
            iterative_bayes(channel, 1000 * OBSERVED, start=np.array(start))
    for options in ({"iterations": 0}, {"tolerance": -1.0}, {"tolerance": np.nan}):
        with pytest.raises(ConfigurationError):
            iterative_bayes(channel, 1000 * OBSERVED, **options)
    with fails("E101"):
        iterative_bayes(np.array([[1.0, 0.0], [1.0, 0.0]]), [1, 1])


def test_reports_that_do_not_fit_are_refused() -> None:
    grr = oracle("grr", 4, 1.0)
    with pytest.raises(InputDataError):
        fit_reports(grr, grr.privatise([]))
    with pytest.raises(InputDataError):
        fit_reports(grr, oracle("grr", 4, 2.0).privatise([1]))
    olh = oracle("olh", 4, 1.0)
    with fails("E100"):
        fit_reports(olh, olh.privatise([1]))

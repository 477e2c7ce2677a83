"""Post-processing: check values, and what each method promises of any estimates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.optimize import minimize

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.consistency import (
    METHODS,
    base,
    base_cut,
    base_pos,
    consistent,
    mle_apx,
    norm,
    norm_cut,
    norm_cut_rescaled,
    norm_mul,
    norm_sub,
    post_pos,
    power,
    power_ns,
)
from ldp.registry import oracle
from link.errors import ConfigurationError

RAW = np.array([0.50, 0.30, 0.20, 0.10, 0.05, -0.02, -0.08, -0.15])
OUE = {"p": 0.5, "q": 0.2689414213699951}
ESTIMATES = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-2, 2, width=32))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (base(RAW), RAW),
        (base_pos(RAW), [0.5, 0.3, 0.2, 0.1, 0.05, 0, 0, 0]),
        (norm(RAW), [0.5125, 0.3125, 0.2125, 0.1125, 0.0625, -0.0075, -0.0675, -0.1375]),
        (norm_mul(RAW), [0.434783, 0.260870, 0.173913, 0.086957, 0.043478, 0, 0, 0]),
        (norm_sub(RAW), [0.47, 0.27, 0.17, 0.07, 0.02, 0, 0, 0]),
        (norm_cut(RAW), [0.5, 0.3, 0.2, 0, 0, 0, 0, 0]),
        (norm_cut_rescaled(RAW), [0.454545, 0.272727, 0.181818, 0.090909, 0, 0, 0, 0]),
        (mle_apx(RAW, **OUE), [0.46793, 0.269463, 0.17023, 0.070997, 0.02138, 0, 0, 0]),
    ],
)
def test_check_values(found: NDArray[np.float64], expected: list[float]) -> None:
    assert found == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize(("alpha", "threshold"), [(0.05, 0.0479318), (2.0, 0.0129437)])
def test_base_cut_keeps_what_noise_does_not_explain(alpha: float, threshold: float) -> None:
    deviation = np.sqrt(3.682694 / 10_000)
    around = np.array([threshold - 1e-6, threshold + 1e-6, *[0.0] * 6])
    assert list(base_cut(around, deviation, alpha) > 0) == [False, True, *[False] * 6]
    with pytest.raises(ConfigurationError):
        base_cut(RAW, deviation, 4.0)


def test_post_pos_is_about_answers() -> None:
    assert post_pos(RAW, np.array([3, 6])) == pytest.approx(0.02)
    assert post_pos(RAW, np.array([4, 6, 7])) == 0


@given(ESTIMATES)
def test_norm_sub_is_the_nearest_distribution(raw: NDArray[np.float64]) -> None:
    found = norm_sub(raw)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    others = np.eye(len(raw))
    # The projection's error is orthogonal or obtuse to every direction into the simplex.
    assert ((others - found) @ (raw - found) <= 1e-9).all()


@given(ESTIMATES)
def test_what_methods_promise(raw: NDArray[np.float64]) -> None:
    assert norm(raw).sum() == pytest.approx(1)
    assert norm_mul(raw).sum() == pytest.approx(1)
    for found in (norm_mul(raw), norm_sub(raw), norm_cut(raw), norm_cut_rescaled(raw), base_pos(raw)):
        assert (found >= 0).all()
    assert norm_cut(raw).sum() <= 1 + 1e-9
    assert norm_cut_rescaled(raw).sum() <= 1 + 1e-9
    if base_pos(raw).sum() <= 1:
        assert np.array_equal(norm_cut_rescaled(raw), base_pos(raw))


@pytest.mark.parametrize("direct", [False, True])
def test_mle_apx_maximises_the_normal_likelihood(direct: bool) -> None:
    raw = np.array([0.6, 0.3, 0.15, -0.1])
    p, q = (0.5, 0.2) if direct else (0.5, 0.25)
    found = mle_apx(raw, p, q, direct=direct)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    if direct:
        return

    def loss(f: NDArray[np.float64]) -> float:
        mean, variance = f * (p - q) + q, f * p * (1 - p) + (1 - f) * q * (1 - q)
        observed = raw[:3] * (p - q) + q
        return float((np.square(observed - mean) / variance).sum())

    best = minimize(
        loss, found[:3], bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda f: f.sum() - 1}, tol=1e-12
    )
    assert found[:3] == pytest.approx(best.x, abs=2e-3)


def test_power_shrinks_noise_to_a_power_law() -> None:
    n, d = 100_000, 1000
    true = np.arange(1, d + 1, dtype=np.float64) ** -1.5
    true /= true.sum()
    deviation = np.sqrt(3.68 / n)
    noise = (Randomness.from_seed(1).uint64(12 * d).reshape(12, d) / 2.0**64).sum(axis=0) - 6
    raw = true + noise * deviation
    for method in (power, power_ns):
        found = method(raw, n, deviation)
        assert (found >= 0).all()
        assert np.square(found - true).sum() < 0.2 * np.square(raw - true).sum()
        assert np.argmax(found) == 0
    assert power_ns(raw, n, deviation).sum() == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_an_estimate(method: str) -> None:
    found = oracle("oue", 20, 1.0)
    values = np.repeat(np.arange(20), np.arange(20) * 50)
    raw = Aggregator(found).add(found.privatise(values, Randomness.from_seed(1))).estimate()
    processed = consistent(raw, found, method)
    assert processed.n == raw.n
    assert np.array_equal(processed.variances, raw.variances)
    if method == "base":
        assert processed.counts == pytest.approx(raw.counts)
    if method in {"norm", "norm-mul", "norm-sub", "mle-apx", "power-ns"}:
        assert processed.frequencies.sum() == pytest.approx(1)


def test_unfit_methods_are_refused() -> None:
    found = oracle("hr", 20, 1.0)
    raw = Aggregator(found).add(found.privatise([1, 2, 3])).estimate()
    for method in ("magic", "mle-apx"):
        with pytest.raises(ConfigurationError):
            consistent(raw, found, method)

"""Records as distributions: worked numbers, the equation that the noise solves, and the noise itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.uncertain import expected_anonymity, noise_for_anonymity, publish_as_distributions
from crypto.primitives.randomness import Randomness
from tests.errors import fails

SIX = np.array([[0.0], [1], [2], [3], [4], [10]])


def others(points: np.ndarray, row: int) -> np.ndarray:  # type: ignore[type-arg]
    distances = np.sqrt(np.square(points - points[row]).sum(axis=1))
    return np.delete(distances, row)  # type: ignore[no-any-return]


def test_worked_numbers() -> None:
    two, three = noise_for_anonymity(SIX, 2), noise_for_anonymity(SIX, 3)
    assert two[0] == pytest.approx(1.759317, abs=5e-7)
    assert two[5] == pytest.approx(4.699539, abs=5e-7)
    assert three[0] == pytest.approx(7.686595, abs=5e-7)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(5, 60), st.integers(1, 3), st.floats(1.01, 2.9))
def test_the_noise_solves_the_equation(seed: int, n: int, d: int, k: float) -> None:
    points = np.random.default_rng(seed).normal(size=(n, d))
    sigmas = noise_for_anonymity(points, k)
    for row in (0, n - 1):
        away = others(points, row)
        found = brentq(lambda s, away=away: 1 + norm.cdf(-away / (2 * s)).sum() - k, 1e-6, 1e6, xtol=1e-12)
        assert sigmas[row] == pytest.approx(found, rel=1e-7)
        assert expected_anonymity(away, sigmas[row]) == pytest.approx(k)


def test_many_records_are_solved_in_blocks() -> None:
    points = np.random.default_rng(1).normal(size=(1_400, 3))
    sigmas = noise_for_anonymity(points, 6)
    for row in (0, 700, 1_399):
        assert expected_anonymity(others(points, row), sigmas[row]) == pytest.approx(6)


def test_equal_records_need_no_noise() -> None:
    points = np.array([[1.0]] * 5 + [[7.0]])
    sigmas = noise_for_anonymity(points, 3)
    assert sigmas[:5].tolist() == [0] * 5  # four others count one half each
    assert sigmas[5] > 0
    assert expected_anonymity([[0, 0, 3]], [0]).tolist() == [2]


def test_the_anonymity_is_how_many_records_fit_as_well() -> None:
    """The definition by simulation: Z fits X_j at least as well as X_i if it is at least as near to it."""
    sigma, rng = 1.759317, np.random.default_rng(2)
    z = rng.normal(0, sigma, 400_000)
    fits = (np.abs(z[:, None] - SIX[:, 0]) <= np.abs(z)[:, None]).sum(axis=1)
    assert fits.mean() == pytest.approx(2, abs=5 * fits.std() / np.sqrt(len(z)))  # five standard errors


def test_no_noise_reaches_half_of_the_others() -> None:
    for k in (3.5, 4, 0.5):
        with fails("E100"):
            noise_for_anonymity(SIX, k)
    assert (noise_for_anonymity(SIX, 1) == 0).all()


def test_a_release_tells_the_deviation_beside_each_value() -> None:
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(50, 9, 800), "y": rng.integers(0, 1_000, 800), "c": [7] * 800, "s": ["a", "b"] * 400}
    table = Table.of(data, Roles((), ("x", "y", "c"), ("s",), ()))
    release = publish_as_distributions(table, 5, rng=Randomness.from_seed(1))
    assert release.table.column_names == ["x", "y", "c", "s", "x_sd", "y_sd", "c_sd"]
    assert release.table["c"].to_pylist() == [7] * 800
    assert release.classes is None
    scores = np.concatenate(
        [(release.table[n].to_numpy() - data[n]) / release.table[f"{n}_sd"].to_numpy() for n in ("x", "y")]
    )
    # Standard normal: mean and variance within five standard errors.
    assert abs(scores.mean()) <= 5 / np.sqrt(1_600)
    assert abs(scores.var() - 1) <= 5 * np.sqrt(2 / 1_600)
    sigmas, units = np.asarray(release.details["sigmas"]), np.asarray(release.details["units"])
    assert release.table["x_sd"].to_numpy() == pytest.approx(sigmas * units[0])


def test_what_it_refuses() -> None:
    rng = Randomness.from_seed(1)
    with fails("E100"):
        publish_as_distributions(Table.of({"s": ["a"]}, Roles((), ("s",), (), ())), 1, rng=rng)
    with fails("E100"):
        publish_as_distributions(Table.of({"x": [1], "x_sd": [1]}, Roles((), ("x", "x_sd"), (), ())), 1, rng=rng)
    with fails("E100"):
        publish_as_distributions(Table.of({"s": ["a"]}, Roles((), (), ("s",), ())), 1, rng=rng)

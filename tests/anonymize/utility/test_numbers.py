"""Distortion, moments and the price of dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anonymize.utility.dimensionality import dimension_curve, least_side
from anonymize.utility.distortion import il1s, sse, sse_share
from anonymize.utility.moments import moment_changes, moments
from link.errors import ConfigurationError
from tests.errors import fails

X = np.array([(20, 50), (25, 60), (40, 55), (60, 80)])
CENTRES = np.array([(22.5, 55), (22.5, 55), (50, 67.5), (50, 67.5)])


def test_il1s() -> None:
    assert il1s(X, CENTRES) == pytest.approx(0.358225, abs=1e-6)
    assert il1s(X, X) == 0
    assert il1s([1, 1], [1, 1]) == 0
    assert il1s([1, 1], [1, 2]) == math.inf


def test_sse_share_of_microaggregation() -> None:
    x = np.array([1, 2, 3, 10, 11, 12, 20])
    two = np.array([1.5, 1.5, 8, 8, 8, 16, 16])
    assert sse(x, two) == pytest.approx(70.5)
    assert sse_share(x, two) == pytest.approx(0.25025355)
    three = np.array([4, 4, 4, 4, 43 / 3, 43 / 3, 43 / 3])
    assert sse(x, three) == pytest.approx(98.666667)
    assert sse_share(x, three) == pytest.approx(0.35023664)
    assert sse_share([5, 5], [5, 5]) == 0
    assert sse_share([5, 5], [5, 6]) == math.inf


@pytest.mark.parametrize("measure", [sse, sse_share, il1s])
def test_distortion_refuses_rows_that_do_not_correspond(measure: object) -> None:
    with fails("E100"):
        measure([1, 2], [1, 2, 3])  # type: ignore[operator]


def test_moments_equal_numpy() -> None:
    found = moments(X)
    assert found.mean == pytest.approx(X.mean(axis=0))
    assert found.variance == pytest.approx(X.var(axis=0, ddof=1))
    assert found.correlation == pytest.approx(np.corrcoef(X.T))


def test_a_column_without_variance_has_no_correlation() -> None:
    found = moments([[1, 2], [1, 3]])
    assert np.isnan(found.correlation[0]).all()
    assert found.correlation[1, 1] == pytest.approx(1)


@given(arrays(np.float64, (6, 2), elements=st.integers(-50, 50)))
def test_centres_keep_means_and_lose_variance(data: np.ndarray) -> None:
    centres = np.repeat(data.reshape(2, 3, 2).mean(axis=1), 3, axis=0)
    changes = moment_changes(data, centres)
    assert changes.mean == pytest.approx([0, 0], abs=1e-9)
    known = np.isfinite(changes.variance)
    assert (changes.variance[known] <= 1 + 1e-9).all()
    assert (np.abs(changes.correlation[np.isfinite(changes.correlation)]) <= 2).all()


def test_moment_changes_need_equal_columns() -> None:
    with fails("E100"):
        moment_changes(X, X[:, :1])


@pytest.mark.parametrize(("d", "side"), [(2, 0.0129), (8, 0.3369), (20, 0.6471), (50, 0.8402)])
def test_side_of_a_box_that_holds_five_of_adult(d: int, side: float) -> None:
    assert least_side(30_162, d, 5) == pytest.approx(side, abs=5e-5)


def test_side_grows_to_one_with_dimensions() -> None:
    sides = [least_side(1000, d, 5) for d in range(1, 200)]
    assert sides == sorted(sides)
    assert sides[0] == pytest.approx(0.005)
    assert 0.97 < sides[-1] < 1


def test_curve_adds_one_quasi_identifier_at_a_time() -> None:
    curve = dimension_curve(("a", "b", "c"), 100, 4, lambda names: len(names) / 10)
    assert [point.quasi_identifiers for point in curve] == [("a",), ("a", "b"), ("a", "b", "c")]
    assert [point.loss for point in curve] == [0.1, 0.2, 0.3]
    assert curve[1].least_side == pytest.approx(0.2)


def test_a_box_cannot_hold_more_than_all() -> None:
    with pytest.raises(ConfigurationError):
        least_side(4, 2, 5)

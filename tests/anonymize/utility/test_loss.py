"""Loss measures against the literature's numbers, brute force and their own bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.utility.divergence import kl_bits, spread
from anonymize.utility.loss import (
    average_class_size,
    average_equivalence_class_size,
    discernibility,
    gcp,
    granularity,
    interval_loss,
    leaf_loss,
    non_uniform_entropy,
    precision,
)
from link.errors import ConfigurationError
from tests.errors import fails


def test_precision_counts_suppressed_rows_as_lost() -> None:
    kept = np.tile([2, 2], (7, 1))
    assert precision(kept, (3, 3), suppressed=1) == pytest.approx(0.291667, abs=1e-6)
    assert precision(np.tile([2, 2], (8, 1)), (3, 3)) == pytest.approx(1 / 3)


def test_precision_of_a_flat_hierarchy_is_one() -> None:
    assert precision(np.zeros((3, 1)), (0,)) == 1.0


@pytest.mark.parametrize(("levels", "suppressed"), [(np.zeros((0, 1)), 0), (np.array([[4]]), 0), (np.array([[-1]]), 0)])
def test_precision_refuses(levels: np.ndarray, suppressed: int) -> None:
    with pytest.raises(ConfigurationError):
        precision(levels, (3,), suppressed)


def test_discernibility_and_class_sizes() -> None:
    assert discernibility([2, 5], suppressed=1) == 4 + 25 + 8
    assert average_class_size([2, 5], 2) == 1.75
    assert average_equivalence_class_size([2, 5]) == 3.5
    assert discernibility([], suppressed=3) == 9


def test_discernibility_is_exact_beyond_64_bits() -> None:
    assert discernibility([2**33]) == 2**66


def test_class_size_needs_a_class() -> None:
    with fails("E100"):
        average_class_size([], 2)
    with fails("E100"):
        average_class_size([3], 0)


def test_gcp_of_intervals() -> None:
    low, high = np.repeat([21, 45, 32], [3, 3, 2]), np.repeat([26, 50, 35], [3, 3, 2])
    cells = interval_loss(low, high, 29)
    assert cells[[0, 3, 6]] == pytest.approx([5 / 29, 5 / 29, 3 / 29])
    assert gcp(cells[:, None]) == pytest.approx(0.155172, abs=1e-6)
    assert interval_loss([4], [4], 0).tolist() == [0]


def test_gcp_of_mondrian_example() -> None:
    """Seven points in two dimensions, k = 2: three boxes."""
    classes = [[(1, 1), (3, 2)], [(2, 5), (4, 8)], [(5, 3), (6, 9), (7, 4)]]
    cells = []
    for members in classes:
        box = np.array(members)
        loss = (np.ptp(box[:, 0]) / 6, np.ptp(box[:, 1]) / 8)
        cells += [loss] * len(members)
    assert gcp(np.array(cells)) == pytest.approx(0.398810, abs=1e-6)


def test_leaf_loss_forms() -> None:
    assert leaf_loss([1, 3, 5], 5).tolist() == [0, 0.5, 1]
    assert leaf_loss([1, 3, 5], 5, form="xu").tolist() == [0, 0.6, 1]
    assert leaf_loss([1], 1).tolist() == [0]
    with pytest.raises(ConfigurationError):
        leaf_loss([6], 5)


def test_granularity() -> None:
    assert granularity([[1, 2], [2, 2]], (4, 2)) == pytest.approx((0.25 + 1 + 0.5 + 1) / 4)
    assert granularity([[1, 2]], (4, 2), suppressed=1) == pytest.approx((0.25 + 1 + 2) / 4)


def test_non_uniform_entropy() -> None:
    assert non_uniform_entropy([0, 0, 1, 2], [0, 0, 0, 1]) == pytest.approx(2.754888, abs=1e-6)
    assert non_uniform_entropy([0, 1, 2], [0, 1, 2]) == 0


def test_non_uniform_entropy_of_suppressed_rows_is_that_of_a_guess() -> None:
    gone = np.array([True, False, False, False])
    expected = math.log2(4 / 2)  # of the value a, which two of four rows have
    assert non_uniform_entropy([0, 0, 1, 2], [9, 0, 1, 2], gone) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30))
def test_non_uniform_entropy_equals_brute_force(rows: list[tuple[int, int]]) -> None:
    codes, groups = zip(*rows, strict=True)
    expected = sum(-math.log2(rows.count(row) / groups.count(row[1])) for row in rows)
    assert non_uniform_entropy(codes, groups) == pytest.approx(expected, abs=1e-9)


def test_divergence_of_a_spread_column() -> None:
    shared = spread([2, 1, 1], [0, 0, 1])
    assert shared.tolist() == [1.5, 1.5, 1]
    assert kl_bits([2, 1, 1], shared) == pytest.approx(0.061278, abs=1e-6)
    assert kl_bits([1, 1], [1, 0]) == math.inf
    with pytest.raises(ConfigurationError):
        kl_bits([1, 1], [0, 0])


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=12))
def test_spreading_keeps_totals_and_diverges_by_nothing_only_where_groups_are_even(rows: list[tuple[int, int]]) -> None:
    counts, groups = map(list, zip(*rows, strict=True))
    shared = spread(counts, groups)
    assert shared.sum() == pytest.approx(sum(counts))
    even = all(len({c for c, g in rows if g == each}) == 1 for each in set(groups))
    assert (kl_bits(counts, shared) < 1e-12) == even

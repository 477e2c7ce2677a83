"""Exact thresholds, and the condition on which the one-shot strategy rests."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import ConfigurationError
from mining.thresholds import FLOOR, local_threshold, minimum_count, tells_of_rows, threshold_class

untimed = settings(deadline=None)  # how long an example takes depends on what else the machine does

fractions = st.decimals(Decimal("0.000001"), 1, places=6).filter(lambda d: d > 0)


@untimed
@given(support=fractions, n_rows=st.integers(0, 10**12))
def test_a_fraction_is_rounded_up_exactly(support, n_rows):
    count = minimum_count(support, n_rows)
    assert count >= 1
    assert count >= Fraction(support) * n_rows
    assert count == 1 or count - 1 < Fraction(support) * n_rows


@untimed
@given(n_rows=st.integers(1, 1000), data=st.data())
def test_a_count_is_itself(n_rows, data):
    count = data.draw(st.integers(1, n_rows))
    assert minimum_count(count, n_rows) == count


def test_decimals_are_not_floats():
    assert minimum_count(Decimal("0.1"), 30) == 3
    assert minimum_count(Decimal("0.07"), 100) == 7


@pytest.mark.parametrize(
    "support",
    [0, -1, 11, True, Decimal(0), Decimal("-0.1"), Decimal("1.0001"), Decimal("NaN"), Decimal("Infinity"), Decimal(2)],
)
def test_wrong_supports_are_refused(support):
    with pytest.raises(ConfigurationError):
        minimum_count(support, 10)


@untimed
@given(
    sizes=st.lists(st.integers(0, 10**6), min_size=1, max_size=9).filter(any),
    weight=st.decimals(0, Decimal("0.999999"), places=6),
    data=st.data(),
)
def test_no_itemset_can_hide_from_all_parties(sizes, weight, data):
    n_rows = sum(sizes)
    support = data.draw(fractions | st.integers(1, n_rows))
    c = minimum_count(support, n_rows)
    thresholds = [local_threshold(support, size, c, len(sizes), weight, n_rows) for size in sizes]
    assert min(thresholds) >= max(1, threshold_class(min(FLOOR, 1 + (c - 1) // len(sizes))))
    assert sum(threshold - 1 for threshold in thresholds) < c
    assert tells_of_rows(c, len(sizes)) or c == 1 or min(thresholds) > 1
    assert all(threshold == threshold_class(threshold) for threshold in thresholds)


def test_thresholds_have_few_values():
    classes = sorted({threshold_class(number) for number in range(1, 1000)})
    assert classes[:10] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    assert all(high <= 2 * low for low, high in pairwise(classes))


@pytest.mark.parametrize("parties", [2, 3, 7])
def test_no_weight_lowers_a_small_partys_threshold_below_the_floor(parties):
    """λ next to 1 took the threshold of a party without rows to 1, whatever c."""
    c, weight = 1 + (FLOOR - 1) * parties, Decimal("0.999999")
    assert local_threshold(c, 0, c, parties, weight, 10**6) == FLOOR
    assert local_threshold(10**5, 0, 10**5, parties, weight, 10**6) == FLOOR


@pytest.mark.parametrize("weight", [Decimal(1), Decimal("-0.1"), Decimal("NaN"), Decimal("Infinity")])
def test_weights_outside_the_range_are_refused(weight):
    with pytest.raises(ConfigurationError):
        local_threshold(Decimal("0.1"), 10, 1, 2, weight, 20)

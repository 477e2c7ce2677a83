"""Budgets that are given as decimals."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ldp.budget import LARGEST_EPSILON, LEAST_EPSILON, check_epsilon, float_below


@given(st.decimals(Decimal("0.001"), 16, places=6))
def test_a_decimal_becomes_the_largest_float_that_does_not_exceed_it(epsilon: Decimal) -> None:
    found = float_below(epsilon)
    assert check_epsilon(found) == found
    if epsilon > Decimal("0.001"):
        assert Fraction(found) <= Fraction(epsilon) < Fraction(math.nextafter(found, math.inf))


def test_shares_of_a_budget_add_up_to_no_more() -> None:
    assert 3 * Fraction(0.1) > Fraction(3, 10)
    assert 3 * Fraction(float_below(Decimal("0.1"))) <= Fraction(3, 10)


def test_the_ends_of_the_range_stay() -> None:
    assert float_below(Decimal("0.001")) == LEAST_EPSILON
    assert float_below(Decimal(16)) == LARGEST_EPSILON

"""Deviations of biased and of chosen estimates: check values, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldp.bias_aware import NORMAL, deviations_with_bias, selection_factor
from tests.ldp.contract import ERROR


@given(st.floats(1e-9, 1e6), st.floats(0, 1e6))
def test_the_widened_interval_is_the_quantile_of_the_biased_normal(deviation: float, bias: float) -> None:
    reach = NORMAL * float(deviations_with_bias(deviation, bias))
    missed = stats.norm.sf((reach - bias) / deviation) + stats.norm.sf((reach + bias) / deviation)
    assert missed == pytest.approx(0.05, abs=1e-6) or bias / deviation > 1e9
    assert reach >= NORMAL * deviation * (1 - 1e-9)


def test_edges() -> None:
    assert deviations_with_bias([2.0, 0.0, 0.0], [0.0, 0.0, 1.0]) == pytest.approx([2.0, 0.0, 1 / NORMAL])
    assert [selection_factor(*each) for each in ((0, 9), (3, 3), (5, 10))] == pytest.approx([1, 1, 1])
    assert selection_factor(1, 4) == pytest.approx(2.2414 / 1.96, abs=1e-4)


@pytest.mark.parametrize(("told", "among"), [(10, 20), (10, 30), (10, 40), (10, 1_000)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_of_the_largest_estimates_one_in_twenty_is_wrong(told: int, among: int, spread: float) -> None:
    """Whether noise is all of them, most, or little; a wrong alarm has a probability of `ERROR` for each case."""
    rng, runs = np.random.default_rng(1), 2_000
    true = spread * rng.standard_normal((runs, among))
    found = true + rng.standard_normal((runs, among))
    best = np.argsort(-found, axis=1)[:, :told]
    wrong = np.abs(np.take_along_axis(found - true, best, 1)) > NORMAL * selection_factor(told, among)
    assert stats.binom.sf(wrong.sum(), wrong.size, 0.055) > ERROR

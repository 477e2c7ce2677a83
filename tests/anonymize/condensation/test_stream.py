"""Condensation of streams: sizes, exact sums, states, and what cannot be added."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.condensation.streaming import Condenser
from crypto.primitives.randomness import Randomness
from tests.errors import fails


def test_four_records_split_as_worked_out() -> None:
    condenser = Condenser(("x", "y"), 2)
    condenser.add([(0, 0), (2, 1), (4, 3), (6, 4)])
    assert condenser.moments.counts.tolist() == [2, 2]
    assert condenser.moments.means[0] == pytest.approx([4.934339, 3.363166], abs=5e-7)
    condenser.add([6, 4])
    assert condenser.moments.counts.tolist() == [3, 2]
    assert condenser.moments.means[0] == pytest.approx((2 * np.array([4.934339, 3.363166]) + [6, 4]) / 3, abs=5e-7)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 200), st.integers(1, 6), st.integers(1, 3))
def test_groups_have_k_to_2k_records_and_sums_are_kept(seed: int, n: int, k: int, d: int) -> None:
    points = np.random.default_rng(seed).normal(1, 3, (n, d))
    condenser = Condenser([f"c{j}" for j in range(d)], k)
    condenser.add(points)
    moments = condenser.moments
    assert condenser.count == n
    if n >= k:
        assert moments.counts.min() >= k
    assert moments.counts.max() < 2 * k or k == 1
    assert moments.sums.sum(axis=0) == pytest.approx(points.sum(axis=0))
    assert moments.products.sum(axis=0) == pytest.approx(points.T @ points)
    assert np.linalg.eigvalsh(moments.covariances).min() >= -1e-9 * np.abs(moments.products).max()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(0, 60))
def test_a_state_goes_on_where_it_stood(seed: int, before: int, after: int) -> None:
    points = np.random.default_rng(seed).normal(size=(before + after, 2))
    condenser = Condenser(("x", "y"), 3, origins=(0.5, 0), units=(2, 1))
    condenser.add(points[:before].reshape(-1, 2))
    again = Condenser.from_state(json.loads(json.dumps(condenser.state())))
    for one in (condenser, again):
        one.add(points[before:].reshape(-1, 2))
    assert again.state() == condenser.state()
    if condenser.count >= 3:
        first, second = (one.release(Randomness.from_seed(1)) for one in (condenser, again))
        assert first.table.equals(second.table)


def test_origins_and_units_change_no_release_of_one_group() -> None:
    points = np.random.default_rng(1).normal((1_000_000, 5), (1, 3), (9, 2))
    plain, shifted = Condenser(("x", "y"), 5), Condenser(("x", "y"), 5, origins=(1_000_000, 0), units=(1, 1))
    for condenser in (plain, shifted):
        condenser.add(points)
    assert shifted.moments.covariances == pytest.approx(np.cov(points.T, bias=True)[None], rel=1e-9)
    assert plain.moments.covariances == pytest.approx(np.cov(points.T, bias=True)[None], rel=1e-3)  # digits are lost


def test_a_release_resembles_the_stream() -> None:
    rng = np.random.default_rng(4)
    points = rng.normal(size=(6_000, 1)) * [1, 2, 0] + rng.normal(0, 0.3, (6_000, 3))
    condenser = Condenser(("a", "b", "c"), 15)
    condenser.add(points)
    release = condenser.release(Randomness.from_seed(2), factor=2)
    assert release.table.num_rows == 12_000
    assert release.statistics["smallest"] >= 15
    drawn = np.stack([release.table[name].to_numpy() for name in ("a", "b", "c")], axis=1)
    assert drawn.mean(axis=0) == pytest.approx(points.mean(axis=0), abs=0.1)
    # Splits take records for uniform, which costs some of the covariance between groups, not of the whole.
    assert np.cov(drawn.T) == pytest.approx(np.cov(points.T), abs=0.15)


def test_nothing_is_released_of_fewer_than_k_records() -> None:
    condenser = Condenser(("x",), 4)
    with fails("E100"):
        condenser.release(Randomness.from_seed(1))
    condenser.add([[1], [2], [3]])
    with fails("E100"):
        condenser.release(Randomness.from_seed(1))
    condenser.add([4])
    assert condenser.release(Randomness.from_seed(1)).table.num_rows == 4
    with fails("E100"):
        condenser.release(Randomness.from_seed(1), factor=0)


def test_wrong_records_leave_the_state_as_it_was() -> None:
    condenser = Condenser(("x", "y"), 2)
    condenser.add([1, 2])
    before = condenser.state()
    with fails("E101"):
        condenser.add([[1, 2], [3, np.nan]])
    with fails("E101"):
        condenser.add([1, 2, 3])
    assert condenser.state() == before


def test_wrong_condensers_and_states_are_refused() -> None:
    for columns in ((), ("x", "x")):
        with fails("E100"):
            Condenser(columns, 2)
    with fails("E100"):
        Condenser(("x",), 0)
    with fails("E100"):
        Condenser(("x",), 2, units=[0])
    with fails("E100"):
        Condenser(("x",), 2, origins=[0, 1])
    with fails("E101"):
        Condenser.from_state({})
    state = Condenser(("x",), 2).state()
    for damage in ({"sums": [[1]]}, {"counts": "many"}):
        with fails("E101"):
            Condenser.from_state({**state, **damage})

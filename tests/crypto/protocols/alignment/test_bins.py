"""Bins of points: every point has one of its own, and how seldom there is none."""

from __future__ import annotations

from functools import cache
from math import comb, log
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from crypto.primitives.okvs import Layout
from crypto.primitives.randomness import Randomness
from crypto.protocols.alignment.bins import THIRDS, bins_of, matched, points_in, table_of
from crypto.protocols.union.size_classes import LISTS
from link.errors import InternalError

pytestmark = pytest.mark.turn(3)

KEY = bytes(16)


def points_of(seed: int, number: int) -> Any:
    return Randomness.from_seed(seed).uint64(2 * number).reshape(-1, 2)


def bins_for(table: Layout, points: Any) -> Any:
    return matched(table, bins_of(table, points, KEY))


@pytest.mark.parametrize("number", [0, 1, 64, 500, 20_000])
@pytest.mark.parametrize("room", [0, 1000])
def test_every_point_has_a_bin_of_its_own_among_its_three(number, room):
    table, points = table_of(max(number + room, 64)), points_of(number, number)
    found = bins_for(table, points)
    assert len(np.unique(found)) == number
    assert (found == bins_of(table, points, KEY)).any(axis=0).all()
    assert ((found >= 0) & (found < table.sparse)).all()


@pytest.mark.parametrize("seed", range(20))
def test_points_move_on_where_bins_are_scarce(seed):
    """With 1.15 bins for a point most points are left when no bin has one reader; there is room for them still."""
    points = points_of(seed, 3000)
    assert len(np.unique(bins_for(Layout(3000, 1150), points))) == 3000


def test_more_points_than_bins_are_refused():
    with pytest.raises(InternalError):
        bins_for(Layout(64, 21), points_of(1, 64))


def test_a_point_is_another_one_in_each_third():
    points = points_of(2, 100)
    thirds = np.concatenate([points_in(points, third, KEY) for third in range(THIRDS)])
    assert len(np.unique(thirds, axis=0)) == 300
    assert np.array_equal(points_in(points[3:4], 1, KEY)[0], points_in(points, 1, KEY)[3])


# -- how often there are too few ---------------------------------------------------------------------------------------
@cache
def covered_twice(picks: int, bins: int) -> int:
    """In how many ways so many picks take each of so many bins at least twice."""
    if not bins:
        return int(not picks)
    return sum(comb(picks, first) * covered_twice(picks - first, bins - 1) for first in range(2, picks + 1))


def expected_short_of_bins(number: int, third: int) -> float:
    """How many least sets of k + 1 points that have k bins together are expected: up to k = 20 exactly, beyond a bound.

    In such a set every bin is one of two points at least. Of a third with j of the bins the k + 1 picks take each twice
    in m!·[z^m](e^z − 1 − z)^j ways, m = k + 1, which are at most m!·(e^z − 1 − z)^j / z^m for every z > 0.
    """
    exact = []
    for k in range(3, min(20, number - 1) + 1):
        ways = [comb(third, bins) * covered_twice(k + 1, bins) for bins in range((k + 1) // 2 + 1)]
        sets = sum(
            ways[one] * ways[two] * ways[k - one - two]
            for one in range(1, len(ways))
            for two in range(1, len(ways))
            if 1 <= k - one - two < len(ways)
        )
        exact.append(log(sets) + log(comb(number, k + 1)) - 3 * (k + 1) * log(third) if sets else -np.inf)
    k = np.arange(21, min(number, 3 * third + 1)).astype(float)
    low, high = np.full(len(k), 1e-6), np.full(len(k), 50.0)
    for _ in range(60):  # the best z: where z·(e^z − 1) / (e^z − 1 − z) = 3·(k + 1) / k
        z = (low + high) / 2
        above = z * np.expm1(z) / (np.expm1(z) - z) > 3 * (k + 1) / k
        low, high = np.where(above, low, z), np.where(above, z, high)
    chosen = log_choices(number, k + 1) + log_choices(3 * third, k)
    covered = 3 * (gammaln(k + 2) - (k + 1) * np.log(third * high)) + k * np.log(np.expm1(high) - high)
    return float(np.exp(logsumexp([*exact, *(chosen + covered)])))


def log_choices(number: int, some: Any) -> Any:
    return gammaln(number + 1) - gammaln(some + 1) - gammaln(number - some + 1)


@pytest.mark.parametrize("number", [LISTS.size(place) for place in (*range(17), *range(20, 50, 5))])
def test_the_derivation_of_the_chance_that_bins_are_too_few(number):
    assert expected_short_of_bins(number, table_of(number).third) < 2**-40.7


def test_the_rate_of_failures_is_that_of_the_derivation():
    """In small tables failures are seen. The rate is at most the bound: 5σ, so that 1 test in 10^6 is wrong."""
    runs, number, third = 3000, 6, 3
    failed = 0
    for seed in range(runs):
        try:
            bins_for(Layout(number, third), points_of(seed, number))
        except InternalError:
            failed += 1
    bound = expected_short_of_bins(number, third)
    assert failed <= runs * bound + 5 * np.sqrt(runs * bound)
    assert failed >= runs * bound / 4 - 5 * np.sqrt(runs * bound)  # and the bound is no idle one

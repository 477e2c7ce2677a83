"""Local hashing: the functions' law, the number of buckets, and what functions reveal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.hashing import HashFamily
from ldp.oracles.local_hashing import BinaryLocalHashing, LocalHashing, OptimisedLocalHashing, best_buckets
from tests.ldp.contract import ERROR, chi_square_p


@given(st.integers(2, 300), st.integers(2, 40), st.integers(0, 200), st.integers(0, 1 << 32))
def test_supporters_are_those_whose_function_hits(d: int, g: int, n: int, seed: int) -> None:
    rng, family = Randomness.from_seed(seed), HashFamily(d, g)
    seeds, buckets = family.draw(n, rng), rng.integers(g, n).astype(np.int64)
    table = family.buckets(seeds[:, None, :], np.arange(d)[None, :])
    assert table.shape == (n, d)
    assert np.array_equal(family.supporters(seeds, buckets), (table == buckets[:, None]).sum(axis=0))


@pytest.mark.parametrize(("d", "g"), [(1000, 4), (1 << 20, 3), (1 << 20, 1 << 13), (50, 7)])
def test_many_functions_are_counted_like_few(d: int, g: int) -> None:
    rng, family = Randomness.from_seed(1), HashFamily(d, g)
    n = 5_000
    seeds, buckets = family.draw(n, rng), rng.integers(g, n).astype(np.int64)
    some = np.array([0, 1, d // 2, d - 1])
    whole = HashFamily(min(d, 1001), g)
    if whole.dtype == family.dtype:
        found = whole.supporters(seeds, buckets)
        assert [found[v] for v in some if v < whole.d] == [
            int((family.buckets(seeds, np.array(v)) == buckets).sum()) for v in some if v < whole.d
        ]


@pytest.mark.parametrize(("d", "g"), [(1 << 20, 4), (1000, 3), (1 << 24, 1 << 12)])
def test_functions_are_pairwise_independent(d: int, g: int) -> None:
    rng, family, n = Randomness.from_seed(2), HashFamily(d, g), 200_000
    seeds = family.draw(n, rng)
    coarse = min(g, 16)
    for one, two in ((0, 1), (0, d - 1), (d // 3, 2 * d // 3), (d - 2, d - 1)):
        pair = family.buckets(seeds, np.array(one)) * coarse // g, family.buckets(seeds, np.array(two)) * coarse // g
        observed = np.bincount(pair[0] * coarse + pair[1], minlength=coarse * coarse)
        assert chi_square_p(observed, np.full(coarse * coarse, n / coarse**2)) > ERROR


def test_the_best_number_of_buckets() -> None:
    assert best_buckets(1.0) == 4  # 3.691655 against 3.770066 with 3
    assert [OptimisedLocalHashing(64, epsilon).g for epsilon in (0.01, 0.5, 2.0, 3.0)] == [2, 3, 8, 21]


@pytest.mark.parametrize(
    ("oracle", "p", "q", "variance"),
    [
        (BinaryLocalHashing(64, 1.0), 0.7310586, 0.5, 4.682694),
        (LocalHashing(64, 1.0, 3), 0.5761169, 1 / 3, 3.770066),
        (OptimisedLocalHashing(64, 1.0), 0.4753669, 0.25, 3.691655),
    ],
)
def test_check_values(oracle: LocalHashing, p: float, q: float, variance: float) -> None:
    assert float(oracle.p) == pytest.approx(p, abs=1e-7)
    assert float(oracle.q) == pytest.approx(q, abs=1e-7)
    assert oracle.variance(np.zeros(64), 1)[0] == pytest.approx(variance, abs=1e-6)


def test_every_user_has_a_function_of_its_own_that_tells_nothing() -> None:
    oracle, n = OptimisedLocalHashing(1000, 1.0), 100_000
    seeds = [oracle.privatise(np.full(n, value), Randomness.from_seed(value)).fields[0] for value in (3, 700)]
    for drawn in seeds:
        assert len(np.unique(drawn, axis=0)) > n - 10
        for part in drawn.T:
            assert chi_square_p(np.bincount(part >> 24, minlength=256), np.full(256, n / 256)) > ERROR


def test_the_true_value_is_supported_with_p_and_others_with_q() -> None:
    oracle, n = OptimisedLocalHashing(10, 2.0), 200_000
    supports = oracle.tally(oracle.privatise(np.full(n, 4), Randomness.from_seed(5)))
    for value, share in enumerate(supports / n):
        expected = float(oracle.p if value == 4 else oracle.q)
        assert abs(share - expected) < 5.5 * np.sqrt(expected * (1 - expected) / n)

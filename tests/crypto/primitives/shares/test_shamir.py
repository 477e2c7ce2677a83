from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import share
from crypto.primitives.shares.shamir import PRIME, ShamirShare, multiply_mod, reconstruct_elements, share_elements

NAMES = ("north", "south", "east", "west")
EDGES = st.sampled_from([0, 1, 2, 2**32 - 1, 2**32, PRIME // 2, PRIME - 2, PRIME - 1])
ELEMENTS = st.one_of(EDGES, st.integers(0, PRIME - 1))
VECTORS = st.lists(ELEMENTS, max_size=8)


def vector(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def split(values: list[int], threshold: int = 2, holders: tuple[str, ...] = NAMES, seed: int = 0) -> list[ShamirShare]:
    return share_elements(vector(values), holders, threshold, Randomness.from_seed(seed))


@given(st.lists(st.tuples(ELEMENTS, ELEMENTS), max_size=20))
def test_products_against_integers(pairs: list[tuple[int, int]]) -> None:
    one, other = vector([a for a, _ in pairs]), vector([b for _, b in pairs])
    assert multiply_mod(one, other).tolist() == [a * b % PRIME for a, b in pairs]


@given(VECTORS, st.data())
def test_any_threshold_and_one_more_reconstruct(values: list[int], data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    threshold = data.draw(st.integers(1, n - 1))
    shares = split(values, threshold, tuple(f"p{i}" for i in range(n)), seed=n)
    size = data.draw(st.integers(threshold + 1, n))
    chosen = data.draw(st.permutations(shares))[:size]
    assert reconstruct_elements(chosen).tolist() == values


def test_shares_are_values_of_a_polynomial() -> None:
    """Against Lagrange over Python's integers, for a vector of more than one chunk."""
    values = np.random.default_rng(0).integers(0, PRIME, 40_000, dtype=np.uint64)
    shares = share_elements(values, NAMES, 2, Randomness.from_seed(3))
    for index in (0, 16_383, 16_384, 39_999):
        first, second, third = (int(s.values[index]) for s in shares[:3])
        assert (3 * first - 3 * second + third) % PRIME == int(values[index])
    for three in itertools.combinations(shares, 3):
        assert np.array_equal(reconstruct_elements(three), values)


@given(VECTORS, st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70))
def test_arithmetic_on_shares_is_arithmetic_on_secrets(values: list[int], constant: int, factor: int) -> None:
    others = values[::-1]
    a, b = split(values), split(others, seed=1)
    pairs = list(zip(values, others, strict=True))

    def result(operation: Any) -> list[int]:
        return reconstruct_elements([operation(x, y) for x, y in zip(a, b, strict=True)]).tolist()

    assert result(lambda x, y: x + y) == [(v + w) % PRIME for v, w in pairs]
    assert result(lambda x, y: x - y) == [(v - w) % PRIME for v, w in pairs]
    assert result(lambda x, y: -x) == [-v % PRIME for v in values]
    assert result(lambda x, y: x.plus_public(constant)) == [(v + constant) % PRIME for v in values]
    assert result(lambda x, y: x.times_public(factor)) == [v * factor % PRIME for v in values]
    assert result(lambda x, y: x.plus_public(vector(others))) == [(v + w) % PRIME for v, w in pairs]
    assert result(lambda x, y: x.times_public(vector(others))) == [v * w % PRIME for v, w in pairs]
    assert result(lambda x, y: x[1:3]) == values[1:3]


def test_as_many_shares_as_the_threshold_tell_nothing() -> None:
    """Top bits of any two shares, and of a sum of them, are uniform; a chi-square that fails with probability 1e-6."""
    for secret in (0, PRIME - 1):
        shares = share_elements(np.full(1 << 15, secret, np.uint64), NAMES, 2, Randomness.from_seed(secret))
        for one, other in itertools.combinations(shares, 2):
            for seen in (one.values, (one.values + 3 * other.values % PRIME) % PRIME):
                counts = np.bincount((seen >> np.uint64(53)).astype(np.int64), minlength=256)
                assert ((counts - 128) ** 2 / 128).sum() < 371


def test_misuse_is_a_type_error() -> None:
    a, b, *_ = split([1, 2])
    lower = split([1, 2], 1)[0]
    additive = share(vector([1, 2]), NAMES, Randomness.from_os())[0]
    acts: list[Any] = [
        lambda: bool(a),
        lambda: int(a),  # type: ignore[call-overload]
        lambda: list(a),  # type: ignore[call-overload]
        lambda: a == a,
        lambda: np.asarray(a),
        lambda: a + 1,  # type: ignore[operator]
        lambda: a + b,
        lambda: a + lower,
        lambda: a + additive,  # type: ignore[operator]
        lambda: additive + a,  # type: ignore[operator]
        lambda: a[0],  # type: ignore[index]
        lambda: a.plus_public(np.array([1, 2])),
        lambda: ShamirShare(np.array([1]), 1, "north", NAMES),  # type: ignore[arg-type]
    ]
    for act in acts:
        with pytest.raises(TypeError):
            act()


def test_mismatches_are_refused() -> None:
    shares = split([1, 2])
    short = split([1])
    with pytest.raises(ValueError, match="length"):
        shares[0] + short[0]
    with pytest.raises(ValueError, match="from shares"):
        reconstruct_elements([])
    for wrong in (shares[:2], [shares[0], shares[0], shares[1]], [*shares, shares[0]]):
        with pytest.raises(ValueError, match="3 different holders"):
            reconstruct_elements(wrong)
    with pytest.raises(ValueError, match="different vectors"):
        reconstruct_elements([*shares[:2], short[2]])
    with pytest.raises(ValueError, match="west contradicts"):
        reconstruct_elements([*shares[:3], shares[3].plus_public(1)])
    for threshold in (0, 4):
        with pytest.raises(ValueError, match="between 1 and 3"):
            split([1], threshold)
    with pytest.raises(ValueError, match="below 2"):
        split([PRIME])
    with pytest.raises(ValueError, match="below 2"):
        ShamirShare(vector([PRIME]), 1, "north", NAMES)


def test_a_share_shows_only_its_size() -> None:
    assert repr(split([5])[0]) == "<ShamirShare of length 1, threshold 2>"

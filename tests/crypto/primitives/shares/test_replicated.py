from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated import ReplicatedShare, reconstruct_replicated, replicate

HOLDERS = ("a", "b", "c")


def matrix(seed: int, shape: tuple[int, int], word: Any = np.uint32) -> Any:
    return np.random.default_rng(seed).integers(0, 2 ** (8 * np.dtype(word).itemsize), shape, np.uint64).astype(word)


def shares(values: Any, seed: int = 0) -> list[ReplicatedShare]:
    return replicate(values, HOLDERS, Randomness.from_seed(seed))


@given(st.sampled_from([np.uint32, np.uint64]), st.integers(0, 5), st.integers(0, 9), st.integers(0, 2**32))
def test_sums_and_products_of_shares(word: Any, columns: int, rows: int, seed: int) -> None:
    x, y = (matrix(seed + i, (columns, rows), word) for i in range(2))
    of_x, of_y = shares(x, 1), shares(y, 2)
    assert (reconstruct_replicated(of_x[::-1]) == x).all()
    assert (reconstruct_replicated([a + b for a, b in zip(of_x, of_y, strict=True)]) == x + y).all()
    assert (reconstruct_replicated([a - b for a, b in zip(of_x, of_y, strict=True)]) == x - y).all()
    parts = [a.local_product(b) for a, b in zip(of_x, of_y, strict=True)]
    assert (parts[0] + parts[1] + parts[2] == x * y).all()
    parts = [a.local_matrix_product(b) for a, b in zip(of_x, of_y, strict=True)]
    assert (parts[0] + parts[1] + parts[2] == x @ y.T).all()
    stacked = [ReplicatedShare.stacked([a, b])[np.arange(columns)[::-1]] for a, b in zip(of_x, of_y, strict=True)]
    assert (reconstruct_replicated(stacked) == x[::-1]).all()


def test_one_share_is_uniform_whatever_is_shared() -> None:
    zeros = shares(np.zeros((16, 4096), np.uint32))
    for share in zeros:
        for component in (share.own, share.following):
            bits = np.unpackbits(component.view(np.uint8)).mean()
            assert abs(bits - 0.5) < 5.5 * 0.5 / np.sqrt(16 * 4096 * 32)  # error below 1e-7 each


def test_misuse_is_refused() -> None:
    one, other, _ = shares(matrix(0, (2, 3)))
    wide = shares(matrix(0, (2, 3), np.uint64))[0]
    for misuse in (
        lambda: one + other,
        lambda: one + wide,
        lambda: one + 1,
        lambda: np.ones((2, 3), np.uint32) + one,
        lambda: one.local_matrix_product(other),
        lambda: bool(one),
        lambda: int(one),
        lambda: one == one,
        lambda: len(one),
        lambda: np.asarray(one),
        lambda: one[0],
        lambda: ReplicatedShare.stacked([one, wide]),
        lambda: ReplicatedShare(one.own.astype(np.uint16), one.own.astype(np.uint16), "a", HOLDERS),
        lambda: ReplicatedShare(one.own, one.own[:1], "a", HOLDERS),
    ):
        with pytest.raises(TypeError):
            misuse()
    for refused in (
        lambda: one + one[:1],
        lambda: ReplicatedShare(one.own, one.following, "d", HOLDERS),
        lambda: ReplicatedShare(one.own, one.following, "a", ("a", "b")),
    ):
        with pytest.raises(ValueError, match=r"."):
            refused()
    with pytest.raises(ValueError, match="read-only"):
        one.own[0, 0] = 1

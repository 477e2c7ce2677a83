from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares import ring_matrix
from crypto.primitives.shares.ring_matrix import matrix_product, random_matrix, row_blocks

TYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@settings(max_examples=60)
@given(
    st.tuples(st.integers(0, 9) | st.just(65), st.integers(0, 9), st.integers(0, 70)),
    st.sampled_from([(8, 32), (16, 32), (32, 32), (32, 64), (64, 64)]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_against_integers(shape: tuple[int, int, int], bits: tuple[int, int], swapped: bool, seed: int) -> None:
    narrow, wide = bits
    a, b, length = shape
    generator = np.random.default_rng(seed)
    top = generator.random() < 0.3  # all words as large as they may be

    def draw(rows: int, width: int) -> Any:
        drawn = generator.integers(0, 2**width, (rows, length), dtype=np.uint64)
        return np.full_like(drawn, 2**width - 1).astype(TYPES[width]) if top else drawn.astype(TYPES[width])

    x, y = draw(a, narrow), draw(b, wide)
    x, y = (y, x) if swapped else (x, y)
    product = matrix_product(x, y, TYPES[wide])
    expected = [[sum(int(u) * int(v) for u, v in zip(row, other, strict=True)) % 2**wide for other in y] for row in x]
    assert product.dtype == TYPES[wide]
    assert product.tolist() == expected


def test_the_largest_words_over_more_rows_than_a_float_can_add_up() -> None:
    """2^22 products of 2^16 − 1 by 2^16 − 1 exceed 2^53; a block's do not."""
    length = 1 << 22
    ones = np.full((1, length), 2**16 - 1, np.uint16)
    assert ring_matrix.BLOCK <= 1 << 21
    assert matrix_product(ones, ones, np.uint64).tolist() == [[length * (2**16 - 1) ** 2]]
    assert matrix_product(ones, ones, np.uint32).tolist() == [[length * (2**16 - 1) ** 2 % 2**32]]


@pytest.mark.parametrize(
    ("x", "y", "word"),
    [
        (np.zeros((1, 2), np.uint32), np.zeros((1, 3), np.uint32), np.uint32),
        (np.zeros((1, 2), np.uint64), np.zeros((1, 2), np.uint64), np.uint32),
        (np.zeros((1, 2), np.int32), np.zeros((1, 2), np.uint32), np.uint32),
        (np.zeros((1, 2), np.uint8), np.zeros((1, 2), np.uint8), np.uint16),
    ],
)
def test_what_does_not_fit_is_refused(x: Any, y: Any, word: Any) -> None:
    with pytest.raises(ValueError, match="have no product"):
        matrix_product(x, y, word)


@example(rows=0, columns=0)
@given(rows=st.integers(0, 10**6), columns=st.integers(0, 10_000))
def test_blocks_cover_the_rows(rows: int, columns: int) -> None:
    cut = row_blocks(rows, columns)
    assert sum(stop - start for start, stop in cut) == rows
    assert all(start % 8 == 0 for start, _ in cut)
    assert all((stop - start) * columns <= max(ring_matrix.BLOCK_WORDS, 1024 * columns) for start, stop in cut)


def test_more_rows_than_a_word_can_count_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 2147483647"):
        row_blocks(2**31, 1)


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
def test_equal_streams_give_equal_matrices(word: Any) -> None:
    one, other = (Randomness.from_seed(1) for _ in range(2))
    first = random_matrix(one, (3, 5), word)
    assert first.shape == (3, 5)
    assert first.dtype == word
    assert (first == random_matrix(other, (3, 5), word)).all()
    assert (first != random_matrix(one, (3, 5), word)).any()

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.bit_matrix import pack_bits, transpose, unpack_bits


@pytest.mark.parametrize("tiles", [1, 2, 127, 128, 129, 300])
def test_the_transpose_moves_every_bit_to_its_place(tiles: int) -> None:
    matrix = np.random.default_rng(tiles).integers(0, 256, (128, 16 * tiles), np.uint8)
    bits = np.unpackbits(matrix, axis=1, bitorder="little")
    expected = np.packbits(bits.T, axis=1, bitorder="little")
    rows = transpose(matrix)
    assert rows.shape == (128 * tiles, 2)
    assert (rows.view(np.uint8).reshape(-1, 16) == expected).all()


@pytest.mark.parametrize("shape", [(127, 16), (128, 15), (128, 8)])
def test_other_shapes_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="128"):
        transpose(np.zeros(shape, np.uint8))


@given(st.lists(st.integers(0, 1)))
def test_packed_bits_come_back(bits: list[int]) -> None:
    packed = pack_bits(np.array(bits, np.uint8))
    assert len(packed) == -(-len(bits) // 8)
    assert unpack_bits(packed, len(bits)).tolist() == bits

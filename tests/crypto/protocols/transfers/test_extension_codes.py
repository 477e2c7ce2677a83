from __future__ import annotations

import itertools

import numpy as np
import pytest

from crypto.protocols.transfers.extension_codes import BITS, CODES, SYMBOLS, Code, block_count, multiples
from crypto.protocols.transfers.extension_seeds import FIELD_BITS


def rank(matrix: np.ndarray) -> int:
    """Over GF(2)."""
    rows = [int("".join(map(str, row)), 2) for row in matrix.tolist()]
    found = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            found += 1
            rows = [row ^ pivot if row & pivot & -pivot else row for row in rows]
    return found


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: f"s={code.symbol_bits}")
def test_code_words_of_a_group_are_linear_and_differ_at_as_many_blocks_as_there_are_sums(code: Code) -> None:
    words = [code.word(choice) for choice in range(1 << code.symbol_bits)]
    for one, other in itertools.combinations(range(len(words)), 2):
        difference = [a ^ b for a, b in zip(words[one], words[other], strict=True)]
        assert difference == words[one ^ other]
        assert sum(difference) == len(code.folds)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: f"s={code.symbol_bits}")
def test_planes_of_code_words(code: Code) -> None:
    choices = np.random.default_rng(1).integers(0, 1 << code.symbol_bits, 128)
    planes = np.packbits(choices >> np.arange(code.symbol_bits)[:, None] & 1, axis=1, bitorder="little")
    encoded = code.encode(planes.view(np.uint64)).view(np.uint8)
    bits = np.unpackbits(encoded, axis=1, bitorder="little")
    assert bits.T.tolist() == [code.word(int(choice)) for choice in choices]


@pytest.mark.parametrize("k", FIELD_BITS)
@pytest.mark.parametrize("s", CODES)
def test_rows_of_two_choices_differ_by_all_of_128_bits_of_the_secret(k: int, s: int) -> None:
    """Δ ↦ x·Δ is linear; of full rank, it takes a uniform Δ to a uniform row, for every difference x of two choices."""
    size = block_count(k, s) * k
    units = np.eye(size, dtype=np.uint8).reshape(size, -1, k)
    images = np.stack([multiples(unit, s) for unit in units])  # by unit of Δ, choice, bit of the row
    assert images.shape == (size, 1 << s, 128)
    assert not images[:, 0].any()
    for choice in range(1, 1 << s):
        assert rank(images[:, choice]) == 128
    random = np.random.default_rng(k).integers(0, 2, (block_count(k, 3), k), np.uint8)
    products = multiples(random, s)
    for one, other in itertools.combinations(range(1 << s), 2):
        assert (products[one] ^ products[other] == products[one ^ other]).all()


def test_how_many_blocks_there_are() -> None:
    assert [block_count(k) for k in FIELD_BITS] == [128, 64, 43, 32, 16]
    assert [block_count(k, 3) for k in FIELD_BITS] == [224, 112, 77, 56, 28]
    assert (BITS.symbol_bits, SYMBOLS.symbol_bits) == (1, 3)

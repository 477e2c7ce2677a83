from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto.primitives.correlation_robust import hash_rows, hash_words


def plainly(row: bytes, tweak: int) -> bytes:
    """H(i, x) = π(π(x) ⊕ i) ⊕ π(x), block by block."""
    key = hashlib.sha256(b"comine fixed-key AES-128 permutation").digest()[:16]

    def permute(block: bytes) -> bytes:
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    once = permute(row)
    tweaked = bytes(a ^ b for a, b in zip(once, tweak.to_bytes(16, "little"), strict=True))
    return bytes(a ^ b for a, b in zip(permute(tweaked), once, strict=True))


@pytest.mark.parametrize("first", [0, 1, 2**40])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_the_hash_is_that_of_the_paper(first: int, number: int) -> None:
    rows = np.random.default_rng(number).integers(0, 2**63, (number, 2)).astype(np.uint64)
    hashed = hash_rows(rows, first)
    assert [row.tobytes() for row in hashed] == [plainly(row.tobytes(), first + j) for j, row in enumerate(rows)]


def test_long_inputs_hash_as_their_rows_do_and_stay_as_they_are() -> None:
    rows = np.random.default_rng(0).integers(0, 2**63, (40_000, 2)).astype(np.uint64)
    before = rows.copy()
    hashed = hash_rows(rows, 7)
    assert (rows == before).all()
    assert (hashed[20_000:] == hash_rows(rows[20_000:], 20_007)).all()


def test_equal_rows_under_other_tweaks_hash_to_other_values() -> None:
    hashed = hash_rows(np.zeros((1000, 2), np.uint64), 0)
    assert len(np.unique(hashed, axis=0)) == 1000


def test_a_domain_is_the_upper_half_of_the_tweak() -> None:
    rows = np.random.default_rng(1).integers(0, 2**63, (5, 2)).astype(np.uint64)
    hashed = hash_rows(rows, 9, 2**64 - 3)
    upper = (2**64 - 3) << 64
    assert [row.tobytes() for row in hashed] == [plainly(row.tobytes(), upper + 9 + j) for j, row in enumerate(rows)]


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("number", [0, 1, 127, 300, 40_001])
def test_words_are_the_first_bits_of_hashed_rows(word: type[np.unsignedinteger[Any]], number: int) -> None:
    generator = np.random.default_rng(number)
    rows, offsets = (generator.integers(0, 2**63, (size, 2), np.uint64) for size in (number, 3))
    offsets[1] = 0
    kept = rows.copy()
    for words in (1, 2):
        hashed = hash_words(rows, 2**40, 2**63, offsets, word, words)
        assert hashed.shape == (3, words, number)
        for offset, found in zip(offsets, hashed, strict=True):
            assert (found == hash_rows(rows ^ offset, 2**40, 2**63).T[:words].astype(word)).all()
    assert (rows == kept).all()

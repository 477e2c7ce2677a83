from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto.primitives.correlation_robust import hash_blocks, hash_rows, hash_words


def permute(block: bytes) -> bytes:
    """π."""
    key = hashlib.sha256(b"comine fixed-key AES-128 permutation").digest()[:16]
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def plainly(row: bytes, tweak: int) -> bytes:
    """H(i, x) = π(π(x) ⊕ i) ⊕ π(x), block by block."""
    return xor(permute(xor(permute(row), tweak.to_bytes(16, "little"))), permute(row))


def simply(row: bytes, tweak: int) -> bytes:
    """H(i, x) = π(x ⊕ i) ⊕ x ⊕ i, block by block."""
    tweaked = xor(row, tweak.to_bytes(16, "little"))
    return xor(permute(tweaked), tweaked)


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
@pytest.mark.parametrize("number", [0, 1, 127, 300])
def test_words_are_the_first_bits_of_the_simple_hash(word: type[np.unsignedinteger[Any]], number: int) -> None:
    generator = np.random.default_rng(number)
    rows, offsets = (generator.integers(0, 2**63, (size, 2), np.uint64) for size in (number, 3))
    offsets[1] = 0
    kept, upper = rows.copy(), 2**63 << 64
    simple = [simply(row.tobytes(), upper + 2**40 + j) for offset in offsets for j, row in enumerate(rows ^ offset)]
    blocks = np.frombuffer(b"".join(simple), np.uint64).reshape(3, number, 2)
    for words in (1, 2):
        hashed = hash_words(rows, 2**40, 2**63, offsets, word, words)
        assert hashed.shape == (3, words, number)
        assert (hashed == blocks.transpose(0, 2, 1)[:, :words].astype(word)).all()
    assert (rows == kept).all()


@pytest.mark.parametrize("number", [0, 1, 127, 300])
def test_blocks_are_the_hashes_of_rows_and_offsets(number: int) -> None:
    generator = np.random.default_rng(number)
    rows, offsets = (generator.integers(0, 2**63, (size, 2), np.uint64) for size in (number, 3))
    offsets[1] = 0
    kept = rows.copy()
    blocks = hash_blocks(rows, 2**40, 2**63, offsets)
    for offset, block in zip(offsets, blocks, strict=True):
        assert (block == hash_rows(rows ^ offset, 2**40, 2**63)).all()
    assert (rows == kept).all()


def test_long_inputs_hash_to_blocks_and_words_as_their_rows_do() -> None:
    generator = np.random.default_rng(2)
    rows, offsets = (generator.integers(0, 2**63, (size, 2), np.uint64) for size in (40_001, 2))
    for start in (0, 8_191, 20_000):
        assert (hash_blocks(rows, 5, 6, offsets)[:, start:] == hash_blocks(rows[start:], 5 + start, 6, offsets)).all()
        words = hash_words(rows[start:], 5 + start, 6, offsets, np.uint8)
        assert (hash_words(rows, 5, 6, offsets, np.uint8)[:, :, start:] == words).all()

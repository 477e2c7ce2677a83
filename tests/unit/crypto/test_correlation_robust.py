from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto.primitives.correlation_robust import hash_rows


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

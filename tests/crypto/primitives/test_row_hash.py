from __future__ import annotations

import hashlib
from functools import reduce

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto.primitives.randomness import Randomness
from crypto.primitives.row_hash import MOST_BYTES, row_hashes


def permute(number: int, block: bytes) -> bytes:
    """π of this number."""
    key = hashlib.sha256(b"comine row hash %d" % number).digest()[:16]
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def plainly(row: bytes, point: bytes) -> bytes:
    """The longest hash, block by block."""
    u = reduce(xor, [permute(quarter, row[16 * quarter :][:16]) for quarter in range(4)])
    return b"".join(xor(permute(number, xor(u, point)), u) for number in (4, 5))


def drawn(number: int, words: int) -> np.ndarray:
    return Randomness.from_seed(words).derive("rows").uint64(number * words).reshape(-1, words)


@pytest.mark.parametrize("size", [1, 8, 10, 16, 17, MOST_BYTES])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_the_hash_is_that_of_the_definition(number: int, size: int) -> None:
    rows, points = drawn(number, 8), drawn(number, 2)
    hashes = row_hashes(rows, points, size)
    assert hashes.shape == (number, size)
    expected = [plainly(r.tobytes(), p.tobytes())[:size] for r, p in zip(rows, points, strict=True)]
    assert [each.tobytes() for each in hashes] == expected


def test_long_inputs_hash_as_their_rows_do_and_stay_as_they_are() -> None:
    rows, points = drawn(9_000, 8), drawn(9_000, 2)
    before = rows.copy(), points.copy()
    hashes = row_hashes(rows, points, 20)
    assert np.array_equal(hashes[4_000:8_300], row_hashes(rows[4_000:8_300], points[4_000:8_300], 20))
    assert np.array_equal(rows, before[0])
    assert np.array_equal(points, before[1])


def test_every_bit_of_a_row_and_of_its_point_counts() -> None:
    row, point = drawn(1, 8), drawn(1, 2)
    rows, points = np.repeat(row, 641, axis=0), np.repeat(point, 641, axis=0)
    for bit in range(512):
        rows[bit, bit // 64] ^= np.uint64(1 << bit % 64)
    for bit in range(128):
        points[512 + bit, bit // 64] ^= np.uint64(1 << bit % 64)
    assert len(np.unique(row_hashes(rows, points, 10), axis=0)) == 641

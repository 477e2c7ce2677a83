from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crypto.primitives.polynomial_hash import HASH_BYTES, polynomial_hashes
from crypto.primitives.randomness import Randomness

SEED = bytes(range(32))
_ONE = 1 << 127  # in GHASH the highest bit is the coefficient of 1


def strings_of(number: int, blocks: int, seed: int = 1):
    return np.frombuffer(Randomness.from_seed(seed).bytes(16 * number * blocks), np.uint8).reshape(number, -1)


def product(one: int, other: int) -> int:
    """In GF(2^128) as SP 800-38D, algorithm 1, has it."""
    result = 0
    for bit in range(127, -1, -1):
        result ^= other if one >> bit & 1 else 0
        other = other >> 1 ^ (0xE1 << 120 if other & 1 else 0)
    return result


def value(string: bytes, key: bytes) -> int:
    """Σ blocks by the powers of AES(0), the last block by the square."""
    point = int.from_bytes(Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(bytes(16)), "big")
    result = 0
    for start in range(0, len(string), 16):
        result = product(result ^ int.from_bytes(string[start : start + 16], "big"), point)
    return product(result, point)


def test_it_is_the_polynomials_values_at_two_points():
    assert product(_ONE, 12345) == 12345
    strings = strings_of(3, 5)
    for string, found in zip(strings, polynomial_hashes(strings, SEED), strict=True):
        wanted = [value(string.tobytes(), key) for key in (SEED[:16], SEED[16:])]
        assert found.tobytes() == b"".join(each.to_bytes(16, "big") for each in wanted)


@pytest.mark.parametrize("blocks", [1, 2, 1331])
def test_it_is_linear(blocks):
    one, other = strings_of(4, blocks), strings_of(4, blocks, 2)
    hashes = [polynomial_hashes(each, SEED) for each in (one, other, one ^ other)]
    assert np.array_equal(hashes[0] ^ hashes[1], hashes[2])
    assert hashes[0].shape == (4, HASH_BYTES)
    assert not polynomial_hashes(np.zeros((2, 16 * blocks), np.uint8), SEED).any()


def test_two_random_blocks_at_the_end_can_give_every_hash():
    """Of their 256 bits the hashes are independent, so random blocks give uniform hashes."""
    basis = np.zeros((256, 64), np.uint8)
    basis[:, 32:] = np.packbits(np.eye(256, dtype=np.uint8), axis=1)
    left = [int.from_bytes(row.tobytes(), "big") for row in polynomial_hashes(basis, SEED)]
    rank = 0
    while left:
        pivot = left.pop()
        if pivot:
            rank += 1
            low = pivot & -pivot
            left = [row ^ pivot if row & low else row for row in left]
    assert rank == 256

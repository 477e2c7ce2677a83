"""Linear universal hashing of long strings of bits: their values as polynomials over GF(2^128) at two random points.

A string's 128-bit blocks are the coefficients of a polynomial. The hash is linear over GF(2). For a random seed it is 0
for a string of b blocks that is not 0 with probability at most ((b + 1) / 2^128)^2: a polynomial has no more zeros than
its degree. If the last two blocks are random, the hash is uniform whatever the others are (for all seeds but a share of
2^-126, where the two points are equal or one is 0; then it still tells no more than one uniform value). Where half as
much is enough, one point is taken: `PolynomialHash`.

The value at a point is GHASH, which processors compute in an instruction; the point is AES of 0 under half of the seed.

Source: McGrew and Viega, "The Security and Performance of the Galois/Counter Mode (GCM) of Operation", INDOCRYPT 2004;
NIST SP 800-38D. Wegman and Carter, JCSS 22(3), 1981 (universal hashing).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

POINTS: Final = 2
SEED_BYTES: Final = 32
HASH_BYTES: Final = 32
MASK_BLOCKS: Final = 2  # random blocks at a string's end that make its hash uniform
_KEY_BYTES: Final = 16
_BLOCK_BYTES: Final = 16
_NONCE: Final = bytes(12)

Hashes = NDArray[np.uint8]
"""Shape (n, 32), or (n, 16) at one point."""


class PolynomialHash:
    """The hash of strings of one length, one after another.

    Args:
        seed: 32 bytes, public, chosen after the strings.
        size: Bytes of a string, whole blocks of 16.
        points: At how many of the two points; with one a string of b blocks has hash 0 with probability at most
            (b + 1) / 2^128, and one random block at its end makes its hash uniform.
    """

    __slots__ = ("_tags", "_zero", "size_bytes")

    def __init__(self, seed: bytes, size: int, points: int = POINTS) -> None:
        keys = [seed[_KEY_BYTES * point : _KEY_BYTES * (point + 1)] for point in range(points)]
        self._tags = [AESGCM(key).encrypt for key in keys]
        self._zero = np.frombuffer(b"".join([tag(_NONCE, b"", bytes(size)) for tag in self._tags]), np.uint8)
        self.size_bytes = points * _BLOCK_BYTES

    def shifted(self, string: NDArray[np.uint8]) -> bytes:
        """A string's hash and a constant, the same for all strings of the length: where hashes are only compared."""
        return b"".join([tag(_NONCE, b"", string.data) for tag in self._tags])

    def of_each(self, strings: NDArray[np.uint8]) -> Hashes:
        """Hashes of strings of shape (n, bytes)."""
        rows = [string.data for string in np.ascontiguousarray(strings)]
        found = [
            np.frombuffer(b"".join([tag(_NONCE, b"", row) for row in rows]), np.uint8).reshape(-1, _BLOCK_BYTES)
            for tag in self._tags
        ]
        return np.concatenate(found, axis=1) ^ self._zero

    def followed(self, value: NDArray[np.uint8], blocks: int) -> NDArray[np.uint8]:
        """The hash of a string and so many zero blocks behind it, of the string's hash, shape (16 · points,).

        Args:
            value: The string's hash.
            blocks: 0, or 2 and more.
        """
        if not blocks:
            return value
        # A tag multiplies the first of m blocks by H^(m + 1).
        zeros, found = bytes(_BLOCK_BYTES * (blocks - 2)), []
        for part, tag in zip(value.reshape(-1, _BLOCK_BYTES), self._tags, strict=True):
            product, constant = (tag(_NONCE, b"", first + zeros) for first in (part.tobytes(), bytes(_BLOCK_BYTES)))
            found.append(np.frombuffer(product, np.uint8) ^ np.frombuffer(constant, np.uint8))
        return np.concatenate(found)


def polynomial_hashes(strings: NDArray[np.uint8], seed: bytes) -> Hashes:
    """Each string's hash.

    Args:
        strings: Shape (n, bytes), whole blocks of 16.
        seed: 32 bytes, public, chosen after the strings.
    """
    return PolynomialHash(seed, strings.shape[1]).of_each(strings)

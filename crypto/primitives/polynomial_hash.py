"""Linear universal hashing of long strings of bits: their values as polynomials over GF(2^128) at two random points.

A string's 128-bit blocks are the coefficients of a polynomial. The hash is linear over GF(2). For a random seed it is 0
for a string of b blocks that is not 0 with probability at most ((b + 1) / 2^128)^2: a polynomial has no more zeros than
its degree. If the last two blocks are random, the hash is uniform whatever the others are (for all seeds but a share of
2^-126, where the two points are equal or one is 0; then it still tells no more than one uniform value).

The value at a point is GHASH, which processors compute in an instruction; the point is AES of 0 under half of the seed.

Source: McGrew and Viega, "The Security and Performance of the Galois/Counter Mode (GCM) of Operation", INDOCRYPT 2004;
NIST SP 800-38D. Wegman and Carter, JCSS 22(3), 1981 (universal hashing).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

SEED_BYTES: Final = 32
HASH_BYTES: Final = 32
MASK_BLOCKS: Final = 2  # random blocks at a string's end that make its hash uniform
_KEY_BYTES: Final = 16
_BLOCK_BYTES: Final = 16
_NONCE: Final = bytes(12)

Hashes = NDArray[np.uint8]
"""Shape (n, 32)."""


def polynomial_hashes(strings: NDArray[np.uint8], seed: bytes) -> Hashes:
    """Each string's hash.

    Args:
        strings: Shape (n, bytes), whole blocks of 16.
        seed: 32 bytes, public, chosen after the strings.
    """
    return np.concatenate([_values(strings, seed[:_KEY_BYTES]), _values(strings, seed[_KEY_BYTES:])], axis=1)


def _values(strings: NDArray[np.uint8], key: bytes) -> Hashes:
    """The polynomials' values at one point; a tag is that and a constant, which the tag of zeros has too."""
    tag = AESGCM(key).encrypt
    constant = tag(_NONCE, b"", bytes(strings.shape[1]))
    tags = b"".join([tag(_NONCE, b"", string) for string in np.ascontiguousarray(strings)])
    found = np.frombuffer(tags, np.uint8).reshape(-1, _BLOCK_BYTES)
    return found ^ np.frombuffer(constant, np.uint8)

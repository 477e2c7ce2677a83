"""Elements of any length as points of 128 bits, and points as longer pseudorandom words, under public keys.

An element of up to 15 bytes is written into 16 with its length, a longer one hashed to 16 by BLAKE2b under the key; the
point is AES of that under the key. Elements of up to 15 bytes have different points. Of others two of n meet with a
chance of n²/2^129. Words of a point are AES of the point under keys derived from another: a pseudorandom function of
points that do not depend on its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from crypto.primitives.hashing import derive_key

KEY_BYTES: Final = 16
POINT_BYTES: Final = 16
_SHORT: Final = POINT_BYTES - 1
_WORDS_A_BLOCK: Final = 2

Points = NDArray[np.uint64]
"""Shape (n, 2): n points of 128 bits."""

Words = NDArray[np.uint64]
"""Shape (n, w): for each point w words of 64 bits."""


def points_of(elements: Sequence[bytes], key: bytes) -> Points:
    """Every element's point.

    Args:
        elements: n byte strings of any length.
        key: 16 bytes, public.
    """
    short = np.array(elements, f"S{_SHORT}")  # what is longer is cut off here, and hashed below
    lengths = np.fromiter(map(len, elements), np.int64, len(elements))
    plain = np.empty((len(elements), POINT_BYTES), np.uint8)
    plain[:, :_SHORT] = short.view(np.uint8).reshape(-1, _SHORT)
    plain[:, _SHORT] = np.minimum(lengths, POINT_BYTES)
    hashed, long = hashlib.blake2b, np.flatnonzero(lengths > _SHORT).tolist()
    digests = b"".join([hashed(key + elements[place], digest_size=POINT_BYTES).digest() for place in long])
    plain[long] = np.frombuffer(digests, np.uint8).reshape(-1, POINT_BYTES)
    return words_of(plain.view("<u8"), key, _WORDS_A_BLOCK, "points")


def words_of(points: Points, key: bytes, number: int, purpose: str) -> Words:
    """Pseudorandom words of each point.

    Args:
        points: Shape (n, 2).
        key: 16 bytes, public, chosen independently of the points.
        number: Words of a point, even.
        purpose: Separates the words of one key.

    Returns:
        Shape (n, number).
    """
    words = np.empty((len(points), number), "<u8")
    plain = np.ascontiguousarray(points).reshape(-1).view(np.uint8).data
    blocks = number // _WORDS_A_BLOCK
    keys = derive_key(key, "words of points", purpose, size=blocks * KEY_BYTES)
    for block in range(blocks):
        cipher = Cipher(algorithms.AES(keys[block * KEY_BYTES :][:KEY_BYTES]), modes.ECB())  # noqa: S305 - a function of points
        encrypted = np.frombuffer(cipher.encryptor().update(plain), "<u8").reshape(-1, _WORDS_A_BLOCK)
        words[:, block * _WORDS_A_BLOCK : (block + 1) * _WORDS_A_BLOCK] = encrypted
    return words

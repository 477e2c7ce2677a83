"""A hash of rows of 512 bits and of points, from permutations: where a pseudorandom function's values come from.

For the quarters r_0 … r_3 of a row, 128 bits each, and the point x that it is of:

    u = π_0(r_0) ⊕ π_1(r_1) ⊕ π_2(r_2) ⊕ π_3(r_3)
    H = π_4(u ⊕ x) ⊕ u ‖ π_5(u ⊕ x) ⊕ u, as many bytes of it as are asked for

each π_i AES under a public constant of its own. A row differs from one that is known in a sum of secret bits, the bits
of s where some word of a code has ones. In the ideal-permutation model H is as good as random to who has not asked for
π_4 or π_5 at u ⊕ x; and no u comes out of more than 2^16 of the 2^112 rows that 112 such bits make possible, whichever
they are (`docs/protocols/oprf.md` derives it).

Source: Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers", IEEE S&P
2020, section 7.4, for the second step (π(x) there is u here); Bellare and Micciancio, "A New Paradigm for
Collision-Free Hashing: Incrementality at Reduced Cost", EUROCRYPT 1997, for sums of what stands at each place.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import POINT_BYTES, Points, Words

MOST_BYTES: Final = 2 * POINT_BYTES
_QUARTERS: Final = 4
_WORDS: Final = 2  # of a quarter, and of a point
_AT_ONCE: Final = 1 << 12  # rows: they and what comes of them stay in the cache

Hashes = NDArray[np.uint8]
"""Shape (n, size)."""


class _Permutations(threading.local):
    """π_0 … π_5. A context of a cipher serves one thread."""

    def __init__(self) -> None:
        keys = [hashlib.sha256(b"comine row hash %d" % number).digest()[:16] for number in range(6)]
        self.contexts: list[CipherContext] = [
            Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - a permutation
            for key in keys
        ]


_PERMUTATIONS: Final = _Permutations()


def row_hashes(rows: Words, points: Points, size: int) -> Hashes:
    """Each row's hash.

    Args:
        rows: Shape (n, 8).
        points: Shape (n, 2).
        size: Bytes of a hash, up to `MOST_BYTES`.
    """
    number, blocks = len(rows), -(-size // POINT_BYTES)
    hashes = np.empty((number, size), np.uint8)
    most = min(number, _AT_ONCE)
    plain, total = np.empty((2, most, _WORDS), np.uint64)
    permuted = np.empty((most + 1, _WORDS), np.uint64)  # with a row of slack, for which the cipher asks
    contexts = _PERMUTATIONS.contexts
    for start in range(0, number, _AT_ONCE):
        some = rows[start : start + _AT_ONCE].reshape(-1, _QUARTERS, _WORDS)
        size_here = len(some)
        before, after, sums = plain[:size_here], permuted[:size_here], total[:size_here]
        sums[:] = 0
        for quarter in range(_QUARTERS):
            np.copyto(before, some[:, quarter])
            contexts[quarter].update_into(_bytes(before), _bytes(permuted[: size_here + 1]))
            sums ^= after
        np.bitwise_xor(sums, points[start : start + size_here], out=before)
        for block in range(blocks):
            contexts[_QUARTERS + block].update_into(_bytes(before), _bytes(permuted[: size_here + 1]))
            after ^= sums
            place = slice(block * POINT_BYTES, min((block + 1) * POINT_BYTES, size))
            octets = after.view(np.uint8)
            hashes[start : start + size_here, place] = octets[:, : place.stop - place.start]
    return hashes


def _bytes(rows: Words) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data

"""A tweakable circular correlation-robust hash from AES under a fixed key: H(i, x) = π(π(x) ⊕ i) ⊕ π(x).

It breaks the correlation that oblivious-transfer extension leaves among its rows: for a secret Δ the hashes of
x and x ⊕ Δ look independent, for as many rows as there are tweaks, since no tweak is used twice under one Δ.

Source: Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers", IEEE S&P
2020, section 7.4 (TCCR in the ideal-permutation model). The key of π is a public constant, the first 16 bytes of
SHA-256 of its name.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.primitives.bit_matrix import Rows128

_KEY: Final = hashlib.sha256(b"comine fixed-key AES-128 permutation").digest()[:16]
_BLOCK: Final = 16
_AT_ONCE: Final = 1 << 14  # rows: input, output and tweaks stay in the cache


class _Permutation(threading.local):
    """π. A context of the cipher serves one thread: two that used it at once would meet 'Already borrowed'."""

    def __init__(self) -> None:
        self.context: CipherContext = Cipher(algorithms.AES(_KEY), modes.ECB()).encryptor()  # noqa: S305 - a permutation


_PERMUTATION: Final = _Permutation()


def hash_rows(rows: Rows128, first_tweak: int, domain: int = 0) -> Rows128:
    """H((domain, first_tweak + j), rows[j]) for every row.

    Args:
        rows: Shape (n, 2), C-contiguous; left as they are.
        first_tweak: Below 2^64 − n; a tweak serves once per secret correlation and domain.
        domain: The tweak's other 64 bits: one for each of the streams that share a correlation.

    Returns:
        Shape (n, 2).
    """
    number = len(rows)
    hashed = np.empty((number + 1, 2), np.uint64)  # with a row of slack, for which the cipher asks
    inner = np.empty((min(number, _AT_ONCE) + 1, 2), np.uint64)
    tweaks = np.empty((min(number, _AT_ONCE), 2), np.uint64)
    tweaks[:, 0] = np.arange(first_tweak, first_tweak + len(tweaks), dtype=np.uint64)
    tweaks[:, 1] = domain
    permute = _PERMUTATION.context.update_into
    for start in range(0, number, _AT_ONCE):
        stop = min(start + _AT_ONCE, number)
        once, out, these = inner[: stop - start], hashed[start:stop], tweaks[: stop - start]
        permute(_bytes(rows[start:stop]), _bytes(inner[: stop - start + 1]))
        once ^= these
        permute(_bytes(once), _bytes(hashed[start : stop + 1]))
        out ^= once
        out ^= these  # off again: what is added at the end is π(x) alone
        tweaks[:, 0] += np.uint64(_AT_ONCE)
    return hashed[:-1]


def _bytes(rows: Rows128) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data

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
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.primitives.bit_matrix import Rows128, xor_each
from crypto.primitives.masks import Words

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
    tweaks, tweaked = np.empty((2, min(number, _AT_ONCE), 2), np.uint64)
    tweaks[:, 0] = np.arange(first_tweak, first_tweak + len(tweaks), dtype=np.uint64)
    tweaks[:, 1] = domain
    permute = _PERMUTATION.context.update_into
    for start in range(0, number, _AT_ONCE):
        stop = min(start + _AT_ONCE, number)
        once, out, these = inner[: stop - start], hashed[start:stop], tweaks[: stop - start]
        permute(_bytes(rows[start:stop]), _bytes(inner[: stop - start + 1]))
        once_tweaked = np.bitwise_xor(once, these, out=tweaked[: stop - start])
        permute(_bytes(once_tweaked), _bytes(hashed[start : stop + 1]))
        out ^= once
        tweaks[:, 0] += np.uint64(_AT_ONCE)
    return hashed[:-1]


def hash_words(
    rows: Rows128,
    first_tweak: int,
    domain: int,
    offsets: Rows128,
    word: type[np.unsignedinteger[Any]],
    words: int = 1,
) -> Words:
    """The first bits of H((domain, first_tweak + j), rows[j] ⊕ offset) for every row and offset.

    Args:
        rows: Shape (n, 2), C-contiguous; left as they are.
        first_tweak: As for `hash_rows`.
        domain: As for `hash_rows`.
        offsets: Shape (m, 2).
        word: The type in which bits are wanted: the lowest of a hash's 64-bit words.
        words: 1, or 2 for those of the second 64-bit word, too.

    Returns:
        Shape (m, words, n), of type `word`.
    """
    number, most = len(rows), min(len(rows), _AT_ONCE)
    hashed = np.empty((len(offsets), words, number), word)
    inner, outer = np.empty((2, most + 1, 2), np.uint64)  # with a row of slack, for which the cipher asks
    shifted, tweaks = np.empty((2, most, 2), np.uint64)  # the former first for a row ⊕ offset, then for π(x) ⊕ tweak
    tweaks[:, 1] = domain
    permute = _PERMUTATION.context.update_into
    for start in range(0, number, _AT_ONCE):
        stop = min(start + _AT_ONCE, number)
        size = stop - start
        once, twice, these = inner[:size], outer[:size], tweaks[:size]
        these[:, 0] = np.arange(first_tweak + start, first_tweak + stop, dtype=np.uint64)
        ins, outs = (_columns(each, word, words) for each in (once, twice))
        for offset, target in zip(offsets, hashed[:, :, start:stop], strict=True):
            part = rows[start:stop]
            if offset.any():
                part = xor_each(part, offset, shifted[:size])
            permute(_bytes(part), _bytes(inner[: size + 1]))
            tweaked = np.bitwise_xor(once, these, out=shifted[:size])
            permute(_bytes(tweaked), _bytes(outer[: size + 1]))
            np.bitwise_xor(ins, outs, out=target)
    return hashed


def _columns(rows: Rows128, word: type[np.unsignedinteger[Any]], words: int) -> Words:
    """Of each row the lowest word of its first 64-bit words, shape (words, n), without a copy."""
    narrow: Words = rows.view(word)
    return narrow[:, :: narrow.shape[1] // 2].T[:words]


def _bytes(rows: Rows128) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data

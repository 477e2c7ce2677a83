"""Correlation-robust hashes from π, AES under a fixed key, and tweaks i that serve once each.

    H(i, x) = π(π(x) ⊕ i) ⊕ π(x)          `hash_rows`, `hash_blocks`, for messages of 128 bits, rows that another party
                                          may have chosen, or that are hashed under several tweaks: tweakable circular
                                          correlation robustness;
    H(i, x) = π(x ⊕ i) ⊕ x ⊕ i            `hash_words`, for bits, words of correlated transfers and table entries, where
                                          no party chooses its rows: correlation robustness, at half the work.

They break the correlation that oblivious-transfer extension leaves among its rows: for a secret Δ the hashes of
x and x ⊕ Δ look independent, for as many rows as there are tweaks, since no tweak is used twice under one Δ. The second
needs x ⊕ i to be different for all rows, which pseudorandom rows are but with a chance of q²/2^129 for q of them.

Source: Guo, Katz, Wang and Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers", IEEE S&P
2020, sections 7.4 (TCCR) and 7.2 (CR: π(x) ⊕ x, which semi-honest extension asks for), in the ideal-permutation model.
The key of π is a public constant, the first 16 bytes of SHA-256 of its name.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, xor_each
from crypto.primitives.shares.masks import Words

_KEY: Final = hashlib.sha256(b"comine fixed-key AES-128 permutation").digest()[:16]
_BLOCK: Final = 16
_AT_ONCE: Final = 1 << 13  # rows: input, output and tweaks stay in the cache
_NO_OFFSET: Final = np.zeros((1, 2), np.uint64)


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
    hashed: Rows128 = hash_blocks(rows, first_tweak, domain, _NO_OFFSET)[0]
    return hashed


def hash_blocks(rows: Rows128, first_tweak: int, domain: int, offsets: Rows128) -> NDArray[np.uint64]:
    """H((domain, first_tweak + j), rows[j] ⊕ offset) for every offset and row.

    Args:
        rows: As for `hash_rows`.
        first_tweak: As for `hash_rows`.
        domain: As for `hash_rows`.
        offsets: Shape (m, 2).

    Returns:
        Shape (m, n, 2).
    """
    number = len(rows)
    hashed = np.empty((len(offsets), number, 2), np.uint64)
    most = min(number, _AT_ONCE)
    tweaks, tweaked = np.empty((2, most, 2), np.uint64)
    once, twice = np.empty((2, most + 1, 2), np.uint64)  # with a row of slack, for which the cipher asks
    tweaks[:, 0] = np.arange(first_tweak, first_tweak + most, dtype=np.uint64)
    tweaks[:, 1] = domain
    permute = _PERMUTATION.context.update_into
    for start in range(0, number, _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, number))
        size = part.stop - start
        for index, offset in enumerate(offsets):
            some = xor_each(rows[part], offset) if offset.any() else rows[part]
            permute(_bytes(some), _bytes(once[: size + 1]))
            np.bitwise_xor(once[:size], tweaks[:size], out=tweaked[:size])
            permute(_bytes(tweaked[:size]), _bytes(twice[: size + 1]))
            np.bitwise_xor(once[:size], twice[:size], out=hashed[index, part])
        tweaks[:, 0] += np.uint64(_AT_ONCE)
    return hashed


def hash_words(
    rows: Rows128,
    first_tweak: int,
    domain: int,
    offsets: Rows128,
    word: type[np.unsignedinteger[Any]],
    words: int = 1,
) -> Words:
    """The first bits of H((domain, first_tweak + j), rows[j] ⊕ offset) for every offset and row.

    Args:
        rows: Shape (n, 2), C-contiguous, pseudorandom; left as they are.
        first_tweak: As for `hash_rows`.
        domain: As for `hash_rows`.
        offsets: Shape (m, 2).
        word: The type in which bits are wanted: the lowest of a hash's 64-bit words.
        words: 1, or 2 for those of the second 64-bit word, too.

    Returns:
        Shape (m, words, n), of type `word`.
    """
    hashed = np.empty((len(offsets), words, len(rows)), word)
    for index, part, tweaked, permuted in _permuted(rows, first_tweak, domain, offsets):
        np.bitwise_xor(_columns(tweaked, word, words), _columns(permuted, word, words), out=hashed[index, :, part])
    return hashed


def _permuted(
    rows: Rows128, first_tweak: int, domain: int, offsets: Rows128
) -> Iterator[tuple[int, slice, Rows128, Rows128]]:
    """Gives x ⊕ i and π(x ⊕ i) for each offset's x, some rows at a time, until the next are asked for."""
    number = len(rows)
    most = -(-min(number, _AT_ONCE) // ROWS) * ROWS
    tweaks, plain, shifted = np.zeros((3, most, 2), np.uint64)
    permuted = np.empty((most + 1, 2), np.uint64)  # with a row of slack, for which the cipher asks
    tweaks[:, 0] = np.arange(first_tweak, first_tweak + most, dtype=np.uint64)
    tweaks[:, 1] = domain
    wide = [np.tile(offset, ROWS) for offset in offsets]  # numpy is slow where the last axis is short
    permute = _PERMUTATION.context.update_into
    for start in range(0, number, _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, number))
        size = part.stop - start
        np.bitwise_xor(rows[part], tweaks[:size], out=plain[:size])
        for index, offset in enumerate(wide):
            tweaked = plain
            if offset.any():
                tweaked = shifted
                np.bitwise_xor(plain.reshape(-1, 2 * ROWS), offset, out=shifted.reshape(-1, 2 * ROWS))
            permute(_bytes(tweaked[:size]), _bytes(permuted[: size + 1]))
            yield index, part, tweaked[:size], permuted[:size]
        tweaks[:, 0] += np.uint64(_AT_ONCE)


def _columns(rows: Rows128, word: type[np.unsignedinteger[Any]], words: int) -> Words:
    """Of each row the lowest word of its first 64-bit words, shape (words, n), without a copy."""
    narrow: Words = rows.view(word)
    return narrow[:, :: narrow.shape[1] // 2].T[:words]


def _bytes(rows: Rows128) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data

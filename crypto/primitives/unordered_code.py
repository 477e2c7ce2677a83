"""Berger's code: words that may be laid over one another, and show whether they were all the same.

A word is L bits of data and, in binary, how many of them are 0. No word covers another: where the data of z have a 1
in every place where those of x do, and in one more, z counts fewer zeros than x, and a smaller number does not cover a
larger one. So the OR of some words is itself a word exactly if they are all equal. The OR of none, which is all zeros,
is no word of one bit of data or more.

Pure functions.

Source: Berger, "A Note on Error Detection Codes for Asymmetric Channels", Information and Control 4(1), 1961.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
"""Each 0 or 1; in two dimensions, one row for each word."""


def word_bits(data_bits: int) -> int:
    """Bits of a word."""
    return data_bits + data_bits.bit_length()


def words_of(data: Bits) -> Bits:
    """The words of some data.

    Args:
        data: Shape (n, L).

    Returns:
        Shape (n, `word_bits(L)`).
    """
    return np.concatenate([data, _zeros(data)], axis=1)


def are_words(laid_over: Bits, data_bits: int) -> NDArray[np.bool_]:
    """Which ORs are of words that are all equal.

    Args:
        laid_over: Shape (n, `word_bits(data_bits)`), each row the OR of some words.
        data_bits: L.

    Returns:
        Shape (n,). Where it holds, the first L bits are the data.
    """
    equal: NDArray[np.bool_] = (laid_over[:, data_bits:] == _zeros(laid_over[:, :data_bits])).all(axis=1)
    return equal


def _zeros(data: Bits) -> Bits:
    """How many bits of each row are 0, in binary, the lowest bit first."""
    zeros = np.uint32(data.shape[1]) - data.sum(axis=1, dtype=np.uint32)
    places = np.arange(data.shape[1].bit_length(), dtype=np.uint32)
    found: Bits = (zeros[:, None] >> places & np.uint32(1)).astype(np.uint8)
    return found

"""Berger's code against its definition: the OR of words is a word exactly if they are all equal."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.unordered_code import are_words, word_bits, words_of


def all_words(data_bits: int) -> np.ndarray:
    numbers = np.arange(1 << data_bits)
    return words_of((numbers[:, None] >> np.arange(data_bits) & 1).astype(np.uint8))


@pytest.mark.parametrize("data_bits", [1, 2, 3, 4, 5])
def test_every_two_words_and_every_three(data_bits):
    words = all_words(data_bits)
    assert words.shape == (1 << data_bits, word_bits(data_bits))
    for some in (2, 3):
        for chosen in combinations_with_replacement(range(len(words)), some):
            laid = np.bitwise_or.reduce(words[list(chosen)])[None]
            assert are_words(laid, data_bits)[0] == (len(set(chosen)) == 1)


@given(
    data=st.lists(st.binary(min_size=5, max_size=5), min_size=1, max_size=6),
)
def test_words_of_names(data):
    bits = np.unpackbits(np.frombuffer(b"".join(data), np.uint8).reshape(-1, 5), axis=1)
    laid = np.bitwise_or.reduce(words_of(bits))[None]
    assert are_words(laid, 40)[0] == (len(set(data)) == 1)


@pytest.mark.parametrize("data_bits", [1, 7, 8, 40, 1000])
def test_nothing_laid_over_is_no_word(data_bits):
    assert not are_words(np.zeros((1, word_bits(data_bits)), np.uint8), data_bits)[0]


def test_words_without_data_are_all_equal():
    assert word_bits(0) == 0
    assert are_words(words_of(np.empty((3, 0), np.uint8)), 0).all()

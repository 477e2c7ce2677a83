from __future__ import annotations

from math import comb, log2

import numpy as np
import pytest

from crypto.primitives.linear_code import (
    DISTANCE,
    MESSAGE_BITS,
    WORD_BITS,
    encoded,
    encoded_columns,
    encoding,
    generator,
    generator_polynomial,
)
from crypto.primitives.randomness import Randomness


def messages_of(number, seed=1):
    return Randomness.from_seed(seed).uint64(2 * number).reshape(-1, 2)


def as_integers(words):
    return [int.from_bytes(word.tobytes(), "little") for word in words]


def remainder(polynomial, divisor):
    while (excess := polynomial.bit_length() - divisor.bit_length()) >= 0:
        polynomial ^= divisor << excess
    return polynomial


def value_at(polynomial, point):
    """Of a polynomial over GF(2), in GF(2^9) by Horner's rule and multiplication bit by bit."""
    value = 0
    for place in reversed(range(polynomial.bit_length())):
        product = 0
        for bit in reversed(range(9)):
            product <<= 1
            product ^= 0b1000010001 if product >> 9 else 0
            product ^= value if point >> bit & 1 else 0
        value = product ^ (polynomial >> place & 1)
    return value


def test_words_vanish_at_111_consecutive_powers():
    """So that all but 0 have 112 ones (BCH bound): α has order 511, and every word is a multiple of the generator."""
    powers = [1]
    for _ in range(511):
        powers.append(remainder(powers[-1] << 1, 0b1000010001))
    assert len(set(powers[:511])) == 511
    assert powers[511] == 1
    factor = generator_polynomial()
    assert all(value_at(factor, powers[exponent]) == 0 for exponent in range(DISTANCE - 1))
    assert remainder(1 << 511 | 1, factor) == 0
    for word in as_integers(generator()):
        in_order = word >> MESSAGE_BITS | (word & (1 << MESSAGE_BITS) - 1) << 383
        assert in_order.bit_length() <= 511
        assert remainder(in_order, factor) == 0


def test_a_word_begins_with_its_message():
    messages = messages_of(1000)
    words = encoded(messages, encoding())
    assert np.array_equal(words[:, :2], messages)
    assert not (words[:, -1] >> np.uint64(62)).any()
    assert words.shape == (1000, WORD_BITS // 64)


def test_words_are_sums_of_the_generators():
    messages, rows = messages_of(20_000), generator()
    words = encoded(messages, encoding())
    for message, word in list(zip(as_integers(messages), words, strict=True))[::991]:
        own = [rows[bit] for bit in range(MESSAGE_BITS) if message >> bit & 1]
        assert np.array_equal(word, np.bitwise_xor.reduce(own))


def test_masked_tables_give_masked_words():
    messages, mask = messages_of(50), Randomness.from_seed(2).uint64(8)
    assert np.array_equal(encoded(messages, encoding() & mask), encoded(messages, encoding()) & mask)


@pytest.mark.parametrize("number", [0, 1, 8192, 8193])
def test_any_number_of_messages(number):
    assert encoded(messages_of(number), encoding()).shape == (number, 8)


def test_random_words_weigh_as_fair_coins_do():
    """510 of them: each bound fails with a chance below 10^-6 (Hoeffding, and the exact tail)."""
    number = 20_000
    weights = np.bitwise_count(encoded(messages_of(number), encoding())).sum(axis=1)
    assert abs(weights.mean() - 255) < 510 * np.sqrt(np.log(2e6) / (2 * number))
    assert abs(weights.std() - np.sqrt(510) / 2) < 1
    least = int(weights.min())
    assert log2(sum(comb(510, weight) for weight in range(least + 1)) * number) - 510 > -20
    assert least >= DISTANCE
    assert not (weights % 2).any()


@pytest.mark.parametrize("number", [128, 8192, 8320])
def test_columns_of_words(number):
    messages = messages_of(number)
    bits = np.unpackbits(messages.view(np.uint8), axis=1, bitorder="little").reshape(number, -1)
    columns = encoded_columns(np.packbits(bits.T, axis=1, bitorder="little"))
    words = encoded(messages, encoding())
    expected = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").reshape(number, -1).T
    assert np.array_equal(np.unpackbits(columns, axis=1, bitorder="little"), expected)

"""GF(2^64) against polynomials over integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.binary_field import evaluated, powers, product
from tests.examples import examples

MODULUS = 1 << 64 | 0b11011
WORDS = st.integers(0, 2**64 - 1)


def reduced(value: int) -> int:
    for place in range(value.bit_length() - 1, 63, -1):
        if value >> place & 1:
            value ^= MODULUS << place - 64
    return value


def times(x: int, y: int) -> int:
    found = 0
    for place in range(64):
        found ^= (x << place) * (y >> place & 1)
    return reduced(found)


def of(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


@given(WORDS, WORDS)
def test_products_are_those_of_polynomials(x: int, y: int) -> None:
    assert int(product(of(x), of(y))[0]) == times(x, y)


def test_products_of_all_places() -> None:
    """Each pair of places by itself, as arrays longer than a piece."""
    places = np.arange(64)
    x, y = (np.uint64(1) << each.astype(np.uint64) for each in (np.repeat(places, 64), np.tile(places, 64)))
    x, y = np.concatenate([x, y, x]), np.concatenate([y, x, x])
    expected = [times(int(one), int(other)) for one, other in zip(x, y, strict=True)]
    assert product(x, y).tolist() == expected
    assert product(x, y).dtype == np.uint64


def test_words_of_ones() -> None:
    ones = 2**64 - 1
    assert int(product(of(ones), of(ones))[0]) == times(ones, ones)


def test_known_values() -> None:
    """X^63 · X is the modulus less X^64; every element to the power 2^64 is itself, which holds in this field alone."""
    assert int(product(of(1 << 63), of(2))[0]) == 0b11011
    element = start = of(0x0123456789ABCDEF)
    for _ in range(64):
        element = product(element, element)
    assert element == start


def test_the_modulus_is_irreducible() -> None:
    """Rabin: X^(2^64) = X, and X^(2^32) − X has no factor in common with it."""
    element, half = 2, 0
    for step in range(64):
        element = times(element, element)
        half = element if step == 31 else half
    assert element == 2
    one, other = MODULUS, half ^ 2
    while other:
        while one.bit_length() >= other.bit_length():
            one ^= other << one.bit_length() - other.bit_length()
        one, other = other, one
    assert one == 1


@examples(20, 100)
@given(WORDS, st.integers(1, 70))
def test_powers(x: int, number: int) -> None:
    expected = [1]
    while len(expected) < number:
        expected.append(times(expected[-1], x))
    assert powers(np.uint64(x), number).tolist() == expected


@examples(20, 100)
@given(WORDS, st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([0, 1, 4095, 4096, 9000]))
def test_polynomials_are_evaluated(x: int, coefficients: list[int], zeros: int) -> None:
    expected = 0
    for each in reversed(coefficients):
        expected = times(expected, x) ^ each
    shift = 1
    for bit in bin(zeros)[2:]:
        shift = times(times(shift, shift), x if bit == "1" else 1)
    found = evaluated(np.concatenate([np.zeros(zeros, np.uint64), of(*coefficients)]), np.uint64(x))
    assert int(found) == times(expected, shift)

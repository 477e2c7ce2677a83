"""Strings of bits: texts and numbers survive them, cuts are right, and functions on them are strongly universal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.heavy_hitters.bit_strings import Integers, Texts, fragments, prefixes, word_count, words_of
from ldp.heavy_hitters.vector_hashing import VectorHashFamily
from link.errors import ConfigurationError, InputDataError
from tests.ldp.contract import ERROR, chi_square_p

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def as_number(words: np.ndarray, bits: int) -> int:
    whole = int.from_bytes(words.astype(">u4").tobytes(), "big")
    return whole >> (32 * len(words) - bits)


@given(st.lists(st.text(CHARACTERS, max_size=6), max_size=5), st.integers(0, 7))
def test_texts_survive_and_their_prefixes_are_plausible(texts: list[str], more: int) -> None:
    strings = Texts(max([1, *(len(text.encode()) for text in texts)]) + more)
    words = strings.encode(np.array(texts, dtype=object))
    assert words.shape == (len(texts), word_count(strings.bits))
    for text, row in zip(texts, words, strict=True):
        number = as_number(row, strings.bits)
        assert strings.decode(number) == text
        assert all(strings.plausible(number >> strings.bits - cut, cut) for cut in range(1, strings.bits + 1))


@given(st.integers(1, 64).flatmap(lambda w: st.tuples(st.just(w), st.lists(st.integers(0, (1 << w) - 1), max_size=5))))
def test_integers_survive(drawn: tuple[int, list[int]]) -> None:
    width, numbers = drawn
    strings = Integers(width)
    words = strings.encode(np.array(numbers, dtype=np.uint64))
    assert [strings.decode(as_number(row, width)) for row in words] == numbers
    assert np.array_equal(words, words_of(numbers, width))


@given(st.data())
def test_cuts_are_right(data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, 150))
    numbers = data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=1, max_size=4))
    start = data.draw(st.integers(0, bits - 1))
    width = data.draw(st.integers(1, min(32, bits - start)))
    words = words_of(numbers, bits)
    expected = [number >> bits - start - width & (1 << width) - 1 for number in numbers]
    assert fragments(words, start, width).tolist() == expected
    length = start + width
    assert np.array_equal(prefixes(words, length), words_of([number >> bits - length for number in numbers], length))


@pytest.mark.parametrize(
    ("prefix", "plausible"),
    [
        (b"", True),
        (b"a", True),
        (b"\0", True),
        (b"a\0b", False),
        (b"a\0\0", True),
        (b"\xc3", True),  # half of é, which may still be completed
        (b"\xc3\xa9", True),
        (b"\xc3\0", False),
        (b"a\xe6\x9d", False),  # at full length nothing can complete it
        (b"\xff", False),
        (b"\xed\xa0", False),  # the beginning of a surrogate
        (b"\xe0\xa0", True),
        (b"\xe0\x80", False),  # overlong
        (b"\xf0", False),  # four bytes do not fit three
        (b"aa\xc3", False),
    ],
)
def test_what_may_begin_a_text(prefix: bytes, plausible: bool) -> None:
    assert Texts(3).plausible(int.from_bytes(prefix, "big"), 8 * len(prefix)) is plausible


def test_bits_behind_the_end_of_a_text_are_zeros() -> None:
    assert Texts(3).plausible(int.from_bytes(b"a\0", "big") << 3, 19)
    assert not Texts(3).plausible(int.from_bytes(b"a\0", "big") << 3 | 1, 19)


@given(st.integers(0, 24).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, (1 << length) - 1))))
def test_exactly_what_can_go_on_is_plausible(drawn: tuple[int, int]) -> None:
    length, prefix = drawn
    strings = Texts(3)
    if length < strings.bits:
        nexts = [strings.plausible(prefix << 1 | bit, length + 1) for bit in (0, 1)]
        assert strings.plausible(prefix, length) is any(nexts)
    elif strings.plausible(prefix, length):
        assert as_number(strings.encode([strings.decode(prefix)])[0], strings.bits) == prefix


@pytest.mark.parametrize("values", [["toolong"], ["日本"], ["a\0b"], ["\ud800"], [1], [None], "text", [["a"]], [b"a"]])
def test_wrong_texts_are_refused(values: object) -> None:
    with pytest.raises(InputDataError):
        Texts(5).encode(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[16], [-1], [0.5], [float("nan")], ["1"], [[1]], [None], 3])
def test_wrong_integers_are_refused(values: object) -> None:
    with pytest.raises(InputDataError):
        Integers(4).encode(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -1, 257])
def test_wrong_lengths_are_refused(size: int) -> None:
    for kind in (Texts, Integers):
        with pytest.raises(ConfigurationError):
            kind(size)


@given(st.integers(1, 4), st.integers(2, 40), st.sampled_from([0, 1, 60, 700]), st.integers(0, 1 << 32), st.booleans())
def test_supporters_are_those_whose_function_hits(words: int, g: int, n: int, seed: int, close: bool) -> None:
    rng, family = Randomness.from_seed(seed), VectorHashFamily(words, g)
    strings = rng.integers(3 if close else 1 << 32, 20 * words).reshape(20, words)
    seeds, buckets = family.draw(n, rng), rng.integers(g, n).astype(np.int64)
    table = [family.buckets(seeds, np.broadcast_to(string, (n, words))) for string in strings]
    assert family.supporters(seeds, buckets, strings).tolist() == [int((row == buckets).sum()) for row in table]


@pytest.mark.parametrize("g", [2, 5, 16, 1 << 16])
def test_functions_are_pairwise_independent(g: int) -> None:
    family, n = VectorHashFamily(3, g), 200_000
    seeds = family.draw(n, Randomness.from_seed(3))
    coarse = min(g, 16)
    zero, low, high, middle = words_of([0, 1, 1 << 95, 1 << 40], 96)
    for one, two in ((zero, low), (zero, high), (low, high), (middle, low)):
        pair = [family.buckets(seeds, np.broadcast_to(each, (n, 3))) * coarse // g for each in (one, two)]
        observed = np.bincount(pair[0] * coarse + pair[1], minlength=coarse * coarse)
        assert chi_square_p(observed, np.full(coarse * coarse, n / coarse**2)) > ERROR

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, reconstruct, share

words = st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=10)
NAMES = ("north", "south", "east")


def vector(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@given(words, st.integers(2, 5))
def test_shares_add_up_to_the_secret(values: list[int], n: int) -> None:
    shares = share(vector(values), [f"p{i}" for i in range(n)], Randomness.from_seed(n))
    assert len(shares) == n
    assert reconstruct(shares).tolist() == values
    assert reconstruct(shares[::-1]).tolist() == values


@given(words, st.integers(-(1 << 70), 1 << 70), st.integers(-(1 << 70), 1 << 70))
def test_arithmetic_on_shares_is_arithmetic_on_secrets(values: list[int], constant: int, factor: int) -> None:
    random = Randomness.from_seed(1)
    others = list(reversed(values))
    a, b = share(vector(values), NAMES, random), share(vector(others), NAMES, random)
    modulus = 1 << 64
    pairs = list(zip(values, others, strict=True))
    assert reconstruct([x + y for x, y in zip(a, b, strict=True)]).tolist() == [(x + y) % modulus for x, y in pairs]
    assert reconstruct([x - y for x, y in zip(a, b, strict=True)]).tolist() == [(x - y) % modulus for x, y in pairs]
    assert reconstruct([-x for x in a]).tolist() == [-x % modulus for x in values]
    assert reconstruct([x.plus_public(constant) for x in a]).tolist() == [(x + constant) % modulus for x in values]
    assert reconstruct([x.times_public(factor) for x in a]).tolist() == [x * factor % modulus for x in values]
    assert reconstruct([x.plus_public(vector(others)) for x in a]).tolist() == [(x + y) % modulus for x, y in pairs]


def test_any_but_all_shares_look_the_same() -> None:
    for secret in (0, (1 << 64) - 1):
        shares = share(np.full(4000, secret, dtype=np.uint64), NAMES, Randomness.from_os())
        for subset in ([0, 1], [0, 2], [1, 2], [0]):
            total = np.sum([shares[i].values for i in subset], axis=0, dtype=np.uint64)
            ones = int(np.bitwise_count(total).sum())
            assert abs(ones - 128_000) < 8 * 253  # 8 standard deviations: fails once in 10^14 runs


def test_the_input_is_left_alone_and_shares_cannot_be_written() -> None:
    values = vector([1, 2, 3])
    shares = share(values, NAMES, Randomness.from_os())
    assert values.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        shares[0].values[0] = 5


def test_parts_are_taken_as_shares() -> None:
    shares = share(vector([1, 2, 3, 4]), NAMES, Randomness.from_os())
    assert reconstruct([part[1:3] for part in shares]).tolist() == [2, 3]
    assert reconstruct([part[np.array([3, 0])] for part in shares]).tolist() == [4, 1]
    with pytest.raises(TypeError, match="slice or an array"):
        shares[0][0]  # type: ignore[index]


def test_misuse_is_a_type_error() -> None:
    a, b, _ = share(vector([1, 2]), NAMES, Randomness.from_os())
    acts = [
        lambda: bool(a),
        lambda: int(a),  # type: ignore[call-overload]
        lambda: float(a),  # type: ignore[arg-type]
        lambda: len(a),
        lambda: list(a),  # type: ignore[call-overload]
        lambda: range(a),  # type: ignore[call-overload]
        lambda: 1 in a,
        lambda: a == a,
        lambda: a != 1,
        lambda: a < a,
        lambda: hash(a),
        lambda: np.asarray(a),
        lambda: np.array([1], dtype=np.uint64) + a,
        lambda: a + 1,
        lambda: 1 + a,
        lambda: a - np.array([1], dtype=np.uint64),
        lambda: a + b,
        lambda: a.plus_public(np.array([1, 2])),
        lambda: a.times_public(np.array([1.5, 2])),
    ]
    for act in acts:
        with pytest.raises(TypeError):
            act()


def test_mismatches_are_refused() -> None:
    random = Randomness.from_os()
    shares = share(vector([1, 2]), NAMES, random)
    short = share(vector([1]), NAMES, random)
    with pytest.raises(ValueError, match="length"):
        shares[0] + short[0]
    for wrong in ([], shares[:2], [*shares, shares[0]], [shares[0], shares[0], shares[1]], [*shares[:2], short[2]]):
        with pytest.raises(ValueError, match=r"shares|share of each|different vectors"):
            reconstruct(wrong)
    with pytest.raises(ValueError, match="two holders"):
        share(vector([1]), ["alone"], random)
    with pytest.raises(ValueError, match="holder"):
        AdditiveShare(vector([1]), "west", NAMES)
    with pytest.raises(ValueError, match="holder"):
        AdditiveShare(vector([1]), "a", ("a", "a"))
    with pytest.raises(TypeError, match="uint64"):
        AdditiveShare(np.array([1]), "a", ("a", "b"))  # type: ignore[arg-type]


def test_a_share_shows_only_its_length() -> None:
    shown = share(vector([123456789]), NAMES, Randomness.from_os())[0]
    assert repr(shown) == str(shown) == "<AdditiveShare of length 1 modulo 2^64>"


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_sharing_in_any_word(word: type[np.unsignedinteger[Any]]) -> None:
    top = int(np.iinfo(word).max)
    values = np.array([0, 1, top, top // 2], word)
    shares = share(values, NAMES, Randomness.from_os())
    assert {part.word for part in shares} == {word}
    assert shares[0].word_bits == 8 * values.itemsize
    found = reconstruct(shares)
    assert found.dtype == word
    assert found.tolist() == values.tolist()
    doubled = reconstruct([(part + part).plus_public(-1) for part in shares])
    assert doubled.tolist() == [(2 * int(v) - 1) % (top + 1) for v in values]
    assert reconstruct([part.plus_public(values).times_public(values) for part in shares]).tolist() == [
        2 * int(v) ** 2 % (top + 1) for v in values
    ]


def test_the_word_is_the_same_whatever_numpy_calls_its_type() -> None:
    for dtype in (np.min_scalar_type(2**64 - 1), np.dtype(np.ulonglong), np.dtype("<u8")):
        assert AdditiveShare(np.zeros(1, dtype), "a", ("a", "b")).word is np.uint64


def test_shares_of_different_words_do_not_mix() -> None:
    random = Randomness.from_os()
    long, short = (share(np.array([1, 2], word), NAMES, random) for word in (np.uint64, np.uint16))
    with pytest.raises(TypeError, match="modulo 2\\^64 and 2\\^16"):
        long[0] + short[0]
    with pytest.raises(TypeError, match="2\\^64 and 2\\^16"):
        reconstruct([long[0], long[1], short[2]])
    with pytest.raises(TypeError, match="own word"):
        short[0].plus_public(np.array([1, 2], np.uint64))
    for dtype in (np.int64, np.float64, np.bool_):
        with pytest.raises(TypeError, match="uint8, uint16, uint32 or uint64"):
            AdditiveShare(np.zeros(2, dtype), "a", ("a", "b"))  # type: ignore[arg-type]

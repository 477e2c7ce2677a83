from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import share
from crypto.primitives.shares.xor import XorShare, planes_of, reconstruct_bits, share_bits, words_of

NAMES = ("north", "south", "east")
WORDS = st.integers(1, 64).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.integers(0, 2**width - 1), max_size=40))
)


def split(words: list[int], width: int, holders: tuple[str, ...] = NAMES, seed: int = 0) -> list[XorShare]:
    return share_bits(np.array(words, np.uint64), width, holders, Randomness.from_seed(seed))


@given(WORDS)
def test_planes_and_words_are_inverse(given_: tuple[int, list[int]]) -> None:
    width, words = given_
    planes = planes_of(np.array(words, np.uint64), width)
    assert planes.shape == (width, -(-len(words) // 8))
    assert words_of(planes, len(words)).tolist() == words
    for bit in range(width):
        bits = np.unpackbits(planes[bit], count=len(words), bitorder="little")
        assert bits.tolist() == [word >> bit & 1 for word in words]


@given(WORDS, st.integers(2, 5))
def test_shares_xor_to_the_words(given_: tuple[int, list[int]], n: int) -> None:
    width, words = given_
    shares = split(words, width, tuple(f"p{i}" for i in range(n)))
    assert reconstruct_bits(shares).tolist() == reconstruct_bits(shares[::-1]).tolist() == words


@given(WORDS, st.data())
def test_linear_operations_are_those_on_the_words(given_: tuple[int, list[int]], data: st.DataObject) -> None:
    width, words = given_
    other = data.draw(st.permutations(words))
    flags = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    a, b = split(words, width), split(other, width, seed=1)
    full, public = 2**width - 1, np.array(flags, np.bool_)

    def result(operation: Any) -> list[int]:
        return reconstruct_bits([operation(x, y) for x, y in zip(a, b, strict=True)]).tolist()

    assert result(lambda x, y: x ^ y) == [v ^ w for v, w in zip(words, other, strict=True)]
    assert result(lambda x, y: ~x) == [full ^ v for v in words]
    assert result(lambda x, y: x[public]) == [v for v, f in zip(words, flags, strict=True) if f]
    assert result(lambda x, y: x[1:3]) == words[1:3]
    assert result(lambda x, y: x.bits(slice(0, 1))) == [v & 1 for v in words]
    if width <= 32:
        assert result(lambda x, y: XorShare.stacked([x, y])) == [
            v | w << width for v, w in zip(words, other, strict=True)
        ]
    eight = len(words) // 8 * 8
    assert result(lambda x, y: XorShare.joined([x[:eight], y])) == words[:eight] + other


def test_any_but_all_shares_look_the_same() -> None:
    for word in (0, 2**64 - 1):
        shares = share_bits(np.full(4000, word, np.uint64), 64, NAMES, Randomness.from_os())
        for subset in ([0, 1], [0, 2], [1, 2], [0]):
            total = np.bitwise_xor.reduce([shares[i].planes for i in subset])
            assert abs(int(np.bitwise_count(total).sum()) - 128_000) < 8 * 253  # fails once in 10^14 runs


def test_misuse_is_a_type_error() -> None:
    a, b, _ = split([1, 2], 4)
    sum_of_north = share(np.zeros(2, np.uint64), NAMES, Randomness.from_os())[0]
    acts: list[Any] = [
        lambda: bool(a),
        lambda: int(a),  # type: ignore[call-overload]
        lambda: len(a),
        lambda: list(a),  # type: ignore[call-overload]
        lambda: a == a,
        lambda: hash(a),
        lambda: np.asarray(a),
        lambda: a ^ 1,  # type: ignore[operator]
        lambda: np.ones((4, 1), np.uint8) ^ a,
        lambda: a ^ b,
        lambda: a ^ sum_of_north,  # type: ignore[operator]
        lambda: sum_of_north + a,  # type: ignore[operator]
        lambda: a[0],  # type: ignore[index]
        lambda: XorShare.stacked([a, b]),
        lambda: XorShare.joined([a, b]),
        lambda: XorShare(np.zeros(2, np.uint8), 2, "north", NAMES),
    ]
    for act in acts:
        with pytest.raises(TypeError):
            act()


def test_mismatches_are_refused() -> None:
    shares, short, narrow = split([1, 2], 4), split([1], 4), split([1, 2], 3)
    with pytest.raises(ValueError, match="does not XOR"):
        shares[0] ^ short[0]
    with pytest.raises(ValueError, match="does not XOR"):
        shares[0] ^ narrow[0]
    with pytest.raises(ValueError, match="whole bytes"):
        XorShare.joined([shares[0], shares[0]])
    with pytest.raises(ValueError, match="not stacked"):
        XorShare.stacked([shares[0], short[0]])
    with pytest.raises(ValueError, match="do not hold"):
        XorShare(np.zeros((1, 2), np.uint8), 8, "north", NAMES)
    with pytest.raises(ValueError, match="holder"):
        XorShare(np.zeros((1, 1), np.uint8), 8, "west", NAMES)


def test_a_share_shows_only_its_size_and_cannot_be_written() -> None:
    shown = split([5], 4)[0]
    assert repr(shown) == "<XorShare of 1 words of 4 bits>"
    with pytest.raises(ValueError, match="read-only"):
        shown.planes[0, 0] = 1

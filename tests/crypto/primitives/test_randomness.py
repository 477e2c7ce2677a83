from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.keystream import Keystream, next_rows
from crypto.primitives.randomness import Randomness
from link.errors import InternalError
from link.randomness import RandomStream

pytestmark = pytest.mark.turn(3)

# Quantile of the standard normal at error probability 10^-6. Seeds are fixed, so a test that passes once passes always;
# the figure says how likely a correct generator was to fail it.
Z = 4.75


def chi_square_limit(degrees: int) -> float:
    """Wilson and Hilferty's approximation of the quantile at error probability 10^-6."""
    return degrees * (1 - 2 / (9 * degrees) + Z * math.sqrt(2 / (9 * degrees))) ** 3


def chi_square(counts: list[int], cells: int) -> float:
    expected = sum(counts) / cells
    missing = cells - len(counts)
    return sum((count - expected) ** 2 for count in counts) / expected + missing * expected


def test_the_keystream_gives_the_published_result(vectors) -> None:
    vector = {name: bytes.fromhex(value) for name, value in vectors("aes128_ctr_sp800_38a").items() if name != "source"}
    expected = bytes(a ^ b for a, b in zip(vector["plaintext"], vector["ciphertext"], strict=True))
    assert Keystream(vector["key"], vector["counter"]).take(len(expected)) == expected
    assert Keystream(vector["key"], vector["counter"]).words(8).tobytes() == expected


@given(st.lists(st.integers(0, 600), max_size=8))
def test_the_keystream_is_one_string_however_it_is_cut(sizes: list[int]) -> None:
    whole = Keystream(bytes(16), bytes(16)).take(8 * sum(sizes))
    stream = Keystream(bytes(16), bytes(16))
    pieces = [stream.take(8 * size) if i % 2 else stream.words(size).tobytes() for i, size in enumerate(sizes)]
    assert b"".join(pieces) == whole


def test_streams_of_many_keys_are_those_of_each() -> None:
    keys, counter = [bytes([number]) * 16 for number in range(3)], bytes(range(16))
    streams = Keystream.of_keys(keys, counter)
    begun = [stream.take(40) for stream in streams]
    whole = [first + stream.take(40) for first, stream in zip(begun, streams, strict=True)]
    assert whole == [Keystream(key, counter).take(80) for key in keys]


@pytest.mark.parametrize("size", [0, 16, 48, (1 << 18) + 16])
def test_rows_of_many_streams_are_the_next_bytes_of_each(size: int) -> None:
    keys = [bytes([number]) * 16 for number in range(3)]
    streams, plain = (Keystream.of_keys(keys, bytes(16)) for _ in range(2))
    onto = np.full((3, size), 7, np.uint8)
    for source in (None, onto, None):
        expected = np.frombuffer(b"".join(stream.take(size) for stream in plain), np.uint8).reshape(3, size)
        assert np.array_equal(next_rows(streams, size, source), expected ^ (0 if source is None else 7))
    assert (onto == 7).all()


def test_long_draws_cross_chunks() -> None:
    size = (1 << 18) + 12_345
    whole = Keystream(bytes(16), bytes(16)).take(size)
    assert len(whole) == size
    stream = Keystream(bytes(16), bytes(16))
    assert whole == b"".join(stream.take(min(1000, size - start)) for start in range(0, size, 1000))


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Keystream(bytes(32), bytes(16))
    with pytest.raises(ValueError, match="16 bytes"):
        Keystream.of_keys([bytes(16), bytes(32)], bytes(16))
    with pytest.raises(ValueError, match="32 bytes"):
        Randomness.from_key(bytes(16))


def test_it_is_a_random_stream() -> None:
    stream: RandomStream = Randomness.from_os()
    assert len(stream.derive("lane", 3, b"x").bytes(5)) == 5


def test_equal_seeds_give_equal_streams_and_others_differ() -> None:
    def draw(seed: int | bytes) -> bytes:
        return Randomness.from_seed(seed).bytes(32)

    assert draw(7) == draw(7)
    assert len({draw(7), draw(8), draw(b"7"), Randomness.from_os().bytes(32), Randomness.from_os().bytes(32)}) == 5
    assert Randomness.from_key(bytes(32)).bytes(9) == Randomness.from_key(bytes(32)).bytes(9)


def test_derived_streams_do_not_depend_on_what_was_drawn() -> None:
    used, fresh = Randomness.from_seed(1), Randomness.from_seed(1)
    used.bytes(1000)
    used.derive("other").uint64(5)
    assert used.derive("a", 1).bytes(32) == fresh.derive("a", 1).bytes(32)


def test_derived_streams_are_separate() -> None:
    root = Randomness.from_seed(1)
    paths: list[tuple[str | int | bytes, ...]] = [(), ("a",), ("a", "b"), ("ab",), (1,), ("1",), (b"1",)]
    draws = [root.derive(*path).bytes(32) for path in paths]
    draws += [root.derive("a").derive("b").bytes(32), Randomness.from_seed(1).bytes(32)]
    assert len(set(draws)) == len(draws)


@given(st.integers(1, 1 << 300))
def test_below_stays_below(bound: int) -> None:
    assert 0 <= Randomness.from_seed(bound).below(bound) < bound


def test_below_is_uniform(random: Randomness) -> None:
    counts = Counter(random.below(37) for _ in range(20_000))
    assert chi_square(list(counts.values()), 37) < chi_square_limit(36)


@pytest.mark.parametrize("bound", [1, 2, 3, 37, 256, 1000])
def test_integers_are_uniform(random: Randomness, bound: int) -> None:
    values = random.integers(bound, 200_000)
    assert values.dtype == np.uint64
    counts = np.bincount(values.astype(np.int64), minlength=bound)
    assert len(counts) == bound
    if bound > 1:
        assert chi_square(counts.tolist(), bound) < chi_square_limit(bound - 1)


def test_integers_are_unbiased_where_a_modulus_would_show_it(random: Randomness) -> None:
    # Reduced without rejection, words below 2^62 would come twice as often as the others: 1/2 instead of 1/3.
    bound = 3 << 62
    values = random.integers(bound, 30_000)
    assert int(values.max()) < bound
    thirds = Counter((values >> np.uint64(62)).tolist())
    assert chi_square([thirds[i] for i in range(3)], 3) < chi_square_limit(2)


def test_integers_take_every_bound_up_to_the_word(random: Randomness) -> None:
    assert random.integers(1 << 64, 10).size == 10
    assert int(random.integers((1 << 63) + 1, 1000).max()) <= 1 << 63
    assert random.integers(5, 0).size == 0


def test_bad_bounds_are_refused(random: Randomness) -> None:
    for draw in (lambda: random.below(0), lambda: random.integers(0, 1), lambda: random.integers((1 << 64) + 1, 1)):
        with pytest.raises(ValueError, match="bound"):
            draw()
    with pytest.raises(ValueError, match="permutation"):
        random.permutation(-1)


@given(st.integers(0, 2000))
def test_a_permutation_holds_every_position_once(size: int) -> None:
    order = Randomness.from_seed(size).permutation(size)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(size))


def test_permutations_are_uniform(random: Randomness) -> None:
    counts = Counter(tuple(random.permutation(5).tolist()) for _ in range(24_000))
    assert set(counts) == set(permutations(range(5)))
    assert chi_square(list(counts.values()), 120) < chi_square_limit(119)


def test_large_permutations_send_positions_everywhere(random: Randomness) -> None:
    cells = np.zeros((16, 16), dtype=np.int64)
    for _ in range(20):
        order = random.permutation(1600)
        np.add.at(cells, (np.arange(1600) // 100, order // 100), 1)
    assert chi_square(cells.ravel().tolist(), 256) < chi_square_limit(255)


def test_equal_keys_are_redrawn(random: Randomness, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([np.array([1, 5, 1], dtype=np.uint64), np.array([9, 7, 8], dtype=np.uint64)])
    monkeypatch.setattr(Randomness, "uint64", lambda self, size: next(draws))
    assert random.permutation(3).tolist() == [1, 2, 0]


def test_bits_are_balanced(random: Randomness) -> None:
    words = random.uint64(100_000)
    ones = int(np.bitwise_count(words).sum())
    assert abs(ones - 3_200_000) < Z * math.sqrt(6_400_000 / 4)


def test_streams_are_not_copied_pickled_or_shown(random: Randomness) -> None:
    for secret in (random, Keystream(bytes(16), bytes(16))):
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="never copied"):
                act(secret)
        assert repr(secret) == f"<{type(secret).__name__}>"


def in_child(act: Callable[[], object]) -> str:
    """Fork, run `act`, and give back the name of the exception that it raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            outcome = "none"
        except BaseException as error:
            outcome = type(error).__name__
        os.write(write, outcome.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: stream.bytes(16),
        lambda stream: stream.uint64(2),
        lambda stream: stream.below(10),
        lambda stream: stream.integers(10, 3),
        lambda stream: stream.permutation(3),
        lambda stream: stream.derive("child"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_an_inherited_stream_dies_in_a_forked_child(draw: Callable[[Randomness], object]) -> None:
    inherited = Randomness.from_os()
    assert in_child(lambda: draw(inherited)) == InternalError.__name__
    draw(inherited)
    assert in_child(lambda: draw(Randomness.from_os())) == "none"


def draw_with_key(key: bytes) -> bytes:
    return Randomness.from_key(key).bytes(8)


def test_workers_take_keys_not_streams(random: Randomness) -> None:
    keys = [random.derive("worker", i).bytes(32) for i in range(3)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(draw_with_key, keys) == [draw_with_key(key) for key in keys]
        with pytest.raises(TypeError, match="never copied"):
            pool.map(repr, [random])

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from crypto.primitives import okvs
from crypto.primitives.okvs import (
    ATTEMPTS,
    DENSE,
    MOST_KEYS,
    Layout,
    Places,
    UnsolvableStore,
    eliminated,
    filled,
    peeled,
    read,
    solved,
)
from crypto.primitives.randomness import Randomness
from tests.errors import fails

pytestmark = pytest.mark.turn(3)


def keys_of(random: Randomness, number: int) -> Any:
    return random.uint64(2 * number).reshape(-1, 2)


def values_of(random: Randomness, number: int, width: int) -> Any:
    return random.uint64(width * number).reshape(-1, width)


# -- what it holds ---------------------------------------------------------------------------------------------------
@given(capacity=st.integers(1, 400), share=st.floats(0, 1), width=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_every_key_reads_its_value(capacity, share, width, seed):
    random, layout = Randomness.from_seed(seed), Layout.of(capacity)
    keys = keys_of(random, round(share * capacity))
    values = values_of(random, len(keys), width)
    found, solution = solved(layout, keys, random)
    store = filled(solution, values, random)
    assert store.shape == (layout.rows, width)
    assert np.array_equal(read(layout, store, layout.places(keys, found)), values)


def test_keys_of_many_pieces_read_their_values():
    random, number = Randomness.from_seed(3), 20_000
    layout, keys, values = Layout.of(number), keys_of(random, number), values_of(random, number, 8)
    seed, solution = solved(layout, keys, random)
    store = filled(solution, values, random)
    assert np.array_equal(read(layout, store, layout.places(keys, seed)), values)


def test_reading_is_linear():
    random, layout = Randomness.from_seed(4), Layout.of(100)
    one, other = (values_of(random, layout.rows, 3) for _ in range(2))
    places = layout.places(keys_of(random, 500), bytes(16))
    assert np.array_equal(read(layout, one ^ other, places), read(layout, one, places) ^ read(layout, other, places))


def test_what_is_read_is_what_the_definition_says():
    random, layout = Randomness.from_seed(5), Layout.of(70)
    store, places = values_of(random, layout.rows, 2), layout.places(keys_of(random, 50), bytes(16))
    for key, value in enumerate(read(layout, store, places)):
        rows = [*places.sparse[:, key], *(layout.sparse + i for i in range(DENSE) if int(places.dense[key]) >> i & 1)]
        assert np.array_equal(value, np.bitwise_xor.reduce(store[rows]))
    assert all((places.sparse[i] // layout.third == i).all() for i in range(3))


def test_a_seeded_store_is_as_it_was():
    random, layout = Randomness.from_seed(6), Layout.of(64)
    keys = keys_of(random, 64)
    seed, solution = solved(layout, keys, random)
    store = filled(solution, values_of(random, 64, 8), random)
    digest = hashlib.sha256(seed + store.tobytes()).hexdigest()
    assert digest == "28e69ce1b758e341973b6df06c698d0f1009d20497a778ea6df2650b895242fa"


# -- how often it fails ------------------------------------------------------------------------------------------------
def log_all_even(numbers: Any, third: int) -> Any:
    """For each even k the logarithm of the chance that k keys leave each row of a third even; above 1000 rows a bound.

    It is k!·[z^k] cosh(z)^s / s^k, which is the mean of (1 − 2·j/s)^k over s fair coins with j heads; and it is at most
    cosh(z)^s·k! / (z·s)^k for every z > 0. That is least where z·tanh z = k/s.
    """
    if third <= 1000:
        heads = np.arange(third + 1)
        coins = gammaln(third + 1) - gammaln(heads + 1) - gammaln(third - heads + 1) - third * np.log(2)
        with np.errstate(divide="ignore"):
            return logsumexp(coins + numbers[:, None] * np.log(np.abs(1 - 2 * heads / third)), axis=1)
    wanted = numbers / third
    low, high = np.full(len(wanted), 1e-9), wanted + 2
    for _ in range(80):
        middle = (low + high) / 2
        above = middle * np.tanh(middle) > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    bound = third * (np.logaddexp(high, -high) - np.log(2)) + gammaln(numbers + 1) - numbers * np.log(high * third)
    bound[0] = -np.log(third)  # two keys read one row
    return bound


def expected_cancelling_sets(number: int, capacity: int) -> float:
    """How many sets of keys are expected to cancel out in the sparse rows, or a bound."""
    numbers = np.arange(2, number + 1, 2).astype(float)
    sets = gammaln(number + 1) - gammaln(numbers + 1) - gammaln(number - numbers + 1)
    return float(np.exp(logsumexp(sets + 3 * log_all_even(numbers, Layout.of(capacity).third))))


@pytest.mark.parametrize("number", [64, 65, 80, 128, 1000, 10_000, 65_536, MOST_KEYS])
def test_the_derivation_of_the_chance_to_fail(number):
    assert expected_cancelling_sets(number, number) < min(1 / 4, 15 / number)
    assert DENSE == 40


def test_fewer_keys_than_a_store_has_room_for_fail_less_often():
    bounds = [expected_cancelling_sets(number, 64) for number in range(2, 65)]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("dense", [0, 2, 4])
def test_the_rate_of_failures_is_that_of_the_derivation(dense):
    """With few dense rows failures are seen. The rate is at most the bound: 5σ, so that 1 test in 10^6 is wrong."""
    runs, number = 800, 64
    layout, random = Layout.of(number), Randomness.from_seed(b"rate %d" % dense)
    failed = 0
    for _ in range(runs):
        places = layout.places(keys_of(random, number), random.bytes(16))
        fewer = Places(places.sparse, places.dense & np.uint64((1 << dense) - 1))
        failed += eliminated(peeled(layout, fewer), np.zeros((number, 1), np.uint64)) is None
    bound = expected_cancelling_sets(number, number) / 2**dense
    assert failed <= runs * bound + 5 * np.sqrt(runs * bound)
    assert failed >= runs * bound / 4 - 5 * np.sqrt(runs * bound)  # and the bound is no idle one


@pytest.mark.parametrize(("number", "runs"), [(1000, 60), (8000, 10)])
def test_hardly_a_key_is_left_to_eliminate(number, runs):
    layout, random = Layout.of(number), Randomness.from_seed(7)
    left = [len(peeled(layout, layout.places(keys_of(random, number), random.bytes(16))).core) for _ in range(runs)]
    assert np.mean(np.array(left) > 64) <= 0.05


def test_a_core_of_all_keys_is_eliminated():
    """Keys that crowd in few rows: none can be peeled."""
    random, number = Randomness.from_seed(8), 40
    layout, keys = Layout.of(number), keys_of(random, number)
    places = layout.places(keys, bytes(16))
    crowded = Places(places.sparse // 16 * 16 % layout.sparse, places.dense)
    solution = peeled(layout, crowded)
    assert len(solution.core) > 30
    values = values_of(random, number, 5)
    assert np.array_equal(read(layout, filled(solution, values, random), crowded), values)


# -- what it hides -----------------------------------------------------------------------------------------------------
def biased(bits: Any, error: float) -> bool:
    """Whether bits, shape (runs, …), deviate from fair ones more than fair ones do with this chance (Hoeffding)."""
    runs, columns = len(bits), bits[0].size
    most = np.sqrt(runs / 2 * np.log(2 * columns / error))
    return bool((np.abs(bits.sum(axis=0, dtype=np.int64) - runs / 2) > most).any())


def bits_of(words: Any) -> Any:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1))


def test_with_random_values_rows_are_uniform_whichever_the_keys_are():
    """Every row, and what other keys read, bit by bit; fair bits fail with a chance of 10^-9."""
    random, layout, runs = Randomness.from_seed(9), Layout.of(64), 150
    few, many, others = keys_of(random, 3), keys_of(random, 64), keys_of(random, 64)
    for keys in (few, many):
        rows, elsewhere = [], []
        for _ in range(runs):
            seed, solution = solved(layout, keys, random)
            store = filled(solution, values_of(random, len(keys), 1), random)
            rows.append(bits_of(store))
            elsewhere.append(bits_of(read(layout, store, layout.places(others, seed))))
        assert not biased(np.array(rows), 1e-9)
        assert not biased(np.array(elsewhere), 1e-9)


def test_with_one_seed_too_rows_are_uniform():
    random, layout, runs = Randomness.from_seed(10), Layout.of(64), 150
    _, solution = solved(layout, keys_of(random, 64), random)
    stores = [bits_of(filled(solution, values_of(random, 64, 1), random)) for _ in range(runs)]
    assert not biased(np.array(stores), 1e-9)
    equal = [bits_of(filled(solution, np.zeros((64, 1), np.uint64), random)) for _ in range(runs)]
    assert not biased(np.array(equal), 1e-9)  # each row by itself, whatever the values are: all keys read several


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_a_key_given_twice_is_refused_after_some_seeds(monkeypatch):
    random, asked = Randomness.from_seed(11), []
    keys = np.repeat(keys_of(random, 5), 2, axis=0)
    places = Layout.places

    def counted(layout, keys, seed):
        asked.append(seed)
        return places(layout, keys, seed)

    monkeypatch.setattr(Layout, "places", counted)
    with fails("E700"):
        solved(Layout.of(10), keys, random)
    assert len(set(asked)) == ATTEMPTS


def test_after_a_failure_there_is_a_fresh_seed(monkeypatch):
    random, keys = Randomness.from_seed(12), keys_of(Randomness.from_seed(13), 30)
    layout, results, eliminate = Layout.of(30), [None], okvs.eliminated
    monkeypatch.setattr(okvs, "eliminated", lambda *args: results.pop() if results else eliminate(*args))
    seed, solution = solved(layout, keys, random)
    first = Randomness.from_seed(12).bytes(32)
    assert seed == first[16:]
    values = values_of(random, 30, 1)
    assert np.array_equal(read(layout, filled(solution, values, random), layout.places(keys, seed)), values)


def test_equations_that_depend_on_each_other_fill_no_store():
    layout, random = Layout.of(10), Randomness.from_seed(14)
    solution = peeled(layout, layout.places(np.repeat(keys_of(random, 5), 2, axis=0), bytes(16)))
    with pytest.raises(UnsolvableStore):
        filled(solution, values_of(random, 10, 1), random)


@pytest.mark.parametrize("capacity", [0, -1, MOST_KEYS + 1])
def test_capacities_that_no_store_has(capacity):
    with pytest.raises(ValueError, match="room for 1 to 131072 keys"):
        Layout.of(capacity)


def test_more_keys_than_there_is_room_for():
    with pytest.raises(ValueError, match="room for 5 keys cannot hold 6"):
        solved(Layout.of(5), keys_of(Randomness.from_seed(15), 6), Randomness.from_seed(16))

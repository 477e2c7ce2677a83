from __future__ import annotations

import asyncio
import copy
import os
import pickle
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.paillier.ciphertexts import Ciphertexts, encrypt
from crypto.primitives.paillier.fixed_base import (
    digit_bases,
    digits_for,
    digits_of,
    products_of_powers,
    table_of,
)
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.workers import PIECE
from crypto.primitives.paillier.zeros import (
    NO_ASSUMPTION,
    SHORT_BITS,
    OwnerZeros,
    TableZeros,
    UniformZeros,
    ZeroSource,
)
from crypto.primitives.randomness import Randomness
from link.executor import ThreadExecutor
from tests.crypto.protocols.two_party_world import ERROR, chi_square_bound
from tests.errors import fails
from tests.paillier_world import empty_pool, full_key, quick_source, small_key, tiny_key, tiny_residues

pytestmark = pytest.mark.turn(6)

SOURCES: dict[str, Callable[[Randomness], ZeroSource]] = {
    "full": lambda random: OwnerZeros.of(full_key(), random),
    "of unknown factors": lambda random: OwnerZeros.of(PrivateKey(full_key().p, full_key().q), random),
    "short": lambda random: OwnerZeros.of(full_key(), random, exponent="short"),
    "half": lambda random: TableZeros.of(full_key().public, random),
    "public short": lambda random: TableZeros.of(full_key().public, random, exponent="short"),
    "uniform": lambda random: UniformZeros(full_key().public),
}


@cache
def source_of(name: str) -> ZeroSource:
    """Made once, with its tables."""
    return SOURCES[name](Randomness.from_seed(name.encode()))


# -- tables ------------------------------------------------------------------------------------------------------------
@settings(max_examples=30)
@given(
    base=st.integers(2, 2**64),
    exponents=st.lists(st.integers(0, 2**70 - 1), min_size=1, max_size=5),
    modulus=st.integers(3, 2**64),
)
def test_powers_by_tables(base: int, exponents: list[int], modulus: int) -> None:
    number = digits_for(70)
    table = table_of(digit_bases(base, number, modulus), modulus)
    octets = np.frombuffer(b"".join(e.to_bytes(9, "little") for e in exponents), np.uint8).reshape(-1, 9)
    powers = products_of_powers(table, digits_of(octets, number), modulus)
    assert [int(p) % modulus for p in powers] == [pow(base, e, modulus) for e in exponents]


# -- sources -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SOURCES)
def test_sources_make_encryptions_of_zero(name: str) -> None:
    random, source = Randomness.from_seed(3), source_of(name)
    made = source.make(3, random) + source.make(2, random)
    assert len({int(z) for z in made}) == 5
    assert full_key().decrypt(Ciphertexts(full_key().public, made)) == [0] * 5
    assert source.make(0, random) == []


@pytest.mark.parametrize("name", SOURCES)
def test_only_long_exponents_assume_nothing(name: str) -> None:
    source = source_of(name)
    long = name in ("full", "of unknown factors", "uniform")
    assert (source.assumption == NO_ASSUMPTION) == long
    if not long:
        bits = 1024 if name == "half" else SHORT_BITS[2048]
        assert f"exponents of {bits} bits" in source.assumption


@pytest.mark.parametrize("name", SOURCES)
def test_a_worker_makes_the_same(name: str) -> None:
    source = source_of(name)
    sent = pickle.loads(pickle.dumps(source))
    assert sent.key == source.key
    assert sent.assumption == source.assumption
    assert sent.make(2, Randomness.from_seed(2)) == source.make(2, Randomness.from_seed(2))


def test_a_worker_keeps_its_tables() -> None:
    sent = [pickle.loads(pickle.dumps(quick_source())) for _ in range(2)]
    assert sent[0] is sent[1]


def test_a_source_does_not_show_its_primes() -> None:
    assert str(full_key().p) not in repr(quick_source())


@pytest.mark.parametrize("kind", ["full", "of unknown factors", "uniform"])
def test_the_owners_factors_are_uniform_n_th_residues(kind: str) -> None:
    """Exactly the 1,276 n-th residues of a tiny key appear, equally often: chi-square over 40,000, error 1e-6."""
    key = tiny_key(factored=kind == "full")
    random = Randomness.from_seed(kind.encode())
    source: ZeroSource = UniformZeros(key.public) if kind == "uniform" else OwnerZeros.of(key, random)
    made = Counter(int(z) for z in source.make(40_000, random))
    residues = tiny_residues()
    assert set(made) == set(residues)
    expected = 40_000 / len(residues)
    statistic = sum((made[r] - expected) ** 2 / expected for r in residues)
    assert statistic < chi_square_bound(len(residues) - 1), f"error probability {ERROR}"


def test_short_exponents_need_a_key_of_full_size_made_here() -> None:
    random = Randomness.from_seed(1)
    with pytest.raises(ValueError, match="generate_key has made"):
        OwnerZeros.of(small_key(), random, exponent="short")
    with pytest.raises(ValueError, match="generate_key has made"):
        OwnerZeros.of(PrivateKey(full_key().p, full_key().q), random, exponent="short")
    with pytest.raises(ValueError, match="full size"):
        TableZeros.of(small_key().public, random, exponent="short")


# -- pools -------------------------------------------------------------------------------------------------------------
def filled(count: int, seen: list[tuple[int, int]] | None = None) -> ZeroPool:
    pool, executor = empty_pool(), ThreadExecutor(2)

    def progress(done: int, total: int) -> None:
        if seen is not None:
            seen.append((done, total))

    try:
        asyncio.run(pool.fill(count, Randomness.from_seed(5), executor, progress))
    finally:
        executor.close()
    return pool


def test_a_pool_gives_each_encryption_of_zero_once() -> None:
    seen: list[tuple[int, int]] = []
    pool = filled(PIECE + 10, seen)
    assert seen == [(PIECE, PIECE + 10), (PIECE + 10, PIECE + 10)]
    assert pool.key == full_key().public
    assert pool.assumption == quick_source().assumption
    taken = pool.take(5) + pool.take(PIECE) + pool.take(0)
    assert len({int(z) for z in taken}) == PIECE + 5
    assert len(pool) == 5
    some = encrypt(pool.key, [3] * 5, taken[:5])
    assert full_key().decrypt(some) == [3] * 5


def test_a_pool_gives_no_more_than_it_has() -> None:
    pool = filled(3)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="a pool of 3"):
            pool.take(wrong)
    assert len(pool) == 3


def test_a_pool_makes_what_it_lacks() -> None:
    pool, executor = filled(3), ThreadExecutor(2)
    try:

        async def two_at_once() -> list[list[mpz]]:
            random = Randomness.from_seed(6)
            return await asyncio.gather(*(pool.draw(5, random.derive(i), executor) for i in range(2)))

        drawn = asyncio.run(two_at_once())
        assert [len(each) for each in drawn] == [5, 5]
        assert len({int(z) for each in drawn for z in each}) == 10
        assert len(pool) == 0
    finally:
        executor.close()


def test_a_pool_is_not_copied() -> None:
    pool = filled(1)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="serves once"):
            copied(pool)


def test_a_pool_gives_nothing_in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with fails("E700"):
        pool.take(1)

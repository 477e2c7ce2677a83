"""Paillier keys and encryptions of zero for tests: made once, and small ones whose groups can be listed."""

from __future__ import annotations

from functools import cache

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.keys import PrivateKey, generate_key
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.primes import FactoredPrime, random_prime
from crypto.primitives.paillier.selection import selected_products
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.primitives.randomness import Randomness

TINY = (FactoredPrime(23, (2, 11)), FactoredPrime(59, (2, 29)))


@cache
def full_key() -> PrivateKey:
    """2048 bits, from a seed."""
    return generate_key(2048, Randomness.from_seed(b"a Paillier key"))


@cache
def small_key() -> PrivateKey:
    """256 bits: quick, and of no use but for tests."""
    random = Randomness.from_seed(b"a small Paillier key")
    p, q = random_prime(128, random), random_prime(128, random)
    return PrivateKey(p.prime, q.prime, factored=(p, q), toy=True)


def tiny_key(*, factored: bool = True) -> PrivateKey:
    """n = 23 · 59: the n-th residues modulo n² are 22 · 58 = 1276 numbers."""
    p, q = TINY
    return PrivateKey(p.prime, q.prime, factored=TINY if factored else None, toy=True)


def tiny_residues() -> list[int]:
    """All n-th residues modulo n² of the tiny key."""
    n = 23 * 59
    return sorted({pow(r, n, n * n) for r in range(1, n) if r % 23 and r % 59})


@cache
def quick_source() -> OwnerZeros:
    """Under the full key, with short exponents."""
    return OwnerZeros.of(full_key(), Randomness.from_seed(b"bases"), exponent="short")


def empty_pool() -> ZeroPool:
    """Under the full key; makes what it lacks."""
    return ZeroPool(quick_source())


def residue_part(key: PrivateKey, ciphertext: int, plaintext: int) -> mpz:
    """What is left of a ciphertext without its plaintext: r^n."""
    n, n_squared = key.public.n, key.public.n_squared
    return mpz(ciphertext) * (1 - n * mpz(plaintext)) % n_squared


def select_sums(ciphertexts: Ciphertexts, selection: NDArray[np.bool_]) -> Ciphertexts:
    """Per column of a selection of shape (ciphertexts, columns) that of the sum of the selected plaintexts."""
    products = selected_products(ciphertexts.values, selection, ciphertexts.key.n_squared)
    return Ciphertexts.trusted(ciphertexts.key, products)

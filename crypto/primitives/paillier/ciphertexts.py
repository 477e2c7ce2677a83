"""Batches of ciphertexts, bound to the key under which they are.

What is computed from ciphertexts is a ciphertext of the right plaintext, but not a *fresh* one: who holds the key, or
made the operands, can see from it what was computed. Add encryptions of zero from `zeros.UniformZeros` before
anything is handed back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import gmpy2
from gmpy2 import mpz

from crypto.primitives.paillier.public_key import PublicKey, check_same_key


class Ciphertexts:
    """A vector of ciphertexts under one key.

    Attributes:
        key: The key.
        values: Integers in 1 … n² − 1, coprime to n.
    """

    __slots__ = ("key", "values")

    # Lets numpy leave `array + ciphertexts` to this class, which refuses it.
    __array_ufunc__ = None

    def __init__(self, key: PublicKey, values: Iterable[int]) -> None:
        """Checks that they can be ciphertexts.

        Raises:
            ValueError: One is out of range, or shares a factor with n.
        """
        self.key, self.values = key, [mpz(value) for value in values]
        check_values(key, self.values)

    @classmethod
    def trusted(cls, key: PublicKey, values: list[mpz]) -> Ciphertexts:
        """Without checks: for values computed from ciphertexts that have been checked."""
        made = cls.__new__(cls)
        made.key, made.values = key, values
        return made

    @classmethod
    def from_bytes(cls, key: PublicKey, data: bytes) -> Ciphertexts:
        """What `to_bytes` has made, or a peer has sent.

        Raises:
            ValueError: Not a whole number of ciphertexts, or something that is none.
        """
        values = values_of(key, data)
        check_values(key, values)
        return cls.trusted(key, values)

    def to_bytes(self) -> bytes:
        """All values, big-endian, `key.ciphertext_bytes` each."""
        return bytes_of(self.key, self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[mpz]:
        return iter(self.values)

    def __getitem__(self, selection: slice) -> Ciphertexts:
        """Some of them, as a batch."""
        if not isinstance(selection, slice):
            raise TypeError("ciphertexts are selected by a slice")
        return Ciphertexts.trusted(self.key, self.values[selection])

    def __add__(self, other: Ciphertexts) -> Ciphertexts:
        """Ciphertexts of the plaintexts' sums, one by one.

        Raises:
            TypeError: They are under another key.
        """
        if not isinstance(other, Ciphertexts):
            raise TypeError("a ciphertext adds to a ciphertext; a plaintext goes through plus")
        check_same_key([self.key, other.key])
        n_squared = self.key.n_squared
        pairs = zip(self.values, _as_many(self, other.values), strict=True)
        return Ciphertexts.trusted(self.key, [a * b % n_squared for a, b in pairs])

    def plus(self, plaintexts: Sequence[int]) -> Ciphertexts:
        """Ciphertexts of the sums with plaintexts, modulo n."""
        n = self.key.n
        pairs = zip(self.values, _as_many(self, plaintexts), strict=True)
        return Ciphertexts.trusted(self.key, [with_plaintext(self.key, c, mpz(m) % n) for c, m in pairs])

    def times(self, factors: Sequence[int]) -> Ciphertexts:
        """Ciphertexts of the products with plaintext factors modulo n; factors may be negative."""
        n_squared = self.key.n_squared
        pairs = zip(self.values, _as_many(self, factors), strict=True)
        return Ciphertexts.trusted(self.key, [gmpy2.powmod(c, mpz(k), n_squared) for c, k in pairs])

    def sum(self) -> Ciphertexts:
        """One ciphertext of the sum of all plaintexts."""
        product, n_squared = mpz(1), self.key.n_squared
        for value in self.values:
            product = product * value % n_squared
        return Ciphertexts.trusted(self.key, [product])

    def __eq__(self, other: object) -> bool:
        raise TypeError("ciphertexts are not compared: equal plaintexts have different ciphertexts")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} ciphertexts under a key of {self.key.bits} bits>"


def encrypt(key: PublicKey, plaintexts: Sequence[int], zeros: Sequence[mpz]) -> Ciphertexts:
    """Fresh ciphertexts of plaintexts, each from an encryption of zero that is used for nothing else.

    Args:
        key: The key of the zeros.
        plaintexts: In 0 … n − 1.
        zeros: As many, from a `ZeroPool` or made on the spot.

    Raises:
        ValueError: A plaintext is out of range, or the numbers differ.
    """
    if len(plaintexts) != len(zeros):
        raise ValueError(f"{len(plaintexts)} plaintexts are not encrypted with {len(zeros)} encryptions of zero")
    if not all(0 <= m < key.n for m in plaintexts):
        raise ValueError("plaintexts lie between 0 and n − 1")
    return Ciphertexts.trusted(key, [with_plaintext(key, z, m) for z, m in zip(zeros, plaintexts, strict=True)])


def with_plaintext(key: PublicKey, ciphertext: mpz, plaintext: int) -> mpz:
    """c·(1 + n)^m mod n² for 0 ≤ m < n, as c + n·(m·c mod n): below 2·n², so one subtraction reduces it."""
    n = key.n
    value = ciphertext + n * (plaintext * ciphertext % n)
    return value - key.n_squared if value >= key.n_squared else value


def check_values(key: PublicKey, values: Sequence[mpz]) -> None:
    """Refuses what can be no ciphertext.

    A product of all of them modulo n shares a factor with n exactly if one of them does: one gcd for a batch.

    Raises:
        ValueError: A value is not in 1 … n² − 1, or not coprime to n.
    """
    if not values:
        return
    if min(values) < 1 or max(values) >= key.n_squared:
        raise ValueError("a ciphertext lies between 1 and n² − 1")
    n, product = key.n, mpz(1)
    for value in values:
        product = product * value % n
    if gmpy2.gcd(product, n) != 1:
        raise ValueError("a ciphertext is coprime to n")


def bytes_of(key: PublicKey, values: Iterable[mpz]) -> bytes:
    """Values below n², big-endian, `key.ciphertext_bytes` each."""
    size = key.ciphertext_bytes
    return b"".join([value.to_bytes(size, "big") for value in values])


def values_of(key: PublicKey, data: bytes) -> list[mpz]:
    """The integers that `bytes_of` has encoded, unchecked.

    Raises:
        ValueError: Not a whole number of them.
    """
    size = key.ciphertext_bytes
    if len(data) % size:
        raise ValueError(f"ciphertexts of {size} bytes do not fill {len(data)} bytes")
    read = mpz.from_bytes
    return [read(data[start : start + size], "big") for start in range(0, len(data), size)]


def _as_many(batch: Ciphertexts, others: Sequence[Any]) -> Sequence[Any]:
    if len(others) != len(batch):
        raise ValueError(f"a batch of {len(batch)} does not combine with one of {len(others)}")
    return others

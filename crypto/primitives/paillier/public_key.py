"""Public Paillier keys, and what a modulus is checked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import gmpy2
from gmpy2 import mpz

SIZES: Final = (2048, 3072, 4096)
_SMALL_PRIMES: Final = gmpy2.primorial(1 << 10)


class PublicKey:
    """A modulus n, and what follows from it.

    Attributes:
        n: The modulus; plaintexts lie in 0 … n − 1.
        n_squared: Ciphertexts lie below it.
        bits: Size of n.
        ciphertext_bytes: Size of an encoded ciphertext, 2·bits/8.
    """

    __slots__ = ("bits", "ciphertext_bytes", "n", "n_squared")

    def __init__(self, n: int, *, toy: bool = False) -> None:
        """Checks that n can be a Paillier modulus.

        What cannot be checked is that n has two prime factors of no special form: its owner knows that.

        Args:
            n: The modulus.
            toy: Allow a size that protects nothing, for examples with small numbers.

        Raises:
            ValueError: n is even, has a small factor, is prime or a power, or has none of the sizes.
        """
        n = mpz(n)
        if not toy and n.bit_length() not in SIZES:
            raise ValueError(f"a Paillier modulus has {', '.join(map(str, SIZES))} bits, not {n.bit_length()}")
        if n < 15 or n % 2 == 0:
            raise ValueError("a Paillier modulus is odd and the product of two primes")
        if not toy and gmpy2.gcd(n, _SMALL_PRIMES) != 1:
            raise ValueError("a Paillier modulus has no small factor")
        if gmpy2.is_power(n) or gmpy2.is_prime(n):
            raise ValueError("a Paillier modulus is the product of two different primes, not a prime or a power")
        self._set(n)

    def _set(self, n: mpz) -> None:
        self.n, self.n_squared, self.bits = n, n * n, n.bit_length()
        self.ciphertext_bytes = -(-self.n_squared.bit_length() // 8)

    @classmethod
    def trusted(cls, n: int) -> PublicKey:
        """Without checks: for a modulus that has been checked, at a worker."""
        key = cls.__new__(cls)
        key._set(mpz(n))
        return key

    @classmethod
    def from_bytes(cls, data: bytes, bits: int) -> PublicKey:
        """The key that a peer has sent.

        Args:
            data: The modulus, big-endian, as long as its declared size.
            bits: The declared size.

        Raises:
            ValueError: It is no modulus of that size.
        """
        n = mpz.from_bytes(data, "big")
        if len(data) != -(-bits // 8) or n.bit_length() != bits:
            raise ValueError(f"a modulus of {bits} bits was declared, not one of {n.bit_length()} in {len(data)} bytes")
        return cls(int(n))

    def to_bytes(self) -> bytes:
        """The modulus, big-endian."""
        return bytes(self.n.to_bytes(-(-self.bits // 8), "big"))

    @property
    def plaintext_bits(self) -> int:
        """Every number of at most so many bits is a plaintext."""
        return int(self.bits) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and bool(self.n == other.n)

    def __hash__(self) -> int:
        return hash(self.n)

    def __repr__(self) -> str:
        return f"<PublicKey of {self.bits} bits>"


def check_same_key(keys: Sequence[PublicKey]) -> None:
    """Refuses to combine what is under different keys.

    Raises:
        TypeError: The keys differ.
    """
    if any(key != keys[0] for key in keys):
        raise TypeError("ciphertexts under different keys do not combine")

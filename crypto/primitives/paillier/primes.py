"""Primes p whose p − 1 has a known factorisation, and generators modulo them.

p = 2·m·r + 1 with r prime and m odd of 17 to 32 bits, factored by trial division; so p ≡ 3 (mod 4). A generator
modulo p can then be checked, which a prime drawn in the usual way does not allow, and which safe primes (m = 1) allow
too, after a far longer search. About one prime of 1024 bits in 130 has this form (of 2048 bits one in 250; safe
primes are eight times as rare), so who factors products of such primes factors one in 17,000 of all moduli, or
2^-14.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import gmpy2
from gmpy2 import mpz

from link.randomness import RandomStream

# Baillie–PSW and eight rounds of Miller–Rabin by GMP's own choice of bases: the numbers are random, not an adversary's.
PRIME_ROUNDS: Final = 32
_COFACTOR_BITS: Final = range(17, 33)


@dataclass(frozen=True, repr=False)
class FactoredPrime:
    """A prime and the prime factors of the number before it.

    Attributes:
        prime: p.
        factors: The different primes that divide p − 1.
    """

    prime: int
    factors: tuple[int, ...]


def random_prime(bits: int, random: RandomStream) -> FactoredPrime:
    """A random prime p ≡ 3 (mod 4) between √½·2^bits and 2^bits, with the factors of p − 1.

    Args:
        bits: At least 64. The product of two such primes has exactly twice as many bits.
        random: Fresh randomness.
    """
    if bits < 64:
        raise ValueError(f"a prime of this kind has at least 64 bits, not {bits}")
    least = int(gmpy2.isqrt(mpz(1) << (2 * bits - 1))) + 1
    while True:
        cofactor_bits = _COFACTOR_BITS[random.below(len(_COFACTOR_BITS))]
        large = _any_prime(bits - cofactor_bits, random)
        low, high = least // (2 * large), (1 << bits) // (2 * large)
        for _ in range(16 * bits):  # enough for one in about bits / 3; a large prime without luck is given up
            cofactor = (low + random.below(high - low)) | 1
            prime = 2 * cofactor * large + 1
            if least <= prime < 1 << bits and gmpy2.is_prime(mpz(prime), PRIME_ROUNDS):
                return FactoredPrime(prime, (2, *_odd_factors(cofactor), large))


def generator(prime: FactoredPrime, random: RandomStream) -> int:
    """A uniform generator of Z_p^*: g^((p − 1)/f) ≠ 1 for every prime factor f of p − 1.

    Raises:
        ValueError: The factors are not all of those of p − 1.
    """
    p, rest = mpz(prime.prime), mpz(prime.prime - 1)
    for factor in prime.factors:
        rest = gmpy2.remove(rest, factor)[0]
    if rest != 1 or not all(gmpy2.is_prime(factor, PRIME_ROUNDS) for factor in prime.factors):
        raise ValueError("a generator is checked with all prime factors of p − 1, no others")
    while True:
        candidate = mpz(1 + random.below(prime.prime - 1))
        if all(gmpy2.powmod(candidate, (p - 1) // factor, p) != 1 for factor in prime.factors):
            return int(candidate)


def _any_prime(bits: int, random: RandomStream) -> int:
    """A uniform prime of exactly this size."""
    while True:
        candidate = (1 << (bits - 1)) + random.below(1 << (bits - 1)) | 1
        if gmpy2.is_prime(mpz(candidate), PRIME_ROUNDS):
            return candidate


def _odd_factors(number: int) -> list[int]:
    """The different prime factors of an odd number below 2^33, by trial division."""
    factors, divisor = [], 3
    while divisor * divisor <= number:
        if number % divisor == 0:
            factors.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 2
    return [*factors, number] if number > 1 else factors

"""Encryptions of zero: n-th residues modulo n². Ways to make them differ in who can, what they assume, and in speed.

    OwnerZeros, "full"    the key's owner, tables modulo p² and q²: exactly r^n with r uniform; assumes nothing
    OwnerZeros, "short"   the same with exponents of 448 bits and more: assumes that short exponents look like long ones
    TableZeros, "half"    anybody, a table modulo n², exponents half as long as n: the choice of Damgård, Jurik and
                          Nielsen
    TableZeros, "short"   the same with exponents of 448 bits and more
    UniformZeros          anybody, r^n mod n²: exactly r^n with r uniform; assumes nothing

"Assumes" means: beyond the assumption on which Paillier's system rests anyway (decisional composite residuosity).
With short or half exponents a ciphertext is safe from third parties only as far as the named assumption goes, and is
*not* safe from the key's owner, to whom the exponent can be the only unknown: towards the owner use `UniformZeros`.

"full" draws modulo each prime apart. The n-th residues modulo p² are the subgroup of order p − 1, whose elements are
g^(p·x) for a generator g modulo p and x = 0 … p − 2, each once. Drawing x uniformly therefore gives what a uniform r
gives. Where the factors of p − 1 are unknown (keys of other libraries) and no generator can be verified, ∏ b_i^(d_i)
replaces it, with k uniform bases b_i of the subgroup, drawn once, and uniform digits d_i of nine bits. Two rows of
digits collide for a share gcd(d_1 − d_1', …, d_k − d_k', p − 1)/(p − 1) of all bases, and over rows of k digits this
gcd exceeds 1 on average by less than 2^(1 − k); so by the leftover hash lemma k = (bits of p + 128)/9 digits give a
distance from uniform below 2^-64 on average over the bases, and no assumption either.

Source: Damgård, Jurik and Nielsen 2010 (as in the package), for the variant with base h = −x² mod n, for
p ≡ q ≡ 3 (mod 4); Håstad, Schrift and Shamir, "The discrete logarithm modulo a composite hides O(n) bits", JCSS 47(3),
1993, for exponents of half the length; Impagliazzo, Levin and Luby, STOC 1989, for the leftover hash lemma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal, Protocol

import gmpy2
import numpy as np
from gmpy2 import mpz

from crypto.primitives.paillier.fixed_base import (
    WINDOW_BITS,
    Digits,
    Table,
    digit_bases,
    digits_for,
    digits_of,
    products_of_powers,
    table_of,
)
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.primes import generator
from crypto.primitives.paillier.public_key import PublicKey
from link.randomness import RandomStream

# Bits of a short exponent by size of the key: four times the security level (112, 128, 152 bits).
SHORT_BITS: Final = {2048: 448, 3072: 512, 4096: 608}
NO_ASSUMPTION: Final = "none"
_SLACK_BITS: Final = 128  # entropy beyond the group's order that the leftover hash lemma takes for 2^-64


class ZeroSource(Protocol):
    """A way to make encryptions of zero. Sources are pickled to hand them to workers, their tables left behind."""

    @property
    def key(self) -> PublicKey:
        """The key under which they are."""

    @property
    def assumption(self) -> str:
        """What is assumed beyond Paillier's own assumption, in words."""

    def make(self, count: int, random: RandomStream) -> list[mpz]:
        """`count` fresh encryptions of zero, from randomness used for nothing else."""


# -- exponents modulo both primes, as digits of tables -----------------------------------------------------------------
Draw = Callable[[int, RandomStream], tuple[Digits, Digits]]


@dataclass(frozen=True, repr=False)
class BelowOrders:
    """Uniform exponents below the order modulo each prime, by rejection."""

    orders: tuple[int, int]

    def __call__(self, count: int, random: RandomStream) -> tuple[Digits, Digits]:
        """Digits of `count` exponents for each prime."""
        p, q = (self._below(order, count, random) for order in self.orders)
        return p, q

    @staticmethod
    def _below(order: int, count: int, random: RandomStream) -> Digits:
        size = -(-order.bit_length() // 8)
        bound, taken = order.to_bytes(size, "big"), list[bytes]()
        while (missing := count - len(taken)) > 0:
            drawn = random.bytes(missing * size)
            exponents = (drawn[start : start + size] for start in range(0, len(drawn), size))
            taken += [each for each in exponents if each < bound]  # big-endian strings compare as numbers
        octets = np.frombuffer(b"".join(taken), np.uint8).reshape(count, size)
        return digits_of(octets[:, ::-1], digits_for(order.bit_length()))


@dataclass(frozen=True)
class AnyDigits:
    """Uniform digits for independent bases, so many modulo each prime."""

    numbers: tuple[int, int]

    def __call__(self, count: int, random: RandomStream) -> tuple[Digits, Digits]:
        """`count` rows of digits for each prime."""
        p, q = (_random_digits(count, number * WINDOW_BITS, random) for number in self.numbers)
        return p, q


@dataclass(frozen=True)
class Short:
    """One exponent of so many bits for both primes."""

    bits: int

    def __call__(self, count: int, random: RandomStream) -> tuple[Digits, Digits]:
        """Digits of `count` exponents, twice the same."""
        digits = _random_digits(count, self.bits, random)
        return digits, digits


def _random_digits(count: int, bits: int, random: RandomStream) -> Digits:
    """The digits of uniform exponents of so many bits."""
    size = -(-bits // 8)
    octets = np.frombuffer(random.bytes(count * size), np.uint8).reshape(count, size)
    if bits % 8:
        octets = octets.copy()
        octets[:, -1] &= (1 << bits % 8) - 1
    return digits_of(octets, digits_for(bits))


def shortness(bits: int) -> str:
    """What exponents of so many bits assume, in words."""
    return f"powers of h^n mod n² with exponents of {bits} bits look like powers with exponents of full length"


# -- by the owner ------------------------------------------------------------------------------------------------------
class OwnerZeros:
    """Made by the key's owner, modulo p² and q² apart, with tables of fixed bases.

    It holds the primes: it goes to the owner's own workers and nowhere else.

    Attributes:
        key: The public key.
        assumption: What is assumed.
    """

    def __init__(
        self, key: PublicKey, primes: tuple[int, int], bases: tuple[list[mpz], list[mpz]], draw: Draw, assumption: str
    ) -> None:
        """Use `of`, which knows what bases and digits belong together."""
        self.key, self.assumption = key, assumption
        self._primes, self._bases, self._draw = primes, bases, draw

    @classmethod
    def of(cls, key: PrivateKey, random: RandomStream, *, exponent: Literal["full", "short"] = "full") -> OwnerZeros:
        """The owner's source.

        Args:
            key: The private key.
            random: For the bases, which are as secret as the key.
            exponent: "full" assumes nothing; "short" is twice as fast and assumes what `assumption` says.

        Raises:
            ValueError: Short exponents for a key that `generate_key` has not made.
        """
        public, primes = key.public, (int(key.p), int(key.q))
        if exponent == "short":
            if public.bits not in SHORT_BITS or key.factored is None:
                raise ValueError("short exponents are for keys that generate_key has made")
            bits = SHORT_BITS[public.bits]
            base = negated_square_power(public, random)
            p, q = (digit_bases(base, digits_for(bits), mpz(s) ** 2) for s in primes)
            return cls(public, primes, (p, q), Short(bits), shortness(bits))
        if key.factored is None:
            p, q = (_subgroup_elements(s, random) for s in primes)
            return cls(public, primes, (p, q), AnyDigits((len(p), len(q))), NO_ASSUMPTION)
        orders = (primes[0] - 1, primes[1] - 1)
        roots = (gmpy2.powmod(generator(each, random), each.prime, mpz(each.prime) ** 2) for each in key.factored)
        p, q = (
            digit_bases(root, digits_for(s.bit_length()), mpz(s) ** 2) for root, s in zip(roots, primes, strict=True)
        )
        return cls(public, primes, (p, q), BelowOrders(orders), NO_ASSUMPTION)

    def make(self, count: int, random: RandomStream) -> list[mpz]:
        """`count` fresh encryptions of zero."""
        p_squared, q_squared = (mpz(s) ** 2 for s in self._primes)
        (of_p, of_q), inverse = self._tables, gmpy2.invert(q_squared, p_squared)
        for_p, for_q = self._draw(count, random)
        modulo_p = products_of_powers(of_p, for_p, p_squared)
        modulo_q = products_of_powers(of_q, for_q, q_squared)
        return [b + q_squared * ((a - b) * inverse % p_squared) for a, b in zip(modulo_p, modulo_q, strict=True)]

    @cached_property
    def _tables(self) -> tuple[Table, Table]:
        p, q = (table_of(bases, mpz(s) ** 2) for bases, s in zip(self._bases, self._primes, strict=True))
        return p, q

    def __reduce__(self) -> tuple[object, ...]:
        p, q = (tuple(map(int, bases)) for bases in self._bases)
        return _owner_in_worker, (int(self.key.n), self._primes, (p, q), self._draw, self.assumption)

    def __repr__(self) -> str:
        return f"<OwnerZeros under a key of {self.key.bits} bits>"


# -- by anybody --------------------------------------------------------------------------------------------------------
class TableZeros:
    """Made without the private key, with a table modulo n² of powers of h^n, h = −x² mod n for an x of its own.

    Attributes:
        key: The public key.
        assumption: What is assumed.
    """

    def __init__(self, key: PublicKey, bases: list[mpz], bits: int) -> None:
        """Use `of`."""
        self.key, self._bases, self._bits = key, bases, bits
        self.assumption = shortness(bits)

    @classmethod
    def of(cls, key: PublicKey, random: RandomStream, *, exponent: Literal["half", "short"] = "half") -> TableZeros:
        """Anybody's source; not for what goes back to the key's owner (see the module).

        Args:
            key: The public key, whose primes its owner has drawn ≡ 3 (mod 4).
            random: For the base.
            exponent: Its length: half of n's, or short.

        Raises:
            ValueError: Short exponents for a key without full size.
        """
        if exponent == "short" and key.bits not in SHORT_BITS:
            raise ValueError("short exponents are for keys of full size")
        bits = SHORT_BITS[key.bits] if exponent == "short" else -(-key.bits // 2)
        return cls(key, digit_bases(negated_square_power(key, random), digits_for(bits), key.n_squared), bits)

    def make(self, count: int, random: RandomStream) -> list[mpz]:
        """`count` fresh encryptions of zero."""
        return products_of_powers(self._table, _random_digits(count, self._bits, random), self.key.n_squared)

    @cached_property
    def _table(self) -> Table:
        return table_of(self._bases, self.key.n_squared)

    def __reduce__(self) -> tuple[object, ...]:
        return _table_in_worker, (int(self.key.n), tuple(map(int, self._bases)), self._bits)


class UniformZeros:
    """r^n mod n² with r uniform in Z_n^*: by anybody, twenty times as slow as tables, and assumes nothing.

    The powers are taken without Python's lock, so that threads work side by side.

    Attributes:
        key: The public key.
        assumption: That there is none.
    """

    def __init__(self, key: PublicKey) -> None:
        self.key, self.assumption = key, NO_ASSUMPTION

    def make(self, count: int, random: RandomStream) -> list[mpz]:
        """`count` fresh encryptions of zero."""
        roots = [_random_unit(self.key.n, random) for _ in range(count)]
        return list(gmpy2.powmod_base_list(roots, self.key.n, self.key.n_squared))


def negated_square_power(key: PublicKey, random: RandomStream) -> mpz:
    """h^n mod n² for h = −x² mod n and x uniform: the base of Damgård, Jurik and Nielsen."""
    x = _random_unit(key.n, random)
    return gmpy2.powmod(-x * x % key.n, key.n, key.n_squared)


def _subgroup_elements(prime: int, random: RandomStream) -> list[mpz]:
    """So many uniform n-th residues modulo p² that products of their powers 0 … 511 are uniform, too."""
    units = [mpz(1 + random.below(prime - 1)) for _ in range(digits_for(prime.bit_length() + _SLACK_BITS))]
    return list(gmpy2.powmod_base_list(units, prime, mpz(prime) ** 2))


def _random_unit(n: mpz, random: RandomStream) -> mpz:
    """Uniform in Z_n^*."""
    while True:
        value = mpz(random.below(int(n)))
        if gmpy2.gcd(value, n) == 1:
            return value


# A worker gets the same source with every piece of work; it keeps the latest one, and so its tables.
@lru_cache(maxsize=2)
def _owner_in_worker(
    modulus: int,
    primes: tuple[int, int],
    bases: tuple[tuple[int, ...], tuple[int, ...]],
    draw: Draw,
    assumption: str,
) -> OwnerZeros:
    p, q = (list(map(mpz, each)) for each in bases)
    return OwnerZeros(PublicKey.trusted(modulus), primes, (p, q), draw, assumption)


@lru_cache(maxsize=2)
def _table_in_worker(modulus: int, bases: tuple[int, ...], bits: int) -> TableZeros:
    return TableZeros(PublicKey.trusted(modulus), list(map(mpz, bases)), bits)

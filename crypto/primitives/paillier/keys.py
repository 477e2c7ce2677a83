"""Private Paillier keys: generation, checks, decryption.

Keys have 2048, 3072 (the default: 128 bits of security) or 4096 bits. Decryption is by the Chinese remainder theorem,
modulo p² and q² (Paillier, EUROCRYPT 1999, section 7).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, Never

import gmpy2
from gmpy2 import mpz

from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.primes import PRIME_ROUNDS, FactoredPrime, random_prime
from crypto.primitives.paillier.public_key import SIZES, PublicKey
from link.randomness import RandomStream

DEFAULT_BITS: Final = 3072
_CLOSE_BITS: Final = 100  # p and q differ within their first 100 bits (FIPS 186-5, appendix A.1.3)


class PrivateKey:
    """Two primes, and decryption.

    A private key is neither copied nor pickled. Part of it goes to a worker by `zeros.OwnerZeros`.

    Attributes:
        public: The public key.
        p: The one prime.
        q: The other one.
        factored: Both with the factors of p − 1 and q − 1 where they are known, else None.
    """

    def __init__(
        self, p: int, q: int, *, factored: tuple[FactoredPrime, FactoredPrime] | None = None, toy: bool = False
    ) -> None:
        """Checks the primes.

        Args:
            p: A prime.
            q: Another prime.
            factored: Both with the factors of the numbers before them, from which the owner gets verified generators.
            toy: As for `PublicKey`.

        Raises:
            ValueError: They are not two different primes that make a key.
        """
        self.p, self.q = mpz(p), mpz(q)
        if not (gmpy2.is_prime(self.p, PRIME_ROUNDS) and gmpy2.is_prime(self.q, PRIME_ROUNDS)) or p == q:
            raise ValueError("a private key consists of two different primes")
        if not toy and abs(self.p - self.q).bit_length() <= self.p.bit_length() - _CLOSE_BITS:
            raise ValueError("the primes of a private key are too close to each other")
        if factored is not None and tuple(each.prime for each in factored) != (p, q):
            raise ValueError("the factored primes are not those of the key")
        self.public = PublicKey(p * q, toy=toy)
        if gmpy2.gcd(self.public.n, (self.p - 1) * (self.q - 1)) != 1:
            raise ValueError("one prime of a private key divides the other less one")
        self.factored = factored

    @cached_property
    def _halves(self) -> tuple[tuple[mpz, mpz, mpz], ...]:
        """Per prime s: s, s², and what L(g^(s−1) mod s²) is multiplied by."""
        halves = []
        for s in (self.p, self.q):
            unit = (gmpy2.powmod(self.public.n + 1, s - 1, s * s) - 1) // s
            halves.append((s, s * s, gmpy2.invert(unit, s)))
        return tuple(halves)

    def decrypt(self, ciphertexts: Ciphertexts) -> list[int]:
        """The plaintexts, each in 0 … n − 1.

        The powers are taken without Python's lock, so that threads decrypt side by side.

        Raises:
            TypeError: The ciphertexts are under another key.
        """
        if ciphertexts.key != self.public:
            raise TypeError("ciphertexts are decrypted with the key under which they are")
        by_prime = []
        for s, square, scale in self._halves:
            powers = gmpy2.powmod_base_list([value % square for value in ciphertexts.values], s - 1, square)
            by_prime.append([(power - 1) // s * scale % s for power in powers])
        inverse = gmpy2.invert(self.q, self.p)
        return [int(b + self.q * ((a - b) * inverse % self.p)) for a, b in zip(*by_prime, strict=True)]

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a private key is never copied or pickled")

    def __repr__(self) -> str:
        return f"<PrivateKey of {self.public.bits} bits>"


def generate_key(bits: int, random: RandomStream) -> PrivateKey:
    """A fresh key: p ≡ q ≡ 3 (mod 4), gcd(p − 1, q − 1) = 2, factors of p − 1 and q − 1 known (see `primes`).

    It takes about 0.1 s at 2048 bits, 0.3 s at 3072 and 1 s at 4096.

    Args:
        bits: One of `SIZES`; `DEFAULT_BITS` unless there is a reason.
        random: Fresh randomness, used for nothing else.

    Raises:
        ValueError: Another size.
    """
    if bits not in SIZES:
        raise ValueError(f"a Paillier key has {', '.join(map(str, SIZES))} bits, not {bits}")
    p = random_prime(bits // 2, random)
    while True:
        q = random_prime(bits // 2, random)
        if gmpy2.gcd(p.prime - 1, q.prime - 1) == 2:
            return PrivateKey(p.prime, q.prime, factored=(p, q))

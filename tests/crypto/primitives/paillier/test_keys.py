from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.keys import PrivateKey, generate_key
from crypto.primitives.paillier.primes import FactoredPrime, generator, random_prime
from crypto.primitives.paillier.public_key import SIZES, PublicKey
from crypto.primitives.randomness import Randomness
from tests.examples import slowly
from tests.paillier_world import TINY, full_key, small_key, tiny_key

pytestmark = pytest.mark.turn(6)

KNOWN = 470_986

# -- primes ------------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(bits=st.integers(64, 160), seed=st.integers(0, 2**32))
def test_primes_have_their_size_and_factors(bits: int, seed: int) -> None:
    found = random_prime(bits, Randomness.from_seed(seed))
    p = found.prime
    assert gmpy2.is_prime(p)
    assert p % 4 == 3
    assert p < 1 << bits
    assert 2 * p * p >= 1 << 2 * bits  # the product of two has twice as many bits
    rest = p - 1
    for factor in found.factors:
        assert gmpy2.is_prime(factor)
        while rest % factor == 0:
            rest //= factor
    assert rest == 1
    assert len(set(found.factors)) == len(found.factors)


@pytest.mark.parametrize("prime", TINY)
def test_generators_generate(prime: FactoredPrime) -> None:
    random = Randomness.from_seed(1)
    seen = {generator(prime, random) for _ in range(200)}
    for g in seen:
        assert len({pow(g, e, prime.prime) for e in range(prime.prime - 1)}) == prime.prime - 1
    # All of them are found: there are φ(p − 1), and 200 draws miss a given one with probability below 1e-3.
    phi = sum(1 for e in range(1, prime.prime) if gmpy2.gcd(e, prime.prime - 1) == 1)
    assert len(seen) >= phi - 2


@pytest.mark.parametrize("factors", [(2,), (11,), (2, 11, 3), (22,)])
def test_a_generator_takes_all_prime_factors(factors: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="all prime factors"):
        generator(FactoredPrime(31, factors), Randomness.from_seed(1))


def test_primes_of_too_few_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 64"):
        random_prime(40, Randomness.from_seed(1))


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", slowly(SIZES, now=[0, 1]))
def test_generated_keys(bits: int) -> None:
    key = generate_key(bits, Randomness.from_seed(bits))
    assert key.public.bits == bits
    assert key.public.ciphertext_bytes == bits // 4
    assert key.public.plaintext_bits == bits - 1
    assert key.p * key.q == key.public.n
    assert key.p % 4 == key.q % 4 == 3
    assert gmpy2.gcd(key.p - 1, key.q - 1) == 2
    assert PublicKey.from_bytes(key.public.to_bytes(), bits) == key.public


def test_only_the_sizes_are_generated() -> None:
    with pytest.raises(ValueError, match="2048, 3072, 4096"):
        generate_key(1024, Randomness.from_seed(1))


def test_different_streams_give_different_keys() -> None:
    keys = {generate_key(2048, Randomness.from_seed(seed)).public for seed in range(3)}
    assert len(keys) == 3


def _with_a_small_factor(n: int) -> int:
    return 3 * (n // 3 | 1) if (3 * (n // 3 | 1)).bit_length() == 2048 else 3 * (n // 4 | 1)


REFUSED: dict[str, Callable[[int], int]] = {  # by what they are; each of an honest modulus
    "even": lambda n: n + 1,
    "too short": lambda _: int(small_key().public.n),
    "of no size": lambda n: n << 2 | 1,
    "prime": lambda _: int(gmpy2.next_prime(1 << 2047)),
    "a square": lambda _: int(gmpy2.next_prime(int(1.5 * (1 << 51)) << 972)) ** 2,
    "with a small factor": _with_a_small_factor,
    "zero": lambda _: 0,
    "negative": lambda n: -n,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_modulus_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Paillier modulus"):
        PublicKey(REFUSED[name](int(full_key().public.n)))


def test_a_peers_key_has_the_declared_size() -> None:
    data = full_key().public.to_bytes()
    for wrong, bits in [(data, 3072), (data[1:], 2048), (b"\0" + data, 2048), (b"", 2048), (data + b"\1", 2048)]:
        with pytest.raises(ValueError, match="declared"):
            PublicKey.from_bytes(wrong, bits)


def test_toy_keys_must_be_asked_for() -> None:
    with pytest.raises(ValueError, match="bits"):
        PublicKey(23 * 59)
    assert PublicKey(23 * 59, toy=True).n == 1357


@pytest.mark.parametrize(
    ("p", "q", "reason"),
    [(23, 23, "two different primes"), (23, 55, "two different primes"), (23, 47, "divides the other less one")],
)
def test_what_is_no_private_key_is_refused(p: int, q: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PrivateKey(p, q, toy=True)


def test_primes_close_to_each_other_are_refused() -> None:
    p = full_key().p
    with pytest.raises(ValueError, match="too close"):
        PrivateKey(p, gmpy2.next_prime(p))


def test_factors_belong_to_the_primes() -> None:
    with pytest.raises(ValueError, match="not those of the key"):
        PrivateKey(59, 23, factored=TINY, toy=True)


def test_private_keys_do_not_travel_and_show_nothing() -> None:
    key = small_key()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            copied(key)
    assert str(key.p) not in repr(key)
    assert repr(key) == f"<PrivateKey of {key.public.bits} bits>"


# -- decryption --------------------------------------------------------------------------------------------------------


def test_a_known_answer() -> None:
    """n = 23 · 59; m = 42, r = 500: (1 + 1357·42)·500^1357 mod 1357², by Python's own pow."""
    key = tiny_key()
    ciphertext = (1 + 1357 * 42) * pow(500, 1357, 1357**2) % 1357**2
    assert ciphertext == KNOWN
    assert key.decrypt(Ciphertexts(key.public, [KNOWN])) == [42]


def test_decryption_of_all_ciphertexts_of_a_tiny_key() -> None:
    """Every number coprime to n below n² is the ciphertext of exactly one plaintext, the same number of each."""
    key = tiny_key()
    n = int(key.public.n)
    units = [c for c in range(1, n * n) if c % 23 and c % 59][::97]
    opened = key.decrypt(Ciphertexts(key.public, units))
    residues = {pow(r, n, n * n) for r in range(1, n) if r % 23 and r % 59}
    for c, m in zip(units, opened, strict=True):
        assert c * pow(1 + n, -m, n * n) % (n * n) in residues


def test_ciphertexts_of_another_key_are_not_decrypted() -> None:
    with pytest.raises(TypeError, match="the key under which"):
        full_key().decrypt(Ciphertexts(small_key().public, [1]))

"""The library `phe` is an oracle that shares no code with ours; without it most of these tests are skipped."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.paillier.ciphertexts import Ciphertexts, encrypt
from crypto.primitives.paillier.interchange import (
    ciphertexts_from_phe,
    ciphertexts_to_phe,
    decode,
    encode,
    library,
    private_from_json,
    private_from_phe,
    private_to_json,
    private_to_phe,
    public_from_json,
    public_from_phe,
    public_to_json,
    public_to_phe,
)
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.zeros import NO_ASSUMPTION, OwnerZeros
from crypto.primitives.randomness import Randomness
from tests.errors import fails
from tests.paillier_world import full_key, quick_source

pytestmark = pytest.mark.turn(3)

NUMBERS = (
    st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)
    | st.sampled_from([0, 0.0, 1, -1, 0.1, -0.1, 2.0**-300, 1e-10])
)


@pytest.fixture(scope="module")
def phe() -> Any:
    return pytest.importorskip("phe", reason="the optional library phe is not installed")


def ours(plaintexts: list[int], seed: int = 0) -> Ciphertexts:
    zeros = quick_source().make(len(plaintexts), Randomness.from_seed(seed))
    return encrypt(full_key().public, plaintexts, zeros)


# -- keys --------------------------------------------------------------------------------------------------------------
def test_keys_in_both_directions(phe: Any) -> None:
    key = full_key()
    assert public_from_phe(public_to_phe(key.public)) == key.public
    back = private_from_phe(private_to_phe(key))
    assert back.public == key.public
    assert {back.p, back.q} == {key.p, key.q}
    public, private = phe.generate_paillier_keypair(n_length=2048)
    assert private_from_phe(private).public == public_from_phe(public)


def test_keys_of_other_sizes_stay_outside(phe: Any) -> None:
    public, private = phe.generate_paillier_keypair(n_length=1024)
    with pytest.raises(ValueError, match="not 1024"):
        public_from_phe(public)
    with pytest.raises(ValueError, match="not 1024"):
        private_from_phe(private)


def test_a_key_of_phe_encrypts_without_assumption(phe: Any) -> None:
    _, private = phe.generate_paillier_keypair(n_length=2048)
    key, random = private_from_phe(private), Randomness.from_seed(1)
    source = OwnerZeros.of(key, random)
    assert source.assumption == NO_ASSUMPTION
    sent = ciphertexts_to_phe(encrypt(key.public, [7, 8], source.make(2, random)), [0, 0])
    assert [private.decrypt(number) for number in sent] == [7, 8]


# -- ciphertexts and numbers -------------------------------------------------------------------------------------------
@settings(max_examples=8)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=3))
def test_phe_decrypts_what_we_encrypt(phe: Any, numbers: list[float]) -> None:
    plaintexts, exponents = encode(full_key().public, numbers)
    private = private_to_phe(full_key())
    sent = ciphertexts_to_phe(ours(plaintexts), exponents)
    assert [private.decrypt(number) for number in sent] == numbers


@settings(max_examples=8)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=3))
def test_we_decrypt_what_phe_encrypts(phe: Any, numbers: list[float]) -> None:
    public = public_to_phe(full_key().public)
    ciphertexts, exponents = ciphertexts_from_phe(full_key().public, [public.encrypt(number) for number in numbers])
    assert decode(full_key().public, full_key().decrypt(ciphertexts), exponents) == numbers


def test_sums_on_either_side_agree(phe: Any) -> None:
    private, numbers = private_to_phe(full_key()), [3.25, -8, 100]
    plaintexts, exponents = encode(full_key().public, numbers, precision=1 / 16)
    assert len(set(exponents)) == 1
    encrypted = ciphertexts_to_phe(ours(plaintexts), exponents)
    assert private.decrypt(encrypted[0] + encrypted[1] * 2 + encrypted[2]) == 87.25
    back, of_each = ciphertexts_from_phe(full_key().public, encrypted[1:])
    assert decode(full_key().public, full_key().decrypt(back.sum()), of_each[:1]) == [92]


def test_ciphertexts_of_phe_come_fresh(phe: Any) -> None:
    public = public_to_phe(full_key().public)
    constant = public.encrypt(1, r_value=1)  # 1 + n: everybody knows what it is
    ciphertexts, _ = ciphertexts_from_phe(full_key().public, [constant])
    assert ciphertexts.values[0] != 1 + full_key().public.n
    assert full_key().decrypt(ciphertexts) == [1]


def test_sums_beyond_the_encoding_are_noticed(phe: Any) -> None:
    n = int(full_key().public.n)
    with pytest.raises(OverflowError):
        decode(full_key().public, [n // 2], [0])
    with pytest.raises(ValueError, match="Integer needs to be within"):
        encode(full_key().public, [n // 2])


def test_ciphertexts_of_another_key_are_refused(phe: Any) -> None:
    public, _ = phe.generate_paillier_keypair(n_length=2048)
    with pytest.raises(TypeError, match="different keys"):
        ciphertexts_from_phe(full_key().public, [public.encrypt(1)])


def test_without_the_library_there_is_a_word_of_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    with fails("E100"):
        library()


# -- key files ---------------------------------------------------------------------------------------------------------
def test_key_files_are_those_of_pheutil(phe: Any) -> None:
    command_line = pytest.importorskip("phe.command_line", reason="phe was installed without its command line")
    loaded = command_line.load_public_key(public_to_json(full_key().public, "ours"))
    assert loaded.n == full_key().public.n
    theirs = {"kty": "DAJ", "alg": "PAI-GN1", "key_ops": ["encrypt"], "n": phe.util.int_to_base64(loaded.n), "kid": "x"}
    assert public_from_json(theirs) == full_key().public


def test_key_files_come_back() -> None:
    key = full_key()
    text = json.dumps(private_to_json(key, "a key"))
    back = private_from_json(json.loads(text))
    assert (back.p, back.q) == (key.p, key.q)
    assert public_from_json(json.loads(text)["pub"]) == key.public
    assert set(private_to_json(key, "a key")) == {"kty", "key_ops", "p", "q", "pub", "kid"}


def changed(**changes: Any) -> dict[str, Any]:
    return {**private_to_json(full_key(), "a key"), **changes}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "kind DAJ"),
        (changed(kty="RSA"), "kind DAJ"),
        (changed(pub=None), "kind DAJ"),
        (changed(p=5), "has no 'p'"),
        (changed(pub={"kty": "DAJ", "alg": "PAI-GN1"}), "has no 'n'"),
        (changed(pub={"kty": "DAJ", "alg": "other", "n": "AA"}), "PAI-GN1"),
        (changed(p=changed()["q"]), "two different primes"),
        (changed(p="AAAA"), "two different primes"),
    ],
)
def test_other_files_are_refused(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        private_from_json(data)


def test_a_public_part_belongs_to_its_private_key() -> None:
    from crypto.primitives.paillier.keys import generate_key

    other: PrivateKey = generate_key(2048, Randomness.from_seed(77))
    with pytest.raises(ValueError, match="not its own"):
        private_from_json(changed(pub=public_to_json(other.public, "another")))

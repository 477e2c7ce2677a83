"""Exchange with the `phe` library (python-paillier): keys, ciphertexts, its encoding of numbers, its key files.

`phe` is under the GPL, version 3, and an optional extra of comine; it is imported when a function here needs it. Key
files are read and written without it.

`phe` encodes a number as mantissa · 16^exponent: a mantissa m ≥ 0 as the plaintext m, a negative one as n + m, both
up to n/3. Sums need equal exponents; `phe` itself brings them there. Keys of `phe` come without the factors of p − 1,
for which `zeros.OwnerZeros` has its own way.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.public_key import PublicKey
from link.errors import ConfigurationError

Number = int | float

_KIND = "DAJ"
_ALGORITHM = "PAI-GN1"


def library() -> Any:
    """The module `phe`.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        return importlib.import_module("phe")
    except ImportError:
        raise ConfigurationError(
            "the library phe is not installed; install comine with its extra: pip install 'comine[phe]'"
        ) from None


# -- keys --------------------------------------------------------------------------------------------------------------
def public_to_phe(key: PublicKey) -> Any:
    """A `phe.PaillierPublicKey`."""
    return library().PaillierPublicKey(int(key.n))


def public_from_phe(key: Any) -> PublicKey:
    """From a `phe.PaillierPublicKey`.

    Raises:
        ValueError: It has a size that comine does not use, or is no modulus.
    """
    return PublicKey(int(key.n))


def private_to_phe(key: PrivateKey) -> Any:
    """A `phe.PaillierPrivateKey`, its public key included."""
    return library().PaillierPrivateKey(public_to_phe(key.public), int(key.p), int(key.q))


def private_from_phe(key: Any) -> PrivateKey:
    """From a `phe.PaillierPrivateKey`; errors as for `public_from_phe`."""
    return PrivateKey(int(key.p), int(key.q))


# -- numbers and ciphertexts -------------------------------------------------------------------------------------------
def encode(key: PublicKey, numbers: Sequence[Number], *, precision: float | None = None) -> tuple[list[int], list[int]]:
    """Plaintexts and exponents by `phe`'s encoding.

    Args:
        key: The key.
        numbers: Signed integers and floats.
        precision: The largest rounding error allowed; floats keep all their digits by default.

    Raises:
        ValueError: A mantissa is beyond n/3.
    """
    phe, public = library(), public_to_phe(key)
    encoded = [phe.EncodedNumber.encode(public, number, precision=precision) for number in numbers]
    return [int(each.encoding) for each in encoded], [int(each.exponent) for each in encoded]


def decode(key: PublicKey, plaintexts: Sequence[int], exponents: Sequence[int]) -> list[Number]:
    """The numbers that plaintexts and exponents represent.

    Raises:
        OverflowError: A plaintext lies between n/3 and 2n/3: a sum has grown beyond the encoding.
    """
    phe, public = library(), public_to_phe(key)
    pairs = zip(plaintexts, exponents, strict=True)
    return [phe.EncodedNumber(public, plaintext, exponent).decode() for plaintext, exponent in pairs]


def ciphertexts_to_phe(ciphertexts: Ciphertexts, exponents: Sequence[int]) -> list[Any]:
    """A `phe.EncryptedNumber` of each, which `phe` makes fresh when it gives it away."""
    phe, public = library(), public_to_phe(ciphertexts.key)
    pairs = zip(ciphertexts.values, exponents, strict=True)
    return [phe.EncryptedNumber(public, int(value), exponent) for value, exponent in pairs]


def ciphertexts_from_phe(key: PublicKey, numbers: Sequence[Any]) -> tuple[Ciphertexts, list[int]]:
    """From `phe.EncryptedNumber`s, each made fresh if it is not, with their exponents.

    Raises:
        TypeError: One is under another key.
        ValueError: One is no ciphertext.
    """
    if any(int(number.public_key.n) != key.n for number in numbers):
        raise TypeError("ciphertexts under different keys do not combine")
    return Ciphertexts(key, [int(number.ciphertext()) for number in numbers]), [int(n.exponent) for n in numbers]


# -- key files of `pheutil` --------------------------------------------------------------------------------------------
def public_to_json(key: PublicKey, name: str) -> dict[str, Any]:
    """The public key as `pheutil` writes it, after RFC 7517.

    Args:
        key: The key.
        name: A comment.
    """
    return {"kty": _KIND, "alg": _ALGORITHM, "key_ops": ["encrypt"], "n": _text(int(key.n)), "kid": name}


def public_from_json(data: Mapping[str, Any]) -> PublicKey:
    """The public key of a file of `pheutil`.

    Raises:
        ValueError: It is of another kind, incomplete, or no key.
    """
    if data.get("kty") != _KIND or data.get("alg") != _ALGORITHM:
        raise ValueError(f"a public key of the kind {_KIND}, {_ALGORITHM} was expected")
    return PublicKey(_integer(data, "n"))


def private_to_json(key: PrivateKey, name: str) -> dict[str, Any]:
    """The private key as `pheutil` writes it: SECRET, and without the factors of p − 1."""
    public = public_to_json(key.public, name)
    return {
        "kty": _KIND,
        "key_ops": ["decrypt"],
        "p": _text(int(key.p)),
        "q": _text(int(key.q)),
        "pub": public,
        "kid": name,
    }


def private_from_json(data: Mapping[str, Any]) -> PrivateKey:
    """The private key of a file of `pheutil`.

    Raises:
        ValueError: It is of another kind, incomplete, or its parts do not belong together.
    """
    if data.get("kty") != _KIND or not isinstance(data.get("pub"), Mapping):
        raise ValueError(f"a private key of the kind {_KIND} was expected")
    key = PrivateKey(_integer(data, "p"), _integer(data, "q"))
    if public_from_json(data["pub"]) != key.public:
        raise ValueError("the public part of a private key is not its own")
    return key


def _text(number: int) -> str:
    """Base64 for URLs of the big-endian bytes, without padding."""
    return base64.urlsafe_b64encode(number.to_bytes(-(-number.bit_length() // 8), "big")).decode().rstrip("=")


def _integer(data: Mapping[str, Any], name: str) -> int:
    text = data.get(name)
    if not isinstance(text, str):
        raise ValueError(f"the key has no '{name}'")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")

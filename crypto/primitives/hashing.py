"""Injective encodings and key derivation: the two things on which every domain separation rests."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from crypto.params import STANDARD_128

_SALT: Final = STANDARD_128.suite.encode()


def encode_fields(*parts: bytes) -> bytes:
    """Encode byte strings so that different sequences never give equal bytes.

    Every part is preceded by its length as 8 bytes, big-endian. The encoding of a sequence is also no prefix of
    another encoding of as many parts.

    Args:
        *parts: The byte strings, in order.

    Returns:
        The encoding, of length Σ (8 + len(part)).
    """
    return b"".join([len(part).to_bytes(8, "big") + part for part in parts])


def encode_labels(*labels: str | int | bytes) -> bytes:
    """Encode a path of labels injectively; the type counts, so `1`, `"1"` and `b"1"` differ.

    Args:
        *labels: Strings, integers of any size and sign, byte strings.

    Returns:
        `encode_fields` of the labels, each preceded by a letter for its type.

    Raises:
        TypeError: A label is of another type (a bool is refused, since it would equal an integer).
    """
    return encode_fields(*[_label(label) for label in labels])


def _label(label: str | int | bytes) -> bytes:
    if isinstance(label, str):
        return b"s" + label.encode()
    if isinstance(label, bytes):
        return b"b" + label
    if isinstance(label, int) and not isinstance(label, bool):
        return b"i" + str(label).encode()
    raise TypeError(f"a label must be str, int or bytes, not {type(label).__name__}")


def hkdf_sha256(secret: bytes, *, salt: bytes, info: bytes, size: int) -> bytes:
    """HKDF-SHA256 (RFC 5869): extract, then expand.

    Args:
        secret: Input keying material.
        salt: Public salt; empty means 32 zero bytes.
        info: Public context.
        size: Number of bytes to derive, at most 255 · 32.

    Returns:
        `size` bytes.
    """
    return HKDF(algorithm=SHA256(), length=size, salt=salt, info=info).derive(secret)


def derive_key(secret: bytes, *labels: str | int | bytes, size: int = 32) -> bytes:
    """Derive a key for one purpose from a secret; different label paths give independent keys.

    Args:
        secret: At least 16 bytes, unpredictable to an adversary.
        *labels: The purpose, encoded by `encode_labels`.
        size: Length of the key. Keys of different sizes under one path share a prefix: use one size for a path.

    Returns:
        `size` bytes: HKDF-SHA256 with the suite's name as salt.

    Raises:
        ValueError: The secret is too short to carry 128 bits.
    """
    if len(secret) < 16:
        raise ValueError(f"a secret needs at least 16 bytes, this one has {len(secret)}")
    return hkdf_sha256(secret, salt=_SALT, info=encode_labels(*labels), size=size)

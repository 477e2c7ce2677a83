"""Messages to a browser that a push service carries and cannot read: Message Encryption for Web Push (RFC 8291).

The browser has a key pair on P-256 and a secret of 16 bytes, and gives the sender the public key and the secret alone.
Each message has a key pair of its own: the shared point and the browser's secret give the key of one record of
`aes128gcm` (RFC 8188). Who does not know the browser's secret learns nothing but the length, and every message is
padded to one.

The ephemeral keys come from the operating system's generator inside the library `cryptography`.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from crypto.primitives.hashing import hkdf_sha256
from crypto.primitives.randomness import Randomness

POINT_BYTES: Final = 65
"""Of a public key: a point on P-256, not compressed."""

SECRET_BYTES: Final = 16
SALT_BYTES: Final = 16
RECORD: Final = 4096
"""Bytes of a record, of which a message is one; with its tag and delimiter, as browsers expect it."""

_LAST: Final = b"\x02"  # behind the plaintext of the last record


def point_of(key: EllipticCurvePrivateKey | EllipticCurvePublicKey) -> bytes:
    """A public key as 65 bytes, also of a private one."""
    public = key.public_key() if isinstance(key, EllipticCurvePrivateKey) else key
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def read_point(point: bytes) -> EllipticCurvePublicKey:
    """The public key of 65 bytes.

    Raises:
        ValueError: They are no point on the curve, or written otherwise.
    """
    if len(point) != POINT_BYTES:
        raise ValueError(f"a point has {POINT_BYTES} bytes")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)


def encrypt(message: bytes, receiver: bytes, secret: bytes, size: int) -> bytes:
    """A message for one browser, padded to a length.

    Args:
        message: At most `size` bytes.
        receiver: The browser's public key, 65 bytes.
        secret: The browser's secret, 16 bytes.
        size: Bytes to which the message is padded; up to 3,993, so that its record has at most 4,096 with all else.

    Returns:
        The body of a request with `Content-Encoding: aes128gcm`, of `size` + 103 bytes.

    Raises:
        ValueError: The message is too long, or the key no point.
    """
    if len(message) > size:
        raise ValueError(f"a message has at most {size} bytes")
    padding = bytes(size - len(message))
    return encrypt_with(
        message, receiver, secret, generate_private_key(SECP256R1()), Randomness.from_os().bytes(SALT_BYTES), padding
    )


def encrypt_with(
    message: bytes,
    receiver: bytes,
    secret: bytes,
    sender: EllipticCurvePrivateKey,
    salt: bytes,
    padding: bytes = b"",
) -> bytes:
    """As `encrypt`, with a given key pair and salt, which serve one message alone (RFC 8291, section 3.4)."""
    browser, own = read_point(receiver), point_of(sender)
    shared = sender.exchange(ECDH(), browser)
    key = hkdf_sha256(shared, salt=secret, info=b"WebPush: info\0" + receiver + own, size=32)
    return record(message, key, salt, own, padding)


def record(message: bytes, key: bytes, salt: bytes, key_id: bytes, padding: bytes = b"") -> bytes:
    """A message as one record of the content coding `aes128gcm` (RFC 8188, section 2).

    Args:
        message: The plaintext.
        key: Input keying material.
        salt: 16 bytes, which are never used again with that key.
        key_id: What tells the receiver the key; at most 255 bytes.
        padding: Zeros behind the plaintext.
    """
    content_key = hkdf_sha256(key, salt=salt, info=b"Content-Encoding: aes128gcm\0", size=16)
    nonce = hkdf_sha256(key, salt=salt, info=b"Content-Encoding: nonce\0", size=12)
    head = salt + RECORD.to_bytes(4, "big") + len(key_id).to_bytes(1, "big") + key_id
    return head + AESGCM(content_key).encrypt(nonce, message + _LAST + padding, None)

"""A browser as its push service and senders know it: what it gives them, and how it opens what comes."""

from __future__ import annotations

from typing import NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from console.push.base64url import written


class Receiver(NamedTuple):
    """One, written from the RFCs and sharing no code with the product's sender."""

    private: EllipticCurvePrivateKey
    secret: bytes

    @classmethod
    def new(cls) -> Self:
        return cls(generate_private_key(SECP256R1()), bytes(range(16)))

    @classmethod
    def of(cls, private: bytes, secret: bytes) -> Self:
        return cls(derive_private_key(int.from_bytes(private, "big"), SECP256R1()), secret)

    @property
    def point(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def form(self, endpoint: str) -> dict[str, str]:
        """What the page's script fills in."""
        return {"endpoint": endpoint, "key": written(self.point), "secret": written(self.secret)}

    def opened(self, body: bytes) -> bytes:
        """The message of a body."""
        salt, sender, sealed = body[:16], body[21 : 21 + body[20]], body[21 + body[20] :]
        shared = self.private.exchange(ECDH(), EllipticCurvePublicKey.from_encoded_point(SECP256R1(), sender))
        key = _derived(shared, self.secret, b"WebPush: info\0" + self.point + sender, 32)
        content = _derived(key, salt, b"Content-Encoding: aes128gcm\0", 16)
        padded = AESGCM(content).decrypt(_derived(key, salt, b"Content-Encoding: nonce\0", 12), sealed, None)
        message = padded.rstrip(b"\0")
        assert message.endswith(b"\2")
        return message[:-1]


def _derived(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(secret)

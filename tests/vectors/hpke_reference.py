"""HPKE in base mode, step by step as RFC 9180, sections 4 and 5 write it: a slow, independent oracle.

It has what the library's single-shot call has not: the ephemeral key and the associated data can be given, so that the
RFC's vectors can be held against it.
"""

from __future__ import annotations

import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

KEM_ID, KDF_ID = 0x0020, 0x0001  # DHKEM(X25519, HKDF-SHA256), HKDF-SHA256
AES_128_GCM, CHACHA20_POLY1305 = 0x0001, 0x0003
KEY_BYTES = {AES_128_GCM: 16, CHACHA20_POLY1305: 32}
KEM_SUITE = b"KEM" + KEM_ID.to_bytes(2, "big")


def extract(salt: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), ikm, "sha256")


def expand(prk: bytes, info: bytes, size: int) -> bytes:
    blocks, block = b"", b""
    for i in range(1, -(-size // 32) + 1):
        block = hmac.digest(prk, block + info + bytes([i]), "sha256")
        blocks += block
    return blocks[:size]


def labeled_extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + ikm)


def labeled_expand(suite: bytes, prk: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return expand(prk, size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, size)


def shared_secret(dh: bytes, enc: bytes, receiver: bytes) -> bytes:
    prk = labeled_extract(KEM_SUITE, b"", b"eae_prk", dh)
    return labeled_expand(KEM_SUITE, prk, b"shared_secret", enc + receiver, 32)


def cipher_of(secret: bytes, info: bytes, aead: int) -> tuple[AESGCM | ChaCha20Poly1305, bytes]:
    suite = b"HPKE" + b"".join(n.to_bytes(2, "big") for n in (KEM_ID, KDF_ID, aead))
    context = b"\0" + labeled_extract(suite, b"", b"psk_id_hash", b"") + labeled_extract(suite, b"", b"info_hash", info)
    prk = labeled_extract(suite, secret, b"secret", b"")
    key = labeled_expand(suite, prk, b"key", context, KEY_BYTES[aead])
    nonce = labeled_expand(suite, prk, b"base_nonce", context, 12)
    return (AESGCM(key) if aead == AES_128_GCM else ChaCha20Poly1305(key)), nonce


def seal(message: bytes, public_key: bytes, info: bytes, ephemeral: bytes, *, aad: bytes, aead: int) -> bytes:
    """The encapsulated key and the ciphertext."""
    private = X25519PrivateKey.from_private_bytes(ephemeral)
    enc = private.public_key().public_bytes_raw()
    dh = private.exchange(X25519PublicKey.from_public_bytes(public_key))
    cipher, nonce = cipher_of(shared_secret(dh, enc, public_key), info, aead)
    return enc + cipher.encrypt(nonce, message, aad)


def unseal(sealed: bytes, private_key: bytes, info: bytes, *, aad: bytes, aead: int) -> bytes:
    """The message."""
    private, enc = X25519PrivateKey.from_private_bytes(private_key), sealed[:32]
    dh = private.exchange(X25519PublicKey.from_public_bytes(enc))
    cipher, nonce = cipher_of(shared_secret(dh, enc, private.public_key().public_bytes_raw()), info, aead)
    return cipher.decrypt(nonce, sealed[32:], aad)

"""Messages sealed to a public key: HPKE (RFC 9180), base mode, single shot.

The suite is DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, as the package `cryptography` has it. A sealed
message is the encapsulated key, 32 bytes, and the ciphertext with its tag of 16. Only the holder of the private key
opens it, and only with the context (`info`) that it was sealed for; nobody can change one so that it still opens
(IND-CCA2). It says nothing of who sealed it. Who learns the private key later opens all that was ever sealed to it.

The ephemeral keys come from the operating system's generator inside the library. A thread holds the interpreter's lock
meanwhile: large batches go to processes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from numpy.typing import NDArray

from link.randomness import RandomStream

KEY_BYTES: Final = 32
OVERHEAD: Final = 48
"""Bytes by which a sealed message is longer than the message."""

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)

Rows = NDArray[np.uint8]
"""Shape (n, bytes of a message)."""


def new_private_key(random: RandomStream) -> bytes:
    """A private key: 32 uniform bytes."""
    return random.bytes(KEY_BYTES)


def public_key_of(private_key: bytes) -> bytes:
    """The public key, 32 bytes, of a private one.

    Raises:
        ValueError: A private key has 32 bytes.
    """
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def seal_rows(messages: Rows, public_key: bytes, info: bytes) -> Rows:
    """Seals every message by itself.

    Args:
        messages: Shape (n, m).
        public_key: Of the receiver, 32 bytes.
        info: What the messages are for; who opens them must say the same.

    Returns:
        Shape (n, m + 48). About 90 µs a message.

    Raises:
        ValueError: A public key has 32 bytes; or this one is of small order, so that nothing would be secret.
    """
    key = X25519PublicKey.from_public_bytes(public_key)
    sealed = b"".join([_SUITE.encrypt(message, key, info) for message in np.ascontiguousarray(messages)])
    return np.frombuffer(sealed, np.uint8).reshape(len(messages), messages.shape[1] + OVERHEAD)


def open_rows(sealed: Rows, private_key: bytes, info: bytes) -> tuple[Rows, NDArray[np.bool_]]:
    """Opens every sealed message that can be opened.

    Args:
        sealed: Shape (n, m + 48).
        private_key: Of the receiver.
        info: As when they were sealed.

    Returns:
        The messages, shape (n, m), zeros where one cannot be opened; and which could be, shape (n,). About 55 µs each.

    Raises:
        ValueError: What was sealed has 48 bytes at least.
    """
    if sealed.shape[1] < OVERHEAD:
        raise ValueError(f"a sealed message has {OVERHEAD} bytes at least, not {sealed.shape[1]}")
    key = X25519PrivateKey.from_private_bytes(private_key)
    nothing = bytes(sealed.shape[1] - OVERHEAD)
    opened = np.ones(len(sealed), np.bool_)
    messages = []
    for i, row in enumerate(np.ascontiguousarray(sealed)):
        try:
            messages.append(_SUITE.decrypt(row, key, info))
        except InvalidTag:
            messages.append(nothing)
            opened[i] = False
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(sealed), len(nothing)), opened


class Piece(NamedTuple):
    """Sealed messages for one worker process.

    Attributes:
        sealed: The messages, one after another.
        size: Bytes of each.
        private_key: Of the receiver.
        info: As when they were sealed.
    """

    sealed: bytes
    size: int
    private_key: bytes
    info: bytes


def open_piece(piece: Piece) -> tuple[bytes, bytes]:
    """`open_rows` for a worker: the messages, one after another, and which could be opened, as one byte each."""
    sealed = np.frombuffer(piece.sealed, np.uint8).reshape(-1, piece.size)
    messages, opened = open_rows(sealed, piece.private_key, piece.info)
    return messages.tobytes(), opened.tobytes()

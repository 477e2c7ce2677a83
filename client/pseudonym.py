"""By which name a client reports: another one in every period, which nobody can link.

A pseudonym is HMAC-SHA-256(secret, collection id ‖ period as 8 bytes, highest first), cut to 16 bytes. Without
the secret it cannot be distinguished from random bytes, so two periods, or two collections, cannot be joined by it; and
a client has one in a period, however often it sends.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import numpy as np
from numpy.typing import NDArray

PSEUDONYM_BYTES: Final = 16
SECRET_BYTES: Final = 32
_RECORD: Final = b"comine: the name of a client in a gateway's record"  # longer than any collection's id and period

_BLOCK: Final = 64  # of SHA-256
_INNER, _OUTER = 0x36, 0x5C  # the pads of HMAC (RFC 2104)


def pseudonym(secret: bytes, collection: bytes, period: int) -> bytes:
    """The name of one client.

    Args:
        secret: 32 bytes, which never leave the client.
        collection: Its id.
        period: From 0 on.
    """
    return hmac.digest(secret, _message(collection, period), "sha256")[:PSEUDONYM_BYTES]


def pseudonyms(secrets: NDArray[np.uint8], collection: bytes, period: int) -> NDArray[np.uint8]:
    """The names of many clients, shape (n, 16).

    Args:
        secrets: Shape (n, 32).
        collection: Its id.
        period: From 0 on.
    """
    return _named(secrets, _message(collection, period))


def record_names(secrets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """By which a gateway's own record knows many clients, shape (n, 16): no node ever learns them.

    Args:
        secrets: Shape (n, 32).
    """
    return _named(secrets, _RECORD)


def _named(secrets: NDArray[np.uint8], message: bytes) -> NDArray[np.uint8]:
    sha256 = hashlib.sha256
    inner, outer = _padded(secrets, _INNER), _padded(secrets, _OUTER)
    # HMAC spelled out: `hmac.digest` takes twice as long for such short messages.
    names = [
        sha256(outer[at : at + _BLOCK] + sha256(inner[at : at + _BLOCK] + message).digest()).digest()
        for at in range(0, len(inner), _BLOCK)
    ]
    whole = np.frombuffer(b"".join(names), np.uint8).reshape(len(secrets), hashlib.sha256().digest_size)
    return whole[:, :PSEUDONYM_BYTES].copy()


def _message(collection: bytes, period: int) -> bytes:
    return collection + period.to_bytes(8, "big")


def _padded(secrets: NDArray[np.uint8], pad: int) -> bytes:
    blocks = np.full((len(secrets), _BLOCK), pad, dtype=np.uint8)
    blocks[:, : secrets.shape[1]] ^= secrets
    return blocks.tobytes()

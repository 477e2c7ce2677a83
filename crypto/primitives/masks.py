"""Zero-sum masks over Z_2^64 from pairwise secrets: the parties' mask vectors add up to zero.

Every pair of parties expands its common secret into one keystream; the party whose name comes first adds it, the other
subtracts it. A masked vector is uniform to everyone who lacks one of its owner's pairwise secrets, so up to n − 2
colluders learn the sum over the other parties and nothing else.

A (secret, context) pair must never be used twice: the difference of two vectors under one mask is the difference of the
data. The context therefore encodes session id, lane, purpose and sequence number, by `hashing.encode_fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import derive_key
from crypto.primitives.keystream import Keystream

SECRET_BYTES: Final = 32
_CHUNK_WORDS: Final = 1 << 15  # 256 KB: vector and keystream meet in the second-level cache
_SLACK_WORDS: Final = 2


def mask_vector(secrets: Mapping[str, bytes], me: str, context: bytes, size: int) -> NDArray[np.uint64]:
    """This party's mask.

    Args:
        secrets: Each peer's name and the secret shared with it, at least 32 bytes.
        me: This party's name.
        context: Injective encoding of session, lane, purpose and sequence number.
        size: Length of the vector.

    Returns:
        Shape (size,). Over all parties these vectors add up to zero modulo 2^64.

    Raises:
        ValueError: There is no peer, `me` is among the peers, or a secret is too short.
    """
    mask = np.zeros(size, dtype=np.uint64)
    add_masks(mask, secrets, me, context)
    return mask


def add_masks(values: NDArray[np.uint64], secrets: Mapping[str, bytes], me: str, context: bytes) -> None:
    """Add this party's mask to a vector in place; arguments and errors as for `mask_vector`.

    Args:
        values: Shape (n,), uint64; overwritten with the masked vector.
        secrets: Each peer's name and the secret shared with it.
        me: This party's name.
        context: Injective encoding of session, lane, purpose and sequence number.
    """
    if values.dtype != np.uint64 or values.ndim != 1:
        raise ValueError("masks are added to a uint64 array of one dimension")
    if not secrets or me in secrets:
        raise ValueError("masks need the secrets shared with at least one peer, and with peers only")
    if any(len(secret) < SECRET_BYTES for secret in secrets.values()):
        raise ValueError(f"a pairwise secret has at least {SECRET_BYTES} bytes")
    streams = [
        (_keystream(secret, me, peer, context), np.add if me < peer else np.subtract)
        for peer, secret in sorted(secrets.items())
    ]
    buffer = np.empty(min(len(values), _CHUNK_WORDS) + _SLACK_WORDS, dtype="<u8")
    for start in range(0, len(values), _CHUNK_WORDS):
        part = values[start : start + _CHUNK_WORDS]
        for stream, combine in streams:
            stream.fill(buffer[: len(part) + _SLACK_WORDS])
            combine(part, buffer[: len(part)], out=part)


def _keystream(secret: bytes, me: str, peer: str, context: bytes) -> Keystream:
    first, second = sorted((me, peer))
    return Keystream.from_secret(derive_key(secret, "mask", first, second, context))

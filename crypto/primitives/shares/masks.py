"""Zero-sum masks over Z_2^w from pairwise secrets: the parties' mask vectors add up to zero.

The word size w is 8, 16, 32 or 64 bits, that of the vector: a mask is uniform whatever the word.

Every pair of parties expands its common secret into one keystream; the party whose name comes first adds it, the other
subtracts it. A masked vector is uniform to everyone who lacks one of its owner's pairwise secrets, so up to n − 2
colluders learn the sum over the other parties and nothing else.

A (secret, context) pair must never be used twice: the difference of two vectors under one mask is the difference of the
data. The context therefore encodes session id, lane, purpose and sequence number, by `hashing.encode_fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import derive_key
from crypto.primitives.keystream import Keystream

SECRET_BYTES: Final = 32
_CHUNK_BYTES: Final = 1 << 18  # vector and keystream meet in the second-level cache
_SLACK_WORDS: Final = 2

Words = NDArray[np.unsignedinteger[Any]]


def add_masks(values: Words, secrets: Mapping[str, bytes], me: str, context: bytes) -> None:
    """Add this party's mask to a vector in place. Over all parties the masks add up to zero modulo 2^w.

    Args:
        values: Shape (n,), unsigned; overwritten with the masked vector.
        secrets: Each peer's name and the secret shared with it.
        me: This party's name.
        context: Injective encoding of session, lane, purpose and sequence number.
    """
    if values.dtype.kind != "u" or values.ndim != 1:
        raise ValueError("masks are added to an array of unsigned integers of one dimension")
    if not secrets or me in secrets:
        raise ValueError("masks need the secrets shared with at least one peer, and with peers only")
    if any(len(secret) < SECRET_BYTES for secret in secrets.values()):
        raise ValueError(f"a pairwise secret has at least {SECRET_BYTES} bytes")
    streams = [
        (_keystream(secret, me, peer, context), np.add if me < peer else np.subtract)
        for peer, secret in sorted(secrets.items())
    ]
    step = _CHUNK_BYTES // values.itemsize
    buffer = np.empty(_keystream_words(values[:step]) + _SLACK_WORDS, dtype="<u8")
    words = buffer.view(values.dtype.newbyteorder("<"))
    for start in range(0, len(values), step):
        part = values[start : start + step]
        for stream, combine in streams:
            stream.fill(buffer[: _keystream_words(part) + _SLACK_WORDS])
            combine(part, words[: len(part)], out=part)


def _keystream_words(part: Words) -> int:
    return -(-part.nbytes // 8)


def _keystream(secret: bytes, me: str, peer: str, context: bytes) -> Keystream:
    first, second = sorted((me, peer))
    return Keystream.from_secret(derive_key(secret, "mask", first, second, context))

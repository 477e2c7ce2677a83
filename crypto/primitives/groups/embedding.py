"""Reversible embedding of 30-byte blocks in ristretto255.

A block goes through a fixed public permutation and then into bytes 1 … 30 of a candidate encoding, whose other two
bytes hold a 14-bit counter: its low 7 bits in bits 1 … 7 of byte 0 (bit 0 stays clear, since encodings are even), its
high 7 bits in bits 0 … 6 of byte 31 (bit 7 stays clear, since encodings lie below 2^255). The first counter for which
the candidate is a valid encoding other than the identity is taken. About one candidate in four is valid: 4 tries on
average, and failure has probability (3/4)^16384 < 2^-6800. The result is a function of the block, so equal blocks give
equal points, which a union needs.

The permutation is there because structured points are no random oracle. In the ideal permutation model the points of
different blocks are independent and uniform over the image of the embedding, which is recognisable and holds one group
element in about 2^12, so the decisional Diffie-Hellman assumption carries over by rejection. It is a Feistel network
over halves of 15 bytes with BLAKE2s as round function. It has 8 rounds, the number for which a network of public random
functions is proven indifferentiable from a random permutation (Dai and Steinberger, CRYPTO 2016); below 6 it is not.

The number of tries depends on the block: the time of a local computation, which is not seen on the wire.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives.groups.ristretto255 import POINT_BYTES, Points, is_valid_points, multiply_valid
from crypto.primitives.hashing import encode_fields

BLOCK_BYTES: Final = STANDARD_128.block_bytes
_HALF: Final = BLOCK_BYTES // 2
_DIGEST: Final = 32
_COUNTERS: Final = 1 << STANDARD_128.embedding_counter_bits
# Hashed to 32 bytes, so that a prefix and a half fill a single block of BLAKE2s.
_PREFIXES: Final = tuple(
    hashlib.blake2s(encode_fields(STANDARD_128.suite.encode(), b"embedding", bytes([number]))).digest()
    for number in range(STANDARD_128.feistel_rounds)
)

Blocks = NDArray[np.uint8]
"""Shape (n, 30)."""

_Attempt = Callable[[Points], tuple[Points, NDArray[np.bool_]]]
"""What comes of candidates, and which of them are encodings of elements other than the identity."""


def embed(blocks: Blocks) -> Points:
    """Map blocks to group elements, equal blocks to equal elements.

    Args:
        blocks: Shape (n, 30).

    Returns:
        Points of shape (n, 32), none of them the identity. About 18 µs a block.

    Raises:
        ValueError: Wrong shape or type.
    """
    return _first_accepted(blocks, lambda candidates: (candidates, _are_elements(candidates)))


def embed_multiplied(blocks: Blocks, scalar: bytes) -> Points:
    """`ristretto255.multiply(embed(blocks), scalar)`; the points that are found are not decoded a second time.

    Args:
        blocks: Shape (n, 30).
        scalar: 32 bytes, non-zero and below the group order.

    Returns:
        Shape (n, 32). About 51 µs a block.

    Raises:
        ValueError: Wrong shape or type, or no such scalar.
    """
    return _first_accepted(blocks, lambda candidates: multiply_valid(candidates, scalar))


def contents(points: Points) -> Blocks:
    """Give back the blocks of embedded points: `contents(embed(blocks))` equals `blocks`.

    Every element of the group is the image of some block and counter, so whether a point was honestly embedded is for
    the block's own tag to show. It is not checked that the counter was the first possible one.

    Args:
        points: Shape (n, 32), elements other than the identity, as products of such points are.

    Returns:
        Shape (n, 30). About 2 µs a point.
    """
    return unpermute(points[:, 1:31])


def permute(blocks: Blocks) -> Blocks:
    """The public permutation of blocks, shape (n, 30) → (n, 30)."""
    left, right = blocks[:, :_HALF], blocks[:, _HALF:]
    for prefix in _PREFIXES:
        left, right = right, left ^ _round(prefix, right)
    return np.concatenate((left, right), axis=1)


def unpermute(blocks: Blocks) -> Blocks:
    """The inverse of `permute`."""
    left, right = blocks[:, :_HALF], blocks[:, _HALF:]
    for prefix in reversed(_PREFIXES):
        left, right = right ^ _round(prefix, left), left
    return np.concatenate((left, right), axis=1)


def _are_elements(points: Points) -> NDArray[np.bool_]:
    """Which rows are canonical encodings of elements other than the identity."""
    valid: NDArray[np.bool_] = is_valid_points(points) & points.any(axis=1)
    return valid


def _first_accepted(blocks: Blocks, attempt: _Attempt) -> Points:
    """What comes of each block's candidate with the least counter that is accepted; the identity where none is."""
    _check(blocks, BLOCK_BYTES)
    found = np.zeros((len(blocks), POINT_BYTES), dtype=np.uint8)
    candidates = found.copy()
    candidates[:, 1:31] = permute(blocks)
    pending = np.arange(len(blocks))
    for counter in range(_COUNTERS):
        if not pending.size:
            break
        candidates[:, 0] = (counter & 0x7F) << 1
        candidates[:, 31] = counter >> 7
        values, accepted = attempt(candidates)
        found[pending[accepted]] = values[accepted]
        pending, candidates = pending[~accepted], candidates[~accepted]
    return found


def _round(prefix: bytes, half: NDArray[np.uint8]) -> NDArray[np.uint8]:
    blake2s, joined = hashlib.blake2s, half.tobytes()
    digests = [blake2s(prefix + joined[start : start + _HALF]).digest() for start in range(0, len(joined), _HALF)]
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, _DIGEST)[:, :_HALF]


def _check(array: NDArray[np.uint8], width: int) -> None:
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"blocks must be a uint8 array of shape (n, {width}), not {array.dtype} {array.shape}")

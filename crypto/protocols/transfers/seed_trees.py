"""Trees of seeds behind an oblivious-transfer extension with k > 1: one party has all leaves, the other all but one.

A seed has two children by a generator. Of every level below the first the owner sends the sums of all left and of all
right children, each under a key of a base transfer, of which the other party has the one of the side that leads away
from its hole. With it that party works out all leaves but the one at its hole.

An owner that sends other sums could make the leaves that the other has depend on where the hole is. So it also sends,
of every tree, the sum of the hashes of all leaves, and one hash over these hashes. Whoever lacks a leaf gets its hash
as what is left of the sum, and compares. An owner whose sums are not those of one set of leaves passes only where
the holes are in sets that it has guessed: it learns that they are, at the risk of being caught.

Adversary: malicious, in the random oracle model. Leakage: none to who lacks a leaf, to whom its hash is random.

Source: Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal and Scholl, "Efficient Two-Round OT Extension and Silent
Non-Interactive Secure Computation", CCS 2019, Figure 13 (puncturable seeds); Roy, "SoftSpokenOT", CRYPTO 2022, section
5 (the check).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.keystream import Keystream
from crypto.protocols.transfers.base_ot import KEY_BYTES, Keys

HASH_BYTES: Final = 32
_LEAF: Final = b"comine extension leaf 1"
_LEAVES: Final = b"comine extension leaves 1"

Seeds = NDArray[np.uint8]
"""Shape (blocks, nodes, 16): a level of every block's tree; as many as the choices take."""

Sums = NDArray[np.uint8]
"""Shape (blocks, k − 1, 2, 16): of every level below the first the sums of its left and right seeds, under keys."""


def sums_shape(blocks: int, field_bits: int) -> tuple[int, int, int, int]:
    """Shape of `Sums`."""
    return blocks, field_bits - 1, 2, KEY_BYTES


def grown(keys: NDArray[np.uint8]) -> tuple[Seeds, Sums]:
    """The owner's leaves and sums.

    Args:
        keys: Both of every base transfer, shape (blocks, k, 2, 16).
    """
    blocks, field_bits = keys.shape[:2]
    level, sums = keys[:, 0], np.empty(sums_shape(blocks, field_bits), np.uint8)
    for depth in range(1, field_bits):
        level = children(level)
        sums[:, depth - 1] = _side_sums(level) ^ keys[:, depth]
    return level, sums


def punctured(keys: Keys, path: NDArray[np.uint8], sums: Sums) -> tuple[Seeds, NDArray[np.int64]]:
    """All leaves but those at the ends of the paths, which hold nothing of use; and where these are.

    Args:
        keys: That the other side's base transfers gave, shape (blocks, k, 16).
        path: From the root to the hole, shape (blocks, k), each 0 or 1.
        sums: The owner's.
    """
    blocks = np.arange(len(path))
    level = np.zeros((len(path), 2, KEY_BYTES), np.uint8)
    level[blocks, 1 - path[:, 0]] = keys[:, 0]
    hole = path[:, 0].astype(np.int64)
    for depth in range(1, path.shape[1]):
        level = children(level)
        level[blocks, 2 * hole] = level[blocks, 2 * hole + 1] = 0
        side = 1 - path[:, depth]
        known = sums[blocks, depth - 1, side] ^ keys[:, depth] ^ _side_sums(level)[blocks, side]
        level[blocks, 2 * hole + side] = known
        hole = 2 * hole + path[:, depth]
    return level, hole


def checked_by(leaves: Seeds) -> tuple[bytes, bytes]:
    """What the owner sends for the check: of every tree the sum of its leaves' hashes, and one hash over all hashes."""
    hashes = _hashes(leaves)
    return np.bitwise_xor.reduce(hashes, axis=1).tobytes(), _over(hashes)


def agrees(leaves: Seeds, hole: NDArray[np.int64], sums: bytes, digest: bytes) -> bool:
    """Whether what the owner sent fits the leaves of the other party.

    Args:
        leaves: Its own, from `punctured`.
        hole: Where none is known.
        sums: From `checked_by`, as `digest`.
        digest: 32 bytes.
    """
    hashes, blocks = _hashes(leaves), np.arange(len(leaves))
    hashes[blocks, hole] = 0
    rest = np.frombuffer(sums, np.uint8).reshape(len(leaves), HASH_BYTES)
    hashes[blocks, hole] = np.bitwise_xor.reduce(hashes, axis=1) ^ rest
    return hmac.compare_digest(_over(hashes), digest)


def children(level: Seeds) -> Seeds:
    """Two seeds out of each, in order."""
    blocks, nodes, size = level.shape
    seeds = (seed.tobytes() for seed in level.reshape(-1, size))
    joined = b"".join(stream.take(2 * size) for stream in Keystream.of_keys(seeds, bytes(KEY_BYTES)))
    return np.frombuffer(joined, np.uint8).reshape(blocks, 2 * nodes, size).copy()


def _side_sums(level: Seeds) -> NDArray[np.uint8]:
    """Per block the sums of the left and of the right children, shape (blocks, 2, 16)."""
    sums: NDArray[np.uint8] = np.bitwise_xor.reduce(level.reshape(len(level), -1, 2, KEY_BYTES), axis=1)
    return sums


def _hashes(leaves: Seeds) -> NDArray[np.uint8]:
    """Of each leaf, shape (blocks, leaves, 32)."""
    found = b"".join([hashlib.sha256(_LEAF + leaf.tobytes()).digest() for leaf in leaves.reshape(-1, KEY_BYTES)])
    return np.frombuffer(found, np.uint8).reshape(*leaves.shape[:2], HASH_BYTES).copy()


def _over(hashes: NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(_LEAVES + hashes.tobytes()).digest()

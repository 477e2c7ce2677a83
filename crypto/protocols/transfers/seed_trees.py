"""Trees of seeds behind an oblivious-transfer extension with k > 1: one party has all leaves, the other all but one.

A seed has two children by a generator. Of every level below the first the owner sends the sums of all left and of all
right children, each under a key of a base transfer, of which the other party has the one of the side that leads away
from its hole. With it that party works out all leaves but the one at its hole.

An owner that sends other sums could make the leaves that the other has depend on where the hole is. So it also sends,
of every tree, the sum of the hashes of all leaves, and one hash over these hashes. Whoever lacks a leaf gets its hash
as what is left of the sum, and compares. An owner whose sums are not those of one set of leaves passes only where
the holes are in sets that it has guessed: it learns that they are, at the risk of being caught.

Generator and hash know whose trees these are, and which seed of which tree it is. So a guess of a seed is worth nothing
but at that one, however many trees there are in however many sessions.

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
_NODES: Final = b"comine extension nodes 2"
_LEAF: Final = b"comine extension leaf 2"
_LEAVES: Final = b"comine extension leaves 2"
_NUMBER_BYTES: Final = 4
_COUNTERS: Final = 1 << 8 * KEY_BYTES

Seeds = NDArray[np.uint8]
"""Shape (blocks, nodes, 16): a level of every block's tree; as many as the choices take."""

Sums = NDArray[np.uint8]
"""Shape (blocks, k − 1, 2, 16): of every level below the first the sums of its left and right seeds, under keys."""


def sums_shape(blocks: int, field_bits: int) -> tuple[int, int, int, int]:
    """Shape of `Sums`."""
    return blocks, field_bits - 1, 2, KEY_BYTES


def grown(name: bytes, keys: NDArray[np.uint8]) -> tuple[Seeds, Sums]:
    """The owner's leaves and sums.

    Args:
        name: Of the trees: of both parties' roles, and of the session, never used before.
        keys: Both of every base transfer, shape (blocks, k, 2, 16).
    """
    blocks, field_bits = keys.shape[:2]
    level, sums = keys[:, 0], np.empty(sums_shape(blocks, field_bits), np.uint8)
    for depth in range(1, field_bits):
        level = children(level, first_counter(name, depth))
        sums[:, depth - 1] = _side_sums(level) ^ keys[:, depth]
    return level, sums


def punctured(name: bytes, keys: Keys, path: NDArray[np.uint8], sums: Sums) -> tuple[Seeds, NDArray[np.int64]]:
    """All leaves but those at the ends of the paths, which hold nothing of use; and where these are.

    Args:
        name: Of the trees, the owner's.
        keys: That the other side's base transfers gave, shape (blocks, k, 16).
        path: From the root to the hole, shape (blocks, k), each 0 or 1.
        sums: The owner's.
    """
    blocks = np.arange(len(path))
    level = np.zeros((len(path), 2, KEY_BYTES), np.uint8)
    level[blocks, 1 - path[:, 0]] = keys[:, 0]
    hole = path[:, 0].astype(np.int64)
    for depth in range(1, path.shape[1]):
        level = children(level, first_counter(name, depth))
        level[blocks, 2 * hole] = level[blocks, 2 * hole + 1] = 0
        side = 1 - path[:, depth]
        known = sums[blocks, depth - 1, side] ^ keys[:, depth] ^ _side_sums(level)[blocks, side]
        level[blocks, 2 * hole + side] = known
        hole = 2 * hole + path[:, depth]
    return level, hole


def checked_by(name: bytes, leaves: Seeds) -> tuple[bytes, bytes]:
    """What the owner sends for the check: of every tree the sum of its leaves' hashes, and one hash over all hashes."""
    hashes = _hashes(name, leaves)
    return np.bitwise_xor.reduce(hashes, axis=1).tobytes(), _over(name, hashes)


def agrees(name: bytes, leaves: Seeds, hole: NDArray[np.int64], sums: bytes, digest: bytes) -> bool:
    """Whether what the owner sent fits the leaves of the other party.

    Args:
        name: Of the trees, the owner's.
        leaves: Its own, from `punctured`.
        hole: Where none is known.
        sums: From `checked_by`, as `digest`.
        digest: 32 bytes.
    """
    hashes, blocks = _hashes(name, leaves), np.arange(len(leaves))
    hashes[blocks, hole] = 0
    rest = np.frombuffer(sums, np.uint8).reshape(len(leaves), HASH_BYTES)
    hashes[blocks, hole] = np.bitwise_xor.reduce(hashes, axis=1) ^ rest
    return hmac.compare_digest(_over(name, hashes), digest)


def children(level: Seeds, first: int) -> Seeds:
    """Two seeds out of each, in order.

    Args:
        level: Seeds of all trees.
        first: `first_counter`: that of the first tree; those of each further one are two behind.
    """
    blocks, nodes, size = level.shape
    joined = bytearray()
    for place, stream in enumerate(Keystream.of_keys(map(bytes, level.reshape(-1, size)), bytes(KEY_BYTES))):
        stream.go_to(((first + 2 * (place // nodes)) % _COUNTERS).to_bytes(KEY_BYTES, "big"))
        joined += stream.take(2 * size)
    return np.frombuffer(joined, np.uint8).reshape(blocks, 2 * nodes, size)


def first_counter(name: bytes, depth: int) -> int:
    """Where the generator begins at a depth of trees of this name; others are far apart."""
    return int.from_bytes(hashlib.sha256(_NODES + name + bytes([depth])).digest()[:KEY_BYTES], "big")


def _side_sums(level: Seeds) -> NDArray[np.uint8]:
    """Per block the sums of the left and of the right children, shape (blocks, 2, 16)."""
    sums: NDArray[np.uint8] = np.bitwise_xor.reduce(level.reshape(len(level), -1, 2, KEY_BYTES), axis=1)
    return sums


def _hashes(name: bytes, leaves: Seeds) -> NDArray[np.uint8]:
    """Of each leaf, shape (blocks, leaves, 32)."""
    begun = hashlib.sha256(_LEAF + name)
    found = bytearray()
    for number, leaf in enumerate(leaves.reshape(-1, KEY_BYTES)):
        own = begun.copy()
        own.update(number.to_bytes(_NUMBER_BYTES, "big") + leaf.tobytes())
        found += own.digest()
    return np.frombuffer(found, np.uint8).reshape(*leaves.shape[:2], HASH_BYTES)


def _over(name: bytes, hashes: NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(_LEAVES + name + hashes.tobytes()).digest()

"""Batches: what was seen before, in what order they leave, and what they are known by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sealed import Rows
from link.randomness import RandomStream

TAG_KEY_BYTES: Final = 32
_TAG_BYTES: Final = 8

Tags = NDArray[np.uint64]


def tags_of(reports: Iterable[bytes | memoryview], key: bytes) -> Tags:
    """A tag of each sealed report, by which it is known when it comes again.

    Without the key nobody finds two reports with one tag but by chance: below n²/2^65 for all of n reports together,
    3·10^-6 for 10^7. Then one honest report counts as replayed.

    Args:
        reports: Sealed ones.
        key: 32 secret bytes, of this hop and route.

    Returns:
        Shape (n,); none is 0.
    """
    keyed = hashlib.blake2b(key=key, digest_size=_TAG_BYTES)
    digests = []
    for report in reports:
        hashed = keyed.copy()
        hashed.update(report)
        digests.append(hashed.digest())
    return np.maximum(np.frombuffer(b"".join(digests), "<u8").astype(np.uint64), 1)


def first_seen(tags: Tags, holds: Callable[[Tags], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which tags are new: the first of equal ones, and none that was there before.

    Args:
        tags: Shape (n,).
        holds: Says which tags were there before.

    Returns:
        Shape (n,).
    """
    first = np.zeros(len(tags), np.bool_)
    first[np.unique(tags, return_index=True)[1]] = True
    return first & ~holds(tags)


def shuffled(reports: Rows, random: RandomStream) -> Rows:
    """The same reports in a uniformly random order, which nothing keeps."""
    return reports[random.permutation(len(reports))]


def digest(reports: Rows) -> bytes:
    """SHA-256 of a batch, in its order."""
    return hashlib.sha256(np.ascontiguousarray(reports).data).digest()

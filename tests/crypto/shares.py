"""Secrets split into shares and put together again, as a dealer would do it; masks as vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.masks import Words, add_masks
from crypto.primitives.replicated_sharing import Holders3, ReplicatedShare
from crypto.primitives.ring_matrix import random_matrix
from crypto.primitives.sharing import check_complete
from crypto.primitives.xor_sharing import XorShare, words_of
from link.randomness import RandomStream


def planes_of(words: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """Words below 2^width bit-sliced: shape (width, ⌈n / 8⌉), as in `XorShare`, filled up with zeros."""
    return np.stack([pack_bits(words >> np.uint64(bit) & np.uint64(1) != 0) for bit in range(width)])


def share_bits(words: NDArray[np.uint64], width: int, holders: Sequence[str], random: RandomStream) -> list[XorShare]:
    """Words below 2^width as one share a holder, of which any but all are independent and uniform."""
    remainder, parts = planes_of(words, width), []
    for _ in holders[1:]:
        part = np.frombuffer(random.bytes(remainder.size), np.uint8).reshape(remainder.shape)
        remainder ^= part
        parts.append(part)
    names = tuple(holders)
    return [XorShare(part, len(words), name, names) for part, name in zip([remainder, *parts], names, strict=True)]


def reconstruct_bits(shares: Sequence[XorShare]) -> Words:
    """The words of which these are the shares, one of each holder, in any order."""
    check_complete(shares)
    return words_of(np.bitwise_xor.reduce([part.planes for part in shares]), shares[0].number)


def replicate(values: Words, holders: Holders3, random: RandomStream) -> list[ReplicatedShare]:
    """A matrix as three shares, of which any single one is independent and uniform."""
    shape = (values.shape[0], values.shape[1])
    first, second = (random_matrix(random, shape, values.dtype.type) for _ in range(2))
    parts = [first, second, values - first - second]
    return [ReplicatedShare(parts[i], parts[(i + 1) % 3], name, holders) for i, name in enumerate(holders)]


def reconstruct_replicated(shares: Sequence[ReplicatedShare]) -> Words:
    """The matrix of which these are the shares, one of each holder, in any order; their common parts must agree."""
    check_complete(shares)
    in_order = sorted(shares, key=lambda share: share.number)
    for one, following in zip(in_order, [*in_order[1:], in_order[0]], strict=True):
        assert np.array_equal(one.following, following.own)
    total: Words = in_order[0].own + in_order[1].own + in_order[2].own
    return total


def mask_vector(
    secrets: Mapping[str, bytes], me: str, context: bytes, size: int, word: type[np.unsignedinteger[Any]] = np.uint64
) -> Words:
    """A party's mask alone: what `add_masks` adds."""
    mask: Words = np.zeros(size, word)
    add_masks(mask, secrets, me, context)
    return mask

"""Who owns trees of seeds and sends other sums is caught, but where it has guessed the holes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.protocols.transfers.seed_trees import (
    HASH_BYTES,
    agrees,
    checked_by,
    children,
    first_counter,
    grown,
    punctured,
)

BLOCKS = 5
NAME = bytes(range(32))
OTHER = bytes(32)

Bytes = NDArray[np.uint8]


def keys_of(k: int) -> Bytes:
    return np.random.default_rng(k).integers(0, 256, (BLOCKS, k, 2, 16), np.uint8)


def path_to(holes: Bytes, k: int) -> Bytes:
    return (holes[:, None] >> np.arange(k)[::-1] & 1).astype(np.uint8)


def other_side(keys: Bytes, path: Bytes) -> Bytes:
    return np.take_along_axis(keys, 1 - path[:, :, None, None], axis=2)[:, :, 0]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
def test_all_leaves_but_those_at_the_holes_are_the_owners(k: int) -> None:
    keys, holes = keys_of(k), np.arange(BLOCKS, dtype=np.int64) * 7 % (1 << k)
    leaves, sums = grown(NAME, keys)
    found, at = punctured(NAME, other_side(keys, path_to(holes, k)), path_to(holes, k), sums)
    assert (at == holes).all()
    known = np.arange(1 << k) != holes[:, None]
    assert (found[known] == leaves[known]).all()
    assert not (found[~known] == leaves[~known]).all(axis=-1).any()
    assert agrees(NAME, found, at, *checked_by(NAME, leaves))


@pytest.mark.parametrize("k", [2, 3])
def test_altered_sums_pass_only_for_holes_that_do_not_take_them(k: int) -> None:
    """A sum of a level's side is taken by the half of all holes that lie on the other side there."""
    keys = keys_of(k)
    leaves, sums = grown(NAME, keys)
    told = checked_by(NAME, leaves)
    for depth in range(1, k):
        for side in (0, 1):
            wrong = sums.copy()
            wrong[0, depth - 1, side, 3] ^= 1
            passed = []
            for hole in range(1 << k):
                holes = np.full(BLOCKS, hole, np.int64)
                path = path_to(holes, k)
                if agrees(NAME, *punctured(NAME, other_side(keys, path), path, wrong), *told):
                    passed.append(hole)
            assert passed == [hole for hole in range(1 << k) if hole >> (k - 1 - depth) & 1 == side]


def test_hashes_of_other_leaves_pass_only_at_the_hole_and_altered_ones_nowhere() -> None:
    keys, k = keys_of(3), 3
    leaves, sums = grown(NAME, keys)
    told = b"".join(checked_by(NAME, leaves))
    other = leaves.copy()
    other[0, 5, 0] ^= 1
    wrong = [checked_by(NAME, other)]
    for place in (0, 8 * HASH_BYTES + 3, 8 * BLOCKS * HASH_BYTES, 8 * len(told) - 1):
        turned = bytearray(told)
        turned[place // 8] ^= 1 << place % 8
        wrong.append((bytes(turned[:-HASH_BYTES]), bytes(turned[-HASH_BYTES:])))
    for hole in range(1 << k):
        path = path_to(np.full(BLOCKS, hole, np.int64), k)
        found = punctured(NAME, other_side(keys, path), path, sums)
        assert agrees(NAME, *found, *checked_by(NAME, leaves))
        assert not any(agrees(NAME, *found, *each) for each in wrong[1:])
        assert agrees(NAME, *found, *wrong[0]) == (hole == 5)  # of the leaf that it lacks, a party learns nothing


def test_what_is_sent_of_leaves_are_hashes_of_where_they_are_alone() -> None:
    leaves, _ = grown(NAME, keys_of(2))
    sums, digest = checked_by(NAME, leaves)
    hashes = [
        hashlib.sha256(b"comine extension leaf 2" + NAME + number.to_bytes(4, "big") + leaf.tobytes()).digest()
        for number, leaf in enumerate(leaves.reshape(-1, 16))
    ]
    flat = np.frombuffer(b"".join(hashes), np.uint8).reshape(BLOCKS, 4, HASH_BYTES)
    assert sums == np.bitwise_xor.reduce(flat, axis=1).tobytes()
    assert digest == hashlib.sha256(b"comine extension leaves 2" + NAME + flat.tobytes()).digest()


def test_equal_seeds_have_other_children_and_hashes_in_every_tree_depth_and_session() -> None:
    """Else one guess of a seed would be held against all that a party lacks, in all trees that it ever sees."""
    keys = np.broadcast_to(keys_of(3)[:1, :1, :1], (BLOCKS, 3, 2, 16))
    found = set[bytes]()
    for name in (NAME, OTHER):
        leaves, _ = grown(name, keys)  # four nodes of two roots: the first seed's children, and those of their equals
        found |= {leaf.tobytes() for leaf in leaves[:, :4].reshape(-1, 16)}
        same = np.broadcast_to(leaves[:1, :1], (BLOCKS, 2, 16))
        hashes = np.frombuffer(checked_by(name, same)[0], np.uint8).reshape(BLOCKS, HASH_BYTES)
        found |= {row.tobytes() for row in hashes}
    assert len(found) == 2 * (BLOCKS * 4 + BLOCKS)
    seed = keys[:1, :1, 0]
    by_depth = {children(seed, first_counter(NAME, depth)).tobytes() for depth in (1, 2)}
    assert len(by_depth) == 2

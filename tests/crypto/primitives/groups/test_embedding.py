from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.groups import embedding, ristretto255
from crypto.primitives.groups.embedding import contents, embed, embed_multiplied, permute, unpermute
from crypto.primitives.randomness import Randomness


def packed(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), 30)


def counters(points: NDArray[np.uint8]) -> NDArray[np.int64]:
    return (points[:, 31].astype(np.int64) << 7) | (points[:, 0] >> 1)


blocks = st.lists(st.binary(min_size=30, max_size=30), max_size=20).map(packed)


@given(blocks)
def test_the_permutation_is_undone(given_blocks: NDArray[np.uint8]) -> None:
    assert (unpermute(permute(given_blocks)) == given_blocks).all()
    assert (permute(unpermute(given_blocks)) == given_blocks).all()


@given(blocks)
def test_blocks_come_back(given_blocks: NDArray[np.uint8]) -> None:
    points = embed(given_blocks)
    assert points.shape == (len(given_blocks), 32)
    assert ristretto255.is_valid_points(points).all()
    assert (contents(points) == given_blocks).all()


@given(blocks, st.integers(1, ristretto255.ORDER - 1))
def test_embedding_and_multiplying_at_once(given_blocks: NDArray[np.uint8], number: int) -> None:
    scalar = number.to_bytes(32, "little")
    products = embed_multiplied(given_blocks, scalar)
    assert (products == ristretto255.multiply(embed(given_blocks), scalar)).all()


@pytest.mark.usefixtures("either_sodium")
def test_the_embedding_is_a_fixed_function(random: Randomness) -> None:
    chosen = packed([bytes(30), bytes(range(30)), b"\xff" * 30])
    # Own known answers: a change of any byte is a change of the wire and needs a new suite name.
    assert [row.tobytes().hex() for row in embed(chosen)] == KNOWN
    some = packed([random.bytes(30) for _ in range(50)])
    order = random.permutation(50)
    assert (embed(some[order]) == embed(some)[order]).all()


def test_the_first_possible_counter_is_taken(random: Randomness, reference) -> None:
    some = packed([random.bytes(30) for _ in range(40)])
    for block, point, counter in zip(permute(some), embed(some), counters(embed(some)), strict=True):
        for tried in range(counter + 1):
            candidate = bytes([(tried & 0x7F) << 1]) + block.tobytes() + bytes([tried >> 7])
            assert (reference.decode(candidate) is not None) == (tried == counter)
        assert candidate == point.tobytes()


def test_one_candidate_in_four_is_valid(random: Randomness) -> None:
    size = 4000
    tries = counters(embed(packed([random.bytes(30) for _ in range(size)]))) + 1
    # Geometric with success probability 1/4: mean 4, variance 12; 4.75 standard errors, error probability 2·10^-6.
    assert abs(float(tries.mean()) - 4) < 4.75 * math.sqrt(12 / size)
    first = int((tries == 1).sum())
    assert abs(first - size / 4) < 4.75 * math.sqrt(size * 3 / 16)
    assert int(tries.max()) < 100


def test_counters_beyond_seven_bits_go_to_the_last_byte(random: Randomness, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = embedding.is_valid_points
    seen: list[NDArray[np.uint8]] = []

    def late(candidates: NDArray[np.uint8]) -> NDArray[np.bool_]:
        seen.append(candidates.copy())
        return genuine(candidates) & (counters(candidates) >= 130)

    monkeypatch.setattr(embedding, "is_valid_points", late)
    some = packed([random.bytes(30) for _ in range(5)])
    points = embed(some)
    assert (counters(points) >= 130).all()
    assert (points[:, 31] == 1).all()
    assert not np.concatenate(seen)[:, 0].__and__(1).any()
    monkeypatch.setattr(embedding, "is_valid_points", genuine)
    assert (contents(points) == some).all()


def test_the_identity_is_never_an_embedding() -> None:
    block = unpermute(np.zeros((1, 30), dtype=np.uint8))
    point = embed(block)
    assert point.any()
    assert (contents(point) == block).all()


def test_every_bit_of_a_block_moves_half_of_the_permuted_bits(random: Randomness) -> None:
    block = packed([random.bytes(30)])
    flips = np.repeat(block, 240, axis=0)
    flips[np.arange(240), np.arange(240) // 8] ^= (1 << (np.arange(240) % 8)).astype(np.uint8)
    moved = np.bitwise_count(permute(flips) ^ permute(block)).sum(axis=1)
    assert (np.abs(moved.astype(int) - 120) < 50).all()


def test_blocks_of_a_wrong_shape_are_refused() -> None:
    for wrong in (np.zeros((2, 31), np.uint8), np.zeros(30, np.uint8), np.zeros((2, 30), np.int64)):
        with pytest.raises(ValueError, match="shape"):
            embed(wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="shape"):
            embed_multiplied(wrong, bytes([1]) + bytes(31))  # type: ignore[arg-type]


KNOWN = [
    "0e4242306da77df79349ac76bfda6ef4c122dbfc628dad1ad81d9e875d3e1b00",
    "18c5d0c57e78168cd95ba4bc123312c40d9b271ac1e5047dcd9dfaf0497e3500",
    "007e41d703c2dae0f1fd2a5d8d4223b1526d78a21255df7f1792fe69a986c000",
]

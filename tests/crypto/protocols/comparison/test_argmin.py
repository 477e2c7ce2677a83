"""The least of shared numbers, row by row, is found, and nothing but its position comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import reconstruct
from crypto.primitives.shares.xor import share_bits
from crypto.protocols.comparison import argmin as module
from crypto.protocols.comparison.argmin import argmin, open_positions, position_bits, select, width_for
from link.disclosure import Declared
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.products_world import assert_views_alike
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_uniform, run_two, shares_of
from tests.examples import examples, slowly

pytestmark = pytest.mark.turn(6)

LABEL = [Declared("positions", frozenset((*HOLDERS, "c")), "positions", 1 << 20, "now")]
LARGEST = 1 << 40


def positions(numbers: Any, *, largest: int = LARGEST, seed: int = 0, transport: Any = "memory") -> dict[str, Any]:
    """What both holders are told of rows of numbers, shape (rows, k)."""
    rows, candidates = numbers.shape
    columns = [shares_of(numbers[:, place].astype(np.uint64), seed + place) for place in range(candidates)]

    async def part(lane: Session, two: Any) -> Any:
        share = await argmin(lane.lane("argmin"), two, [column[lane.me] for column in columns], largest)
        return await open_positions(
            lane.lane("open"), share, label="positions", holders=HOLDERS, number=rows, candidates=candidates
        )

    return run_two(part, seed=seed, declared=LABEL, transport=transport)


@given(st.data(), st.integers(0, 2**32))
@examples(4, 25)
def test_positions_of_the_least(data: st.DataObject, seed: int) -> None:
    """Also of numbers below zero, and of equal ones the first."""
    rows, candidates = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 9))
    largest = data.draw(st.sampled_from([0, 1, 2, 1000, LARGEST]))
    generator = np.random.default_rng(seed)
    numbers = generator.integers(0, largest + 1, (rows, candidates)) - generator.integers(0, LARGEST)
    for told in positions(numbers, largest=largest, seed=seed).values():
        assert told.tolist() == numbers.argmin(axis=1).tolist()


@pytest.mark.parametrize("candidates", slowly([2, 3, 256, 257], now=[0, 1, 3]))
def test_as_many_candidates_as_words_hold(candidates: int) -> None:
    numbers = np.random.default_rng(1).integers(0, 50, (5, candidates))
    assert positions(numbers)[A].tolist() == numbers.argmin(axis=1).tolist()


def test_over_real_streams() -> None:
    numbers = np.random.default_rng(2).integers(0, 1 << 30, (3000, 5))
    assert positions(numbers, transport="grpc")[B].tolist() == numbers.argmin(axis=1).tolist()


@given(st.data(), st.sampled_from([np.uint8, np.uint32, np.uint64]), st.integers(0, 2**32))
@settings(max_examples=10)
def test_selection(data: st.DataObject, word: Any, seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = data.draw(st.integers(0, 50))
    numbers = generator.integers(0, np.iinfo(word).max, size, dtype=word)
    bits = generator.integers(0, 2, size, dtype=np.uint64)
    shared_bits = dict(zip(HOLDERS, share_bits(bits, 1, HOLDERS, Randomness.from_seed(seed)), strict=True))
    shared = {h: type(s)(s.values.astype(word), h, HOLDERS) for h, s in shares_of(numbers.astype(np.uint64)).items()}
    out = run_two(lambda lane, two: select(lane, two, shared_bits[lane.me], shared[lane.me]), seed=seed)
    assert reconstruct([out[A], out[B]]).tolist() == (numbers * bits.astype(word)).tolist()


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 16)
    numbers = np.random.default_rng(3).integers(0, 50, (100, 4))
    assert positions(numbers)[A].tolist() == numbers.argmin(axis=1).tolist()


def test_messages_do_not_depend_on_the_numbers() -> None:
    """Equal positions of numbers that are far apart, close together, or equal. Probability of error 1e-6 a test."""
    rows, runs = 3000, []
    for spread in (LARGEST // 3, 1, 0):
        numbers = np.tile(np.arange(3) * spread, (rows, 1))
        columns = [shares_of(numbers[:, place], 7 + place) for place in range(3)]
        frames: list[Frame] = []

        async def part(lane: Session, two: Any, columns: Any = columns) -> Any:
            return await argmin(lane, two, [column[lane.me] for column in columns], LARGEST)

        out = run_two(part, frames=frames, seed=spread % 97)
        assert not reconstruct([out[A], out[B]]).any()
        runs.append(frames)
    assert_views_alike(runs)


def test_what_is_opened_holds_the_position_alone() -> None:
    """Shares of a position are uniform in its word, and their sum has no bit below it. Error 1e-6 a test."""
    numbers = np.random.default_rng(4).integers(0, 1 << 30, (1 << 13, 3))
    columns = [shares_of(numbers[:, place], 9 + place) for place in range(3)]
    out = run_two(lambda lane, two: argmin(lane, two, [column[lane.me] for column in columns], LARGEST))
    for holder in HOLDERS:
        assert_uniform(out[holder].values)
    assert not (reconstruct([out[A], out[B]]) & ((1 << (8 - position_bits(3))) - 1)).any()


def test_misuse() -> None:
    columns = [shares_of([1, 2]), shares_of([3])]
    for some, words in (((), "1 to"), (columns, "equal length")):
        with pytest.raises(ValueError, match=words):
            run_two(lambda lane, two, some=some: argmin(lane, two, [c[lane.me] for c in some], 10))
    with pytest.raises(ValueError, match="too far apart"):
        width_for(1 << 62, 4)
    assert width_for(0, 1) == 2

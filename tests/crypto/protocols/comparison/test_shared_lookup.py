"""Entries of public tables at shared positions equal those at the open positions; messages tell nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.shared_lookup import look_up
from crypto.protocols.comparison.two_party import TwoParty
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.shares_pb2 import LeafTables
from tests.crypto.protocols.two_party_world import A, B, run_two, shares_of
from tests.mining.joint.models.models_world import shapes


def looked_up(
    indices: np.ndarray[Any, Any], table: np.ndarray[Any, Any], word: Any = np.uint32, seed: int = 5, **keywords: Any
) -> np.ndarray[Any, Any]:
    own = shares_of(indices, seed, word)

    async def part(session: Session, parties: TwoParty) -> XorShare:
        return await look_up(session, parties, own[session.me], table)

    found = run_two(part, **keywords)
    first, second = (unpack_bits(found[each].planes, found[each].number)[0] for each in (A, B))
    return first ^ second


@given(st.integers(1, 600), st.integers(1, 40), st.integers(0, 1 << 16))
@settings(max_examples=12, deadline=None)
def test_entries_are_those_of_the_table(size: int, number: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    table, indices = chance.random(size) < 0.5, chance.integers(0, size, number)
    np.testing.assert_array_equal(looked_up(indices, table), table[indices])


@pytest.mark.parametrize(("size", "number"), [(1, 3), (2, 200), (128, 129), (5000, 300)])
def test_sizes_at_the_edges(size: int, number: int) -> None:
    chance = np.random.default_rng(size)
    table, indices = chance.random(size) < 0.5, chance.integers(0, size, number)
    np.testing.assert_array_equal(looked_up(indices, table, np.uint16 if size < 1 << 16 else np.uint32), table[indices])


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crypto.protocols.comparison.shared_lookup.BLOCK_BYTES", 1)
    table, indices = np.arange(9) % 2 == 0, np.arange(300) % 9
    np.testing.assert_array_equal(looked_up(indices, table), table[indices])


def test_messages_tell_nothing_of_indices_or_entries() -> None:
    views = []
    for index in (0, 6):
        frames: list[Frame] = []
        looked_up(np.full(50, index), np.arange(7) > 3, frames=frames)
        views.append({party: shapes(frames, party) for party in (A, B)})
    assert views[0] == views[1]


def test_offered_tables_are_uniform() -> None:
    """Chi-squared over bytes; fails by chance once in 10^6."""
    frames: list[Frame] = []
    looked_up(np.zeros(2000, np.int64), np.ones(128, np.bool_), frames=frames)
    messages = [LeafTables.FromString(f.body) for f in frames if f.type == LeafTables.DESCRIPTOR.full_name]
    sent = b"".join(message.data for message in messages)
    assert len(sent) == 2000 * 16
    counts = np.bincount(np.frombuffer(sent, np.uint8), minlength=256)
    assert float(((counts - 125) ** 2 / 125).sum()) < chi2.isf(1e-6, 255)


def test_parties_that_differ_are_noticed() -> None:
    async def part(session: Session, parties: TwoParty) -> XorShare:
        number = 9 if session.me == A else 400
        index = AdditiveShare(np.zeros(number, np.uint32), session.me, (A, B))
        return await look_up(session, parties, index, np.ones(4, np.bool_))

    with pytest.raises(MalformedMessage):
        run_two(part)


def test_words_too_short_for_a_table_are_refused() -> None:
    with pytest.raises(ValueError, match="looked up"):
        looked_up(np.zeros(3, np.int64), np.ones(300, np.bool_), np.uint8)

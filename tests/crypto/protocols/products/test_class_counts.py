"""Contingency tables of two parties' classes equal those of the joined rows; messages tell nothing of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.class_counts import class_counts
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from tests.crypto.protocols.two_party_world import A, B, run_two
from tests.mining.joint.models.models_world import shapes


def counted(classes: dict[str, np.ndarray[Any, Any]], sizes: tuple[int, int], **keywords: Any) -> np.ndarray[Any, Any]:
    async def part(session: Session, parties: TwoParty) -> AdditiveShare:
        return await class_counts(session, parties, classes[session.me], sizes)

    found = run_two(part, **keywords)
    return (found[A].values + found[B].values).reshape(sizes)


def table_of(classes: dict[str, np.ndarray[Any, Any]], sizes: tuple[int, int]) -> np.ndarray[Any, Any]:
    table = np.zeros(sizes, np.uint64)
    np.add.at(table, (classes[A], classes[B]), np.uint64(1))
    return table


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 300), st.integers(0, 1 << 16))
@settings(max_examples=15, deadline=None)
def test_tables_are_those_of_the_joined_rows(first: int, second: int, number: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    classes = {A: chance.integers(0, first, number), B: chance.integers(0, second, number)}
    np.testing.assert_array_equal(counted(classes, (first, second)), table_of(classes, (first, second)))


@pytest.mark.parametrize("sizes", [(3, 200), (200, 3), (33, 33)])
def test_several_blocks(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crypto.protocols.products.class_counts.BLOCK_BYTES", 1 << 14)
    chance = np.random.default_rng(1)
    classes = {A: chance.integers(0, sizes[0], 700), B: chance.integers(0, sizes[1], 700)}
    np.testing.assert_array_equal(counted(classes, sizes), table_of(classes, sizes))


def test_counts_of_many_rows_do_not_wrap() -> None:
    classes = {A: np.zeros(40_000, np.int64), B: np.ones(40_000, np.int64)}
    assert counted(classes, (2, 3))[0].tolist() == [0, 40_000, 0]


def test_messages_have_the_same_shape_whatever_the_classes() -> None:
    views = []
    for value in (0, 4):
        frames: list[Frame] = []
        counted({A: np.full(90, value), B: np.full(90, value)}, (5, 6), frames=frames)
        views.append({party: shapes(frames, party) for party in (A, B)})
    assert views[0] == views[1]


def test_corrections_are_uniform() -> None:
    """Chi-squared over bytes of what the chooser gets last; fails by chance once in 10^6."""
    frames: list[Frame] = []
    counted({A: np.zeros(2000, np.int64), B: np.zeros(2000, np.int64)}, (16, 16), frames=frames)
    (lane,) = {frame.lane for frame in frames if frame.receiver == B and frame.lane.endswith("/work")}
    last = [
        f for f in frames if f.receiver == B and f.lane == lane and f.type == EncryptedMessages.DESCRIPTOR.full_name
    ]
    sent = b"".join(EncryptedMessages.FromString(frame.body).data for frame in last)
    assert len(sent) == 2000 * 16 * 2
    counts = np.bincount(np.frombuffer(sent, np.uint8), minlength=256)
    assert float(((counts - 250) ** 2 / 250).sum()) < chi2.isf(1e-6, 255)


def test_parties_that_differ_are_noticed() -> None:
    async def part(session: Session, parties: TwoParty) -> AdditiveShare:
        own = np.zeros(10 if session.me == A else 4000, np.int64)
        return await class_counts(session, parties, own, (3, 4))

    with pytest.raises(MalformedMessage):
        run_two(part)


def test_classes_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="classes are numbers"):
        counted({A: np.array([3]), B: np.array([0])}, (3, 4))

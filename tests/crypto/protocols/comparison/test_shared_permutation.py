"""Shared rows come out in the owner's order, and messages tell nothing of rows or order."""

from __future__ import annotations

import tracemalloc
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from crypto.primitives import permutation_network
from crypto.primitives.permutation_network import are_swapped, layer_count, network_size, pass_layers, switches_for
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.shared_permutation import permute, switch_work
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers import vector_transfers
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from tests.crypto.protocols.two_party_world import A, B, run_two, shares_of
from tests.examples import slowly
from tests.mining.joint.models.models_world import shapes

pytestmark = pytest.mark.turn(3)


@given(st.integers(0, 7), st.integers(0, 1 << 16))
@settings(max_examples=60, deadline=None)
def test_switches_bring_every_row_to_its_place(depth: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(1 << depth).astype(np.int64)
    rows = np.arange(1 << depth) * 10
    expected, switches = rows[order].copy(), switches_for(order)
    assert len(switches) == layer_count(len(order))
    for packed, (upper, lower) in zip(switches, pass_layers(rows), strict=True):
        bits = are_swapped(packed, 0, len(upper))
        upper[...], lower[...] = np.where(bits, lower, upper), np.where(bits, upper, lower)
    np.testing.assert_array_equal(rows, expected)


def test_every_order_of_four_rows_has_switches() -> None:
    for order in permutations(range(4)):
        rows = np.arange(4)
        for packed, (upper, lower) in zip(switches_for(np.array(order)), pass_layers(rows), strict=True):
            bits = are_swapped(packed, 0, len(upper))
            upper[...], lower[...] = np.where(bits, lower, upper), np.where(bits, upper, lower)
        assert rows.tolist() == list(order)


def test_some_switches_of_a_layer_are_read_alone() -> None:
    bits = np.random.default_rng(1).integers(0, 2, 37, np.uint8)
    for start, stop in ((0, 37), (0, 8), (3, 5), (8, 16), (7, 25), (36, 37), (5, 5)):
        np.testing.assert_array_equal(are_swapped(np.packbits(bits), start, stop), bits[start:stop])


def test_switches_are_found_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row more takes, so that what the first call makes once does not count."""
    monkeypatch.setattr(permutation_network, "AT_ONCE", 1 << 10)

    def beside_switches(rows: int) -> int:
        order = np.random.default_rng(1).permutation(rows).astype(np.uint32)
        tracemalloc.start()
        try:
            switches = switches_for(order)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        found = sum(each.nbytes for each in switches)
        assert found == layer_count(rows) * rows // 16
        return peak - found

    few, many = 1 << 13, 1 << 17
    beside_switches(few)
    assert beside_switches(many) - beside_switches(few) < 17 * (many - few)


@pytest.mark.parametrize(("rows", "size"), [(0, 1), (1, 1), (2, 2), (3, 4), (1024, 1024), (1025, 2048)])
def test_networks_are_powers_of_two(rows: int, size: int) -> None:
    assert network_size(rows) == size


def permuted(
    values: np.ndarray[Any, Any], orders: list[tuple[str, np.ndarray[Any, Any]]], word: Any, **keywords: Any
) -> np.ndarray[Any, Any]:
    """The rows after each owner in turn has permuted their shares."""
    number, width = values.shape
    own = shares_of(values.reshape(-1), 5, word)

    async def part(session: Session, parties: TwoParty) -> AdditiveShare:
        share = own[session.me]
        for turn, (owner, order) in enumerate(orders):
            mine = order if owner == session.me else None
            share = await permute(session.lane(str(turn)), parties, share, width, owner, mine)
        return share

    found = run_two(part, **keywords)
    return (found[A].values + found[B].values).reshape(number, width)


@pytest.mark.parametrize("word", slowly([np.uint8, np.uint16, np.uint32], now=[0, 2]))
@pytest.mark.parametrize(("number", "width"), [(1, 1), (2, 3), (5, 2), (37, 1), (64, 1030)])
def test_rows_come_in_the_order_of_both(word: Any, number: int, width: int) -> None:
    chance = np.random.default_rng(number)
    values = chance.integers(0, np.iinfo(word).max, (number, width), endpoint=True).astype(word)
    first, second = chance.permutation(number), chance.permutation(number)
    np.testing.assert_array_equal(permuted(values, [(A, first)], word), values[first])
    found = permuted(values, [(B, first), (A, second)], word)
    np.testing.assert_array_equal(found, values[first][second])


def test_layers_come_in_order_where_one_takes_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_transfers, "STRETCH", 8)
    monkeypatch.setattr(vector_transfers, "BATCH", 24)
    chance = np.random.default_rng(0)
    values, order = chance.integers(0, 1 << 16, (37, 3)).astype(np.uint16), chance.permutation(37)
    assert len(switch_work(37, 3, np.uint16)) == 15  # of three stretches each; eleven layers have four
    np.testing.assert_array_equal(permuted(values, [(B, order)], np.uint16), values[order])


def test_messages_have_the_same_shape_whatever_rows_and_order() -> None:
    views = []
    for seed in (1, 2):
        frames: list[Frame] = []
        chance = np.random.default_rng(seed)
        values = chance.integers(0, 1 << 16, (21, 3)).astype(np.uint16)
        permuted(values, [(B, chance.permutation(21))], np.uint16, frames=frames)
        views.append({party: shapes(frames, party) for party in (A, B)})
    assert views[0] == views[1]


def test_what_the_owner_gets_is_uniform() -> None:
    """Chi-squared over bytes of the other's messages; fails by chance once in 10^6."""
    frames: list[Frame] = []
    permuted(np.zeros((512, 4), np.uint32), [(A, np.arange(512))], np.uint32, frames=frames)
    messages = [
        frame for frame in frames if frame.receiver == A and frame.type == EncryptedMessages.DESCRIPTOR.full_name
    ]
    sent = b"".join(EncryptedMessages.FromString(frame.body).data for frame in messages)
    assert len(sent) == 17 * 256 * 16
    counts = np.bincount(np.frombuffer(sent, np.uint8), minlength=256)
    statistic = float(((counts - len(sent) / 256) ** 2 / (len(sent) / 256)).sum())
    assert statistic < chi2.isf(1e-6, 255)


def test_an_order_must_be_one_of_all_rows() -> None:
    with pytest.raises(ValueError, match="permutation"):
        permuted(np.zeros((3, 1), np.uint8), [(A, np.array([0, 1, 1]))], np.uint8)


def test_rows_of_another_number_are_malformed() -> None:
    async def part(session: Session, parties: TwoParty) -> AdditiveShare:
        number = 9 if session.me == A else 40
        rows = AdditiveShare(np.zeros(number, np.uint8), session.me, (A, B))
        order = np.arange(number) if session.me == A else None
        return await permute(session, parties, rows, 1, A, order)

    with pytest.raises(MalformedMessage):
        run_two(part)

"""What the cost functions say of products, against real runs: byte for byte, round for round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives import ring_matrix
from crypto.protocols.comparison import lifting
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products import dealer
from crypto.protocols.products.costs import (
    dealt_products_traffic,
    pair_products_traffic,
    pair_products_work,
    replicated_flops,
    spanning_counts_traffic,
    spanning_products_traffic,
    spanning_products_work,
)
from crypto.protocols.products.ot_matrix import all_pairs, pair_products
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.products.shared_products import spanning_products
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import vector_transfers
from link.core import FRAME_OVERHEAD_BYTES
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.world import run_parties

PARTIES = ("a", "b", "c", "d")
ROWS = st.sampled_from([0, 1, 127, 128, 1000, 5003])
K = st.sampled_from([1, 2, 3, 4])


@pytest.fixture(autouse=True)
def _many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_transfers, "STRETCH", 512)
    monkeypatch.setattr(vector_transfers, "BATCH", 1024)
    monkeypatch.setattr(lifting, "BLOCK", 256)
    monkeypatch.setattr(ring_matrix, "BLOCK_WORDS", 1024)


def compare(
    parties: tuple[str, ...],
    part: Callable[[Session, Any, dict[str, TwoParty]], Any],
    enter: Callable[[Traffic], None],
    field_bits: int,
) -> None:
    """All frames below the lane "/work", and the rounds that it adds."""
    frames: list[Frame] = []

    async def role(session: Session) -> int:
        secrets = await agree(session)
        pairs = {
            peer: TwoParty(
                session.lane("-".join(p for p in parties if p in (session.me, peer))),
                tuple(p for p in parties if p in (session.me, peer)),
                field_bits=field_bits,
            )
            for peer in session.others
        }
        lane = session.lane("work")
        before = lane.costs.rounds
        await part(lane, secrets, pairs)
        return lane.costs.rounds - before

    def observe(frame: Frame) -> None:
        if frame.lane.startswith("/work"):
            frames.append(frame)

    rounds = run_parties(parties, role, observe=observe, deadline_s=60)
    traffic = Traffic(parties)
    enter(traffic)
    for party in parties:
        assert traffic.bytes_sent(party) == sum(map(size, (f for f in frames if f.sender == party)))
        assert traffic.bytes_received(party) == sum(map(size, (f for f in frames if f.receiver == party)))
    assert traffic.rounds == max(rounds.values())


def size(frame: Frame) -> int:
    names = sum(map(len, (frame.sender, frame.receiver, frame.lane, frame.type)))
    return len(frame.body) + len(frame.session) + names + FRAME_OVERHEAD_BYTES


@examples(8, 15)
@given(rows=ROWS, columns=st.tuples(st.integers(0, 20), st.integers(0, 20)), k=K)
def test_pairs_by_transfers(rows: int, columns: tuple[int, int], k: int) -> None:
    pairs, own = all_pairs(*columns), np.zeros((20, 700), np.uint8)
    compare(
        ("a", "b"),
        lambda lane, secrets, two: pair_products(lane, next(iter(two.values())), own, rows, pairs),
        lambda traffic: pair_products_traffic(traffic, "/work", ("a", "b"), rows=rows, pairs=pairs, field_bits=k),
        k,
    )


@settings(max_examples=15, deadline=None)
@given(rows=ROWS, columns=st.tuples(st.integers(0, 9), st.integers(0, 9)), k=K)
def test_pairs_with_a_dealer(rows: int, columns: tuple[int, int], k: int) -> None:
    pairs, own, two = all_pairs(*columns), np.zeros((9, 700), np.uint8), ("a", "b")

    async def part(lane: Session, secrets: Any, pair: dict[str, TwoParty]) -> Any:
        if lane.me == "c":
            return await dealer.deal(lane, secrets, two, rows=rows, pairs=pairs)
        return await dealer.pair_products(lane, secrets, pair["b" if lane.me == "a" else "a"], "c", own, rows, pairs)

    compare(
        PARTIES[:3],
        part,
        lambda traffic: dealt_products_traffic(traffic, "/work", two, "c", rows=rows, pairs=pairs, field_bits=k),
        k,
    )


def itemsets_of(data: st.DataObject, parties: tuple[str, ...]) -> list[dict[str, int]]:
    members = st.lists(st.sampled_from(parties), min_size=2, unique=True)
    itemset = members.flatmap(lambda names: st.fixed_dictionaries({n: st.integers(0, 2) for n in names}))
    return data.draw(st.lists(itemset, max_size=8))


@examples(8, 15)
@given(data=st.data(), rows=ROWS, k=K)
def test_itemsets_by_replicated_shares(data: st.DataObject, rows: int, k: int) -> None:
    itemsets = itemsets_of(data, PARTIES)
    three = tuple(data.draw(st.permutations(PARTIES))[:3])
    two = tuple(p for p in PARTIES if p in three[:2])
    own = np.zeros((3, 700), np.uint8)

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        pair = pairs[next(p for p in two if p != lane.me)] if lane.me in two else None
        return await spanning_counts(lane, secrets, three, pair, own, rows, itemsets)

    compare(
        PARTIES,
        part,
        lambda traffic: spanning_counts_traffic(
            traffic, "/work", three, two, rows=rows, itemsets=itemsets, field_bits=k
        ),
        k,
    )


@examples(6, 15)
@given(data=st.data(), rows=ROWS, k=K)
def test_itemsets_by_transfers(data: st.DataObject, rows: int, k: int) -> None:
    parties = PARTIES[: data.draw(st.integers(2, 4))]
    itemsets = itemsets_of(data, parties)
    places = sorted(data.draw(st.permutations(range(len(parties))))[:2])
    two = (parties[places[0]], parties[places[1]])
    own = np.zeros((3, 700), np.uint8)

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        return await spanning_products(lane, secrets, pairs, own, rows, itemsets, two)

    compare(
        parties,
        part,
        lambda traffic: spanning_products_traffic(traffic, "/work", two, rows=rows, itemsets=itemsets, field_bits=k),
        k,
    )


def test_work_is_as_it_was() -> None:
    """1,000 rows: 6 columns choose, each for 10, two stretches of 500 rows a batch; 480 numbers are lifted."""
    pairs = pair_products_work(1000, all_pairs(6, 10))
    lifted = 60 * 8
    assert (pairs.transfers, pairs.words) == (6 * 1024 + lifted, 60 * 1000 + lifted)
    itemsets = [{"a": 0, "b": 0, "c": k} for k in range(2)]
    work = spanning_products_work(512, itemsets, PARTIES)
    assert {pair: each.words for pair, each in work.items() if each.words} == {
        ("a", "b"): 512,
        ("a", "c"): 1024,
        ("b", "c"): 1024,
    }
    assert replicated_flops(512, itemsets, PARTIES) == 12 * 512 * 2

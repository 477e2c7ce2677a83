from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.primitives.shares.xor import XorShare, reconstruct_bits
from crypto.protocols.comparison import carry_chain, comparison, digit_tables
from crypto.protocols.comparison.comparison import ands_by_level, at_least, equal_to, same_words, width_for
from crypto.protocols.comparison.digit_comparison import GENERATE, PROPAGATE, wanted
from crypto.protocols.comparison.digit_tables import CHAIN_BITS, Digit, chain, leaves
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import shared_sum
from crypto.protocols.transfers import table_transfers
from crypto.protocols.transfers.extension_seeds import FIELD_BITS
from link.disclosure import Declared
from link.errors import ComineError
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import ExtensionRows
from protos.v1.shares_pb2 import LeafTables
from tests.crypto.protocols.sums.summing import Twice, outcomes
from tests.crypto.protocols.two_party_world import (
    HOLDERS,
    A,
    B,
    assert_alike,
    assert_uniform,
    payload_of,
    run_two,
    shapes_of,
    shares_of,
)
from tests.errors import fails
from tests.examples import crossed, examples, in_turn
from tests.world import run_parties

pytestmark = pytest.mark.turn(8)

THREE = ("a", "b", "c")


def compared(
    values: Any,
    threshold: int | NDArray[np.uint64],
    width: int,
    *,
    function: Any = at_least,
    seed: int = 0,
    word: type[np.unsignedinteger[Any]] = np.uint64,
    **options: Any,
) -> dict[str, XorShare]:
    shares = shares_of(values, seed, word)
    return run_two(lambda lane, two: function(lane, two, shares[lane.me], threshold, width), seed=seed, **options)


def bits_of(out: dict[str, XorShare]) -> list[int]:
    bits: list[int] = reconstruct_bits([out[A], out[B]]).tolist()
    return bits


# -- correctness -------------------------------------------------------------------------------------------------------
@examples(4, 15)
@given(data=st.data(), width=st.integers(2, 64), seed=st.integers(0, 2**32))
def test_against_integers(data: st.DataObject, width: int, seed: int) -> None:
    threshold = data.draw(st.integers(-(2**63), 2**63 - 1))
    top = 2 ** (width - 1)
    near = st.integers(max(-3, -top), min(3, top - 1))
    differences = data.draw(st.lists(near | st.integers(-top, top - 1) | st.sampled_from([-top, top - 1]), max_size=30))
    values = [(threshold + d) % 2**64 for d in differences]
    assert bits_of(compared(values, threshold % 2**64, width, seed=seed)) == [int(d >= 0) for d in differences]
    assert bits_of(compared(values, threshold, width, function=equal_to, seed=seed)) == [
        int(d == 0) for d in differences
    ]


@pytest.mark.costly
@pytest.mark.parametrize(
    ("width", "field_bits"),
    in_turn(
        [
            *((width, 3) for width in (2, 3, 7, 8, 9, 12, 13, 17, 18, 25, 26, 49, 64)),
            *itertools.product((9, 18), FIELD_BITS),
        ],
        2,
    ),
)
def test_every_shape_of_chain_and_tree(width: int, field_bits: int) -> None:
    generator = np.random.default_rng(width)
    values = generator.integers(0, 2 ** (width - 1), 200, dtype=np.uint64)
    threshold = int(values[0])
    values[1:4] = threshold - 1 if threshold else 0, threshold, min(threshold + 1, 2 ** (width - 1) - 1)
    reached, equal = (values >= threshold).astype(int).tolist(), (values == threshold).astype(int).tolist()
    assert bits_of(compared(values, threshold, width, field_bits=field_bits)) == reached
    assert bits_of(compared(values, threshold, width, function=equal_to, field_bits=field_bits)) == equal


def test_all_pairs_of_short_shares() -> None:
    """Whatever the shares are, not only what random ones come to."""
    one, other = (
        each.reshape(-1) for each in np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    )
    shares = {A: AdditiveShare(one, A, HOLDERS), B: AdditiveShare(other, B, HOLDERS)}
    sums = (one + other).astype(np.int8)
    out = run_two(lambda lane, two: at_least(lane, two, shares[lane.me], 0, 8))
    assert bits_of(out) == (sums >= 0).astype(int).tolist()
    out = run_two(lambda lane, two: equal_to(lane, two, shares[lane.me], 3, 8))
    assert bits_of(out) == (sums == 3).astype(int).tolist()


@examples(4, 15)
@given(data=st.data(), word=st.sampled_from([np.uint8, np.uint16, np.uint32]), seed=st.integers(0, 2**32))
def test_shares_in_short_words(data: st.DataObject, word: type[np.unsignedinteger[Any]], seed: int) -> None:
    width = data.draw(st.integers(2, 8 * np.dtype(word).itemsize))
    top = 2 ** (width - 1)
    values = data.draw(st.lists(st.integers(0, top - 1), min_size=1, max_size=20))
    threshold = data.draw(st.integers(0, top - 1))
    out = compared(values, threshold, width, seed=seed, word=word)
    assert bits_of(out) == [int(value >= threshold) for value in values]
    thresholds = np.full(len(values), threshold, np.uint64)
    out = compared(values, thresholds, width, function=equal_to, seed=seed, word=word)
    assert bits_of(out) == [int(value == threshold) for value in values]


def test_a_threshold_for_each() -> None:
    values = np.arange(50, dtype=np.uint64)
    thresholds = values[::-1].copy()
    assert bits_of(compared(values, thresholds, 7)) == (values >= thresholds).astype(int).tolist()
    assert bits_of(compared(values, thresholds + values % 2, 7, function=equal_to)) == (
        (values == thresholds + values % 2).astype(int).tolist()
    )


@pytest.mark.parametrize("width", [65, 66, 70, 96, 128])
def test_words_of_more_than_64_bits(width: int) -> None:
    """Own words that differ in one bit, of each word, or of none that counts."""
    first = np.random.default_rng(width).integers(0, 2**64, (5 * width, 2), dtype=np.uint64)
    other, place = first.copy(), np.arange(len(first)) % (2 * width)
    for row, bit in enumerate(place.tolist()):
        if bit < 128:
            other[row, bit // 64] ^= np.uint64(1 << bit % 64)
    own = {A: first, B: other}
    out = run_two(lambda lane, two: same_words(lane, two, len(first), lambda part: own[lane.me][part], width))
    assert bits_of(out) == (place >= width).astype(int).tolist()


@pytest.mark.parametrize("width", [6, 9, 14, 18])
def test_several_chunks_and_blocks_and_both_ways(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_transfers, "BATCH", 1024)
    monkeypatch.setattr(comparison, "BOTH_WAYS", 1000)
    monkeypatch.setattr(comparison, "BLOCK", 512)
    top = 2 ** (width - 1)
    values = np.random.default_rng(0).integers(0, top, 3777, dtype=np.uint64)
    assert bits_of(compared(values, top // 2, width)) == (values >= top // 2).astype(int).tolist()


def test_no_numbers_are_compared_without_a_message() -> None:
    frames: list[Frame] = []
    assert bits_of(compared([], 3, 20, frames=frames)) == []
    assert not frames


@given(st.integers(0, 2**62 - 1))
def test_the_least_width(largest: int) -> None:
    width = width_for(largest)
    for difference in (-largest, largest):
        assert -(2 ** (width - 1)) <= difference < 2 ** (width - 1)
    assert width == 2 or largest >= 2 ** (width - 2)


def assert_covered(cut: tuple[Digit, ...], bits: int) -> None:
    assert [d.low for d in cut] == [0, *(d.low + d.bits for d in cut[:-1])]
    assert cut[-1].low + cut[-1].bits == bits
    assert all(d.bits >= 1 and d.bits + d.carried <= 6 for d in cut)


@given(st.integers(1, 64))
def test_leaves_cover_the_bits_and_the_tree_is_counted(bits: int) -> None:
    cut = leaves(bits)
    assert_covered(cut, bits)
    assert wanted(cut[0], order=True) == (GENERATE,)
    assert {wanted(d, order=False) for d in cut} == {(PROPAGATE,)}
    orders, equalities = (ands_by_level(len(cut), order=order) for order in (True, False))
    assert sum(equalities) == len(cut) - 1 <= sum(orders) <= 2 * (len(cut) - 1)
    assert len(orders) == len(equalities) == (len(cut) - 1).bit_length()


def test_chains_cover_the_bits_with_as_few_digits_and_transfers_as_can_be() -> None:
    for bits in range(1, CHAIN_BITS + 1):
        cut = chain(bits)
        assert cut is not None
        assert_covered(cut, bits)
        assert [d.carried for d in cut] == [False] + [True] * (len(cut) - 1)
        assert len(cut) == 1 + max(0, -(-(bits - 6) // 5))
        ways = itertools.product(range(1, 7), repeat=len(cut))
        indices = [way for way in ways if sum(way) == bits + len(cut) - 1 and min(way[1:], default=2) > 1]
        least = min(sum(-(-index // 3) for index in way) for way in indices)
        assert table_transfers.symbol_count([d.table for d in cut]) == least
    assert chain(CHAIN_BITS + 1) is None


def test_frequent_candidates_of_three_parties() -> None:
    """Sums of all parties' counts stay shared; only which of them reach the threshold is opened."""
    counts = {name: np.random.default_rng(i).integers(0, 400, 300, dtype=np.uint64) for i, name in enumerate(THREE)}
    total = np.add.reduce(list(counts.values()))

    async def role(session: Session) -> Any:
        sums = await shared_sum(session.lane("sum"), await agree(session), counts[session.me], HOLDERS)
        bits = None
        if sums is not None:
            bits = await at_least(
                session.lane("compare"), TwoParty(session.lane("two"), HOLDERS), sums, 600, width_for(1200)
            )
        return await open_bits(session.lane("open"), bits, label="frequent", holders=HOLDERS, number=300)

    lines = [Declared("frequent", frozenset(THREE), "bits", 300, "now")]
    for opened in run_parties(THREE, role, declared=lines).values():
        assert opened.tolist() == (total >= 600).astype(int).tolist()


def test_over_grpc_streams() -> None:
    values = np.random.default_rng(0).integers(0, 88_162, 3000, dtype=np.uint64)
    out = compared(values, 5000, width_for(88_162), transport="grpc")
    assert bits_of(out) == (values >= 5000).astype(int).tolist()


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("width", "rounds"), [(7, 2), (8, 3), (12, 3), (13, 4), (17, 4), (18, 4), (25, 4), (26, 5), (49, 5), (64, 6)]
)
def test_rounds_are_logarithmic(width: int, rounds: int) -> None:
    shares = shares_of(np.zeros(1000, np.uint64))

    async def part(lane: Session, two: TwoParty) -> int:
        before = await two.both(lane.lane("x"), lane.lane("y"))  # agrees upon the seeds
        assert before
        work = lane.lane("fresh")
        start = work.costs.rounds
        await at_least(work, two, shares[lane.me], 5, width)
        return work.costs.rounds - start

    assert max(run_two(part).values()) == rounds


# Known answers: payload bytes of 1,024 comparisons with k = 3, by message, and frames. A symbol of three bits takes
# 77 / 8 bytes a number, a triple twice 43 / 8; and a batch those of 128 transfers more, and its check.
SYMBOL, TRIPLE = 9856, 2 * 5504
SYMBOLS_MORE, TRIPLES_MORE = 77 * 16, 2 * 43 * 16
SYMBOLS_CHECK, TRIPLES_CHECK = 80, 2 * 48
TREE = {
    "ExtensionRows": 6 * SYMBOL + 2 * TRIPLE + SYMBOLS_MORE + TRIPLES_MORE,
    "ExtensionCheck": SYMBOLS_CHECK + TRIPLES_CHECK,
}


def chained(symbols: int, tables: int, batches: int) -> dict[str, int]:
    """Bytes of tables a number, and of so many symbols in so many batches."""
    rows = {"ExtensionRows": symbols * SYMBOL + batches * SYMBOLS_MORE, "ExtensionCheck": batches * SYMBOLS_CHECK}
    return {**rows, "LeafTables": tables * 1024}


TRAFFIC = {
    (7, at_least): (chained(2, 8, 1), 3),
    (9, at_least): (chained(3, 9, 2), 6),
    (14, at_least): (chained(5, 17, 2), 7),
    (18, at_least): (TREE | {"LeafTables": 32 * 1024, "MaskedOperands": 1024}, 11),
    (64, at_least): (
        {
            "ExtensionRows": 21 * SYMBOL + 16 * TRIPLE + SYMBOLS_MORE + TRIPLES_MORE,
            "ExtensionCheck": SYMBOLS_CHECK + TRIPLES_CHECK,
            "LeafTables": 154 * 1024,
            "MaskedOperands": 8192,
        },
        15,
    ),
    (16, equal_to): (chained(6, 24, 2), 7),
    (18, equal_to): (TREE | {"LeafTables": 24 * 1024, "MaskedOperands": 1024}, 11),
}


@pytest.mark.parametrize(("width", "function"), TRAFFIC)
def test_traffic_is_as_it_was(width: int, function: Any) -> None:
    frames: list[Frame] = []
    compared(np.zeros(1024, np.uint64), 3, width, function=function, frames=frames)
    sizes = Counter[str]()
    for frame in frames:
        sizes[frame.type.rsplit(".", 1)[1]] += len(LeafTables.FromString(frame.body).data)
    assert (dict(sizes), len(frames)) == TRAFFIC[width, function]


# -- what the parties see ----------------------------------------------------------------------------------------------
NUMBER = 1 << 13


def view(value: int, threshold: int, width: int, seed: int) -> tuple[list[Frame], dict[str, XorShare]]:
    frames: list[Frame] = []
    return frames, compared(np.full(NUMBER, value, np.uint64), threshold, width, seed=seed, frames=frames)


@pytest.mark.parametrize("width", [10, 18])
@pytest.mark.parametrize("function", [at_least, equal_to])
def test_messages_and_shares_do_not_depend_on_how_infrequent_a_candidate_is(function: Any, width: int) -> None:
    """Two runs with equal outputs (no candidate reaches the threshold) and other counts: each party's view is alike."""
    views = []
    for seed, value in enumerate([0, 499]):
        frames: list[Frame] = []
        out = compared(np.full(NUMBER, value, np.uint64), 500, width, function=function, seed=seed, frames=frames)
        assert not any(bits_of(out))
        views.append((frames, out))
    (one, shares_one), (other, shares_other) = views
    assert shapes_of(one) == shapes_of(other)
    for sender in HOLDERS:
        seen, seen_other = payload_of(one, sender), payload_of(other, sender)
        assert_uniform(seen)
        assert_uniform(seen_other)
        assert_alike(seen, seen_other)
    for holder in HOLDERS:
        assert_uniform(np.concatenate([shares_one[holder].planes[0], shares_other[holder].planes[0]]))


@pytest.mark.parametrize("width", [10, 18])
def test_frames_are_the_same_whatever_the_outcome(width: int) -> None:
    below, _ = view(3, 500, width, 0)
    above, _ = view(700, 500, width, 0)
    assert shapes_of(below) == shapes_of(above)


@pytest.mark.parametrize("width", [10, 18])
def test_a_holder_s_share_does_not_tell_the_bit(width: int) -> None:
    """Over half frequent, half infrequent candidates the share's bits are as often 1 in either half: 5 deviations."""
    values = np.where(np.arange(1 << 14) % 2, 700, 3).astype(np.uint64)
    out = compared(values, 500, width)
    for holder in HOLDERS:
        bits = np.unpackbits(out[holder].planes[0], bitorder="little")
        for half in (bits[::2], bits[1::2]):
            assert abs(half.mean() - 0.5) < 5 / 2 / np.sqrt(len(half))


@pytest.mark.parametrize("width", [7, 9, 14])
def test_a_table_opens_at_one_position_only(width: int) -> None:
    """What the receiver's own pads leave of the tables where its index does not point is uniform, and so are the shares
    that it reads, also of digits in between. At most 5 digits of 64 positions, 6 deviations: error below 1e-6.
    """
    kept: list[Any] = []
    real = digit_tables.look_up

    def spy(tables: Any, indices: Any) -> Any:
        kept.append((tables, indices, real(tables, indices)))
        return kept[-1][-1]

    shares = {
        A: AdditiveShare(np.full(NUMBER, 77, np.uint64), A, HOLDERS),
        B: AdditiveShare(np.zeros(NUMBER, np.uint64), B, HOLDERS),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry_chain, "look_up", spy)
        run_two(lambda lane, two: at_least(lane, two, shares[lane.me], 5, width))
    cut = chain(width - 1)
    assert cut is not None
    assert len(kept) == len(cut)
    for tables, indices, found in kept:
        bits = np.unpackbits(tables.view(np.uint8).reshape(len(tables), -1), axis=1, bitorder="little")
        for position, column in enumerate(bits.T):
            elsewhere = column[indices != position]
            assert not len(elsewhere) or abs(elsewhere.mean() - 0.5) < 6 / 2 / np.sqrt(len(elsewhere))
        assert abs(np.unpackbits(found).mean() - 0.5) < 6 / 2 / np.sqrt(NUMBER)


# -- misuse and malice -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("width", "word"), [(1, np.uint64), (65, np.uint64), (1, np.uint8), (9, np.uint8)])
def test_widths_out_of_range_are_refused(width: int, word: type[np.unsignedinteger[Any]]) -> None:
    with pytest.raises(ValueError, match=f"2 to {np.dtype(word).itemsize * 8} bits"):
        compared([1], 1, width, word=word)


@pytest.mark.parametrize("size", [0, 1, 100, 1 << 20])
@pytest.mark.parametrize(
    ("width", "cheat", "kind"),
    [(18, A, LeafTables), (18, B, ExtensionRows), *itertools.product([9], HOLDERS, [LeafTables, ExtensionRows])],
)
def test_messages_of_another_size_end_the_job_and_name_the_sender(width: int, cheat: str, kind: Any, size: int) -> None:
    """The leader garbles its tables, or the other its rows; in a chain either does both."""
    real = Session.send_array
    shares = shares_of(np.zeros(300, np.uint64))

    async def garbled(self: Session, to: str, message: Any, values: Any) -> None:
        if self.me == cheat and message is kind and ("digits" in self.path or "led by" in self.path):
            values = np.zeros(size, np.uint8)
        await real(self, to, message, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "send_array", garbled)
        with fails("E402", party=cheat) as caught:
            run_two(lambda lane, two: at_least(lane, two, shares[lane.me], 5, width))
    assert caught.value.party == cheat


@pytest.mark.parametrize("width", [9, 18])
def test_a_different_number_of_candidates_never_gives_a_result(width: int) -> None:
    shares = {A: shares_of(np.zeros(300, np.uint64))[A], B: shares_of(np.zeros(500, np.uint64))[B]}

    async def part(lane: Session, two: TwoParty) -> Any:
        try:
            async with asyncio.timeout(20):
                return await at_least(lane, two, shares[lane.me], 5, width)
        except ComineError as error:
            await lane.abort(error)
            raise

    with pytest.raises(ComineError) as caught:
        run_two(part)
    assert caught.value.party in HOLDERS


def test_the_sum_of_the_shares_is_what_is_compared() -> None:
    shares = shares_of([5, 2**64 - 1])
    assert reconstruct(list(shares.values())).tolist() == [5, 2**64 - 1]
    assert bits_of(compared([5, 2**64 - 1], 0, 64)) == [1, 0]  # in two's complement


def pairwise_comparison(width: int) -> Any:
    def role(session: Session) -> Any:
        holders = ("p0", "p1")
        values = np.full(20, 7 if session.me == "p0" else 3, np.uint64)
        share = AdditiveShare(values, session.me, holders)
        return at_least(session.lane("work"), TwoParty(session.lane("two"), holders), share, 10, width)

    return role


@pytest.mark.parametrize("width", [9, 18])
def test_frames_that_come_twice_change_nothing(width: int) -> None:
    ended = outcomes(pairwise_comparison(width), 2, transport=Twice)
    assert reconstruct_bits(list(ended.values())).tolist() == [1] * 20


@pytest.mark.parametrize(
    ("width", "frame", "victim"), crossed([(18, 1), (18, 2), (18, 4), (18, 6), (9, 4), (9, 5)], ["p0", "p1"])
)
def test_a_holder_that_is_lost_is_named(width: int, frame: int, victim: str) -> None:
    ended = outcomes(pairwise_comparison(width), 2, crash=(victim, frame))
    assert isinstance(ended[victim], asyncio.CancelledError)
    (other,) = {"p0", "p1"} - {victim}
    assert isinstance(ended[other], ComineError)
    assert ended[other].party == victim

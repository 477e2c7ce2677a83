from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.sharing import AdditiveShare, reconstruct
from crypto.primitives.xor_sharing import XorShare, reconstruct_bits
from crypto.protocols import comparison, digit_comparison
from crypto.protocols.comparison import ands, at_least, equal_to, width_for
from crypto.protocols.digit_comparison import EQUAL, GREATER, digits
from crypto.protocols.pairwise import agree
from crypto.protocols.secure_sum import shared_sum
from crypto.protocols.shared_bits import open_bits
from crypto.protocols.two_party import TwoParty
from link.disclosure import Declared
from link.errors import ComineError, MalformedMessage
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import ExtensionRows
from protos.v1.shares_pb2 import LeafTables
from tests.protocols.test_secure_sum import Twice, outcomes
from tests.protocols.two_party_world import (
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
from tests.world import run_parties

THREE = ("a", "b", "c")


def compared(
    values: Any,
    threshold: int | NDArray[np.uint64],
    width: int,
    *,
    function: Any = at_least,
    seed: int = 0,
    **options: Any,
) -> dict[str, XorShare]:
    shares = shares_of(values, seed)
    return run_two(lambda lane, two: function(lane, two, shares[lane.me], threshold, width), seed=seed, **options)


def bits_of(out: dict[str, XorShare]) -> list[int]:
    return reconstruct_bits([out[A], out[B]]).tolist()


# -- correctness -------------------------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
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


@pytest.mark.parametrize("width", [2, 3, 7, 8, 13, 14, 25, 26, 49, 64])
def test_every_shape_of_the_tree(width: int) -> None:
    generator = np.random.default_rng(width)
    values = generator.integers(0, 2 ** (width - 1), 200, dtype=np.uint64)
    threshold = int(values[0])
    values[1:4] = threshold - 1 if threshold else 0, threshold, min(threshold + 1, 2 ** (width - 1) - 1)
    assert bits_of(compared(values, threshold, width)) == (values >= threshold).astype(int).tolist()
    assert bits_of(compared(values, threshold, width, function=equal_to)) == (values == threshold).astype(int).tolist()


def test_a_threshold_for_each() -> None:
    values = np.arange(50, dtype=np.uint64)
    thresholds = values[::-1].copy()
    assert bits_of(compared(values, thresholds, 7)) == (values >= thresholds).astype(int).tolist()
    assert bits_of(compared(values, thresholds + values % 2, 7, function=equal_to)) == (
        (values == thresholds + values % 2).astype(int).tolist()
    )


def test_several_chunks_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digit_comparison, "BATCH", 2048)
    monkeypatch.setattr(comparison, "BLOCK", 512)
    values = np.random.default_rng(0).integers(0, 8000, 1777, dtype=np.uint64)
    assert bits_of(compared(values, 4000, 14)) == (values >= 4000).astype(int).tolist()


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


@given(st.integers(1, 64))
def test_digits_cover_the_bits_and_the_tree_is_counted(bits: int) -> None:
    cut = digits(bits, order=True)
    assert [d.low for d in cut] == [0, *(d.low + d.bits for d in cut[:-1])]
    assert cut[-1].low + cut[-1].bits == bits
    assert all(1 <= d.bits <= 6 for d in cut)
    assert cut[0].outcomes == (GREATER,)
    assert {d.outcomes for d in digits(bits, order=False)} == {(EQUAL,)}
    assert ands(len(cut), order=False) == len(cut) - 1 <= ands(len(cut), order=True) <= 2 * (len(cut) - 1)


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
@pytest.mark.parametrize(("width", "rounds"), [(7, 2), (13, 3), (18, 4), (25, 4), (49, 5), (64, 6)])
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


# Known answers: payload bytes of 1,024 comparisons with k = 2, by message, and frames.
TRAFFIC = {
    (18, at_least): ({"ExtensionRows": 139_264 + 2 * 16_384, "LeafTables": 36_864, "MaskedOperands": 1024}, 8),
    (64, at_least): ({"ExtensionRows": 516_096 + 2 * 131_072, "LeafTables": 151_552, "MaskedOperands": 8192}, 12),
    (18, equal_to): ({"ExtensionRows": 147_456 + 2 * 16_384, "LeafTables": 24_576, "MaskedOperands": 1024}, 8),
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


@pytest.mark.parametrize("function", [at_least, equal_to])
def test_messages_and_shares_do_not_depend_on_how_infrequent_a_candidate_is(function: Any) -> None:
    """Two runs with equal outputs (no candidate reaches the threshold) and other counts: each party's view is alike."""
    views = []
    for seed, value in enumerate([0, 499]):
        frames: list[Frame] = []
        out = compared(np.full(NUMBER, value, np.uint64), 500, 18, function=function, seed=seed, frames=frames)
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


def test_frames_are_the_same_whatever_the_outcome() -> None:
    below, _ = view(3, 500, 18, 0)
    above, _ = view(700, 500, 18, 0)
    assert shapes_of(below) == shapes_of(above)


def test_a_holder_s_share_does_not_tell_the_bit() -> None:
    """Over half frequent, half infrequent candidates the share's bits are as often 1 in either half: 5 deviations."""
    values = np.where(np.arange(1 << 14) % 2, 700, 3).astype(np.uint64)
    out = compared(values, 500, 18)
    for holder in HOLDERS:
        bits = np.unpackbits(out[holder].planes[0], bitorder="little")
        for half in (bits[::2], bits[1::2]):
            assert abs(half.mean() - 0.5) < 5 / 2 / np.sqrt(len(half))


def test_a_table_opens_at_one_digit_only() -> None:
    """What the receiver's own pads leave of the tables at digits that it does not hold is uniform."""
    kept: list[Any] = []
    real = digit_comparison._read

    def spy(tables: Any, pads: Any, numbers: Any, cut: Any) -> Any:
        kept.append((tables, pads, cut))
        return real(tables, pads, numbers, cut)

    shares = {
        A: AdditiveShare(np.full(NUMBER, 77, np.uint64), A, HOLDERS),
        B: AdditiveShare(np.zeros(NUMBER, np.uint64), B, HOLDERS),  # digit 0 everywhere
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digit_comparison, "_read", spy)
        run_two(lambda lane, two: at_least(lane, two, shares[lane.me], 5, 7))
    (tables, (pad,), (digit,)) = kept[0]
    left = tables.view(digit.table) ^ pad[:, GREATER]
    for position in range(1, 64):
        share = ((left >> digit.table(position)) & digit.table(1)).mean()
        assert abs(share - 0.5) < 6 / 2 / np.sqrt(NUMBER)  # 6 deviations, 63 times: probability of error below 1e-6


# -- misuse and malice -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [1, 65])
def test_widths_out_of_range_are_refused(width: int) -> None:
    with pytest.raises(ValueError, match="2 to 64 bits"):
        compared([1], 1, width)


@pytest.mark.parametrize("cheat", [A, B])
@pytest.mark.parametrize("size", [0, 1, 100, 1 << 20])
def test_messages_of_another_size_end_the_job_and_name_the_sender(cheat: str, size: int) -> None:
    """The first holder garbles its tables, or the second its rows."""
    kind, real = (LeafTables, ExtensionRows)[cheat == B], Session.send_array
    shares = shares_of(np.zeros(300, np.uint64))

    async def garbled(self: Session, to: str, message: Any, values: Any) -> None:
        if self.me == cheat and message is kind and "digits" in self.path:
            values = np.zeros(size, np.uint8)
        await real(self, to, message, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "send_array", garbled)
        with pytest.raises(MalformedMessage, match=f"{cheat} sent") as caught:
            run_two(lambda lane, two: at_least(lane, two, shares[lane.me], 5, 18))
    assert caught.value.party == cheat


def test_a_different_number_of_candidates_never_gives_a_result() -> None:
    shares = {A: shares_of(np.zeros(300, np.uint64))[A], B: shares_of(np.zeros(500, np.uint64))[B]}

    async def part(lane: Session, two: TwoParty) -> Any:
        try:
            async with asyncio.timeout(20):
                return await at_least(lane, two, shares[lane.me], 5, 18)
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


def pairwise_comparison(session: Session) -> Any:
    holders = ("p0", "p1")
    values = np.full(20, 7 if session.me == "p0" else 3, np.uint64)
    share = AdditiveShare(values, session.me, holders)
    return at_least(session.lane("work"), TwoParty(session.lane("two"), holders), share, 10, 18)


def test_frames_that_come_twice_change_nothing() -> None:
    ended = outcomes(pairwise_comparison, 2, transport=Twice)
    assert reconstruct_bits(list(ended.values())).tolist() == [1] * 20


@pytest.mark.parametrize("victim", ["p0", "p1"])
@pytest.mark.parametrize("frame", [1, 2, 4, 6])
def test_a_holder_that_is_lost_is_named(victim: str, frame: int) -> None:
    ended = outcomes(pairwise_comparison, 2, crash=(victim, frame))
    assert isinstance(ended[victim], asyncio.CancelledError)
    (other,) = {"p0", "p1"} - {victim}
    assert isinstance(ended[other], ComineError)
    assert ended[other].party == victim

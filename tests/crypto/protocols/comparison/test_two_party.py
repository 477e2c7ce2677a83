from __future__ import annotations

import asyncio
import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.primitives.shares.xor import XorShare, reconstruct_bits, share_bits
from crypto.protocols.comparison import and_triples
from crypto.protocols.comparison.and_triples import make_triples
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.multiplication import multiply
from crypto.protocols.comparison.shared_bits import conjunction, open_bits, open_values
from crypto.protocols.comparison.two_party import InTurn, TwoParty
from crypto.protocols.transfers.ot_extension import (
    batches,
    receive_correlated,
    receive_random,
    send_correlated,
    send_random,
)
from link.disclosure import Declared
from link.errors import UndeclaredDisclosure
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_transfer_pb2 import ExtensionRows
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_uniform, payload_of, run_two, shares_of
from tests.errors import fails
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

ALL = (A, B, "c")


def triples_of(number: int, **options: Any) -> dict[str, Any]:
    return run_two(lambda lane, parties: make_triples(lane, parties, number), **options)


# -- the agreement -----------------------------------------------------------------------------------------------------
def test_computations_run_beside_one_another_in_any_order() -> None:
    """The holders start them in opposite orders; streams are named by lanes, so nothing depends on it."""
    x, y = shares_of([3, 2**63, 17]), shares_of([5, 2, 2**64 - 1], 1)

    async def part(lane: Session, parties: TwoParty) -> Any:
        names = ["1", "2", "3"] if lane.me == A else ["3", "2", "1"]
        tasks = {n: multiply(lane.lane(n), parties, x[lane.me], y[lane.me]) for n in names}
        done = await asyncio.gather(*tasks.values())
        return dict(zip(tasks, done, strict=True))

    out = run_two(part)
    for name in "123":
        assert reconstruct([out[A][name], out[B][name]]).tolist() == [15, 0, 2**64 - 17]


def test_two_sessions_have_neither_a_seed_nor_a_delta_in_common() -> None:
    async def role(session: Session) -> set[bytes]:
        parties, lane = TwoParty(session.lane("pair"), HOLDERS), session.lane("work")
        sending, receiving = await parties.both(lane, lane)
        batch = receiving.expand(np.zeros(1 << 8, np.uint8))
        return {row.tobytes() for row in batch.rows} | {sending.delta.tobytes()}

    first, second = (set.union(*run_parties(HOLDERS, role, seed=seed).values()) for seed in (0, 1))
    assert len(first) > 1000
    assert not first & second


def test_one_lane_serves_again_and_again_with_fresh_streams() -> None:
    frames: list[Frame] = []

    async def part(lane: Session, parties: TwoParty) -> Any:
        return [await make_triples(lane, parties, 1024) for _ in range(3)]

    out = run_two(part, frames=frames)
    taken = {h: [stock.take((1, 128)) for stock in out[h]] for h in HOLDERS}
    assert len({b"".join(part.tobytes() for part in each) for each in taken[A]}) == 3
    rows = [ExtensionRows.FromString(f.body).data for f in frames if f.type == ExtensionRows.DESCRIPTOR.full_name]
    assert len(set(rows)) == len(rows) == 6


def test_what_follows_one_another_begins_one_stream_and_repeats_none_of_it() -> None:
    frames: list[Frame] = []

    async def part(lane: Session, parties: TwoParty) -> Any:
        turns, found = InTurn(parties), []
        for hop in (lane.lane("1"), lane.lane("2")):
            if lane.me == A:
                found.append(await send_correlated(hop, B, await turns.sending(hop), np.zeros(256, np.uint32)))
            else:
                seeds, bits = await turns.receiving(hop), np.zeros(256, np.uint8)
                found.append(await receive_correlated(hop, A, seeds, bits, np.uint32))
        return found

    out = run_two(part, frames=frames)
    np.testing.assert_array_equal(out[A], out[B])  # nothing is added
    assert not np.intersect1d(*out[A]).size
    rows = [ExtensionRows.FromString(f.body).data for f in frames if f.type == ExtensionRows.DESCRIPTOR.full_name]
    assert len(set(rows)) == len(rows) == 2


def test_nothing_is_agreed_before_it_is_asked_for_and_then_once() -> None:
    async def role(session: Session) -> tuple[int, int, int]:
        parties = TwoParty(session.lane("pair"), HOLDERS)
        before = session.costs.bytes_sent
        await make_triples(session.lane("1"), parties, 128)
        first = session.costs.bytes_sent
        await make_triples(session.lane("2"), parties, 128)
        return before, first, session.costs.bytes_sent - first

    greeting, agreed, more = run_parties(HOLDERS, role)[A]
    assert agreed - greeting > 10_000
    assert more < 2_000


@pytest.mark.parametrize("holders", [("a", "a"), ("b", "c"), ("a", "nobody")])
def test_holders_are_this_party_and_another(holders: tuple[str, str]) -> None:
    async def role(session: Session) -> None:
        TwoParty(session, holders)

    with pytest.raises(ValueError, match="two computing parties"):
        run_parties(["a", "b", "c"], {"a": role, "b": _nothing, "c": _nothing})


async def _nothing(session: Session) -> None:
    return None


def test_seeds_serve_one_session_and_are_never_copied() -> None:
    kept: list[TwoParty] = []

    async def keep(lane: Session, parties: TwoParty) -> None:
        kept.append(parties)

    run_two(keep)

    async def reuse(lane: Session, parties: TwoParty) -> None:
        old = next(p for p in kept if p.me == lane.me)
        await make_triples(lane, old, 128)

    with fails("E700"):
        run_two(reuse, seed=1)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            act(kept[0])
    assert repr(kept[0]) == "<TwoParty of a and b>"


# -- triples -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("field_bits", [1, 2, 4])
@pytest.mark.parametrize("number", [0, 1, 128, 1000])
def test_triples_are_products_of_random_bits(number: int, field_bits: int) -> None:
    out = triples_of(number, field_bits=field_bits)
    assert out[A].left == out[B].left >= number
    shape = (1, out[A].left // 8)
    (a0, b0, c0), (a1, b1, c1) = out[A].take(shape), out[B].take(shape)
    assert ((a0 ^ a1) & (b0 ^ b1) == c0 ^ c1).all()


def test_several_blocks_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crypto.protocols.transfers.ot_extension.BATCH", 256)
    monkeypatch.setattr(and_triples, "BLOCK", 1024)
    out = triples_of(5000)
    size = out[A].left // 8
    (a0, b0, c0), (a1, b1, c1) = out[A].take((1, size)), out[B].take((1, size))
    assert ((a0 ^ a1) & (b0 ^ b1) == c0 ^ c1).all()
    assert len(np.unique(a0.reshape(-1, 32), axis=0)) == 20


def test_triples_are_uniform_and_a_holder_cannot_tell_the_others() -> None:
    out = triples_of(1 << 17)
    mine, theirs = out[A].take((1, 1 << 14)), out[B].take((1, 1 << 14))
    for i, own in enumerate(mine):
        assert_uniform(own[0])
        for j, other in enumerate(theirs):
            if (i, j) != (2, 2):  # that one is the product
                assert_uniform((own ^ other)[0])


def test_what_is_taken_is_never_given_again() -> None:
    stock = triples_of(128)[A]
    first, second = stock.take((2, 4)), stock.take((2, 4))
    assert stock.left == 0
    assert not np.array_equal(first[0], second[0])
    with fails("E700"):
        stock.take((1, 1))
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            act(stock)
    assert repr(stock) == "<Triples, 0 left>"


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_number() -> None:
    """Peaks of both parties and the queue between them: transfers add nothing, triples their stock.

    What a million more adds, 98 times over, stays below the 500 MB that 10^8 may take.
    """

    async def transfers(lane: Session, parties: TwoParty, number: int) -> None:
        if parties.is_first:
            async for _ in send_random(lane, parties.peer, await parties.sending(lane), number):
                pass
        else:
            choices = np.zeros(sum(batches(number)) // 8, np.uint8)
            async for _ in receive_random(lane, parties.peer, await parties.receiving(lane), choices):
                pass

    async def part(lane: Session, parties: TwoParty) -> list[list[int]]:
        peaks = []
        for name, work in (("transfers", transfers), ("triples", make_triples)):
            peaks.append([])
            for number in (1_000_000, 2_000_000):
                tracemalloc.reset_peak()
                await work(lane.lane(f"{name} {number}"), parties, number)
                peaks[-1].append(tracemalloc.get_traced_memory()[1])
        return peaks

    tracemalloc.start()
    try:
        peaks = run_two(part)[A]
    finally:
        tracemalloc.stop()
    for small, large in peaks:
        assert large + 98 * max(0, large - small) < 500e6


# -- ANDs and openings -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("number", "width"), [(1, 1), (7, 3), (64, 5), (1001, 2)])
def test_a_conjunction_is_the_and(number: int, width: int) -> None:
    words = np.random.default_rng(0).integers(0, 2**width, (2, number), dtype=np.uint64)
    x, y = (
        dict(zip(HOLDERS, share_bits(w, width, HOLDERS, Randomness.from_seed(i)), strict=True))
        for i, w in enumerate(words)
    )

    async def part(lane: Session, parties: TwoParty) -> XorShare:
        triples = await make_triples(lane.lane("triples"), parties, width * (-(-number // 8)) * 8)
        return await conjunction(lane, parties, triples, x[lane.me], y[lane.me])

    out = run_two(part)
    assert (reconstruct_bits([out[A], out[B]]) == words[0] & words[1]).all()


def test_what_a_conjunction_sends_is_uniform() -> None:
    zeros = {h: XorShare(np.zeros((1, 1 << 13), np.uint8), 1 << 16, h, HOLDERS) for h in HOLDERS}
    frames: list[Frame] = []

    async def part(lane: Session, parties: TwoParty) -> XorShare:
        triples = await make_triples(lane.lane("triples"), parties, 1 << 16)
        return await conjunction(lane, parties, triples, zeros[lane.me], zeros[lane.me])

    out = run_two(part, frames=frames)
    assert not reconstruct_bits([out[A], out[B]]).any()
    for holder in HOLDERS:
        assert_uniform(payload_of(frames, holder, "MaskedOperands"))
        assert_uniform(out[holder].planes[0])


@pytest.mark.parametrize("to", [None, ("c",), (A,), ("c", B)])
def test_only_receivers_learn_what_is_opened(to: tuple[str, ...] | None) -> None:
    words, numbers = np.arange(20, dtype=np.uint64) * 70, np.arange(20, dtype=np.uint64) * 2**59
    bits = dict(zip(HOLDERS, share_bits(words, 11, HOLDERS, Randomness.from_seed(1)), strict=True))
    values = shares_of(numbers)

    async def role(session: Session) -> Any:
        common = {"holders": HOLDERS, "number": 20, "to": to}
        return (
            await open_bits(session.lane("1"), bits.get(session.me), label="words", width=11, **common),
            await open_values(session.lane("2"), values.get(session.me), label="values", **common),
        )

    receivers = frozenset(to or ALL)
    lines = [Declared(label, receivers, "test", 20, "now") for label in ("words", "values")]
    for name, (opened_words, opened_values) in run_parties(ALL, role, declared=lines).items():
        if name in receivers:
            assert opened_words.tolist() == words.tolist()
            assert opened_values.tolist() == numbers.tolist()
        else:
            assert opened_words is None is opened_values


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32])
def test_values_in_short_words_are_opened_in_as_many_bytes(word: type[np.unsignedinteger[Any]]) -> None:
    top = int(np.iinfo(word).max)
    numbers = [0, 1, top, top - 1]
    values = shares_of(numbers, word=word)
    frames: list[Frame] = []

    async def part(lane: Session, parties: TwoParty) -> Any:
        share = values[lane.me]
        return await open_values(lane, share, label="values", holders=HOLDERS, number=4, word=word)

    lines = [Declared("values", frozenset(HOLDERS), "test", 4, "now")]
    for opened in run_two(part, declared=lines, frames=frames).values():
        assert opened.dtype == word
        assert opened.tolist() == numbers
    assert {len(Opening.FromString(frame.body).values) for frame in frames} == {4 * np.dtype(word).itemsize}
    with pytest.raises(ValueError, match="none of 4 values in uint64"):
        run_two(lambda lane, two: open_values(lane, values[lane.me], label="values", holders=HOLDERS, number=4))


def test_bits_are_opened_packed_and_none_but_those_of_the_words() -> None:
    bits = dict(zip(HOLDERS, share_bits(np.full(9, 2, np.uint64), 2, HOLDERS, Randomness.from_seed(1)), strict=True))
    dirty = {
        name: XorShare(share.planes | np.array([0, 254], np.uint8), 9, name, HOLDERS) for name, share in bits.items()
    }
    frames: list[Frame] = []

    async def part(lane: Session, parties: TwoParty) -> Any:
        return await open_bits(lane, dirty[lane.me], label="words", holders=HOLDERS, number=9, width=2)

    lines = [Declared("words", frozenset(HOLDERS), "test", 9, "now")]
    for opened in run_two(part, declared=lines, frames=frames).values():
        assert opened.tolist() == [2] * 9
    for message in (Opening.FromString(frame.body) for frame in frames):
        assert message.number == 9
        assert len(message.values) == 4
        assert message.values[1] < 2 > message.values[3]


def test_nothing_is_opened_that_the_statement_does_not_name() -> None:
    bits = dict(zip(HOLDERS, share_bits(np.ones(9, np.uint64), 1, HOLDERS, Randomness.from_seed(1)), strict=True))

    async def part(lane: Session, parties: TwoParty) -> Any:
        return await open_bits(lane, bits[lane.me], label="words", holders=HOLDERS, number=9)

    frames: list[Frame] = []
    for lines in ([], [Declared("words", frozenset(HOLDERS), "test", 8, "now")]):
        with pytest.raises(UndeclaredDisclosure):
            run_two(part, frames=frames, declared=lines)
    assert not frames


# -- misuse and malice -------------------------------------------------------------------------------------------------
def test_shares_of_others_are_refused() -> None:
    theirs = AdditiveShare(np.zeros(1, np.uint64), A, (A, "c"))

    async def part(lane: Session, parties: TwoParty) -> None:
        await at_least(lane, parties, theirs, 1, 8)

    with pytest.raises(TypeError, match="none of"):
        run_two(part)

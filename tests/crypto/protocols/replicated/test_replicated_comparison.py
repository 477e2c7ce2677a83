"""Sums of all parties' numbers against a threshold, decided among three: results, costs, and what each party sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.primitives.shares.replicated_bits import ReplicatedBits, reconstruct_replicated_bits
from crypto.primitives.shares.xor import XorShare, planes_of, reconstruct_bits, share_bits, words_of
from crypto.protocols.comparison.costs import opened_traffic
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.replicated import comparison
from crypto.protocols.replicated import digits as replicated_digits
from crypto.protocols.replicated.comparison import (
    BLOCK,
    IN_TURN,
    ands_by_level,
    at_least,
    blocks,
    masked_sum,
    sums_at_least,
)
from crypto.protocols.replicated.costs import comparison_traffic, masked_sum_traffic, sums_traffic
from crypto.protocols.replicated.digits import MANY, carry_planes, digits, looked_up, selected, selected_planes
from crypto.protocols.sums.pairwise import agree
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame
from protos.v1.replicated_pb2 import MaskedAddends, MaskedDigits, MaskedPart
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform
from tests.errors import fails
from tests.examples import examples
from tests.traffic import assert_planned, costs_of
from tests.world import below, run_parties

PARTIES = ("a", "b", "c", "d", "e", "f", "g")
THREE = ("a", "b", "c")
Vectors = Mapping[str, NDArray[Any]]


def decided(
    vectors: Vectors, threshold: int, width: int, three: Any = THREE, *, opened: bool = False, **options: Any
) -> dict[str, Any]:
    """Every party's bits: shares, or what is opened."""
    number = len(next(iter(vectors.values())))
    lines = [Declared("bits", frozenset(vectors), "bits", number, "now")]

    async def role(session: Session) -> Any:
        secrets, lane = await agree(session), session.lane("sums")
        bits = await sums_at_least(lane.lane("decide"), secrets, vectors[session.me], three, threshold, width)
        return await open_bits(lane, bits, label="bits", holders=three, number=number) if opened else bits

    return run_parties(tuple(vectors), role, declared=lines, **options)


def drawn(parties: int, number: int, below: int, word: Any, seed: int = 0) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(seed)
    return {name: generator.integers(0, below, number).astype(word) for name in PARTIES[:parties]}


# -- digits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("number", "most"), [(MANY, 4), (MANY + 1, 3)])
def test_digits_cover_the_bits_alike_and_are_few(number: int, most: int) -> None:
    for bits in range(1, 64):
        cut = digits(bits, number)
        assert sum(cut) == bits
        assert len(cut) == -(-bits // most)
        assert max(cut) - min(cut) <= 1


@pytest.mark.parametrize(("bits", "number"), [(1, 9), (4, 9), (5, 9), (8, 9), (8, MANY + 1)])
def test_all_pairs_of_numbers_generate_and_pass_on_carries(bits: int, number: int) -> None:
    """Any shares of which value a digit has; every digit against the definition."""
    values = np.arange(1 << bits, dtype=np.uint64)
    a, b = (each.reshape(-1) for each in np.meshgrid(values, values))
    cut, number = digits(bits, number), len(a)
    chosen = selected(planes_of(a, bits), cut)
    assert len(chosen) == selected_planes(cut)
    part = np.frombuffer(Randomness.from_seed(bits).bytes(chosen.size), np.uint8).reshape(chosen.shape)
    own = planes_of(b, bits)
    found = looked_up(part, own, cut, adds=True) ^ looked_up(part ^ chosen, own, cut, adds=False)
    assert len(found) == carry_planes(cut)
    low = 0
    for place, size in enumerate(cut):
        sums = sum((each >> np.uint64(low)) % np.uint64(1 << size) for each in (a, b))
        assert (words_of(found[place][None], number) == (sums >= 1 << size)).all()
        if place:
            assert (words_of(found[len(cut) + place - 1][None], number) == (sums == (1 << size) - 1)).all()
        low += size


def test_local_ands_are_shares_of_the_ands() -> None:
    random = Randomness.from_seed(1)

    def shared(words: NDArray[np.uint64]) -> list[ReplicatedBits]:
        parts = [each.planes for each in share_bits(words, 5, THREE, random)]
        return [ReplicatedBits(parts[i], parts[(i + 1) % 3], name, THREE) for i, name in enumerate(THREE)]

    x, y = (np.random.default_rng(i).integers(0, 32, 77, dtype=np.uint64) for i in range(2))
    of_x, of_y = shared(x), shared(y)
    both = np.bitwise_xor.reduce([one.local_and(other) for one, other in zip(of_x, of_y, strict=True)])
    assert (words_of(both, 77) == x & y).all()
    sums = [one ^ other for one, other in zip(of_x, of_y, strict=True)]
    assert (words_of(reconstruct_replicated_bits(sums), 77) == x ^ y).all()
    with pytest.raises(TypeError, match="not a value"):
        bool(of_x[0])
    with pytest.raises(TypeError, match="different holders"):
        of_x[0].local_and(of_y[1])


# -- results -----------------------------------------------------------------------------------------------------------
@examples(4, 40)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_against_integers(data: st.DataObject, seed: int) -> None:
    parties = data.draw(st.sampled_from([3, 4, 7]))
    three = tuple(data.draw(st.permutations(PARTIES[:parties]))[:3])
    word = data.draw(st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64]))
    width = data.draw(st.integers(2, 8 * np.dtype(word).itemsize))
    top = 2 ** (width - 1)
    threshold = data.draw(st.integers(0, top - 1))
    sums = data.draw(
        st.lists(st.integers(0, top - 1) | st.sampled_from([threshold, max(threshold - 1, 0)]), max_size=70)
    )
    vectors = drawn(parties, len(sums), 2**63 - 1, word, seed)
    last = PARTIES[parties - 1]
    rest = sum(vectors[name].astype(object) for name in PARTIES[: parties - 1])
    vectors[last] = np.array((np.array(sums, object) - rest) % 2 ** (8 * np.dtype(word).itemsize), word)
    out = decided(vectors, threshold, width, three, seed=seed)
    assert all(out[name] is None for name in vectors if name not in three)
    assert reconstruct_bits([out[name] for name in three]).tolist() == [int(each >= threshold) for each in sums]


def test_all_pairs_of_short_shares() -> None:
    """Whatever the shares are, not only what random masks come to; every difference, negative ones too."""
    one, other = (each.reshape(-1) for each in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2))
    held = {
        "a": AdditiveShare(one, "a", ("a", "b")),
        "b": AdditiveShare(other, "b", ("a", "b")),
        "c": AdditiveShare(other, "c", ("a", "c")),
    }

    async def role(session: Session) -> XorShare:
        secrets = await agree(session)
        return await at_least(session.lane("sums"), secrets, held[session.me], THREE, 0, 8)

    out = run_parties(THREE, role)
    assert (reconstruct_bits([out[name] for name in THREE]) == ((one + other).astype(np.int8) >= 0)).all()


def test_in_turn_and_in_blocks_and_opened_to_all_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated_digits, "MANY", 90)
    monkeypatch.setattr(comparison, "IN_TURN", 64)
    monkeypatch.setattr(comparison, "BLOCK", 100)
    vectors = drawn(4, 777, 150, np.uint16)
    total = np.add.reduce(list(vectors.values()))
    for opened in decided(vectors, 300, 11, ("d", "a", "c"), opened=True, transport="grpc").values():
        assert opened.tolist() == (total >= 300).astype(int).tolist()


def test_what_is_computed_of_shares_is_compared() -> None:
    """3·x − 2·y against 0, of sums that all three hold."""
    x, y = drawn(4, 50, 100, np.uint32, 1), drawn(4, 50, 150, np.uint32, 2)

    async def role(session: Session) -> Any:
        secrets, words = await agree(session), np.concatenate([x[session.me], y[session.me]])
        share = await masked_sum(session.lane("sum"), secrets, words, THREE, 14)
        if share is None:
            return None
        difference = share[slice(0, 50)].times_public(3) - share[slice(50, 100)].times_public(2)
        return share, await at_least(session.lane("compare"), secrets, difference, THREE, 0, 13)

    out = run_parties(PARTIES[:4], role)
    of_x, of_y = (np.add.reduce(list(each.values())).astype(np.int64) for each in (x, y))
    both = np.concatenate([of_x, of_y])
    for name in ("b", "c"):
        first = AdditiveShare(out["a"][0].values, "a", ("a", name))
        assert (reconstruct([first, out[name][0]]) % (1 << 14) == both).all()
    assert (reconstruct_bits([out[name][1] for name in THREE]) == (3 * of_x >= 2 * of_y)).all()


@given(st.integers(0, 4 * BLOCK))
def test_blocks_cover_all_and_are_as_many_for_each(number: int) -> None:
    cut = blocks(number)
    assert [part.start for part in cut] == [0, *(part.stop for part in cut[:-1])]
    assert cut[-1].stop == number
    assert all(part.stop % 8 == 0 for part in cut[:-1])
    assert len(cut) == 1 if number <= IN_TURN else len(cut) % 3 == 0
    assert max(part.stop - part.start for part in cut) <= BLOCK + 8


def test_nothing_is_decided_without_an_and() -> None:
    frames: list[Frame] = []
    out = decided(drawn(3, 0, 1, np.uint8), 3, 8, observe=below("/sums", frames))
    assert {out[name].number for name in THREE} == {0}


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parties", "width", "number", "rounds"),
    [(3, 5, 1000, 3), (3, 9, 4096, 4), (4, 9, 40_000, 5), (7, 18, 1003, 6), (3, 33, 2048, 6), (3, 64, 800, 7)],
)
def test_bytes_and_rounds_are_as_planned(
    parties: int, width: int, number: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_digits, "MANY", 10_000)
    names, word = PARTIES[:parties], np.min_scalar_type((1 << width) - 1)
    values = np.zeros(number, word)

    async def part(lane: Session, secrets: Any, pairs: Any) -> Any:
        bits = await sums_at_least(lane, secrets, values, THREE, 3, width)
        await open_bits(lane, bits, label="bits", holders=THREE, number=number)

    traffic = Traffic(names)
    sums_traffic(traffic, THREE, number=number, width=width)
    opened_traffic(traffic, number // 8, THREE)
    assert traffic.rounds == rounds
    assert_planned(traffic, costs_of(names, part, declared=[Declared("bits", frozenset(names), "", number, "")]))


def test_bits_sent_are_counted_exactly() -> None:
    """Known answers: bits a number by message, of 1,024 numbers."""
    known = {
        5: {MaskedAddends: 2 * 5, MaskedDigits: 16},
        9: {MaskedAddends: 2 * 9, MaskedDigits: 31, MaskedPart: 2 * 3},
        13: {MaskedAddends: 2 * 13, MaskedDigits: 46, MaskedPart: 2 * 5 + 3},
        64: {MaskedAddends: 2 * 64, MaskedDigits: 1 + 15 * 15 + 7, MaskedPart: 2 * 31 + 3 * (15 + 7 + 3)},
    }
    for width, bits in known.items():
        frames: list[Frame] = []
        values = {name: np.zeros(1024, np.uint64) for name in THREE}
        decided(values, 3, width, observe=below("/sums", frames))
        sizes: dict[str, int] = defaultdict(int)
        for frame in frames:
            sizes[frame.type] += len(MaskedPart.FromString(frame.body).data)
        assert dict(sizes) == {kind.DESCRIPTOR.full_name: 128 * each for kind, each in bits.items()}
        planned, payload = Traffic(THREE), Traffic(THREE)
        masked_sum_traffic(planned, THREE, number=1024, width=width)
        comparison_traffic(planned, THREE, number=1024, width=width)
        for frame in frames:
            payload.send(frame.sender, frame.receiver, len(MaskedPart.FromString(frame.body).data))
        for name in THREE:
            assert planned.bytes_sent(name) == payload.bytes_sent(name)
    assert [ands_by_level(count) for count in (1, 2, 3, 16)] == [[], [1], [1, 1], [15, 7, 3, 1]]


# -- what the parties see ----------------------------------------------------------------------------------------------
NUMBER = 1 << 13


def seen(frames: list[Frame]) -> dict[tuple[str, str, str], NDArray[np.uint8]]:
    """What each party gets, by sender and message."""
    found: dict[tuple[str, str, str], list[bytes]] = defaultdict(list)
    for frame in frames:
        found[frame.receiver, frame.sender, frame.type].append(MaskedPart.FromString(frame.body).data)
    return {key: np.frombuffer(b"".join(parts), np.uint8) for key, parts in found.items()}


@pytest.mark.parametrize("width", [5, 9, 18])
def test_every_view_is_uniform_and_alike_whatever_the_others_hold(width: int) -> None:
    """Runs with equal verdicts and other counts; d and e compute nothing. A party's own input is the same in all."""
    runs = []
    most = 2 ** (width - 1) - 1
    for seed, (others, of_c) in enumerate([(0, 0), (most // 4, most // 4 - 1), (0, most - 1)]):
        vectors = {name: np.full(NUMBER, others, np.uint32) for name in PARTIES[:5]}
        vectors["a"], vectors["e"] = np.zeros(NUMBER, np.uint32), np.zeros(NUMBER, np.uint32)
        vectors["c"] = np.full(NUMBER, of_c, np.uint32)
        frames: list[Frame] = []
        assert not decided(vectors, most, width, opened=True, seed=seed, observe=below("/sums/decide", frames))[
            "d"
        ].any()
        runs.append(seen(frames))
    assert {receiver for receiver, _, _ in runs[0]} <= set(THREE)  # others get nothing but what is opened
    for run in runs:
        assert run.keys() == runs[0].keys()
        for key, octets in run.items():
            assert_uniform(octets)
            assert_alike(octets, runs[0][key])


@pytest.mark.parametrize("width", [5, 9])
def test_what_a_computing_party_and_others_see_together_is_independent(width: int) -> None:
    """All that the first holder gets, as words side by side, XORed in every combination: uniform, so it has no more of
    the sums than the mask hides; and what is opened by two of the three are random bits that only all three explain."""
    most = 2 ** (width - 1) - 1
    vectors = {name: np.full(NUMBER, most // 4, np.uint32) for name in PARTIES[:4]}
    frames: list[Frame] = []
    decided(vectors, most, width, opened=True, observe=below("/sums", frames))
    got = [octets[: NUMBER // 8] for (receiver, _, _), octets in seen(frames).items() if receiver in ("a", "d")]
    assert len(got) >= 3
    together = np.concatenate(got)
    assert_uniform(together)
    of_first = [octets for (receiver, _, kind), octets in seen(frames).items() if receiver == "a" and "Addends" in kind]
    for one in range(len(of_first)):
        for other in range(one):
            assert_uniform(of_first[one] ^ of_first[other])
    opened = {f.sender: f.body[-(NUMBER // 8) :] for f in frames if f.lane == "/sums" and f.receiver == "d"}
    parts = [np.frombuffer(opened[name], np.uint8) for name in THREE]
    assert not np.bitwise_xor.reduce(parts).any()
    for part in parts:
        assert_uniform(part)


def test_frames_are_the_same_whatever_the_outcome() -> None:
    shapes = []
    for value in (0, 90):
        frames: list[Frame] = []
        out = decided({n: np.full(100, value, np.uint16) for n in THREE}, 89, 9, observe=below("/sums", frames))
        assert (reconstruct_bits(list(out.values())) == (value > 0)).all()
        shapes.append(sorted((f.sender, f.receiver, f.lane, f.type, len(f.body)) for f in frames))
    assert shapes[0] == shapes[1]


# -- misuse and malice -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [1, 17])
def test_widths_out_of_range_are_refused(width: int) -> None:
    with pytest.raises(ValueError, match="2 to 16"):
        decided(drawn(3, 5, 9, np.uint16), 3, width)


@pytest.mark.parametrize("three", [("a", "b", "b"), ("a", "b", "z")])
def test_holders_are_three_parties_of_the_job(three: Any) -> None:
    with pytest.raises(ValueError, match="three parties"):
        decided(drawn(3, 5, 9, np.uint16), 3, 9, three)


@pytest.mark.parametrize(("cheat", "kind"), [("d", MaskedAddends), ("a", MaskedDigits), ("b", MaskedPart)])
@pytest.mark.parametrize("size", [0, 100])
def test_messages_of_another_size_end_the_job_and_name_the_sender(cheat: str, kind: Any, size: int) -> None:
    real = Session.send_array

    async def garbled(self: Session, to: str, message: Any, values: Any) -> None:
        if self.me == cheat and message is kind:
            values = np.zeros(size, np.uint8)
        await real(self, to, message, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "send_array", garbled)
        with fails("E402", party=cheat):
            decided(drawn(4, 300, 9, np.uint16), 3, 13)

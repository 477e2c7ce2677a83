"""Rows counted among three of whom one may deviate: results, attacks, costs, views."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.shares.replicated_bits import ReplicatedBits
from crypto.primitives.shares.xor import words_of
from crypto.protocols.replicated import evidence, verified_counts
from crypto.protocols.replicated.count_circuits import and_bytes, count_width, frequent, schedule
from crypto.protocols.replicated.crosschecks import opened
from crypto.protocols.replicated.verified_count_costs import columns_traffic, count_traffic
from crypto.protocols.replicated.verified_counts import Counted, at_once, count, deal_columns
from crypto.protocols.sums.pairwise import agree
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame
from protos.v1.verified_pb2 import DealtBits, DealtCommitments, DealtKey, MaskedAnds, MaskedProof
from tests.crypto.protocols.replicated.deviating_world import Ends, OneAltered, run_deviating
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right, unaltered
from tests.crypto.protocols.two_party_world import assert_alike
from tests.errors import fails
from tests.examples import examples
from tests.traffic import assert_planned, costs_of
from tests.world import run_parties

PARTIES = ("north", "south", "east", "west")
THREE = PARTIES[:3]


class Job:
    """Columns of some parties; all pairs of columns are counted, then the frequent pairs times the first column."""

    def __init__(self, bits: Sequence[NDArray[np.bool_]], threshold: int, three: Any = THREE) -> None:
        self.parties, self.threshold, self.three = PARTIES[: len(bits)], threshold, three
        self.bits = dict(zip(self.parties, bits, strict=True))
        self.rows = bits[0].shape[1]
        self.declared = [Declared(label, frozenset(self.parties), "", 10**6, "") for label in ("frequent", "supports")]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        columns = sum(map(len, self.bits.values()))
        return [(one, other) for one in range(columns) for other in range(one + 1, columns)]

    async def role(self, session: Session) -> tuple[list[int], list[int]]:
        secrets, me = await agree(session), session.me
        numbers = {party: len(each) for party, each in self.bits.items()}
        dealt = await deal_columns(session.lane("deal"), pack_bits(self.bits[me]), numbers, self.rows, self.three)
        pairs = np.array(self.pairs, np.int64)
        found: Counted | None = None
        stacked = None
        if dealt is not None:
            stacked = ReplicatedBits.stacked(list(dealt.values()))
            one, other = stacked.bits(pairs[:, 0]), stacked.bits(pairs[:, 1])
            lane = session.lane("pairs")
            found = await count(lane, secrets, self.three, one, other, self.rows, self.threshold)
        mask, supports = await self._opened(session.lane("open"), found, len(pairs))
        kept = np.flatnonzero(mask)
        if not len(kept):
            return [], []
        longer = None
        if found is not None and stacked is not None:
            first = stacked.bits(np.zeros(len(kept), np.int64))
            lane, products = session.lane("longer"), found.products.bits(kept)
            longer = await count(lane, secrets, self.three, products, first, self.rows, self.threshold)
        _, threes = await self._opened(session.lane("open longer"), longer, len(kept))
        return supports, threes

    async def _opened(self, lane: Session, found: Counted | None, number: int) -> tuple[Any, list[int]]:
        named = {"holders": self.three, "to": self.parties}
        reached = await opened(lane, found and found.reached, label="frequent", number=number, width=1, **named)
        assert reached is not None
        mask = words_of(reached, number) != 0
        sums = await opened(
            lane.lane("supports"),
            found and found.counts.words(mask),
            label="supports",
            number=int(mask.sum()),
            width=count_width(self.rows),
            **named,
        )
        assert sums is not None
        return mask, words_of(sums, int(mask.sum())).tolist()

    @property
    def expected(self) -> tuple[list[int], list[int]]:
        every = np.concatenate(list(self.bits.values()))
        products = [every[one] & every[other] for one, other in self.pairs]
        products = [each for each in products if each.sum() >= self.threshold]
        longer = [int((each & every[0]).sum()) for each in products]
        return [int(each.sum()) for each in products], [each for each in longer if each >= self.threshold]

    def run(self, **options: Any) -> dict[str, Any]:
        return run_parties(self.parties, self.role, declared=self.declared, **options)

    def attacked(self, deviating: Sequence[str], alter: Any, seed: int) -> Ends:
        return run_deviating(self.parties, self.role, deviating, alter, declared=self.declared, seed=seed)


def drawn(columns: Sequence[int], rows: int, threshold: int, seed: int = 0, three: Any = THREE) -> Job:
    generator = np.random.default_rng(seed)
    return Job([generator.random((number, rows)) < 0.6 for number in columns], threshold, three)


# -- results -----------------------------------------------------------------------------------------------------------
@examples(4, 30)
@given(data=st.data())
def test_against_the_columns(data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=4).filter(lambda each: sum(each) > 1))
    rows = data.draw(st.sampled_from([1, 7, 8, 9, 16, 31, 64, 65, 200]))
    three = tuple(data.draw(st.permutations(PARTIES[: len(columns)]))[:3])
    job = drawn(columns, rows, data.draw(st.integers(1, rows)), data.draw(st.integers(0, 99)), three)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified_counts, "FEW", data.draw(st.sampled_from([0, 100])))
        assert set(map(repr, job.run().values())) == {repr(job.expected)}


def test_over_grpc() -> None:
    job = drawn([2, 1, 2], 1000, 350)
    assert set(map(repr, job.run(transport="grpc").values())) == {repr(job.expected)}


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("rows", [1, 5, 8, 13, 24, 57, 129, 1000, 3000])
def test_circuits_count_any_column(rows: int, few: bool) -> None:
    """Evaluated in the clear: components of zero beside the values."""

    def plain(planes: Any) -> ReplicatedBits:
        return ReplicatedBits(planes, np.zeros_like(planes), "0", ("0", "1", "2"))

    generator = np.random.default_rng(rows)
    bits = generator.random((11, rows)) < np.linspace(0, 1, 11)[:, None]
    bits[0], bits[-1] = False, True
    for threshold in {1, rows // 2 + 1, rows}:
        steps, circuit = list[int](), frequent(plain(pack_bits(bits)), None, rows, threshold, few=few)
        try:
            x, y = next(circuit)
            while True:
                steps.append(x.own.size)
                x, y = circuit.send(plain(x.own & y.own))
        except StopIteration as end:
            _, sums, reached = end.value
        assert (words_of(sums.own, 11) == bits.sum(axis=1)).all()
        assert (words_of(reached.own, 11) == (bits.sum(axis=1) >= threshold)).all()
        assert steps == and_bytes(11, rows, products=False, few=few)


def test_a_row_takes_one_and() -> None:
    steps, _ = schedule(12_500, count_width(100_000))
    assert sum(number for step in steps for _, number in step) <= 12_500
    assert len(steps) <= 28
    assert at_once(100_000) % 8 == 0


# -- parties that deviate ----------------------------------------------------------------------------------------------
ATTACKED = {3: drawn([2, 1, 1], 21, 6, 5), 4: drawn([1, 2, 0, 1], 19, 5, 3)}
DEVIATING: dict[int, list[tuple[str, ...]]] = {
    3: [("north",), ("south",), ("east",)],
    4: [("north",), ("south", "west"), ("east",), ("west",)],
}


@pytest.mark.parametrize("parties", [3, 4])
def test_one_altered_message_is_noticed_or_changes_nothing(parties: int) -> None:
    """Whichever message, of whichever party; no honest one is ever blamed. By hand: `attacks(…)` with more seeds."""
    assert attacks(parties, range(12)) > 8


def attacks(parties: int, seeds: range) -> int:
    """How many of these attacks were noticed."""
    found, sent, job = 0, dict[Any, int](), ATTACKED[parties]
    assert all(job.expected)
    for seed in seeds:
        chance = random.Random(seed)
        deviating = chance.choice(DEVIATING[parties])
        if deviating not in sent:
            counter = OneAltered(-1, 0)
            assert not job.attacked(deviating, counter, 0).errors
            sent[deviating] = counter.sent
        alter = OneAltered(chance.randrange(sent[deviating]), seed)
        found += assert_caught_or_right(job.attacked(deviating, alter, seed), deviating, job.expected)
    return found


def test_a_dealer_of_other_columns_than_it_has_committed_to_is_convicted() -> None:
    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if (frame.receiver, frame.type) == ("south", DealtKey.DESCRIPTOR.full_name):
            key = DealtKey.FromString(frame.body)
            key.key = bytes(32)
            changed.body = key.SerializeToString()
        return [changed]

    ends = ATTACKED[4].attacked(["west"], alter, 3)
    with fails("E400", party="west"):
        raise ends.errors["south"]
    (found,) = ends.evidence["south"]
    assert found.rule == evidence.DEALING


def test_a_dealer_of_other_columns_to_one_than_to_another_is_convicted() -> None:
    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if (frame.receiver, frame.type) == ("south", DealtCommitments.DESCRIPTOR.full_name):
            dealt = DealtCommitments.FromString(frame.body)
            lacking = 32 * ((THREE.index("south") + 2) % 3)  # what opens it, this holder does not get
            dealt.commitments = dealt.commitments[:lacking] + bytes(32) + dealt.commitments[lacking + 32 :]
            changed.body = dealt.SerializeToString()
        return [changed]

    ends = ATTACKED[4].attacked(["west"], alter, 3)
    for holder in THREE:
        with fails("E400", party="west"):
            raise ends.errors[holder]
    (found,) = ends.evidence["south"]
    assert found.rule == evidence.EQUIVOCATION
    assert evidence.judged(found.rule, found.words).endswith(" of what it deals")


@pytest.mark.parametrize("cheat", THREE)
@pytest.mark.parametrize("step", [0, 1, 3, 9])
def test_an_and_that_is_wrong_from_the_start_is_noticed(cheat: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The party adds a bit to its part and goes on with it, so that no two views differ; also where no row is."""
    real, calls, chance = ReplicatedBits.local_and, [0], random.Random(step)

    def adding(self: ReplicatedBits, other: ReplicatedBits) -> Any:
        part = real(self, other)
        if self.holder == cheat:
            calls[0] += 1
            if calls[0] == step + 1:
                part.reshape(-1)[chance.randrange(part.size)] ^= 1 << chance.randrange(8)
        return part

    monkeypatch.setattr(ReplicatedBits, "local_and", adding)
    job = ATTACKED[3]
    ends = job.attacked([cheat], unaltered, step)
    assert assert_caught_or_right(ends, [cheat], job.expected)
    assert not ends.results


@pytest.mark.parametrize("cheat", ["north", "west"])
def test_bits_behind_the_last_row_count_nothing(cheat: str) -> None:
    """A dealer fills up its columns with ones: the result is that of its rows."""
    job = ATTACKED[4]

    def role(session: Session) -> Any:
        if session.me == cheat:
            job.bits[cheat] = np.concatenate([honest, np.ones((len(honest), -job.rows % 8), bool)], axis=1)
        return job.role(session)

    honest, expected = job.bits[cheat], job.expected
    assert job.rows % 8
    try:
        found = run_parties(job.parties, role, declared=job.declared)
    finally:
        job.bits[cheat] = honest
    assert set(map(repr, found.values())) == {repr(expected)}


# -- costs, and what is seen -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rows", [9, 400, 6000])
@pytest.mark.parametrize("products", [True, False])
def test_bytes_and_rounds_are_as_planned(rows: int, products: bool) -> None:
    numbers = {"north": 3, "south": 0, "east": 1, "west": 2}

    async def part(lane: Session, secrets: Any, _: Any) -> None:
        own = np.zeros((numbers[lane.me], -(-rows // 8)), np.uint8)
        dealt = await deal_columns(lane, own, numbers, rows, THREE)
        if dealt is not None:
            columns = ReplicatedBits.stacked(list(dealt.values()))
            await count(lane, secrets, THREE, columns, columns if products else None, rows, 1)

    traffic = Traffic(PARTIES)
    columns_traffic(traffic, THREE, numbers, rows)
    count_traffic(traffic, THREE, columns=6, rows=rows, products=products)
    assert_planned(traffic, costs_of(PARTIES, part))


@pytest.mark.parametrize("party", THREE)
def test_what_a_computing_party_receives_is_the_same_whatever_others_columns_are(party: str) -> None:
    """Until counts are opened: sizes and order are those of any columns, and bytes are distributed alike."""
    kinds = {kind.DESCRIPTOR.full_name: kind for kind in (DealtBits, MaskedAnds, MaskedProof)}
    sizes, octets = list[Any](), list[bytes]()
    for full in (False, True):
        bits = [np.full((2, 640), full and name != party) for name in THREE]
        frames: list[Frame] = []
        Job(bits, 640).run(seed=1 + full, observe=frames.append)
        seen = [frame for frame in frames if frame.receiver == party and frame.lane.startswith(("/deal", "/pairs"))]
        sizes.append([(frame.sender, frame.lane, frame.type) for frame in seen])
        octets.append(b"".join(kinds[frame.type].FromString(frame.body).data for frame in seen if frame.type in kinds))
    assert sorted(sizes[0]) == sorted(sizes[1])
    assert_alike(*(np.frombuffer(each, np.uint8) for each in octets))

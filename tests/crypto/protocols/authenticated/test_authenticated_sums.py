"""Sums against a threshold, decided between two of whom one may deviate: results, attacks, costs, views."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.shares.authenticated import AuthenticatedBits, reconstruct_authenticated
from crypto.primitives.shares.xor import words_of
from crypto.protocols.authenticated import and_triples, authenticated_sums, inputs
from crypto.protocols.authenticated.and_triples import Triples, buckets_for, is_enough, make_triples, pieces
from crypto.protocols.authenticated.authenticated_sums import Keyed, blocks, decided, opened, summed
from crypto.protocols.authenticated.checks import Witnesses, settle
from crypto.protocols.authenticated.costs import decided_traffic, keys_traffic, opened_traffic, summed_traffic
from crypto.protocols.authenticated.decisions import decision_on, decision_planes, sum_width
from crypto.protocols.authenticated.thresholds import Threshold
from link.disclosure import Declared
from link.errors import InternalError
from link.session import Session
from link.traffic import Traffic
from protos.v1.authenticated_pb2 import (
    BitProof,
    CheckOpening,
    DealtShare,
    HalfGates,
    MaskedBits,
    ProofPoint,
    ShareHashes,
    ZerosOpening,
)
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_transfer_pb2 import ExtensionRows
from tests.crypto.protocols.replicated.deviating_world import Ends, OneAltered, run_deviating
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform
from tests.examples import examples
from tests.traffic import assert_planned, costs_of
from tests.world import below, run_parties

PARTIES = ("north", "south", "east", "west", "upper", "lower", "middle")
TWO = PARTIES[:2]
Vectors = dict[str, NDArray[np.uint64]]


class Job:
    """Rows and counts of some parties, and what each does: it opens the number of rows, verdicts and frequent sums."""

    def __init__(self, rows: Sequence[int], counts: Sequence[Sequence[int]], threshold: int, two: Any = TWO) -> None:
        self.parties, self.threshold, self.two = PARTIES[: len(rows)], threshold, two
        self.rows = dict(zip(self.parties, rows, strict=True))
        self.counts: Vectors = {
            name: np.array(each, np.uint64) for name, each in zip(self.parties, counts, strict=True)
        }
        self.declared = [
            Declared(label, frozenset(self.parties), "", 10**6, "") for label in ("rows", "frequent", "supports")
        ]

    async def role(self, session: Session) -> tuple[int, list[int], list[int]]:
        number, everyone = len(self.counts[session.me]), session.parties
        keyed = Keyed(session.lane("keys"), self.two) if session.me in self.two else None
        ours = np.array([self.rows[session.me]], np.uint64)
        found = await summed(session.lane("rows"), keyed, ours, self.two, 20)

        async def open_to_all(lane: Session, share: Any, label: str, number: int, width: int) -> Any:
            planes = await opened(
                lane, keyed, share, label=label, holders=self.two, number=number, width=width, to=everyone
            )
            assert planes is not None
            return planes

        width = sum_width(len(everyone), 20)
        n_rows = int(words_of(await open_to_all(session.lane("n"), found and found[0], "rows", 1, width), 1)[0])
        width = max(2, n_rows.bit_length())
        if self.threshold >= 1 << width:
            return n_rows, [], []
        lane = session.lane("decide")
        limits, values = None if found is None else found[1], self.counts[session.me]
        shares = await decided(lane, keyed, values, self.two, limits, self.threshold, width)
        reached = shares and shares.reached
        verdicts = await open_to_all(lane.lane("verdicts"), reached, "frequent", number, 1)
        frequent = words_of(verdicts, number) != 0
        sums, most = shares and shares.sums.words(frequent), int(frequent.sum())
        decision = decision_on(len(everyone), self.threshold, width)
        planes = await open_to_all(lane.lane("supports"), sums, "supports", most, decision.sum_planes)
        supports = decision.totals(planes, most)
        return n_rows, np.flatnonzero(frequent).tolist(), supports.tolist()

    @property
    def expected(self) -> tuple[int, list[int], list[int]]:
        totals = np.add.reduce(list(self.counts.values()))
        frequent = np.flatnonzero(totals >= self.threshold)
        return sum(self.rows.values()), frequent.tolist(), totals[frequent].tolist()

    def run(self, **options: Any) -> dict[str, Any]:
        return run_parties(self.parties, self.role, declared=self.declared, **options)

    def attacked(self, deviating: Sequence[str], alter: Any, seed: int) -> Ends:
        return run_deviating(self.parties, self.role, deviating, alter, declared=self.declared, seed=seed)


def drawn(parties: int, number: int, rows: int, threshold: int, seed: int = 0, two: Any = TWO) -> Job:
    generator = np.random.default_rng(seed)
    of_rows = generator.integers(0, rows + 1, parties).tolist()
    counts = [generator.integers(0, most + 1, number).tolist() for most in of_rows]
    return Job(of_rows, counts, threshold, two)


# -- results -----------------------------------------------------------------------------------------------------------
@examples(3, 20)
@given(data=st.data())
def test_against_integers(data: st.DataObject) -> None:
    parties = data.draw(st.sampled_from([2, 3, 4]))
    rows = data.draw(st.lists(st.integers(0, 90), min_size=parties, max_size=parties).filter(any))
    number = data.draw(st.integers(1, 21))
    counts = [data.draw(st.lists(st.integers(0, most), min_size=number, max_size=number)) for most in rows]
    threshold = data.draw(st.integers(0, sum(rows)))
    job = Job(rows, counts, threshold, tuple(data.draw(st.permutations(PARTIES[:parties]))[:2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authenticated_sums, "ANDS", data.draw(st.sampled_from([64, 1 << 20])))
        patch.setattr(and_triples, "PIECE", data.draw(st.sampled_from([1000, 1 << 20])))
        assert set(map(repr, job.run().values())) == {repr(job.expected)}


def test_over_grpc() -> None:
    job = drawn(3, 77, 900, 1200, two=("east", "north"))
    assert set(map(repr, job.run(transport="grpc").values())) == {repr(job.expected)}


def test_triples_are_of_ands_and_serve_once() -> None:
    async def role(session: Session) -> Any:
        keyed, witnesses = Keyed(session.lane("keys"), TWO), Witnesses()
        pair, key = keyed.pair, await keyed.key()
        triples = await make_triples(session.lane("triples"), pair, key, witnesses, 300)
        await settle(session.lane("check"), pair, witnesses)
        taken = triples.take(3, 100)
        assert "left" in repr(triples)
        with pytest.raises(InternalError, match="10000 triples were asked for"):
            triples.take(100, 100)
        with pytest.raises(TypeError, match="never copied"):
            triples.__reduce_ex__(2)
        return taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(and_triples, "PIECE", 700)
        found = run_parties(TWO, role)
    a, b, c = (reconstruct_authenticated(each) for each in zip(*found.values(), strict=True))
    assert (c == a & b).all()
    assert 50 < a.sum() < 250


# -- parties that deviate ----------------------------------------------------------------------------------------------
ATTACKED = {2: drawn(2, 11, 30, 25, 7), 3: drawn(3, 11, 30, 40, 8), 4: drawn(4, 5, 30, 50, 9)}
DEVIATING: dict[int, list[tuple[str, ...]]] = {
    2: [("north",), ("south",)],
    3: [("north",), ("south",), ("north", "east"), ("east",)],
    4: [("north", "west"), ("south",), ("east", "west")],
}


def assert_caught_or_right(ends: Ends, deviating: Sequence[str], *expected: object) -> bool:
    """Whether somebody noticed. No honest party is named alone, and whoever has a result has the right one."""
    for found in ends.results.values():
        assert found in expected
    for name, error in ends.errors.items():
        assert error.code in ("E400", "E401", "E402", "E403"), error
        assert error.party is None or error.party in deviating, (name, error)
        assert any(each in error.message for each in deviating), (name, error)
    return bool(ends.errors)


def frames_of(job: Job, deviating: Sequence[str]) -> int:
    counter = OneAltered(-1, 0)
    ends = job.attacked(deviating, counter, 0)
    assert not ends.errors
    assert len(ends.results) == len(job.parties) - len(deviating)
    return counter.sent


def one_attack(parties: int, seed: int, sent: dict[Any, int]) -> bool:
    """One frame altered, of one coalition: which, and how, follows from the seed."""
    chance, job = random.Random(seed), ATTACKED[parties]
    deviating = chance.choice(DEVIATING[parties])
    if (parties, deviating) not in sent:
        sent[parties, deviating] = frames_of(job, deviating)
    alter = OneAltered(chance.randrange(sent[parties, deviating]), seed)
    ends = job.attacked(deviating, alter, seed)
    found = assert_caught_or_right(ends, deviating, job.expected)
    waiting = len(job.parties) - len(deviating) - len(ends.results) - len(ends.errors)
    assert found or not waiting or ends.stopped
    return found


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_one_altered_message_is_noticed_or_changes_nothing(parties: int) -> None:
    """Whichever message, of whichever party; no honest one is ever blamed. By hand: `attacks(…)` with more seeds."""
    assert attacks(parties, range(10)) > 5


def attacks(parties: int, seeds: range) -> int:
    """How many of these attacks were noticed."""
    sent: dict[Any, int] = {}
    return sum(one_attack(parties, seed, sent) for seed in seeds)


def unaltered(frame: Frame) -> list[Frame]:
    return [frame]


class Flipping:
    """Flips a bit of the first frame of a type on some lane."""

    def __init__(self, kind: Any, field: str, lane: str, to: str | None = None) -> None:
        self._kind, self._field, self._lane, self._to, self.done = kind, field, lane, to, False

    def __call__(self, frame: Frame) -> list[Frame]:
        there = frame.type == self._kind.DESCRIPTOR.full_name and self._lane in frame.lane
        if self.done or not there or (self._to is not None and frame.receiver != self._to):
            return [frame]
        self.done = True
        changed, message = Frame(), self._kind.FromString(frame.body)
        changed.CopyFrom(frame)
        octets = bytearray(getattr(message, self._field))
        octets[0] ^= 1
        setattr(message, self._field, bytes(octets))
        changed.body = message.SerializeToString(deterministic=True)
        return [changed]


@pytest.mark.parametrize(
    ("kind", "field", "lane", "words"),
    [
        (HalfGates, "data", "/decide/block 0/triples", "AND triples of south"),
        (MaskedBits, "data", "/decide/block 0/triples/piece 0", "AND triples of south"),
        (MaskedBits, "data", "/decide/block 0/ands", "shares of opened bits of south"),
        (Opening, "values", "/decide/verdicts", "shares of opened bits of south"),
        (Opening, "values", "/decide/supports", "shares of opened bits of south"),
        (CheckOpening, "coin", "/decide/block 0/triples", "south has opened something else"),
        (ExtensionRows, "data", "/decide/block 0/inputs", "south"),
        (BitProof, "sums", "/decide/block 0/proofs", "south has dealt a count that is above its number of rows"),
    ],
)
def test_a_flipped_bit_is_noticed_and_blames_who_flipped_it(kind: Any, field: str, lane: str, words: str) -> None:
    for seed in range(2):  # a half-gate whose bit of x is 0 serves nothing: it is noticed, or was guessed
        alter = Flipping(kind, field, lane)
        ends = ATTACKED[2].attacked(["south"], alter, seed)
        assert alter.done
        if kind is HalfGates and not ends.errors:
            assert ends.results["north"] == ATTACKED[2].expected
            continue
        assert words in ends.errors["north"].message
        assert ends.errors["north"].party == "south"


def test_a_flipped_digest_of_zeros_is_noticed() -> None:
    alter = Flipping(ZerosOpening, "digests", "/decide")
    ends = ATTACKED[3].attacked(["south"], alter, 0)
    assert alter.done
    assert "south has opened something else" in ends.errors["north"].message


def test_a_point_of_the_verifiers_own_choice_makes_it_refuse_alone() -> None:
    """South tells another point than it drew: it holds a right proof for false, and north sees nothing of that."""
    alter = Flipping(ProofPoint, "point", "/decide")
    ends = ATTACKED[2].attacked(["south"], alter, 0)
    assert alter.done
    assert "north" not in ends.errors


def test_a_flipped_share_passes_with_no_tag_that_was_not_changed_by_the_key() -> None:
    """Of one bit: all tags but the right one of 2^64 are noticed; some of them, in both directions."""
    generator = np.random.default_rng(3)
    keys = generator.integers(0, 2**64, 2, np.uint64)
    keys[0] |= np.uint64(1)
    keys[1] &= np.uint64(2**64 - 2)
    bit, tag = np.array([[1]], np.uint8), generator.integers(0, 2**64, (1, 1), np.uint64)
    one = AuthenticatedBits(bit, tag, keys[0], "north", TWO)
    other = AuthenticatedBits(bit ^ 1, tag ^ keys[0] ^ keys[1], keys[1], "south", TWO)
    assert (reconstruct_authenticated([one, other]) == 1).all()
    for change in [0, int(keys[0]), *(1 << place for place in range(64))]:
        forged = AuthenticatedBits(bit ^ 1, tag ^ np.uint64(change), keys[0], "north", TWO)
        with pytest.raises(ValueError, match="a tag is not"):
            reconstruct_authenticated([forged, other])
    right = AuthenticatedBits(bit ^ 1, tag ^ keys[0] ^ keys[1], keys[0], "north", TWO)
    assert (reconstruct_authenticated([right, other]) == 0).all()


@pytest.mark.parametrize("cheat", ["north", "south"])
@pytest.mark.parametrize("flipped", [0, 17, 54])
def test_a_computing_party_cannot_change_anothers_counts(
    cheat: str, flipped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It authenticates another share than it was dealt, and goes on with it: nothing but the hash can tell."""
    real = inputs.bound

    async def changed(session: Session, pair: Any, key: Any, bits: Any, of_peer: Any, dealt: Any) -> Any:
        if session.me == cheat and "/decide" in session.path:
            dealt = {name: each._replace(bits=each.bits.copy()) for name, each in dealt.items()}
            dealt["east"].bits[flipped] ^= 1
        return await real(session, pair, key, bits, of_peer, dealt)

    monkeypatch.setattr(authenticated_sums, "bound", changed)
    ends = ATTACKED[3].attacked([cheat], unaltered, 1)
    assert not ends.results
    (honest,) = {"north", "south"} - {cheat}
    assert "contradict each other on the counts that east has dealt" in ends.errors[honest].message
    assert cheat in ends.errors[honest].message
    assert ends.errors[honest].party is None


@pytest.mark.parametrize(("kind", "field"), [(DealtShare, "hash"), (DealtShare, "hash_key"), (DealtShare, "mask")])
def test_a_dealer_whose_hash_does_not_fit_is_named_with_the_other_holder(kind: Any, field: str) -> None:
    alter = Flipping(kind, field, "/decide", to="north")
    ends = ATTACKED[3].attacked(["east"], alter, 2)
    assert alter.done
    assert not ends.results
    assert all(error.party in (None, "east") for error in ends.errors.values())
    assert any("contradict" in error.message and "east" in error.message for error in ends.errors.values())


def test_a_hash_that_is_not_authenticated_is_noticed() -> None:
    """Told as the dealer has said it, by a holder that knows it from the dealer, on another share: see above; and told
    wrong, it is refused at once."""
    alter = Flipping(ShareHashes, "hashes", "/decide")
    ends = ATTACKED[3].attacked(["south"], alter, 2)
    assert alter.done
    assert "south" in ends.errors["north"].message


@pytest.mark.parametrize(("cheat", "party"), [("south", "south"), ("east", None)])
@pytest.mark.parametrize("kind", ["too many", "all ones"])
def test_counts_out_of_range_are_refused(cheat: str, party: str | None, kind: str) -> None:
    """−1 is the largest number of so many bits. Who computes is named; of another the peer could make it appear so."""
    job = drawn(3, 5, 9, 7, 3)
    job.counts[cheat] = job.counts[cheat].copy()
    job.counts[cheat][3] = job.rows[cheat] + 1 if kind == "too many" else 15
    ends = job.attacked([cheat], unaltered, 1)
    assert not ends.results
    error = ends.errors["north"]
    assert "above its number of rows" in error.message
    assert cheat in error.message
    assert error.party == party


def test_a_computing_party_that_makes_counts_appear_too_high_blames_nobody_else_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = authenticated_sums.settle

    async def changed(session: Session, pair: Any, witnesses: Any, zeros: Any = ()) -> Any:
        if session.me == "south" and zeros:
            flipped = replace(zeros[-1], values=zeros[-1].values ^ np.uint8(1))
            zeros = [*zeros[:-1], flipped]
        return await real(session, pair, witnesses, zeros)

    monkeypatch.setattr(authenticated_sums, "settle", changed)
    ends = drawn(3, 5, 9, 7, 3).attacked(["south"], unaltered, 1)
    assert not ends.results
    assert ends.errors["north"].party is None
    assert "south" in ends.errors["north"].message


@pytest.mark.parametrize("cheat", ["north", "south"])
def test_a_computing_party_that_deals_another_carry_or_borrow_is_named(
    cheat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The highest carry of the first of the two would turn its verdicts over."""
    real = Threshold.known

    def changed(self: Threshold, values: Any, limit: int, first: bool) -> Any:
        planes = real(self, values, limit, first)
        planes[-1] ^= np.uint8(first == (cheat == TWO[0]))
        return planes

    monkeypatch.setattr(Threshold, "known", changed)
    ends = drawn(3, 5, 9, 7, 3).attacked([cheat], unaltered, 1)
    assert not ends.results
    (honest,) = set(TWO) - {cheat}
    assert ends.errors[honest].party == cheat


def test_two_that_tell_others_different_things_are_both_named() -> None:
    alter = Flipping(Opening, "values", "/decide/verdicts", to="east")
    ends = ATTACKED[3].attacked(["south"], alter, 4)
    assert alter.done
    assert "north and south contradict each other on what is opened" in ends.errors["east"].message


# -- soundness ---------------------------------------------------------------------------------------------------------
@examples(20, 100)
@given(st.integers(1, 10**7))
def test_buckets_are_as_few_as_are_enough(number: int) -> None:
    found = buckets_for(number)
    assert found.number >= number
    assert is_enough(found.number, found.size)
    assert found.number == number or not is_enough(found.number - 1, found.size)
    assert found.number ** (found.size - 1) <= 2**40 or not is_enough(found.number, found.size - 1)
    assert sum(pieces(found.leaky)) == found.leaky


def test_buckets_are_never_larger_than_those_of_the_papers_rounded_bound() -> None:
    for bits, size in ((10, 5), (13, 5), (14, 4), (19, 4), (20, 3), (39, 3), (40, 2)):
        assert is_enough(1 << bits, size)


@pytest.mark.parametrize("number", [320, 1024, 3044, 10_322, 276_325, 1 << 20])
def test_no_number_of_guesses_leaves_a_leaky_bucket_more_often_than_was_said(number: int) -> None:
    """t leaky triples pass together with probability 2^-t, and fill one of the buckets with n·C(t, B) / C(nB, B)."""
    buckets = buckets_for(number)
    assert buckets.number == number
    for guesses in range(buckets.size, 400):
        filled = comb(guesses, buckets.size) * number * 2**40
        assert filled <= comb(buckets.leaky, buckets.size) * 2**guesses


def test_a_half_gate_that_is_wrong_passes_half_of_the_time() -> None:
    """As the paper says: a leaky triple tells its x to who guesses it. 400 at once, of which few are altered."""
    passed, runs = 0, 40
    for seed in range(runs):
        alter = Flipping(HalfGates, "data", "/triples")

        async def role(session: Session) -> bool:
            keyed = Keyed(session.lane("keys"), TWO)
            await make_triples(session.lane("triples"), keyed.pair, await keyed.key(), Witnesses(), 30)
            return True

        ends = run_deviating(TWO, role, ["south"], alter, declared=(), seed=seed)
        passed += "north" in ends.results
    assert abs(passed - runs / 2) < 5 * (runs / 4) ** 0.5  # an error of 10^-6


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("real_groups")
@pytest.mark.parametrize(("parties", "width", "number"), [(2, 14, 900), (3, 14, 2_000), (3, 9, 100), (4, 12, 300)])
def test_bytes_and_rounds_are_as_planned(parties: int, width: int, number: int) -> None:
    names = PARTIES[:parties]
    counts = np.zeros(number, np.uint64)
    everyone = frozenset(names)

    async def part(lane: Session, _: Any, __: Any) -> None:
        keyed = Keyed(lane.lane("keys"), TWO) if lane.me in TWO else None
        found = await summed(lane.lane("rows"), keyed, np.array([1], np.uint64), TWO, width)
        shares = await decided(lane, keyed, counts, TWO, found and found[1], 3, width)
        await opened(
            lane.lane("open"),
            keyed,
            None if shares is None else shares.reached,
            label="bits",
            holders=TWO,
            number=number,
            width=1,
            to=names,
        )

    traffic = Traffic(names)
    keys_traffic(traffic, TWO)
    summed_traffic(traffic, TWO, number=1, width=width)
    decided_traffic(traffic, TWO, number=number, threshold=3, width=width)
    opened_traffic(traffic, TWO, names, number=number, width=1)
    assert_planned(traffic, costs_of(names, part, declared=[Declared("bits", everyone, "", number, "")]), range(-3, 3))


def test_ands_are_counted() -> None:
    for parties, threshold, number, steps in ((2, 50, 6, 6), (2, 9000, 14, 14), (3, 50, 42, 15)):
        planes = decision_planes(parties, decision_on(parties, threshold, 14))
        assert (sum(planes), len(planes)) == (number, steps)
    found = [part.stop - part.start for part in blocks(60_000, 3, decision_on(3, 50, 14))]
    assert found == [24_967, 24_967, 10_066]
    assert [part.stop - part.start for part in blocks(90_000, 2, decision_on(2, 50, 14))] == [89_240, 760]


# -- what the parties see ----------------------------------------------------------------------------------------------
def test_views_are_uniform_and_alike_whatever_the_others_hold() -> None:
    """Runs with equal verdicts and other counts; a party's own are the same in all."""
    number, runs = 1 << 9, []
    for seed, others in enumerate([0, 5, 20]):
        job = Job([40] * 3, [[7] * number, [others] * number, [others // 2] * number], 100)
        frames: list[Frame] = []
        job.run(seed=seed, observe=below("/decide/block", frames))
        views: dict[tuple[str, str, str], list[bytes]] = defaultdict(list)
        for frame in frames:
            if any(kind in frame.type for kind in ("DealtPlanes", "MaskedBits", "HalfGates", "ExtensionRows")):
                views[frame.receiver, frame.sender, frame.type].append(frame.body[8:])
        runs.append({key: np.frombuffer(b"".join(parts), np.uint8) for key, parts in views.items()})
    assert {receiver for receiver, _, _ in runs[0]} == set(TWO)
    for run in runs:
        assert run.keys() == runs[0].keys()
        for key, octets in run.items():
            assert_uniform(octets)
            assert_alike(octets, runs[0][key])


def test_frames_are_the_same_whatever_the_outcome() -> None:
    shapes = []
    for value in (0, 9):
        job, frames = Job([9] * 3, [[value] * 100] * 3, 27), list[Frame]()
        job.run(observe=below("/decide/block", frames))
        shapes.append(sorted((f.sender, f.receiver, f.lane, f.type, len(f.body)) for f in frames))
    assert shapes[0] == shapes[1]


# -- misuse ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cheat", "kind"),
    [
        ("east", "DealtShare"),
        ("east", "DealtPlanes"),
        ("north", "HashKeys"),
        ("south", "ShareHashes"),
        ("north", "HalfGates"),
        ("south", "MaskedBits"),
        ("north", "CheckCommitment"),
        ("south", "CheckOpening"),
        ("north", "ZerosOpening"),
        ("south", "ProofPoint"),
        ("north", "BitProof"),
    ],
)
def test_messages_of_another_size_end_the_job_and_name_the_sender(cheat: str, kind: str) -> None:
    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if frame.type == f"comine.v1.{kind}" and "/decide" in frame.lane:
            changed.body = b""
        return [changed]

    ends = ATTACKED[3].attacked([cheat], alter, 2)
    assert ends.errors
    assert {(error.code, error.party) for error in ends.errors.values()} == {("E402", cheat)}


def test_shares_of_bits_reconstruct_after_all_that_is_done_to_them() -> None:
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 2**64, 2, np.uint64)
    value, part = generator.integers(0, 2, (2, 3, 5), np.uint8)
    tags = generator.integers(0, 2**64, (3, 5), np.uint64)
    shares = [
        AuthenticatedBits(part, tags, keys[0], "north", TWO),
        AuthenticatedBits(part ^ value, tags ^ value * (keys[0] ^ keys[1]), keys[1], "south", TWO),
    ]
    public = generator.integers(0, 2, (3, 5), np.uint8)

    def of(change: Any) -> Any:
        return reconstruct_authenticated([change(share) for share in shares])

    which = np.array([True, False, True, True, False])
    assert (of(lambda s: s.inverted()) == value ^ 1).all()
    assert (of(lambda s: s.plus_public(public)) == value ^ public).all()
    assert (of(lambda s: s.times_public(public)) == value & public).all()
    assert (of(lambda s: s.constant(1)) == 1).all()
    assert not of(lambda s: s.constant(0)).any()
    assert not of(lambda s: s ^ s).any()
    assert (of(lambda s: s.words(which)) == value[:, which]).all()
    assert (of(lambda s: s.spread(2)) == value[:, :1]).all()
    assert (of(lambda s: s.reshaped(5)) == value.reshape(5, 3)).all()
    order = np.array([2, 0])
    assert (of(lambda s: s.bits(order)) == value[order]).all()
    assert (of(lambda s: s.replaced(order, s.bits(slice(0, 2)))) == value[[1, 1, 0]]).all()
    assert (of(lambda s: AuthenticatedBits.joined([s, s])) == np.concatenate([value, value], axis=1)).all()
    assert "3 planes" in repr(shares[0])
    with pytest.raises(TypeError, match="different holders"):
        shares[0] ^ shares[1]
    with pytest.raises(TypeError, match="its like alone"):
        shares[0] ^ 1  # type: ignore[operator]
    with pytest.raises(ValueError, match="do not match"):
        shares[0] ^ shares[0].words(which)
    for values, of_tags in ((part.astype(np.int64), tags), (part, tags[:2])):
        with pytest.raises(TypeError, match="an authenticated share"):
            AuthenticatedBits(values, of_tags, keys[0], "north", TWO)


def test_keys_have_lowest_bits_that_differ() -> None:
    async def role(session: Session) -> int:
        return int(await Keyed(session.lane("keys"), TWO).key()) & 1

    assert run_parties(TWO, role) == {"north": 1, "south": 0}


def test_triples_are_a_stock() -> None:
    empty = AuthenticatedBits(np.zeros((1, 0), np.uint8), np.zeros((1, 0), np.uint64), np.uint64(1), "north", TWO)
    assert repr(Triples(empty, empty, empty)) == "<Triples, 0 left>"

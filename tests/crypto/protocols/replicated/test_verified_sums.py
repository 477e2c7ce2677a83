"""Sums against a threshold, decided among three of whom one may deviate: results, attacks, costs, views."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated_bits import ReplicatedBits, reconstruct_replicated_bits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.replicated import and_proofs, circuits, verified_ands, verified_sums, verified_total
from crypto.protocols.replicated.crosschecks import opened
from crypto.protocols.replicated.dealing import sent_in_full
from crypto.protocols.replicated.evidence import commitment_of
from crypto.protocols.replicated.verified_costs import ands, decided_traffic, opened_traffic, total_traffic
from crypto.protocols.replicated.verified_sums import decided, decision_planes
from crypto.protocols.replicated.verified_total import dealt_of_number, opened_total, total_planes
from crypto.protocols.sums.pairwise import agree
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.verified_pb2 import DealtCommitments, DealtKey, MaskedOperandSums, ProofDigest, ProofFingerprints
from tests.crypto.protocols.replicated.deviating_world import Ends, OneAltered, run_deviating
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform
from tests.examples import examples
from tests.traffic import assert_planned, costs_of
from tests.world import below, run_parties

PARTIES = ("north", "south", "east", "west", "upper", "lower", "middle")
THREE = PARTIES[:3]
Vectors = dict[str, NDArray[np.uint64]]


class Job:
    """Rows and counts of some parties, and what each does: it opens the number of rows, verdicts and frequent sums."""

    def __init__(self, rows: Sequence[int], counts: Sequence[Sequence[int]], threshold: int, three: Any) -> None:
        self.parties, self.threshold, self.three = PARTIES[: len(rows)], threshold, three
        self.rows = dict(zip(self.parties, rows, strict=True))
        self.counts: Vectors = {
            name: np.array(each, np.uint64) for name, each in zip(self.parties, counts, strict=True)
        }
        self.declared = [
            Declared(label, frozenset(self.parties), "", 10**6, "") for label in ("rows", "frequent", "supports")
        ]

    async def role(self, session: Session) -> tuple[int, list[int], list[int]]:
        secrets, number, everyone = await agree(session), len(self.counts[session.me]), session.parties
        ours = self.rows[session.me]
        n_rows, limits = await opened_total(session.lane("rows"), secrets, ours, self.three, 20, label="rows")
        width = max(2, n_rows.bit_length())
        if self.threshold >= 1 << width:
            return n_rows, [], []
        lane = session.lane("decide")
        values = self.counts[session.me]
        shares = await decided(lane, secrets, values, self.three, ours, limits, self.threshold, width)
        verdicts = await opened(
            lane,
            None if shares is None else shares.reached,
            label="frequent",
            holders=self.three,
            number=number,
            width=1,
            to=everyone,
        )
        assert verdicts is not None
        frequent = words_of(verdicts, number) != 0
        sums = await opened(
            lane.lane("supports"),
            None if shares is None else shares.sums.words(frequent),
            label="supports",
            holders=self.three,
            number=int(frequent.sum()),
            width=width,
            to=everyone,
        )
        assert sums is not None
        return n_rows, np.flatnonzero(frequent).tolist(), words_of(sums, int(frequent.sum())).tolist()

    @property
    def expected(self) -> tuple[int, list[int], list[int]]:
        totals = np.add.reduce(list(self.counts.values()))
        frequent = np.flatnonzero(totals >= self.threshold)
        return sum(self.rows.values()), frequent.tolist(), totals[frequent].tolist()

    def run(self, **options: Any) -> dict[str, Any]:
        return run_parties(self.parties, self.role, declared=self.declared, **options)

    def attacked(self, deviating: Sequence[str], alter: Any, seed: int) -> Ends:
        return run_deviating(self.parties, self.role, deviating, alter, declared=self.declared, seed=seed)


def drawn(parties: int, number: int, rows: int, threshold: int, seed: int = 0, three: Any = THREE) -> Job:
    generator = np.random.default_rng(seed)
    of_rows = generator.integers(0, rows + 1, parties).tolist()
    counts = [generator.integers(0, most + 1, number).tolist() for most in of_rows]
    return Job(of_rows, counts, threshold, three)


# -- results -----------------------------------------------------------------------------------------------------------
@examples(3, 20)
@given(data=st.data())
def test_against_integers(data: st.DataObject) -> None:
    parties = data.draw(st.sampled_from([3, 4, 7]))
    rows = data.draw(st.lists(st.integers(0, 90), min_size=parties, max_size=parties).filter(any))
    number = data.draw(st.integers(1, 21))
    counts = [data.draw(st.lists(st.integers(0, most), min_size=number, max_size=number)) for most in rows]
    threshold = data.draw(st.integers(0, sum(rows)))
    job = Job(rows, counts, threshold, tuple(data.draw(st.permutations(PARTIES[:parties]))[:3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified_sums, "FEW", data.draw(st.sampled_from([0, 100])))
        patch.setattr(verified_sums, "BLOCK", data.draw(st.sampled_from([8, 16, 100])))
        assert set(map(repr, job.run().values())) == {repr(job.expected)}


def test_over_grpc() -> None:
    job = drawn(4, 77, 900, 1200, three=("west", "north", "east"))
    assert set(map(repr, job.run(transport="grpc").values())) == {repr(job.expected)}


def plain(planes: Any) -> ReplicatedBits:
    return ReplicatedBits(planes, np.zeros_like(planes), "0", ("0", "1", "2"))


def clear(circuit: Any) -> Any:
    try:
        x, y = next(circuit)
        while True:
            x, y = circuit.send(plain(x.own & y.own))
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("parties", [3, 4, 7])
def test_circuits_on_all_sums_against_all_thresholds(parties: int, few: bool) -> None:
    """Evaluated in the clear: components of zero beside the values."""
    width, number = 4, 400
    values = np.random.default_rng(parties).integers(0, 15 // parties + 1, (parties, number)).astype(np.uint64)

    numbers = [plain(planes_of(each, width)) for each in values]
    sums = values.sum(axis=0)
    for threshold in range(16):
        found, reached = clear(circuits.reaching_sums(numbers, threshold, few=few))
        assert (words_of(found.own, number) == sums).all()
        assert (words_of(reached.own, number) == (sums >= threshold)).all()


def test_borrows_tell_whether_numbers_are_within_limits() -> None:
    """In the clear, all numbers of four bits and all limits; and no other borrows let a number above its limit pass."""
    width, numbers = 4, np.arange(16, dtype=np.uint64)
    x = plain(planes_of(numbers, width))
    for most in range(16):
        limit = plain(planes_of(np.full(16, most, np.uint64), width))
        dealt = verified_sums.borrowing(numbers, most, width)
        assert (dealt[:width] == x.own).all()
        found = clear(circuits.beyond([x], [plain(dealt[width:])], [limit]))
        assert ((words_of(found.own, 16) == 0) == (numbers <= most)).all()
        for claimed in range(8):
            borrows = plain(planes_of(np.full(16, claimed, np.uint64), width - 1))
            found = clear(circuits.beyond([x], [borrows], [limit]))
            assert (words_of(found.own, 16)[numbers > most] != 0).all()


# -- parties that deviate ----------------------------------------------------------------------------------------------
ATTACKED = {3: drawn(3, 11, 30, 40, 7), 4: drawn(4, 11, 30, 50, 8)}
HELD = {name: (place, (place + 1) % 3) for place, name in enumerate(THREE)}
DEVIATING: dict[int, list[tuple[str, ...]]] = {
    3: [("north",), ("south",), ("east",)],
    4: [("north",), ("south", "west"), ("east",), ("west",)],
}


def assert_caught_or_right(ends: Ends, deviating: Sequence[str], *expected: object) -> bool:
    """Whether somebody noticed. No honest party is named alone, and whoever has a result has the right one."""
    for found in ends.results.values():
        assert found in expected
    for name, error in ends.errors.items():
        assert error.code in ("E400", "E401", "E402", "E403"), error
        assert error.party is None or error.party in deviating, (name, error)
        assert any(each in error.message for each in deviating), (name, error)
    for found in ends.evidence.values():
        assert all(words.origin.sender in deviating for each in found for words in each.words)
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
    # Where one of them lies to another, that one may end the job by itself.
    assert found or not waiting or alter.receiver in deviating
    return found


@pytest.mark.parametrize("parties", [3, 4])
def test_one_altered_message_is_noticed_or_changes_nothing(parties: int) -> None:
    """Whichever message, of whichever party; no honest one is ever blamed. By hand: `attacks(…)` with more seeds."""
    assert attacks(parties, range(14)) > 10


def attacks(parties: int, seeds: range) -> int:
    """How many of these attacks were noticed."""
    sent: dict[Any, int] = {}
    return sum(one_attack(parties, seed, sent) for seed in seeds)


def unaltered(frame: Frame) -> list[Frame]:
    return [frame]


@pytest.mark.parametrize("cheat", THREE)
@pytest.mark.parametrize("seed", range(4))
def test_an_and_that_is_wrong_from_the_start_is_noticed(cheat: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The party adds a bit to its part and goes on with it, so that no two views differ; nothing is opened after it."""
    real, told, calls, chance = ReplicatedBits.local_and, verified_ands.are_zeros, [0], random.Random(seed)
    step = chance.randrange(8)

    def adding(self: ReplicatedBits, other: ReplicatedBits) -> Any:
        part = real(self, other)
        if self.holder == cheat:
            calls[0] += 1
            if calls[0] == step + 1:
                part.reshape(-1)[chance.randrange(part.size)] ^= 1 << chance.randrange(8)
        return part

    def are_zeros(*of: Any) -> Any:
        assert calls[0] <= step, "limits are looked at though an AND is wrong"
        return told(*of)

    monkeypatch.setattr(ReplicatedBits, "local_and", adding)
    monkeypatch.setattr(verified_ands, "are_zeros", are_zeros)
    job = ATTACKED[3]
    ends = job.attacked([cheat], unaltered, seed)
    assert assert_caught_or_right(ends, [cheat], job.expected)
    assert all("an AND" in error.message for error in ends.errors.values())
    assert not ends.results


@pytest.mark.parametrize("cheat", ["west", "south"])
@pytest.mark.parametrize("plane", [0, 12, 20, 83, 84, 146, 147, 209])
def test_two_numbers_dealt_as_one_are_refused_by_name(cheat: str, plane: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of the number, of its word or of a carry is another than it has to be; nothing is opened."""
    real = verified_total.completing
    job = drawn(4, 5, 9, 7, 3)

    def wrong(numbers: Any, width: int) -> Any:
        if int(numbers[0]) != job.rows[cheat]:
            return real(numbers, width)

        def rest(one: Any, other: Any) -> Any:
            found = real(numbers, width)(one, other)
            found[plane] ^= 1
            return found

        return rest

    job.rows = {name: place + 20 for place, name in enumerate(job.parties)}
    monkeypatch.setattr(verified_total, "completing", wrong)
    ends = job.attacked([cheat], unaltered, 1)
    assert not ends.results
    caught = [error for name, error in ends.errors.items() if name in job.three]
    assert len(caught) == 3 - (cheat in job.three)
    assert {error.party for error in caught} == {cheat}
    assert all("two different numbers" in error.message for error in caught)


def test_a_number_is_the_same_in_both_forms_whatever_its_components_are() -> None:
    """In the clear, for random components: planes that tell of differences are zero, and the word is the number."""
    width = 56
    for seed, value in enumerate([0, 1, 2**56 - 1, 2**55, 123456789]):
        parts = np.random.default_rng(seed).integers(0, 256, (2, dealt_of_number(width), 1)).astype(np.uint8)
        numbers = np.zeros(8, np.uint64)
        numbers[0] = value
        parts = [*parts, verified_total.completing(numbers, width)(*parts)]
        shares = [ReplicatedBits(parts[k], parts[(k + 1) % 3], THREE[k], THREE) for k in range(3)]
        steps = [verified_total.differences([share]) for share in shares]
        operands = [next(step) for step in steps]
        x, y = (reconstruct_replicated_bits([each[side] for each in operands]) for side in range(2))
        ands = [ReplicatedBits(*_trivial(x & y, place), THREE[place], THREE) for place in range(3)]
        assert not reconstruct_replicated_bits([_end(step, each) for step, each in zip(steps, ands, strict=True)]).any()
        words = [words_of(part[width : width + 64], 1) for part in parts]
        assert (words[0] + words[1] + words[2])[0] == value
        assert words_of((parts[0] ^ parts[1] ^ parts[2])[:width], 1)[0] == value


def _trivial(planes: Any, place: int) -> tuple[Any, Any]:
    """A holder's components of planes that are component 0."""
    none = np.zeros_like(planes)
    return (planes if place == 0 else none), (planes if place == 2 else none)


def _end(circuit: Any, ands: Any) -> Any:
    try:
        circuit.send(ands)
    except StopIteration as end:
        return end.value
    raise AssertionError("it takes one step")


@pytest.mark.parametrize(("cheat", "deviating"), [("west", ["west"]), ("south", ["south"]), ("west", ["east", "west"])])
@pytest.mark.parametrize("kind", ["too many", "all ones"])
def test_counts_out_of_range_are_refused_by_name(cheat: str, deviating: list[str], kind: str) -> None:
    """−1 is the largest number of so many bits."""
    job, honest = drawn(4, 5, 9, 7, 3), drawn(4, 5, 9, 7, 3)
    job.counts[cheat] = job.counts[cheat].copy()
    job.counts[cheat][3] = job.rows[cheat] + 1 if kind == "too many" else 15
    ends = job.attacked(deviating, unaltered, 1)
    assert not ends.results
    caught = [error for name, error in ends.errors.items() if name in job.three]
    assert len(caught) == 3 - len({*deviating} & {*job.three})
    assert {error.party for error in caught} == {cheat}
    assert honest.run(seed=1)["north"] == honest.expected


def test_a_dealer_that_gives_two_holders_different_counts_is_noticed_before_any_proof_is() -> None:
    job = ATTACKED[4]
    ends = job.attacked(["west"], other_counts_for("south"), 5)
    assert not ends.results
    assert assert_caught_or_right(ends, ["west"], None)
    assert {error.party for error in ends.errors.values()} == {"west"}
    assert set(ends.errors) >= {"south", "north"}


def other_counts_for(holder: str) -> Any:
    """Deals another component to a holder, with the commitment that fits."""
    key = bytes(32)

    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if frame.receiver == holder and "/decide" in frame.lane:
            if frame.type == DealtCommitments.DESCRIPTOR.full_name:
                dealt = DealtCommitments.FromString(frame.body)
                part = (dealt.in_full + 2) % 3  # of two parts at most this holder gets one by its key
                part = part if part in HELD[holder] else (dealt.in_full + 1) % 3
                each = [dealt.commitments[place : place + 32] for place in range(0, 96, 32)]
                each[part] = commitment_of(key, [])
                dealt.commitments = b"".join(each)
                changed.body = dealt.SerializeToString()
            elif frame.type == DealtKey.DESCRIPTOR.full_name:
                opening = DealtKey.FromString(frame.body)
                in_full = sent_in_full(PARTIES[:4], THREE, frame.sender)
                part = (in_full + 2) % 3
                part = part if part in HELD[holder] else (in_full + 1) % 3
                if opening.component == part:
                    changed.body = DealtKey(component=part, key=key).SerializeToString()
        return [changed]

    return alter


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (MaskedOperandSums, "data"),
        (ProofDigest, "seed"),
        (ProofDigest, "pads"),
        (ProofFingerprints, "seed"),
        (ProofFingerprints, "fingerprints"),
    ],
)
def test_what_is_told_for_a_check_is_refused_whatever_bits_others_have(kind: Any, field: str) -> None:
    """Sums of other rows are noticed as such: else a holder could learn from the outcome what bits it is for."""
    for seed in range(4):
        chance, altered = random.Random(seed), list[str]()

        def alter(frame: Frame, chance: random.Random = chance, altered: list[str] = altered) -> list[Frame]:
            changed = Frame()
            changed.CopyFrom(frame)
            if frame.type == kind.DESCRIPTOR.full_name and "/decide" in frame.lane and not altered:
                message = kind.FromString(frame.body)
                octets = bytearray(getattr(message, field))
                octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
                setattr(message, field, bytes(octets))
                changed.body = message.SerializeToString()
                altered.append(frame.receiver)
            return [changed]

        ends = ATTACKED[3].attacked(["south"], alter, seed)
        assert altered
        assert "contradict" in ends.errors[altered[0]].message
        assert assert_caught_or_right(ends, ["south"], None)


@pytest.mark.parametrize("cheat", THREE)
def test_a_flipped_share_of_a_verdict_names_both_who_have_it(cheat: str) -> None:
    flipped: list[str] = []

    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if frame.type == Opening.DESCRIPTOR.full_name and frame.lane == "/decide":
            opening = Opening.FromString(frame.body)
            opening.values = bytes([opening.values[0] ^ 1]) + opening.values[1:]
            changed.body = opening.SerializeToString(deterministic=True)
            flipped.append(frame.receiver)
        return [changed]

    job = ATTACKED[4]
    ends = job.attacked([cheat], alter, 5)
    assert len(flipped) == 3
    assert not ends.results
    assert all("contradict" in error.message and cheat in error.message for error in ends.errors.values())


# -- soundness ---------------------------------------------------------------------------------------------------------
SEED = bytes(range(32))


def of_three(generator: np.random.Generator, size: int) -> tuple[Any, Any, Any]:
    """Components of x and y at the holders before and after a prover, and the parts of ANDs that it has sent."""
    before, after = (generator.integers(0, 256, (2, size)).astype(np.uint8) for _ in range(2))
    (x, y), (other_x, other_y) = before, after
    return before, after, x & y ^ x & other_y ^ other_x & y


def holds(before: Any, after: Any, parts: Any, common: and_proofs.Common, shift: Any = 0) -> bool:
    """Whether the two find the proof right; the prover adds something to what it shares."""
    size, rows, others = parts.size, and_proofs.in_rows(*before), and_proofs.in_rows(*after)
    proof = and_proofs.products(SEED, np.concatenate([rows, common.masks], axis=1), others) ^ common.share ^ shift
    sums = np.stack([and_proofs.summed_rows(common.sums, *each) for each in zip(rows, common.masks, strict=True)])
    of_before = and_proofs.hashes_of(SEED, before[0] & before[1] ^ parts)
    told = and_proofs.summed_share(common.sums, proof, of_before)
    none = and_proofs.hashes_of(SEED, np.zeros(size, np.uint8))
    expected = and_proofs.products(SEED, sums, others).reshape(told.shape)
    return bool((expected ^ told == and_proofs.summed_share(common.sums, common.share, none)).all())


def test_a_wrong_and_passes_as_often_as_none_of_the_sums_takes_its_row_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two sums: one time in four, and no better where the prover guesses that the first one does."""
    monkeypatch.setattr(and_proofs, "COMBINATIONS", 2)
    generator = np.random.default_rng(5)
    before, after, parts = of_three(generator, 99)
    wrong = parts.copy()
    wrong[50] ^= 4
    passed, guessed, runs = 0, 0, 400
    for seed in range(runs):
        common = and_proofs.drawn(Randomness.from_seed(seed), 99, 0)
        assert holds(before, after, parts, common)
        passed += holds(before, after, wrong, common)
        shift = np.zeros_like(common.share)
        row = 50 // and_proofs.row_bytes(99, len(shift[0]))
        shift[-2, row] = and_proofs.hashes_of(SEED, wrong ^ parts)[row]
        guessed += holds(before, after, wrong, common, shift)
    assert abs(passed - runs / 4) < 6 * (runs / 4) ** 0.5
    assert abs(guessed - runs / 4) < 6 * (runs / 4) ** 0.5


@pytest.mark.parametrize("size", [1, 15, 64, 1_000, 70_001])
def test_every_altered_part_of_a_proof_is_noticed(size: int) -> None:
    generator = np.random.default_rng(size)
    before, after, parts = of_three(generator, size)
    common = and_proofs.drawn(Randomness.from_seed(size), size, 0)
    assert holds(before, after, parts, common)
    for _ in range(3):
        wrong = parts.copy()
        wrong[generator.integers(size)] ^= 1 << generator.integers(8)
        assert not holds(before, after, wrong, common)
    shift = np.zeros_like(common.share)
    shift[-1 - generator.integers(and_proofs.COMBINATIONS), -1, 3] = 1
    assert not holds(before, after, parts, common, shift)


@given(st.integers(1, 10**8))
def test_rows_are_whole_blocks_and_hold_all_ands(size: int) -> None:
    rows = and_proofs.row_count(size)
    assert and_proofs.row_bytes(size, rows) % 16 == 0
    assert 0 <= rows * and_proofs.row_bytes(size, rows) - size < 16 * rows


def test_challenges_differ_by_prover_lane_and_parts() -> None:
    async def role(session: Session) -> list[bytes]:
        parts = np.zeros(3, np.uint8)
        of = verified_ands.challenge
        changed = of(session, "/a", "north", parts | 1)
        return [
            of(session, "/a", "north", parts),
            of(session, "/b", "north", parts),
            of(session, "/a", "south", parts),
            changed,
        ]

    found = run_parties(THREE, role)
    assert found["north"] == found["south"]
    assert len(set(found["north"])) == 4


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("parties", "width", "number"), [(3, 14, 10_000), (3, 17, 900), (4, 9, 3_000), (7, 12, 2_100)])
def test_bytes_and_rounds_are_as_planned(parties: int, width: int, number: int) -> None:
    names = PARTIES[:parties]
    counts = np.zeros(number, np.uint64)
    everyone = frozenset(names)

    async def part(lane: Session, secrets: Any, pairs: Any) -> None:
        _, limits = await opened_total(lane.lane("rows"), secrets, 1, THREE, width, label="bits")
        shares = await decided(lane, secrets, counts, THREE, 1, limits, 3, width)
        await opened(
            lane,
            None if shares is None else shares.reached,
            label="bits",
            holders=THREE,
            number=number,
            width=1,
            to=names,
        )

    traffic = Traffic(names)
    total_traffic(traffic, THREE, width=width)
    decided_traffic(traffic, THREE, number=number, width=width)
    opened_traffic(traffic, THREE, names, number=number, width=1)
    assert_planned(traffic, costs_of(names, part, declared=[Declared("bits", everyone, "", number + 1, "")]))


def test_ands_are_counted() -> None:
    """Known answers: planes of one AND a number, three parties; the fewer steps, the more."""
    for width in (2, 9, 14, 17):
        planes = decision_planes(3, width, False)
        assert sum(planes) == 6 * width - 2
        assert len(planes) == width + 2
    assert len(decision_planes(3, 14, True)) == 7
    assert sum(decision_planes(3, 14, True)) == 135
    assert total_planes(3, 56) == (3 * 2 * 63,)
    assert ands(10_000, 3, 14) == 135 * 10_000
    assert ands(40_000, 3, 14) == 82 * 40_000


# -- what the parties see ----------------------------------------------------------------------------------------------
def test_views_are_uniform_and_alike_whatever_the_others_hold() -> None:
    """Runs with equal verdicts and other counts; a party's own are the same in all."""
    number, runs = 1 << 12, []
    for seed, others in enumerate([0, 5, 20]):
        job = Job([40] * 4, [[7] * number, [others] * number, [others // 2] * number, [1] * number], 100, THREE)
        frames: list[Frame] = []
        job.run(seed=seed, observe=below("/decide/block", frames))
        views: dict[tuple[str, str, str], list[bytes]] = defaultdict(list)
        for frame in frames:
            if any(kind in frame.type for kind in ("DealtBits", "MaskedAnds", "MaskedProof", "MaskedOperandSums")):
                views[frame.receiver, frame.sender, frame.type].append(frame.body[8:])
        runs.append({key: np.frombuffer(b"".join(parts), np.uint8) for key, parts in views.items()})
    assert {receiver for receiver, _, _ in runs[0]} == set(THREE)
    for run in runs:
        assert run.keys() == runs[0].keys()
        for key, octets in run.items():
            assert_uniform(octets)
            assert_alike(octets, runs[0][key])


def test_frames_are_the_same_whatever_the_outcome() -> None:
    shapes = []
    for value in (0, 9):
        job, frames = Job([9] * 3, [[value] * 100] * 3, 27, THREE), list[Frame]()
        job.run(observe=below("/decide/block", frames))
        shapes.append(sorted((f.sender, f.receiver, f.lane, f.type, len(f.body)) for f in frames))
    assert shapes[0] == shapes[1]


# -- misuse ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cheat", "kind"),
    [
        ("west", "DealtCommitments"),
        ("west", "DealtKey"),
        ("west", "DealtBits"),
        ("east", "HeardDealings"),
        ("north", "MaskedAnds"),
        ("east", "MaskedProof"),
        ("south", "MaskedOperandSums"),
        ("north", "ProofFingerprints"),
        ("north", "ProofDigest"),
        ("east", "ProofHolds"),
    ],
)
def test_messages_of_another_size_end_the_job_and_name_the_sender(cheat: str, kind: str) -> None:
    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if frame.type == f"comine.v1.{kind}" and "/decide" in frame.lane:
            changed.body = b""
        return [changed]

    ends = ATTACKED[4].attacked([cheat], alter, 2)
    assert ends.errors
    assert {(error.code, error.party) for error in ends.errors.values()} == {("E402", cheat)}


def test_shares_of_bits_reconstruct_after_all_that_is_done_to_them() -> None:
    planes = np.random.default_rng(1).integers(0, 256, (3, 3, 5)).astype(np.uint8)
    shares = [ReplicatedBits(planes[k], planes[(k + 1) % 3], THREE[k], THREE) for k in range(3)]
    value, public = planes[0] ^ planes[1] ^ planes[2], np.full((3, 5), 0x5A, np.uint8)

    def of(change: Any) -> Any:
        return reconstruct_replicated_bits([change(share) for share in shares])

    which = np.arange(37) % 3 == 0
    assert (of(lambda s: s.inverted()) == ~value).all()
    assert (of(lambda s: s.plus_public(public)) == value ^ public).all()
    assert (of(lambda s: s.constant(1)) == 0xFF).all()
    assert not of(lambda s: s.constant(0)).any()
    assert (words_of(of(lambda s: s.words(which)), int(which.sum())) == words_of(value, 37)[which]).all()
    assert (of(lambda s: s.spread(2)) == np.where(value[:, :1] & 1, 0xFF, 0)).all()
    assert (of(lambda s: s.reshaped(5)) == value.reshape(5, 3)).all()
    order = np.array([2, 0])
    assert (of(lambda s: s.bits(order)) == value[order]).all()
    assert (of(lambda s: s.replaced(order, s.bits(slice(0, 2)))) == value[[1, 1, 0]]).all()
    assert (of(lambda s: ReplicatedBits.joined([s, s])) == np.concatenate([value, value], axis=1)).all()


def test_circuits_have_as_many_ands_as_was_said() -> None:
    async def role(session: Session) -> None:
        secrets = await agree(session)
        share = ReplicatedBits(np.zeros((2, 1), np.uint8), np.zeros((2, 1), np.uint8), session.me, THREE)
        await verified_ands.evaluated(session.lane("x"), secrets, THREE, [circuits.any_of([share, share])], 3)

    with pytest.raises(ValueError, match="other than 3 bytes"):
        run_parties(THREE, role)

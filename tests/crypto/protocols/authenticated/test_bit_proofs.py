"""Proofs about bits that one of two knows: completeness, soundness, what the verifier sees; and the relations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.binary_field import product
from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.authenticated import reconstruct_authenticated
from crypto.primitives.shares.known_bits import KnownBits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.authenticated.bit_proofs import (
    PROOF_MASK_BITS,
    Relations,
    Statement,
    expected_of,
    proof_of,
    proved,
)
from crypto.protocols.authenticated.capped import Capped
from crypto.protocols.authenticated.correlation import keyed_pair
from crypto.protocols.authenticated.thresholds import Threshold
from link.session import Session
from tests.crypto.protocols.two_party_world import assert_uniform
from tests.examples import examples
from tests.world import run_parties

TWO = ("north", "south")
Bits = NDArray[np.uint8]


def known(values: Bits, generator: np.random.Generator, key: np.uint64) -> tuple[KnownBits, KnownBits]:
    """What who knows the bits has, and the other."""
    keys = generator.integers(0, 2**64, values.shape, np.uint64)
    none = np.zeros_like(values)
    return KnownBits(values, keys ^ values * key, np.uint64(0)), KnownBits(none, keys, key)


class Case:
    """Random bits that satisfy relations, but for what is turned over, and masks; of either holder."""

    def __init__(self, seed: int, number: int, wrong: dict[str, tuple[int, int]]) -> None:
        generator = np.random.default_rng(seed)
        self.statements: dict[str, dict[str, Statement]] = {name: {} for name in TWO}
        for prover, verifier in (TWO, TWO[::-1]):
            key = generator.integers(1, 2**64, dtype=np.uint64)
            one, other = generator.integers(0, 2, (2, 3, number), np.uint8)
            rest = one & other
            if prover in wrong:
                rest[wrong[prover]] ^= 1
            mask = generator.integers(0, 2, (1, PROOF_MASK_BITS), np.uint8)
            sides = [known(each, generator, key) for each in (one, other, rest, mask)]
            for place, holder in enumerate((prover, verifier)):
                u, v, w, r = (each[place] for each in sides)
                self.statements[holder][prover] = Statement(Relations(u, v, w), r)

    async def role(self, session: Session) -> bool:
        pair = keyed_pair(session.lane("pair"), TWO)
        of = self.statements[session.me]
        return await proved(session.lane("proofs"), pair, of[pair.me], of[pair.peer])

    def run(self, **options: Any) -> dict[str, bool]:
        found: dict[str, bool] = run_parties(TWO, self.role, **options)
        return found


# -- proofs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [1, 7, 3000])
def test_what_holds_is_proved(number: int) -> None:
    assert Case(number, number, {}).run() == {"north": True, "south": True}


@pytest.mark.parametrize("place", [(0, 0), (1, 500), (2, 999)])
def test_one_violated_relation_is_noticed_by_the_other(place: tuple[int, int]) -> None:
    """A false proof passes with less than 2^-50."""
    assert Case(1, 1000, {"south": place}).run() == {"north": False, "south": True}
    assert Case(2, 1000, {"north": place, "south": (0, 1)}).run() == {"north": False, "south": False}


def holds(prover: Statement, verifier: Statement, point: np.uint64, sums: NDArray[np.uint64]) -> bool:
    second = product(sums[1:], np.array([verifier.mask.key]))
    return bool((sums[:1] ^ second == expected_of(verifier, point)).all())


@examples(20, 100)
@given(st.integers(0, 2**32), st.integers(0, 127))
def test_other_sums_are_noticed(seed: int, bit: int) -> None:
    prover, verifier = (Case(seed, 5, {}).statements[name]["north"] for name in TWO)
    point = np.uint64(seed)
    sums = proof_of(prover, point)
    assert holds(prover, verifier, point, sums)
    sums[bit // 64] ^= np.uint64(1 << bit % 64)
    assert not holds(prover, verifier, point, sums)


@pytest.mark.parametrize("point", [0, 1, 0xDEADBEEF])
def test_sums_tell_nothing_whatever_is_proved(point: int) -> None:
    """Under any point, the second is uniform, and the first what the verifier computes of it, also of 0 and 1."""
    generator, key, runs = np.random.default_rng(point), np.uint64(77), 130
    for ones in (0, 1):
        planes = known(np.full((1, 3), ones, np.uint8), generator, key)
        seen = np.empty(runs, np.uint64)
        for run in range(runs):
            masks = known(generator.integers(0, 2, (1, PROOF_MASK_BITS), np.uint8), generator, key)
            prover, verifier = (
                Statement(Relations(each, each, each), mask) for each, mask in zip(planes, masks, strict=True)
            )
            sums = proof_of(prover, np.uint64(point))
            assert holds(prover, verifier, np.uint64(point), sums)
            seen[run] = sums[1]
        assert_uniform(seen)


# -- what is proved ----------------------------------------------------------------------------------------------------
KINDS = pytest.mark.parametrize("kind", [Threshold, Capped])


def violated(relations: list[Relations]) -> Bits:
    """Where."""
    one, other, rest = Relations.stacked(relations)
    return one.values & other.values ^ rest.values


def bits_of(values: NDArray[np.uint64], width: int) -> Bits:
    return unpack_bits(planes_of(values, width), len(values))


@KINDS
@examples(20, 200)
@given(data=st.data())
def test_relations_hold_of_numbers_within_limits_alone(kind: type[Threshold], data: st.DataObject) -> None:
    width, first = data.draw(st.integers(2, 9)), data.draw(st.booleans())
    top = (1 << width) - 1
    values = np.array(data.draw(st.lists(st.integers(0, top), min_size=1, max_size=9)), np.uint64)
    limit, decision = data.draw(st.integers(0, top)), kind(data.draw(st.integers(0, top)), width)
    generator, key = np.random.default_rng(1), np.uint64(2**63 + 5)
    planes = decision.known(values, limit, first)
    assert len(planes) == decision.known_planes(first)
    of_limit = bits_of(np.full(len(values), limit, np.uint64), width)
    sides = list(zip(known(planes, generator, key), known(of_limit, generator, key), strict=True))
    prover, verifier = (Relations.stacked(decision.relations(*each, first)) for each in sides)
    assert (violated([prover]).any(axis=0) == (values > limit)).all()
    for one, other in zip(prover, verifier, strict=True):
        assert (one.codes == other.codes ^ one.values * key).all()
    at_prover, at_verifier = (decision.summand(own, first) for own, _ in sides)
    shares = [at_prover.shared(np.uint64(12345), "north", TWO), at_verifier.shared(key, "south", TWO)]
    assert (reconstruct_authenticated(shares) == at_prover.values).all()


@KINDS
@examples(20, 200)
@given(data=st.data())
def test_summands_add_up_to_what_tells_whether_sums_reach_the_threshold(
    kind: type[Threshold], data: st.DataObject
) -> None:
    """Sums below 2^width, as those within limits are."""
    width = data.draw(st.integers(2, 9))
    top = (1 << width) - 1
    one = data.draw(st.lists(st.integers(0, top), min_size=1, max_size=9))
    other = [data.draw(st.integers(0, top - value)) for value in one]
    decision = kind(data.draw(st.integers(0, top)), width)
    generator, key = np.random.default_rng(1), np.uint64(5)
    found = []
    for values, first in ((one, True), (other, False)):
        planes = decision.known(np.array(values, np.uint64), top, first)
        summand = decision.summand(known(planes, generator, key)[0], first)
        found.append(words_of(pack_bits(summand.values), len(values)))
    wide, totals = summand.width - 1, np.add(one, other)
    sums = found[0] + found[1]
    assert (sums < 1 << wide + 1).all()
    assert (sums >> np.uint64(wide) == (totals >= decision.value)).all()
    if kind is Threshold:
        assert (decision.totals(planes_of(sums & np.uint64(top), width), len(one)) == totals).all()
    else:
        both = np.concatenate([planes_of(np.array(values, np.uint64), width) for values in (one, other)])
        assert (decision.totals(both, len(one)) == totals).all()
        assert wide == max(1, decision.value.bit_length())


@KINDS
@examples(20, 200)
@given(data=st.data())
def test_whatever_else_is_dealt_violates_a_relation(kind: type[Threshold], data: st.DataObject) -> None:
    """So numbers determine all else: what is added is the constant, and what is capped is capped as it must be."""
    width, first = data.draw(st.integers(2, 7)), data.draw(st.booleans())
    value, limit, threshold = (data.draw(st.integers(0, (1 << width) - 1)) for _ in range(3))
    decision, generator, key = kind(threshold, width), np.random.default_rng(1), np.uint64(9)
    planes = decision.known(np.array([value], np.uint64), limit, first)
    of_limit = known(bits_of(np.array([limit], np.uint64), width), generator, key)[0]
    wrong = data.draw(st.lists(st.integers(width, len(planes) - 1), min_size=1, unique=True))
    planes[wrong] ^= 1
    assert violated(decision.relations(known(planes, generator, key)[0], of_limit, first)).any()


def test_known_bits() -> None:
    generator, key = np.random.default_rng(1), np.uint64(2**64 - 3)
    values, others = generator.integers(0, 2, (2, 3, 5), np.uint8)
    sides = known(values, generator, key)
    more = known(others, generator, key)

    def of(*parts: KnownBits) -> Bits:
        one, other = parts
        assert not other.values.any()
        assert (one.codes == other.codes ^ one.values * key).all()
        return one.values

    assert (of(*(a ^ b for a, b in zip(sides, more, strict=True))) == values ^ others).all()
    assert (of(*(each.inverted() for each in sides)) == values ^ 1).all()
    assert (of(*(each.constant(1) for each in sides)) == 1).all()
    assert not of(*(each.constant(0) for each in sides)).any()
    assert (of(*(each.spread(4) for each in sides)) == values[:, :1]).all()
    assert (of(*(each.words(slice(1, 3)) for each in sides)) == values[:, 1:3]).all()
    assert (of(*(each.reshaped(5) for each in sides)) == values.reshape(5, 3)).all()
    assert (of(*(each.bits(slice(1, 2)) for each in sides)) == values[1:2]).all()
    replaced = (a.replaced(slice(0, 1), b.bits(slice(2, 3))) for a, b in zip(sides, more, strict=True))
    assert (of(*replaced)[0] == others[2]).all()
    stacked = (KnownBits.stacked([a, b]) for a, b in zip(sides, more, strict=True))
    assert (of(*stacked) == np.concatenate([values, others])).all()
    assert repr(sides[0]) == "<KnownBits of 3 planes>"
    for bits, codes in ((values.astype(np.int64), sides[0].codes), (values, sides[0].codes[:2])):
        with pytest.raises(TypeError, match="known bits"):
            KnownBits(bits, codes, key)

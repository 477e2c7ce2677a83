"""Unions by prefixes where parties may deviate: results, attacks, costs, and what is opened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from crypto.protocols.replicated import verified_or as ors
from crypto.protocols.replicated.verified_or import verified_or
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union import verified_union as module
from crypto.protocols.union.prefix_disclosure import declared
from crypto.protocols.union.prefixes import FIRST_BITS
from crypto.protocols.union.verified_union import verified_union, verified_union_traffic
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.replicated.deviating_world import Ends, OneAltered, run_deviating
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right, unaltered
from tests.crypto.protocols.union.test_prefix_costs import asked_of
from tests.errors import fails
from tests.traffic import assert_planned, costs_below
from tests.world import run_parties

NAMES = ("north", "south", "east", "west", "upper")
THREE = NAMES[:3]
LONGEST = 30
Sets = dict[str, list[bytes]]


def sets_of(*given: str, holders: Sequence[str] = NAMES) -> Sets:
    """A party for each word, with an element for each of its letters."""
    return {name: [letter.encode() * 7 for letter in word] for name, word in zip(holders, given, strict=False)}


def pooled(sets: Sets) -> list[bytes]:
    return sorted(set().union(*sets.values()))


def role_of(sets: Sets, three: Any = THREE, **options: Any) -> Any:
    async def role(session: Session) -> list[bytes]:
        named = {"max_element_bytes": LONGEST} | options
        return await verified_union(session, await agree(session), three, sets[session.me], **named)

    return role


def lines_of(sets: Sets) -> Any:
    return declared(tuple(sets), sum(map(len, sets.values())), LONGEST)


def attacked(sets: Sets, deviating: Sequence[str], alter: Any, seed: int) -> Ends:
    return run_deviating(tuple(sets), role_of(sets), deviating, alter, declared=lines_of(sets), seed=seed)


@pytest.mark.parametrize(
    ("sets", "three"),
    [
        (sets_of("abc", "bcd", "e"), THREE),
        (sets_of("", "", ""), THREE),
        (sets_of("ab", "bc", "", "xyz", "a"), ("upper", "north", "west")),
    ],
)
def test_every_party_gets_the_pooled_union(sets: Sets, three: Any) -> None:
    assert run_parties(tuple(sets), role_of(sets, three), declared=lines_of(sets)) == dict.fromkeys(sets, pooled(sets))


def test_a_set_over_the_bound_ends_the_job_and_nobody_is_named() -> None:
    sets = {"north": [b"%d" % number for number in range(65)], "south": [], "east": [b"a"]}
    with fails("E104"):
        run_parties(tuple(sets), role_of(sets, bound=64), declared=lines_of(sets))


def test_ors_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ors, "BLOCK", 16)
    bits = np.random.default_rng(3).integers(0, 2, (4, 37)).astype(np.uint8) & np.uint8(1)

    async def role(session: Session) -> list[int]:
        own = bits[session.parties.index(session.me)]
        return [*map(int, await verified_or(session, await agree(session), own, THREE, label="union"))]

    found = run_parties(NAMES[:4], role, declared=declared(NAMES[:4], 100, LONGEST))
    assert found == dict.fromkeys(NAMES[:4], bits.max(axis=0).tolist())


# -- parties that deviate ----------------------------------------------------------------------------------------------
ATTACKED = sets_of("ab", "bc", "d", "ax")
DEVIATING = (("north",), ("south", "west"), ("west",))


def test_one_altered_message_is_noticed_or_changes_nothing() -> None:
    """Whichever message, of whichever party; no honest one is ever blamed."""
    noticed, sent = 0, dict[Any, int]()
    for seed in range(7):
        chance = random.Random(seed)
        deviating = chance.choice(DEVIATING)
        if deviating not in sent:
            counter = OneAltered(-1, 0)
            assert not attacked(ATTACKED, deviating, counter, 0).errors
            sent[deviating] = counter.sent
        alter = OneAltered(chance.randrange(sent[deviating]), seed)
        noticed += assert_caught_or_right(attacked(ATTACKED, deviating, alter, seed), deviating, pooled(ATTACKED))
    assert noticed > 4


@pytest.mark.parametrize("cheat", ["south", "west"])
@pytest.mark.parametrize("share", [0.001, 0.02, 1.0])
def test_bits_that_a_party_invents_take_no_element_from_others(
    cheat: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It claims prefixes and bits of names that it does not have: all others are named, or the job ends."""
    asked = [0]

    async def inventing(session: Session, secrets: Any, bits: Any, holders: Any, *, label: str) -> Any:
        if session.me == cheat and label == "union":
            asked[0] += 1
            drawn = np.random.default_rng(asked[0]).random(len(bits)) < share
            bits = bits | drawn.astype(np.uint8)
        return await verified_or(session, secrets, bits, holders, label=label)

    monkeypatch.setattr(module, "verified_or", inventing)
    lines = declared(tuple(ATTACKED), 3_000, LONGEST)
    ends = run_deviating(tuple(ATTACKED), role_of(ATTACKED), [cheat], unaltered, declared=lines, seed=1)
    assert bool(ends.results) is (share < 0.01)
    honest = pooled({name: each for name, each in ATTACKED.items() if name != cheat})
    for found in ends.results.values():
        assert set(honest) <= set(found)
    for error in ends.errors.values():
        assert error.code in ("E400", "E401", "E402", "E403", "E404"), error
        assert error.party in (None, cheat)


# -- costs, and what is opened -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("parties", [3, 4])
def test_bytes_and_rounds_are_as_planned(parties: int) -> None:
    names = NAMES[:parties]
    elements = [b"element %d" % number for number in range(30)]
    sets = {name: elements[place::2] for place, name in enumerate(names)}
    frames: list[Frame] = []
    rounds: dict[str, int] = {}

    async def role(session: Session) -> None:
        secrets = await agree(session)
        before = session.costs.rounds
        await verified_union(session, secrets, THREE, sets[session.me], max_element_bytes=LONGEST)
        rounds[session.me] = session.costs.rounds - before

    run_parties(names, role, declared=lines_of(sets), observe=frames.append)
    traffic = Traffic(names)
    verified_union_traffic(traffic, THREE, asked_of(frames, sets))
    assert_planned(traffic, costs_below(names, "/union", frames, rounds))


def test_what_is_opened_follows_from_the_union_whoever_holds_it() -> None:
    """North holds the same in both; the others have changed places."""

    def opened(sets: Sets) -> list[tuple[str, bytes]]:
        frames: list[Frame] = []
        run_parties(tuple(sets), role_of(sets), declared=lines_of(sets), observe=frames.append, seed=4)
        by_lane: dict[str, list[bytes]] = {}
        for frame in frames:
            if frame.type == Opening.DESCRIPTOR.full_name and frame.sender in THREE and frame.receiver in THREE:
                place = (THREE.index(frame.sender), THREE.index(frame.receiver))
                if place in ((0, 1), (1, 2), (2, 0)):  # each component once
                    by_lane.setdefault(frame.lane, []).append(Opening.FromString(frame.body).values)
        return sorted(
            (lane, bytes(np.bitwise_xor.reduce([np.frombuffer(each, np.uint8) for each in parts])))
            for lane, parts in by_lane.items()
        )

    one, other = opened(sets_of("ab", "bcd", "e")), opened(sets_of("ab", "e", "dbc"))
    assert len(one) > 3
    assert one == other
    assert max(len(values) for _, values in one) >= (1 << FIRST_BITS) // 8

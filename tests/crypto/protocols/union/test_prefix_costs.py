"""What the cost functions of unions by prefixes say, against runs."""

from __future__ import annotations

import hashlib

import pytest

from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union import prefixes
from crypto.protocols.union.prefix_costs import AskedBits, pairs_traffic, prefix_union_traffic
from crypto.protocols.union.prefix_disclosure import declared, most_opened
from crypto.protocols.union.prefix_union import prefix_union
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.examples import slowly
from tests.traffic import assert_planned, costs_below, within
from tests.world import NAMES, run_parties

LONGEST = 33


def sets_of(parties: int, elements: int, length: int) -> dict[str, list[bytes]]:
    """Whose union has so many elements."""
    united = [hashlib.sha512(b"%d" % number).digest()[:length] for number in range(elements)]
    return {name: united[place :: parties - 1 or 1] for place, name in enumerate(NAMES[:parties])}


def asked_of(frames: list[Frame], sets: dict[str, list[bytes]]) -> AskedBits:
    """What the questions of a run asked for."""
    asked = {
        frame.lane: Opening.FromString(frame.body).number
        for frame in frames
        if frame.type == Opening.DESCRIPTOR.full_name and "/question" in frame.lane
    }
    return AskedBits(tuple(asked.values()), len(set().union(*sets.values())))


@pytest.mark.parametrize(("parties", "elements", "length"), [(2, 5, 4), (3, 700, 9), (4, 60, 33)])
def test_a_union_sends_what_is_planned(parties: int, elements: int, length: int) -> None:
    sets, frames = sets_of(parties, elements, length), list[Frame]()
    rounds = dict[str, int]()

    async def role(session):
        pairs, secrets = pairs_of(session.lane("pairs")), await agree(session)
        for pair in pairs.values():
            await pair.prepare()
        before = session.costs.rounds
        await prefix_union(session, secrets, pairs, sets[session.me], max_element_bytes=LONGEST)
        rounds[session.me] = session.costs.rounds - before

    run_parties(tuple(sets), role, declared=declared(tuple(sets), elements, LONGEST), observe=frames.append)
    traffic = Traffic(tuple(sets))
    prefix_union_traffic(traffic, asked_of(frames, sets))
    costs = costs_below(tuple(sets), "/union", frames, rounds)
    assert_planned(traffic, costs)


@pytest.mark.parametrize(
    ("elements", "length"), slowly([(0, 4), (40, 4), (400, 12), (3000, 4), (9000, 20)], now=[1, 2])
)
def test_what_is_expected_is_what_is_asked_for(elements: int, length: int) -> None:
    sets, frames = sets_of(2, elements, length), list[Frame]()

    async def role(session):
        pairs = pairs_of(session.lane("pairs"))
        return await prefix_union(session, await agree(session), pairs, sets[session.me], max_element_bytes=LONGEST)

    run_parties(tuple(sets), role, declared=declared(tuple(sets), elements, LONGEST), observe=frames.append)
    asked, expected = asked_of(frames, sets), AskedBits.expected(elements, length, LONGEST)
    assert within(expected.total, asked.total, 1)
    assert abs(len(expected.questions) - len(asked.questions)) <= 2
    assert asked.total <= most_opened(elements, LONGEST)


def test_expectations_of_the_largest_unions_are_numbers() -> None:
    for elements in (0, 1, 1 << 24, 1 << 34):
        asked = AskedBits.expected(elements, 20, 33)
        assert asked.questions[0] == 1 << prefixes.FIRST_BITS
        assert asked.total <= most_opened(elements, 33)


def test_pairs_that_have_agreed_do_so_but_once() -> None:
    every, but_one = Traffic(NAMES[:3]), Traffic(NAMES[:3])
    pairs_traffic(every)
    pairs_traffic(but_one, (NAMES[1], NAMES[0]))
    assert but_one.bytes_sent(NAMES[2]) == every.bytes_sent(NAMES[2])
    assert but_one.bytes_sent(NAMES[0]) < every.bytes_sent(NAMES[0])

"""Sizes tell nobody's set from another's: whoever holds the most, or too much, all else is alike.

Each case moves one thing from holder to holder: the most elements, what is over a limit. Every party
other than the holders, and whoever is told of an error, gets the same kinds, order and sizes of messages and the same
words; points and masked words are fresh in every run, and what they tell is for the tests of these protocols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.alignment.alignment import cardinality, intersection, union
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.alignment.disclosure import declared as aligned
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union.size_classes import LISTS
from link.errors import ConfigurationError, outward
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(3)

Held = Mapping[str, Collection[bytes]]
Role = Callable[[Session], Any]
View = Counter[tuple[object, ...]]

PARTIES = NAMES[:4]
MANY = [b"%016d" % number for number in range(200)]
some = examples(1, 6, suppress_health_check=[HealthCheck.too_slow])


def view(frames: Sequence[Frame], party: str) -> View:
    """Kinds, order and sizes of all that a party receives."""
    return Counter((f.sender, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames if f.receiver == party)


def seen(held: Held, protocol: str, **options: Any) -> tuple[dict[str, View], str]:
    """By party, what it sees of a protocol; and how that ended, as a coordinator is told."""
    frames: list[Frame] = []

    async def role(session: Session) -> None:
        secrets = await agree(session)
        match protocol:
            case "intersection":
                await intersection(session, secrets, sorted(held[session.me]), merger=PARTIES[0], **options)
            case _:
                mode = {"cardinality": cardinality, "positions": union}[protocol]
                pairs = pairs_of(session.lane("pairs"))
                for pair in pairs.values():
                    await pair.prepare()
                await mode(session, secrets, pairs, sorted(held[session.me]), merger=PARTIES[0], **options)

    modes: dict[str, Mode] = {"intersection": "intersection", "cardinality": "cardinality", "positions": "union"}
    lines = aligned(modes[protocol], tuple(held), PARTIES[0], options.get("bound"), protocol)
    told: ConfigurationError | None = None
    try:
        run_parties(tuple(held), role, declared=lines, observe=frames.append, deadline_s=240)
    except ConfigurationError as error:
        told = error
    end = ""
    if told is not None:
        assert told.shareable
        assert told.party is None
        end = outward(told, "north").message.removeprefix("north: ")
        assert not any(name in end for name in held)
    return {party: view(frames, party) for party in held}, end


def alike(worlds: Sequence[Held], holders: Sequence[str], protocol: str, **options: Any) -> str:
    """That no party but the holders of two worlds can tell these apart; how both ended."""
    (one, end), (two, other_end) = (seen(world, protocol, **options) for world in worlds)
    assert end == other_end
    for party in PARTIES:
        if party not in holders:
            assert one[party] == two[party]
    return end


two_holders = st.permutations(PARTIES).map(lambda names: tuple(names[:2]))
PROTOCOLS = ("intersection", "cardinality", "positions")


@some
@given(
    holders=two_holders,
    size=st.sampled_from([1, 5, 64, 65, 81, 150]),
    common=st.integers(0, 3),
    bound=st.sampled_from([None, 150]),
    protocol=st.sampled_from(PROTOCOLS),
)
def test_whoever_holds_the_most(
    holders: tuple[str, str], size: int, common: int, bound: int | None, protocol: str
) -> None:
    """One party has more than the others, or the only element of all."""
    worlds = [{name: MANY[: size if name == holder else min(common, size)] for name in PARTIES} for holder in holders]
    assert alike(worlds, holders, protocol, bound=bound) == ""


@some
@given(holders=two_holders, excess=st.integers(1, 30), bound=st.integers(1, 90), protocol=st.sampled_from(PROTOCOLS))
def test_whoever_holds_more_than_the_bound(holders: tuple[str, str], excess: int, bound: int, protocol: str) -> None:
    """Neither who is over nor by how much is told, to anybody: the holders' views are alike, too."""
    least = LISTS.rounded(bound) + 1
    worlds = [{name: MANY[: least + excess - 1 if name == holder else 1] for name in PARTIES} for holder in holders]
    end = alike(worlds, (), protocol, bound=bound)
    assert "nobody learns which" in end
    assert end == alike([worlds[0], dict.fromkeys(PARTIES, MANY[:least])], (), protocol, bound=bound)


@pytest.mark.turn(4)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_of_a_set_has_left_when_one_is_over_the_bound(protocol: str) -> None:
    """Beside keys and masked words."""
    sets = {name: MANY[: 65 if name == "south" else 1] for name in PARTIES}
    views, _ = seen(sets, protocol, bound=8)
    lanes = {str(lane) for each in views.values() for (_, lane, *_rest) in each}
    lanes = {lane for lane in lanes if not lane.startswith("/pairs/")}  # base transfers, which know of no set
    assert all(lane.endswith(("pairwise", "/sizes", "/length", "hello", "/hello")) or "abort" in lane for lane in lanes)

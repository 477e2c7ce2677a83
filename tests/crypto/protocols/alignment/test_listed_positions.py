"""Positions of what parties list, and of what they hold beside: what comes out, what is seen, what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.alignment.alignment import union_of_listed
from crypto.protocols.alignment.costs import ListedSizes, listed_traffic
from crypto.protocols.alignment.disclosure import placed_of_listed
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union.common_length import declared as of_length
from crypto.protocols.union.size_classes import LISTS
from link.disclosure import Declared
from link.errors import ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.alignment.worlds import HONEST, Held, assert_sends_alike, is_fair, parties_and_rows, sample
from tests.examples import examples, slowly
from tests.faulty_world import run_faulty_parties
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(3)

LABEL = "positions"
Listed = Mapping[str, int]  # by party, how many of the first of its identifiers it lists


def stated(parties: Sequence[str]) -> list[Declared]:
    return [of_length(parties, lists=2), placed_of_listed(parties, LABEL, "rows")]


def run(held: Held, listed: Listed, seed: int = 0, frames: list[Frame] | None = None) -> dict[str, Any]:
    async def role(session: Session) -> tuple[Any, Any]:
        own, number = held[session.me], listed[session.me]
        secrets, pairs = await agree(session), pairs_of(session)
        rows = await union_of_listed(session, secrets, pairs, own[:number], own[number:], merger=NAMES[0], label=LABEL)
        return rows, session.costs

    observe = None if frames is None else frames.append
    return run_parties(tuple(held), role, declared=stated(tuple(held)), seed=seed, observe=observe, deadline_s=240)


def placed(held: Held, listed: Listed, **options: Any) -> dict[str, dict[bytes, int]]:
    """By party and identifier its position, which is one at all parties, and there for what somebody has listed."""
    found = {name: rows for name, (rows, _) in run(held, listed, **options).items()}
    at = {name: {held[name][row]: place for place, row in enumerate(rows) if row >= 0} for name, rows in found.items()}
    everything = {each for name in held for each in held[name][: listed[name]]}
    together: dict[bytes, int] = {}
    for name, own in at.items():
        assert own.keys() == everything & set(held[name])
        assert all(together.setdefault(identifier, place) == place for identifier, place in own.items())
    assert len(set(together.values())) == len(together) == len(everything)
    assert {len(rows) for rows in found.values()} == {len(held) * LISTS.rounded(max(listed.values()))}
    return at


# -- what comes out ----------------------------------------------------------------------------------------------------
@examples(1, 6, suppress_health_check=[HealthCheck.too_slow])
@given(held=parties_and_rows(most=4), draw=st.data())
def test_what_somebody_lists_has_one_position_at_all_who_hold_it(held, draw):
    placed(held, {name: draw.draw(st.integers(0, len(own))) for name, own in held.items()})


def test_long_and_empty_lists():
    held = {"north": sample("x", 90), "south": sample("x", 200, 50), "east": []}
    placed(held, {"north": 0, "south": 70, "east": 0})


# -- what a party sees -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("honest", slowly([0, 1, 2], now=[1]))
def test_messages_to_all_others_have_one_distribution_whatever_a_party_lists_and_holds(honest):
    """The rest of what it holds has no position, or one that others have given it, which does not show."""

    def seen(own: Sequence[bytes]) -> list[Frame]:
        frames = list[Frame]()
        held = {name: sample("common", 9) for name in NAMES[:3]} | {NAMES[honest]: list(own)}
        run(held, dict.fromkeys(held, 3) | {NAMES[honest]: len(own) // 2}, frames=frames)
        return frames

    assert_sends_alike(NAMES[honest], map(seen, HONEST))


def test_positions_of_what_is_looked_up_are_uniform_and_new_in_every_run():
    held = {"north": sample("x", 60), "south": sample("x", 60)}
    places = []
    for seed in range(4):
        at = placed(held, {"north": 60, "south": 0}, seed=seed)["south"]
        places.append([at[identifier] for identifier in held["south"]])
    assert is_fair(np.array(places) >= 64)
    assert len({tuple(each) for each in places}) == 4


def test_all_that_is_opened_is_stated():
    frames, held = list[Frame](), {name: sample("x", 70) for name in NAMES[:3]}
    run(held, dict.fromkeys(held, 20), frames=frames)
    openings = [Opening.FromString(frame.body).label for frame in frames if frame.type.endswith(".Opening")]
    assert set(openings) == {LABEL, SIZES}


# -- costs, and wrong messages -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("numbers", [(900, 700), (100, 20, 100), (30, 30, 30, 30)])
def test_it_sends_what_is_planned(numbers):
    held = {name: sample("x", number) for name, number in zip(NAMES, numbers, strict=False)}
    listed = {name: len(own) // 3 for name, own in held.items()}
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    listed_traffic(traffic, ListedSizes.of(listed, {name: len(own) for name, own in held.items()}), NAMES[0])
    costs = {name: costs for name, (_, costs) in run(held, listed).items()}
    assert_planned(traffic, costs, rounds=range(-3 * len(held), 3))


def test_what_are_no_positions_is_refused():
    held = {"north": sample("x", 9), "south": sample("x", 9, 5)}

    async def role(session: Session) -> Any:
        secrets, pairs = await agree(session), pairs_of(session)
        own = held[session.me]
        return (await union_of_listed(session, secrets, pairs, own[:4], own[4:], merger="north", label=LABEL)).tolist()

    def rewrite(frame: Frame) -> Frame:
        message = Opening.FromString(frame.body) if frame.type.endswith(".Opening") else None
        if message is None or message.label != LABEL or "/others of south" not in frame.lane:
            return frame
        message.values = (np.frombuffer(message.values, "<u4") ^ np.uint32(1 << 20)).tobytes()
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    outcome, _ = run_faulty_parties(tuple(held), role, stated(tuple(held)), rewrite, None)
    assert type(outcome["south"]) is ProtocolViolation
    assert outcome["south"].party == "north"

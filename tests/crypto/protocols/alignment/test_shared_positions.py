"""A position for everything that some party holds: what comes out, what is seen, what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.alignment import choices, matches, shared_positions
from crypto.protocols.alignment import costs as alignment_costs
from crypto.protocols.alignment.alignment import union
from crypto.protocols.alignment.costs import AlignmentSizes, compared_in_turns, row_union_traffic
from crypto.protocols.alignment.disclosure import declared
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import oprf
from crypto.protocols.union.size_classes import LISTS
from link.errors import ComineError, MalformedMessage, PeerError, ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.alignment.worlds import (
    HONEST,
    UNIFORM,
    Held,
    assert_sends_alike,
    changed,
    collected,
    is_fair,
    kind_of,
    parties_and_rows,
    sample,
    world,
)
from tests.examples import crossed, examples, slowly, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(8)

LABEL = "positions"
MERGER = NAMES[0]


def run(held: Held, *, merger: str = MERGER, bound: int | None = None, **options: Any):
    frames = options.get("frames")

    async def role(session: Session):
        rows = await union(
            session, await agree(session), pairs_of(session), held[session.me], merger=merger, bound=bound, label=LABEL
        )
        return rows, session.costs

    return run_parties(
        tuple(held),
        role,
        declared=declared("union", tuple(held), merger, bound, LABEL),
        seed=options.get("seed", 0),
        observe=frames.append if frames is not None else None,
        transport=options.get("transport", "memory"),
        deadline_s=240,
    )


def positions_of(rows: Any, own: Sequence[bytes]) -> dict[bytes, int]:
    """By identifier its position, where a party has all of its rows at one position each."""
    at = {own[row]: int(place) for place, row in enumerate(rows) if row >= 0}
    assert np.count_nonzero(rows >= 0) == len(at) == len(own)
    return at


def placed(held: Held, **options: Any) -> dict[bytes, int]:
    """By identifier its position, which is one at all parties and nobody else's."""
    return joined(held, run(held, **options), options.get("bound"))


def joined(held: Held, found: Mapping[str, Any], bound: int | None = None) -> dict[bytes, int]:
    by_party = {name: positions_of(rows, held[name]) for name, (rows, _) in found.items()}
    together: dict[bytes, int] = {}
    for at in by_party.values():
        assert all(together.setdefault(identifier, place) == place for identifier, place in at.items())
    assert len(set(together.values())) == len(together) == len(set().union(*held.values()))
    length = LISTS.rounded(bound or max(map(len, held.values())))
    assert {len(rows) for rows, _ in found.values()} == {len(held) * length}
    return together


# -- what comes out ----------------------------------------------------------------------------------------------------
@examples(1, 8, suppress_health_check=[HealthCheck.too_slow])
@given(held=parties_and_rows(most=4), place=st.integers(0, 4), bound=st.sampled_from([None, 12, 19]))
def test_every_identifier_has_one_position(held, place, bound):
    placed(held, merger=tuple(held)[place % len(held)], bound=bound)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 90), (64, 64), (1, 0, 1), (1, 300, 3), (5, 1, 0, 2)])
def test_ragged_and_empty_lists(sizes):
    placed({name: sample("row", size) for name, size in zip(NAMES, sizes, strict=False)})


def test_whoever_shares_rows():
    held = {name: sample(name, 3) for name in NAMES[:3]}
    for holders in [(0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        for place in holders:
            held[NAMES[place]] += sample(f"held by {holders}", 3)
    placed(held)


def test_lists_of_several_parts_and_blocks(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    monkeypatch.setattr(choices, "BLOCK", 304)
    placed({name: sample("row", 400, 30 * place) for place, name in enumerate(NAMES[:2])})


def test_over_streams_under_mutual_tls():
    placed({name: sample("row", 30 + place, place) for place, name in enumerate(NAMES[:3])}, transport="grpc")


def test_a_random_word_meets_a_target_at_most_once_in_2_to_40_runs():
    for place in range(LISTS.beyond):
        bins, width = compared_in_turns(AlignmentSizes(3, LISTS.size(place), 0))
        assert 3 * bins * 2**40 <= 2**width or width == 64


# -- what a party sees, and what several see together ------------------------------------------------------------------
def test_positions_are_uniform_whether_others_have_the_row_or_not():
    """Nor does the place of a row in its party's list show in its position."""
    own, places = sample("row", 60), list[Any]()
    held = {"north": own, "south": [*own[:30], *sample("other", 30)]}
    for seed in range(4):
        found = run(held, seed=seed)
        for name in held:
            at = positions_of(found[name][0], held[name])
            places.append([at[identifier] for identifier in held[name]])
    number = 2 * LISTS.rounded(60)
    upper = np.array(places).reshape(4, 2, 60) >= number // 2
    for each in (upper[:, 0], upper[:, 1], upper[..., :30], upper[:, 1, 30:], upper[:, 0, 30:]):
        assert is_fair(each)
    for party in (0, 1):
        assert len({tuple(each) for each in np.array(places).reshape(4, 2, 60)[:, party]}) == 4


@pytest.mark.parametrize(("parties", "honest"), slowly([(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)], now=[0, 1, 2]))
def test_messages_to_all_others_have_one_distribution_whatever_is_not_common(parties, honest):
    def seen(own: Sequence[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        run(world(parties, honest, own), bound=64, frames=frames)
        return frames

    assert_sends_alike(NAMES[honest], map(seen, HONEST[:parties]))


@pytest.mark.parametrize("own", HONEST)
def test_what_a_party_collects_shows_no_identifier_of_the_other(own, monkeypatch):
    """Two words in each bin of its points, all different and fair, whether the other holds the point or not."""
    found = collected(monkeypatch)
    for seed in range(2):
        run(world(2, 0, own), bound=64, seed=seed)
    words = np.array(found)
    assert words.shape[2] == 2
    assert len(np.unique(words)) == words.size
    for some in (words[:, :5], words[:, 5:]):  # the first five are common
        for column in (some[..., 0], some[..., 1]):
            assert is_fair(np.unpackbits(np.ascontiguousarray(column).view(np.uint8)))


@pytest.mark.parametrize("parties", [2, 3])
def test_shares_of_positions_are_uniform_but_for_their_sum(parties, monkeypatch):
    """Of all that a party adds up from bits of others, no n − 1 shares depend on the bits, nor on who has a row."""
    shares = dict[str, list[Any]]()
    times_bit = shared_positions.times_bit

    async def recorded(session: Session, *args: Any) -> Any:
        found = await times_bit(session, *args)
        shares.setdefault(session.me, []).append(found)
        return found

    monkeypatch.setattr(shared_positions, "times_bit", recorded)
    for seed in range(2):
        run(world(parties, 1, HONEST[0]), seed=seed)
    last = {name: np.concatenate(found[-1:]) for name, found in shares.items()}
    for some in last.values():
        assert is_fair(np.unpackbits(np.ascontiguousarray(some).view(np.uint8)))
        assert len(np.unique(some)) > 0.99 * len(some)


def test_two_runs_on_the_same_rows_share_nothing():
    seen: list[set[bytes]] = []
    at: list[Mapping[bytes, int]] = []
    for seed in range(2):
        frames: list[Frame] = []
        at.append(placed(world(2, 1, HONEST[0]), frames=frames, seed=seed))
        bodies = [f.body for f in frames if kind_of(f) in UNIFORM]
        seen.append({body[start : start + 16] for body in bodies for start in range(16, len(body) - 16)})
    assert not seen[0] & seen[1]
    assert at[0] != at[1]


def test_all_that_is_opened_is_stated():
    for parties in (2, 3):
        frames: list[Frame] = []
        run(world(parties, 1, HONEST[0]), bound=9, frames=frames)
        stated = {line.label: line for line in declared("union", NAMES[:parties], MERGER, 9, LABEL)}
        assert set(stated) == {LABEL, SIZES}
        opened = [(f, Opening.FromString(f.body)) for f in frames if f.type == Opening.DESCRIPTOR.full_name]
        for frame, message in opened:
            assert frame.receiver in stated[message.label].recipients
            assert message.number <= stated[message.label].maximum
        receivers = {frame.receiver for frame, message in opened if message.label == LABEL}
        assert receivers == stated[LABEL].recipients


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parties", "rows", "bound", "merger"), crossed([(2, 3000, None), (3, 20, 1000), (4, 300, None)], [0, 1])
)
def test_it_sends_what_is_planned(parties, rows, bound, merger):
    held = {name: sample("row", rows - 2 * place) for place, name in enumerate(NAMES[:parties])}
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, 0, bound)
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    row_union_traffic(traffic, sizes, NAMES[merger])
    costs = {name: costs for name, (_, costs) in run(held, bound=bound, merger=NAMES[merger]).items()}
    assert_planned(traffic, costs, rounds=range(-2, 2))  # up to two less where the owner comes first


def test_targets_of_two_words(monkeypatch):
    monkeypatch.setattr(matches, "STATISTICAL_BITS", 62)
    held = {name: sample("row", 40 + place, 5 * place) for place, name in enumerate(NAMES[:3])}
    found, traffic = run(held), Traffic(tuple(held))
    joined(held, found)
    agreement_traffic(traffic)
    row_union_traffic(traffic, AlignmentSizes.of({name: len(own) for name, own in held.items()}, 0, None), MERGER)
    assert_planned(traffic, {name: costs for name, (_, costs) in found.items()}, rounds=range(-2, 2))


def test_several_blocks_and_parts_send_what_is_planned(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 300)
    for module in (choices, alignment_costs):
        monkeypatch.setattr(module, "BLOCK", 256)
    held = {name: sample("row", 400) for name in NAMES[:2]}
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    row_union_traffic(traffic, AlignmentSizes.of(dict.fromkeys(held, 400), 400, None), MERGER)
    assert_planned(traffic, {name: costs for name, (_, costs) in run(held).items()}, rounds=range(-2, 3))


# -- parties that send wrong messages, and parties that are lost -------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    async def role(session: Session):
        rows = await union(
            session, await agree(session), pairs_of(session), held[session.me], merger=MERGER, label=LABEL
        )
        return rows.tolist()

    return run_faulty_parties(tuple(held), role, declared("union", tuple(held), MERGER, None, LABEL), rewrite, crash)


FEW = world(3, 1, HONEST[0])


@cache
def undisturbed() -> tuple[dict[str, Any], Mapping[str, int]]:
    """How it ends where nothing happens, and how many frames each party sends."""
    outcome, hub = run_faulty(FEW)
    return outcome, hub.sent


@pytest.mark.parametrize(
    ("kind", "sender", "receiver", "change"),
    crossed(
        [
            ("CodeColumns", "south", "north"),
            ("ProgrammedRows", "north", "south"),
            ("ExtensionRows", "north", "south"),
            ("EncryptedMessages", "south", "north"),
            ("EncryptedMessages", "east", "south"),
        ],
        [lambda data: data[:-1], lambda data: data + b"\0"],
    ),
)
def test_what_has_another_size_is_laid_at_its_senders_door(kind, sender, receiver, change):
    outcome, _ = run_faulty(FEW, changed(kind, sender, receiver, change))
    assert type(outcome[receiver]) is MalformedMessage
    assert outcome[receiver].party == sender
    assert not any("common " in str(end) for end in outcome.values() if isinstance(end, ComineError))


@pytest.mark.parametrize("parties", [2, 3])
def test_what_are_no_positions_is_refused(parties):
    def rewrite(frame: Frame) -> Frame:
        message = Opening.FromString(frame.body) if frame.type == Opening.DESCRIPTOR.full_name else None
        if message is None or message.label != LABEL or (frame.sender, frame.receiver) != ("north", "south"):
            return frame
        message.values = (np.frombuffer(message.values, "<u4") ^ np.uint32(1 << 20)).tobytes()
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    outcome, _ = run_faulty({name: FEW[name] for name in NAMES[:parties]}, rewrite)
    assert type(outcome["south"]) is ProtocolViolation
    assert outcome["south"].party == ("north" if parties == 2 else None)
    assert "no positions of south" in outcome["south"].message


@pytest.mark.costly
@pytest.mark.parametrize("lost", slowly(NAMES[:3], now=[0, 1]))
def test_a_party_that_is_lost_at_some_frame_ends_it_for_all(lost):
    whole, sent = undisturbed()
    for frame in spread(sent[lost], 2, 4):
        outcome, _ = run_faulty(FEW, crash=(lost, frame))
        for name, end in outcome.items():
            if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                assert type(end) is PeerError
                assert end.party == lost

"""How many identifiers all parties hold: what comes out, what is seen, what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.alignment import choices, matches, shared_count
from crypto.protocols.alignment import costs as alignment_costs
from crypto.protocols.alignment.alignment import cardinality
from crypto.protocols.alignment.bins import table_of
from crypto.protocols.alignment.costs import AlignmentSizes, cardinality_traffic, compared
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
    COMMON,
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
from tests.errors import fails
from tests.examples import crossed, examples, slowly, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(8)

LABEL = "cardinality"
MERGER = NAMES[0]


def run(held: Held, *, merger: str = MERGER, bound: int | None = None, **options: Any):
    frames = options.get("frames")

    async def role(session: Session):
        secrets = await agree(session)
        number = await cardinality(
            session, secrets, pairs_of(session), held[session.me], merger=merger, bound=bound, label=LABEL
        )
        return number, session.costs

    return run_parties(
        tuple(held),
        role,
        declared=declared("cardinality", tuple(held), merger, bound, LABEL),
        seed=options.get("seed", 0),
        observe=frames.append if frames is not None else None,
        transport=options.get("transport", "memory"),
        deadline_s=240,
    )


def common_to(held: Held) -> int:
    return len(set.intersection(*map(set, held.values())))


def assert_counted(held: Held, **options: Any) -> None:
    assert {number for number, _ in run(held, **options).values()} == {common_to(held)}


# -- what comes out ----------------------------------------------------------------------------------------------------
@examples(1, 6, suppress_health_check=[HealthCheck.too_slow])
@given(held=parties_and_rows(most=4), place=st.integers(0, 4), bound=st.sampled_from([None, 12, 19]))
def test_it_is_the_number_of_what_all_hold(held, place, bound):
    assert_counted(held, merger=tuple(held)[place % len(held)], bound=bound)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 90), (64, 64), (1, 0, 1), (1, 1000, 3), (5, 1, 0, 2)])
def test_ragged_and_empty_lists(sizes):
    assert_counted({name: sample("row", size) for name, size in zip(NAMES, sizes, strict=False)})


@pytest.mark.parametrize("without", NAMES[:3])
def test_what_all_but_one_hold_does_not_count(without):
    held = {name: sample("row", 20) + sample("common", 2) for name in NAMES[:3]}
    held[without] = sample("common", 2)
    assert_counted(held)


def test_lists_of_several_parts_and_blocks(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    monkeypatch.setattr(choices, "BLOCK", 304)
    assert_counted({name: sample("row", 400, 30 * place) for place, name in enumerate(NAMES[:3])})


def test_targets_of_two_words(monkeypatch):
    monkeypatch.setattr(matches, "STATISTICAL_BITS", 62)
    held = {name: sample("row", 60 + place, place) for place, name in enumerate(NAMES[:3])}
    found, traffic = run(held), Traffic(tuple(held))
    assert {number for number, _ in found.values()} == {common_to(held)}
    agreement_traffic(traffic)
    cardinality_traffic(traffic, AlignmentSizes.of(dict.fromkeys(held, 64), common_to(held), None), MERGER)
    assert_planned(traffic, {name: costs for name, (_, costs) in found.items()}, rounds=range(2))


def test_over_streams_under_mutual_tls():
    assert_counted({name: sample("row", 30 + place, place) for place, name in enumerate(NAMES[:3])}, transport="grpc")


def test_rows_that_no_list_can_hold_are_refused():
    with fails("E104"):
        run({"north": sample("row", 65), "south": []}, bound=5)
    with pytest.raises(ValueError, match="must be different"):
        run({"north": [b"a", b"a"], "south": []})


def test_a_random_word_meets_a_target_at_most_once_in_2_to_40_runs():
    for place in range(LISTS.beyond):
        bins, width = compared(AlignmentSizes(3, LISTS.size(place), 0))
        assert 2 * bins * 2**40 <= 2**width or width == 64
    assert 2 * table_of(1 << 22).sparse * 2**40 <= 2**64  # beyond that words have 64 bits, whatever the bins


# -- what a party sees, and what several see together ------------------------------------------------------------------
@pytest.mark.parametrize(("parties", "honest"), slowly([(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)], now=[0, 1, 2]))
def test_messages_to_all_others_have_one_distribution_whatever_is_not_common(parties, honest):
    def seen(own: Sequence[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        ended = run(world(parties, honest, own), bound=64, frames=frames)
        assert {number for number, _ in ended.values()} == {len(COMMON)}
        return frames

    assert_sends_alike(NAMES[honest], map(seen, HONEST[:parties]))


@pytest.mark.parametrize("own", HONEST)
def test_what_the_merger_collects_shows_no_identifier_of_the_other(own, monkeypatch):
    """One word in each bin of its points, all different and fair, whether the other holds the point or not."""
    found = collected(monkeypatch)
    for seed in range(2):
        run(world(2, 1, own), bound=64, seed=seed)
    words = np.concatenate(found)
    assert len(np.unique(words)) == len(words) == 2 * 20
    ours = np.array(found)[:, :, 0]  # by run and row; the first five are common
    for some in (ours[:, :5], ours[:, 5:11], ours[:, 11:]):
        assert is_fair(np.unpackbits(np.ascontiguousarray(some).view(np.uint8)))


@pytest.mark.parametrize("parties", [2, 3])
def test_shares_of_bits_and_of_the_number_are_uniform_but_for_their_sum(parties, monkeypatch):
    """No n − 1 shares of a bin's product or of the number depend on whether the bin's point is common."""
    counted, openings = list[tuple[str, Any]](), list[dict[str, int]]()
    products = shared_count.products

    async def recorded(session: Session, *args: Any) -> Any:
        found = await products(session, *args)
        counted.append((session.me, found))
        return found

    monkeypatch.setattr(shared_count, "products", recorded)
    for seed in range(2):
        frames: list[Frame] = []
        run(world(parties, 1, HONEST[0]), seed=seed, frames=frames)
        opened = [Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name]
        senders = [f.sender for f in frames if f.type == Opening.DESCRIPTOR.full_name]
        values = {
            name: int.from_bytes(message.values, "little")
            for name, message in zip(senders, opened, strict=True)
            if message.label == LABEL
        }
        assert set(values) == set(NAMES[:parties])
        assert sum(values.values()) % 2**32 == len(COMMON)
        openings.append(values)
    shares = {name: np.concatenate([each for who, each in counted if who == name]) for name in NAMES[:parties]}
    total = np.add.reduce(list(shares.values()), dtype=np.uint32)
    assert (total <= 1).all()
    assert total.sum() == 2 * len(COMMON)
    for some in combinations(shares.values(), parties - 1):
        for together in (*some, np.add.reduce(some, dtype=np.uint32)):
            assert is_fair(np.unpackbits(together.view(np.uint8)))
            assert len(np.unique(together)) > 0.99 * len(together)
    assert all(len({values[name] for values in openings}) == 2 for name in NAMES[:parties])


def test_two_runs_on_the_same_rows_share_nothing():
    seen: list[set[bytes]] = []
    for seed in range(2):
        frames: list[Frame] = []
        run(world(2, 1, HONEST[0]), frames=frames, seed=seed)
        bodies = [f.body for f in frames if kind_of(f) in UNIFORM]
        seen.append({body[start : start + 16] for body in bodies for start in range(16, len(body) - 16)})
    assert not seen[0] & seen[1]


def test_all_that_is_opened_is_stated():
    frames: list[Frame] = []
    run(world(3, 1, HONEST[0]), bound=9, frames=frames)
    stated = {line.label: line for line in declared("cardinality", NAMES[:3], MERGER, 9, LABEL)}
    assert set(stated) == {LABEL, SIZES}
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.receiver in stated[message.label].recipients
            assert message.number <= stated[message.label].maximum


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parties", "rows", "bound", "merger"), crossed([(2, 3000, None), (3, 20, 1000), (5, 300, None)], [0, 1])
)
def test_it_sends_what_is_planned(parties, rows, bound, merger):
    held = {name: sample("row", rows - 2 * place) for place, name in enumerate(NAMES[:parties])}
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, common_to(held), bound)
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    cardinality_traffic(traffic, sizes, NAMES[merger])
    costs = {name: costs for name, (_, costs) in run(held, bound=bound, merger=NAMES[merger]).items()}
    assert_planned(traffic, costs, rounds=range(2))


def test_several_blocks_and_parts_send_what_is_planned(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 300)
    for module in (choices, alignment_costs):
        monkeypatch.setattr(module, "BLOCK", 256)
    held = {name: sample("row", 400) for name in NAMES[:2]}
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    cardinality_traffic(traffic, AlignmentSizes.of(dict.fromkeys(held, 400), 400, None), MERGER)
    assert_planned(traffic, {name: costs for name, (_, costs) in run(held).items()}, rounds=range(-2, 3))


# -- parties that send wrong messages, and parties that are lost -------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    async def role(session: Session):
        return await cardinality(
            session, await agree(session), pairs_of(session), held[session.me], merger=MERGER, label=LABEL
        )

    return run_faulty_parties(
        tuple(held), role, declared("cardinality", tuple(held), MERGER, None, LABEL), rewrite, crash
    )


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
            ("CodeColumns", "north", "south"),
            ("ProgrammedRows", "south", "north"),
            ("LeafTables", "north", "east"),
            ("MaskedOperands", "east", "north"),
            ("EncryptedMessages", "south", "east"),
            ("EncryptedMessages", "north", "south"),
        ],
        [lambda data: data[:-1], lambda data: data + b"\0"],
    ),
)
def test_what_has_another_size_is_laid_at_its_senders_door(kind, sender, receiver, change):
    outcome, _ = run_faulty(FEW, changed(kind, sender, receiver, change))
    assert type(outcome[receiver]) is MalformedMessage
    assert outcome[receiver].party == sender
    assert not any("common " in str(end) for end in outcome.values() if isinstance(end, ComineError))


def test_a_number_above_ones_own_rows_is_refused():
    def rewrite(frame: Frame) -> Frame:
        message = Opening.FromString(frame.body) if frame.type == Opening.DESCRIPTOR.full_name else None
        if message is None or message.label != LABEL or (frame.sender, frame.receiver) != ("north", "south"):
            return frame
        value = (int.from_bytes(message.values, "little") + 100) % 2**32
        message.values = value.to_bytes(4, "little")
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    outcome, _ = run_faulty(FEW, rewrite)
    assert type(outcome["south"]) is ProtocolViolation
    assert "not common to south" in outcome["south"].message


@pytest.mark.costly
@pytest.mark.parametrize("lost", slowly(NAMES[:3], now=[0, 1]))
def test_a_party_that_is_lost_at_some_frame_ends_it_for_all(lost):
    whole, sent = undisturbed()
    for frame in spread(sent[lost], 2, 6):
        outcome, _ = run_faulty(FEW, crash=(lost, frame))
        for name, end in outcome.items():
            if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                assert type(end) is PeerError
                assert end.party == lost

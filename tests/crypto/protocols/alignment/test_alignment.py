from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.groups import commutative
from crypto.protocols.alignment import alignment, layers
from crypto.protocols.alignment.alignment import cardinality, intersection, union
from crypto.protocols.alignment.costs import (
    AlignmentSizes,
    cardinality_traffic,
    intersection_traffic,
    intersection_work,
    row_union_traffic,
)
from crypto.protocols.alignment.disclosure import declared, leakage
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.sums.pairwise import agree
from link.errors import PeerError, ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1 import alignment_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.alignment.worlds import COMMON, Held, parties_and_rows, sample
from tests.errors import fails
from tests.examples import examples, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(8)

MODES = {"intersection": intersection, "cardinality": cardinality, "union": union}
LABELS = {"intersection": "intersection", "cardinality": "cardinality", "union": "positions"}


def lines(mode: Any, held: Held, merger: str, bound: int | None = None):
    return declared(mode, tuple(held), merger, bound, LABELS[mode])


def run(mode: str, held: Held, *, merger: str = "north", frames: list[Frame] | None = None, **options: Any):
    async def role(session: Session):
        secrets = await agree(session)
        world = {key: options[key] for key in ("bound",) if key in options}
        pairs = [] if mode == "intersection" else [pairs_of(session)]
        result = await MODES[mode](session, secrets, *pairs, held[session.me], merger=merger, **world)
        return result, session.costs

    return run_parties(
        tuple(held),
        role,
        declared=lines(mode, held, merger, options.get("bound")),
        seed=options.get("seed", 0),
        observe=frames.append if frames is not None else None,
        deadline_s=240,
        transport=options.get("transport", "memory"),
    )


def common_to(held: Held) -> set[bytes]:
    return set.intersection(*map(set, held.values()))


many = examples(1, 10, suppress_health_check=[HealthCheck.too_slow])
worlds = {"held": parties_and_rows(), "place": st.integers(0, 4), "bound": st.sampled_from([None, 12, 19])}


# -- what comes out --------------------------------------------------------------------------------------------------
@many
@given(**worlds)
def test_the_intersection_comes_in_one_order_at_all_parties(held, place, bound):
    found = run("intersection", held, merger=tuple(held)[place % len(held)], bound=bound)
    (aligned,) = {tuple(held[name][row] for row in rows) for name, (rows, _) in found.items()}
    assert set(aligned) == common_to(held)
    assert len(aligned) == len(common_to(held))


@pytest.mark.parametrize("n", [2, 3])
def test_nobodys_order_of_rows_shows_in_the_common_order(n):
    held = {name: sample("row", 9, place) for place, name in enumerate(NAMES[:n])}
    turned = {name: own[::-1] if place else own[3:] + own[:3] for place, (name, own) in enumerate(held.items())}
    orders = []
    for rows in (held, turned):
        found = run("intersection", rows, seed=len(orders))
        orders += [[rows[name][row] for row in found[name][0]] for name in rows]
    assert all(order == orders[0] for order in orders)
    assert orders[0] != sorted(orders[0])


def test_lists_of_several_kernels(monkeypatch):
    for module in (layers, alignment):
        monkeypatch.setattr(module, "KERNEL_POINTS", 7)
    held = {name: sample("row", 60, 10 * place) for place, name in enumerate(NAMES[:2])}
    found = run("intersection", held)
    assert all({held[name][row] for row in found[name][0]} == common_to(held) for name in held)


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_no_list_can_hold_are_refused(mode):
    held = {"north": sample("row", 65), "south": []}
    with fails("E104"):
        run(mode, held, bound=5)
    with pytest.raises(ValueError, match="must be different"):
        run(mode, {"north": [b"a", b"a"], "south": []})


# -- what a party sees -----------------------------------------------------------------------------------------------
def points_in(frames: Sequence[Frame]) -> list[bytes]:
    found = []
    for frame in frames:
        kind = getattr(alignment_pb2, frame.type.rpartition(".")[2], None)
        data = kind.FromString(frame.body).data if kind is not None else b""
        found += [data[start : start + 32] for start in range(0, len(data), 32)]
    return found


def structure(frames: Sequence[Frame], party: str) -> Counter[tuple[object, ...]]:
    """Kinds, order and sizes of all that a party receives, and how often points repeat."""
    received = [f for f in frames if f.receiver == party]
    # Not their rounds: those count messages that came early, as the scheduler has it.
    kinds = Counter((f.sender, f.lane, f.seq, f.type, f.last, len(f.body)) for f in received)
    repeats = Counter(Counter(points_in(received)).values())
    return kinds + Counter({("repeats", times): number for times, number in repeats.items()})


def opened(frames: Sequence[Frame], party: str) -> list[bytes]:
    """What the alignment opens; not the words of the masked maximum, which are fresh in each run."""
    received = [f for f in frames if f.receiver == party and f.type == Opening.DESCRIPTOR.full_name]
    received = [f for f in received if not f.lane.endswith(("/length", "/sizes"))]
    return [Opening.FromString(f.body).values for f in sorted(received, key=lambda f: (f.lane, f.seq))]


TWO_WORLDS = (
    {"north": [*COMMON, *sample("n", 6)], "south": [*COMMON, *sample("s", 4)]},
    {"north": [*COMMON, *sample("n", 6)], "south": [*sample("other", 2), *COMMON]},
)


@pytest.mark.parametrize("party", ["north", "south"])
def test_of_two_parties_each_sees_the_output_and_nothing_else(party):
    views = []
    for held in TWO_WORLDS:
        frames: list[Frame] = []
        run("intersection", held, bound=12, frames=frames)
        views.append((structure(frames, party), sorted(b"".join(opened(frames, party)))))
        seen = points_in([f for f in frames if f.receiver == party])
        sent = points_in([f for f in frames if f.sender == party])
        assert len(set(seen)) == len(seen)
        assert not set(seen) & set(sent)
    assert views[0] == views[1]


def three(pairs: str) -> dict[str, list[bytes]]:
    """Of the 4 elements beside the common ones, who shares them is changed; sizes stay."""
    others = {name: sample(name, 4) for name in NAMES[:3]}
    if pairs == "south and east":
        others["east"] = others["south"]
    return {name: [*COMMON, *own] for name, own in others.items()}


@pytest.mark.parametrize("mode", MODES)
def test_who_does_not_merge_sees_nothing_of_who_shares_what(mode):
    for party in ("south", "east"):
        views = []
        for pairs in ("nobody", "south and east"):
            frames: list[Frame] = []
            run(mode, three(pairs), bound=10, frames=frames)
            views.append(structure(frames, party))
        assert views[0] == views[1]


# -- what is stated --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [2, 3])
def test_all_that_is_opened_is_stated(mode, n):
    held = {name: [*COMMON, *sample(name, 2)] for name in NAMES[:n]}
    frames: list[Frame] = []
    run(mode, held, bound=9, frames=frames)
    stated = {line.label: line for line in lines(mode, held, "north", 9)}
    seen: Counter[tuple[str, str, str]] = Counter()
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.sender == "north" or mode != "intersection" or message.label == SIZES
            assert frame.receiver in stated[message.label].recipients
            seen[message.label, frame.sender, frame.receiver] += message.number
    assert {label for label, *_ in seen} == set(stated)
    assert all(number <= stated[label].maximum for (label, *_), number in seen.items())
    assert all(number == stated[SIZES].maximum for (label, *_), number in seen.items() if label == SIZES)


def test_leakage_as_data():
    said = [line.exact for line in leakage("intersection", ("a", "b"), 9)]
    assert said == ["which of their own rows the other has too", "whether the other has more than 64 rows"]
    for mode in ("intersection", "cardinality", "union"):
        result, *rest = leakage(mode, ("a", "b", "c"), None)
        assert result.kind == "result"
        assert all(
            line.exact.startswith(("of the ", "the least of 64")) or "identifiers" in line.exact for line in rest
        )
    for parties, whose in (("ab", "whether the other has a row there too"), ("abc", "who else has a row there")):
        (line,) = [line for line in leakage("union", tuple(parties), 9) if line.kind == "result"]
        assert line.exact == f"at which positions their own rows are, but not {whose}"


# -- costs -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("parties", "bound"), [(2, None), (3, 100), (4, None)])
@pytest.mark.parametrize("mode", MODES)
def test_an_alignment_sends_what_is_planned(mode, parties, bound):
    held = {name: [*COMMON, *sample(name, 20 * number)] for number, name in enumerate(NAMES[:parties], 1)}
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, len(COMMON), bound)
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    enter = {"intersection": intersection_traffic, "cardinality": cardinality_traffic, "union": row_union_traffic}
    enter[mode](traffic, sizes, "north")
    costs = {name: costs for name, (_, costs) in run(mode, held, bound=bound).items()}
    # Who sends after a message for which it did not wait, since it came early, counts it as one round more.
    assert_planned(traffic, costs, rounds=range(2))


def test_the_group_operations_are_those_of_the_protocol(monkeypatch):
    counted: Counter[str] = Counter()
    multiply = commutative.multiply

    def count(points: np.ndarray, scalar: bytes) -> np.ndarray:
        counted["multiply"] += len(points)
        return multiply(points, scalar)

    monkeypatch.setattr(commutative, "multiply", count)
    held = {name: [*COMMON, *sample(name, 15)] for name in NAMES[:2]}
    run("intersection", held, bound=20)
    sizes = AlignmentSizes.of(dict.fromkeys(held, 20), len(COMMON), 20)
    random_points = 2 * (sizes.length - 20)
    assert counted["multiply"] == 2 * intersection_work(sizes)[0] - random_points


# -- parties that send wrong messages, and parties that are lost ------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    """How it ends at each party."""

    async def role(session: Session):
        return (await intersection(session, await agree(session), held[session.me], merger="north")).tolist()

    return run_faulty_parties(tuple(held), role, lines("intersection", held, "north"), rewrite, crash)


def changed(kind: str, sender: str, change: Any, nth: int = 0) -> Rewrite:
    seen = []

    def rewrite(frame: Frame) -> Frame:
        if not frame.type.endswith("." + kind) or frame.sender != sender:
            return frame
        if frame.lane.endswith("/length"):  # the masked maximum
            return frame
        seen.append(frame)
        if len(seen) != nth + 1:
            return frame
        message = getattr(alignment_pb2, kind).FromString(frame.body)
        change(message)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


TWO = TWO_WORLDS[0]


def first_again(message: Any) -> None:
    message.data = message.data[:32] * (len(message.data) // 32)


def put_first_last(message: Any) -> None:
    message.data = message.data[:-32] + message.data[:32]


def test_a_list_sent_back_with_common_points_twice_is_noticed():
    held = dict.fromkeys(("north", "south"), sample("common", 64))  # so that no place of the lists is free
    outcome, _ = run_faulty(held, changed("EncryptedIdentifiers", "south", put_first_last, nth=1))
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"


def test_no_error_holds_an_identifier():
    outcome, _ = run_faulty(TWO, changed("EncryptedIdentifiers", "south", first_again))
    assert all("common " not in str(end).replace("not common to", "") for end in outcome.values())


@pytest.mark.costly
def test_a_party_that_is_lost_at_any_frame_ends_it_for_all():
    whole, hub = run_faulty(TWO)
    sent = dict(hub.sent)
    for lost in TWO:
        for frame in spread(sent[lost], 5, sent[lost]):
            outcome, _ = run_faulty(TWO, crash=(lost, frame))
            for name, end in outcome.items():
                if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                    assert type(end) is PeerError
                    assert end.party == lost


def test_a_merger_that_takes_no_part_is_refused():
    with fails("E100"):
        alignment.ring_from(NAMES[:2], "nowhere")

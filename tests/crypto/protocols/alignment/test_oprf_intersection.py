from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.alignment import intersection
from crypto.protocols.alignment.costs import AlignmentSizes, intersection_traffic
from crypto.protocols.alignment.disclosure import declared
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import oprf
from link.errors import ComineError, PeerError, ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1.alignment_pb2 import EvaluatedIdentifiers
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_prf_pb2 import CodeColumns
from tests.errors import fails
from tests.examples import examples, in_turn, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

Held = Mapping[str, Sequence[bytes]]
TWO = ("north", "south")
LABEL = "intersection"
KINDS = {kind.DESCRIPTOR.name: kind for kind in (EvaluatedIdentifiers, CodeColumns)}


@pytest.fixture(autouse=True)
def all_lists_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "LONG_LISTS", 1)


def lines(merger: str, bound: int | None) -> Any:
    return declared("intersection", TWO, merger, bound, LABEL)


def run(held: Held, *, merger: str = "north", bound: int | None = None, **options: Any):
    frames = options.get("frames")

    async def role(session: Session):
        rows = await intersection(
            session, await agree(session), held[session.me], merger=merger, bound=bound, label=LABEL
        )
        return rows, session.costs

    return run_parties(
        TWO,
        role,
        declared=lines(merger, bound),
        seed=options.get("seed", 0),
        observe=frames.append if frames is not None else None,
        transport=options.get("transport", "memory"),
    )


def sample(name: str, size: int, first: int = 0) -> list[bytes]:
    return [b"%s %d" % (name.encode(), number) for number in range(first, first + size)]


def two(north: Sequence[bytes], south: Sequence[bytes]) -> dict[str, Sequence[bytes]]:
    return {"north": north, "south": south}


identifiers = st.text(max_size=8).map(str.encode) | st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\0\0"])


@st.composite
def rows_of_two(draw: st.DrawFn) -> dict[str, Sequence[bytes]]:
    universe = draw(st.lists(identifiers, max_size=40, unique=True))
    some = st.lists(st.sampled_from(universe), max_size=40, unique=True) if universe else st.just([])
    everywhere = draw(some)
    return two(*(list(dict.fromkeys([*draw(some), *everywhere])) for _ in TWO))


many = examples(1, 15, suppress_health_check=[HealthCheck.too_slow])


# -- what comes out ----------------------------------------------------------------------------------------------------
@many
@given(held=rows_of_two(), merger=st.sampled_from(TWO), bound=st.sampled_from([None, 40, 90]), seed=st.integers(0, 99))
def test_it_is_the_intersection_in_one_order(held, merger, bound, seed):
    found = run(held, merger=merger, bound=bound, seed=seed)
    (aligned,) = {tuple(held[name][row] for row in rows) for name, (rows, _) in found.items()}
    common = set(held["north"]) & set(held["south"])
    assert set(aligned) == common
    assert len(aligned) == len(common)


@examples(1, 6, suppress_health_check=[HealthCheck.too_slow])
@given(held=rows_of_two(), merger=st.sampled_from(TWO))
def test_it_finds_the_rows_that_the_protocol_over_a_group_finds(held, merger):
    ours = run(held, merger=merger)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(alignment, "LONG_LISTS", 1000)
        theirs = run(held, merger=merger)
    for name in TWO:
        assert sorted(ours[name][0].tolist()) == sorted(theirs[name][0].tolist())


@pytest.mark.parametrize(("sizes", "common"), [((0, 0), 0), ((1, 0), 0), ((0, 90), 0), ((1, 1000), 1), ((700, 5), 5)])
def test_ragged_and_empty_lists(sizes, common):
    held = two(*(sample("row", size) for size in sizes))
    found = run(held)
    assert {len(rows) for rows, _ in found.values()} == {common}


def test_lists_of_several_parts(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    held = two(sample("row", 400), sample("row", 420, 150))
    found = run(held)
    (aligned,) = {tuple(held[name][row] for row in rows) for name, (rows, _) in found.items()}
    assert set(aligned) == set(sample("row", 250, 150))


def test_over_streams_under_mutual_tls():
    found = run(two(sample("row", 9), sample("row", 70, 3)), transport="grpc")
    assert [len(rows) for rows, _ in found.values()] == [6, 6]


def test_nobodys_order_of_rows_shows_in_the_common_order():
    held = two(sample("row", 9), sample("row", 9, 2))
    turned = two(held["north"][::-1], [*held["south"][3:], *held["south"][:3]])
    orders = []
    for rows in (held, turned):
        found = run(rows)
        orders += [[rows[name][row] for row in found[name][0]] for name in rows]
    assert all(order == orders[0] for order in orders)
    assert orders[0] != sorted(orders[0])


def test_rows_that_no_list_can_hold_are_refused():
    with fails("E104"):
        run(two(sample("row", 65), []), bound=5)
    with pytest.raises(ValueError, match="must be different"):
        run(two([b"a", b"a"], []))


@pytest.mark.parametrize("length", [64, 114_688, 1 << 20, 1 << 24])
def test_values_meet_by_chance_at_most_once_in_2_to_40_runs(length):
    assert length**2 * 2**40 <= 2 ** (8 * value_bytes(length))
    assert 8 * value_bytes(length) < 48 + 2 * np.log2(length)


# -- what a party sees -------------------------------------------------------------------------------------------------
COMMON = sample("common", 5)
WORLDS = (
    two([*COMMON, *sample("n", 6)], [*COMMON, *sample("s", 4)]),
    two([*COMMON, *sample("n", 6)], [*sample("other", 50), *COMMON]),
    two([*sample("m", 59), *COMMON], [*COMMON, *sample("s", 4)]),
)


def listed(frames: Sequence[Frame]) -> list[bytes]:
    """The values of the other party's list."""
    data = b"".join(
        EvaluatedIdentifiers.FromString(f.body).data for f in frames if f.type.endswith("EvaluatedIdentifiers")
    )
    size = value_bytes(64)
    return [data[start : start + size] for start in range(0, len(data), size)]


def places(frames: Sequence[Frame]) -> bytes:
    (opening,) = (
        message
        for message in (Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name)
        if message.label == LABEL
    )
    return opening.values


def test_frames_are_the_same_but_for_uniform_bytes():
    """Other rows, other numbers of rows in one size class, the same number of common ones: the same shape of all."""
    shapes, opened = set(), set()
    for held in WORLDS:
        frames: list[Frame] = []
        run(held, bound=64, frames=frames)
        shapes.add(tuple(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames)))
        opened.add(sum(places(frames)))
        assert len(set(listed(frames))) == len(listed(frames)) == 64
    assert len(shapes) == 1
    assert opened == {len(COMMON)}


@pytest.mark.costly
@pytest.mark.parametrize("held", in_turn(WORLDS, 2))
def test_views_have_one_distribution_whatever_is_not_common(held):
    """Of 20 runs: bits of the list, and where common rows stand in it. Fair ones fail with a chance below 10^-8.

    All else that both see is masked by streams: `test_oprf`.
    """
    bits, where, runs = [], np.zeros(64, np.int64), 20
    for seed in range(runs):
        frames: list[Frame] = []
        run(held, bound=64, frames=frames, seed=seed)
        bits.append(np.unpackbits(np.frombuffer(b"".join(listed(frames)), np.uint8)))
        where += np.frombuffer(places(frames), np.uint8)
    ones = np.array(bits).reshape(-1, 8 * value_bytes(64)).sum(axis=0, dtype=np.int64)
    assert (np.abs(ones - runs * 32) <= np.sqrt(runs * 32 * np.log(2 * len(ones) / 1e-9))).all()
    assert where.sum() == runs * len(COMMON)
    halves = where.reshape(2, -1).sum(axis=1)
    assert abs(halves[0] - where.sum() / 2) <= np.sqrt(where.sum() / 2 * np.log(2e9))
    # Of 20 · 5 in 64 places, 1.56 in each expected; Chernoff: 64·(e^9.24 / 10.24^10.24)^1.5625 < 10^-8.
    assert where.max() < 16


def test_two_runs_on_the_same_rows_share_no_value():
    seen: list[bytes] = []
    for seed in range(2):
        frames: list[Frame] = []
        run(WORLDS[0], frames=frames, seed=seed)
        seen += listed(frames)
    assert len(set(seen)) == len(seen)


def test_all_that_is_opened_is_stated():
    frames: list[Frame] = []
    run(WORLDS[0], bound=9, frames=frames)
    stated = {line.label: line for line in lines("north", 9)}
    seen: Counter[tuple[str, str, str]] = Counter()
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.sender == "north" or message.label == SIZES
            assert frame.receiver in stated[message.label].recipients
            seen[message.label, frame.sender, frame.receiver] += message.number
    assert {label for label, *_ in seen} == set(stated)
    assert all(number <= stated[label].maximum for (label, *_), number in seen.items())


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rows", "bound"), [(20, None), (20, 1000), (3000, None)])
def test_it_sends_what_is_planned(rows, bound):
    held = two(sample("row", rows), sample("row", rows // 2))
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, 0, bound)
    traffic = Traffic(TWO)
    agreement_traffic(traffic)
    intersection_traffic(traffic, sizes, "north")
    costs = {name: costs for name, (_, costs) in run(held, bound=bound).items()}
    assert_planned(traffic, costs, rounds=range(2))


# -- parties that send wrong messages, and parties that are lost -------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    async def role(session: Session):
        return (await intersection(session, await agree(session), held[session.me], merger="north")).tolist()

    return run_faulty_parties(TWO, role, lines("north", None), rewrite, crash)


def changed(kind: str, change: Any) -> Rewrite:
    def rewrite(frame: Frame) -> Frame:
        if not frame.type.endswith("." + kind) or frame.lane.endswith(("/length", "/sizes")):
            return frame
        message = KINDS[kind].FromString(frame.body)
        message.data = change(message.data)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


def test_a_common_value_twice_in_the_list_is_noticed():
    held = dict.fromkeys(TWO, sample("common", 64))  # so that no place of the list is free
    size = value_bytes(64)
    outcome, _ = run_faulty(held, changed("EvaluatedIdentifiers", lambda data: data[:-size] + data[:size]))
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"


def test_a_list_of_another_run_makes_no_row_common():
    """With the same identifiers: nothing fits, and nobody takes a row for a common one."""
    before = sent_before("EvaluatedIdentifiers")
    outcome, _ = run_faulty(WORLDS[0], changed("EvaluatedIdentifiers", lambda _: before))
    assert outcome == {"north": [], "south": []}


def test_after_rows_that_are_not_those_of_points_no_list_is_sent():
    before, seen = sent_before("CodeColumns"), []

    def rewrite(frame: Frame) -> Frame:
        seen.append(frame.type)
        return changed("CodeColumns", lambda _: before)(frame)

    outcome, _ = run_faulty(WORLDS[0], rewrite)
    assert type(outcome["south"]) is ProtocolViolation
    assert outcome["south"].party == "north"
    assert any(kind.endswith(".CheckedColumns") for kind in seen)
    assert not any(kind.endswith(".EvaluatedIdentifiers") for kind in seen)


def sent_before(kind: str) -> bytes:
    """What a run from another seed sent."""
    frames: list[Frame] = []
    run(WORLDS[0], frames=frames, seed=5)
    (data,) = (KINDS[kind].FromString(f.body).data for f in frames if f.type.endswith("." + kind))
    return bytes(data)


def test_a_list_under_another_number_is_refused():
    held, again = WORLDS[0], []

    def renumbered(frame: Frame) -> Frame:
        if frame.type.endswith(".EvaluatedIdentifiers"):
            copy = Frame()
            copy.CopyFrom(frame)
            copy.seq = frame.seq + 1
            again.append(copy)
            return copy
        return frame

    outcome, _ = run_faulty(held, renumbered)
    assert again
    assert all(isinstance(end, ComineError) for end in outcome.values())


def test_no_error_holds_an_identifier():
    for kind in ("EvaluatedIdentifiers", "CodeColumns", "Opening"):
        outcome, _ = run_faulty(WORLDS[0], changed(kind, lambda data: data[:-1]))
        assert all("common " not in str(end).replace("not common to", "") for end in outcome.values())


@pytest.mark.costly
def test_a_party_that_is_lost_at_any_frame_ends_it_for_both():
    whole, hub = run_faulty(WORLDS[0])
    sent = dict(hub.sent)
    for lost in TWO:
        for frame in spread(sent[lost], 5, sent[lost]):
            outcome, _ = run_faulty(WORLDS[0], crash=(lost, frame))
            for name, end in outcome.items():
                if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                    assert type(end) is PeerError
                    assert end.party == lost

"""Unions whose merged list, or also whose sets and outcome, are filled up to public sizes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.ristretto255 import from_uniform_bytes
from crypto.protocols.union import set_union as protocol
from crypto.protocols.union import size_classes
from crypto.protocols.union.disclosure import leakage
from crypto.protocols.union.lists import common_fakes, spare_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from link.errors import ComineError, MalformedMessage, ProtocolViolation
from protos.v1.link_pb2 import Frame
from protos.v1.set_union_pb2 import MergedPiece, MergedSize, UnionSize
from tests.crypto.protocols.set_union_world import FEW, NAMES, in_union, message_of, points_of, run_faulty, run_union
from tests.errors import fails
from tests.examples import examples

PSEUDONYM = 16


def random_looking(*sets: str) -> dict[str, set[bytes]]:
    return {
        name: {letter.encode() * PSEUDONYM for letter in letters} for name, letters in zip(NAMES, sets, strict=False)
    }


def filled(sets: dict[str, set[bytes]], merger: str, **options: Any):
    return run_union(sets, merger=merger, fill="union", max_element_bytes=PSEUDONYM, **options)


def capacity_of(sets: dict[str, set[bytes]], bound: int | None) -> int:
    return SETS.rounded(bound or max(map(len, sets.values())))


letters = st.text("abcdefghij", max_size=10)
cases = st.lists(letters, min_size=2, max_size=5).map(lambda drawn: random_looking(*drawn))
quick = examples(4, 12, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(sets=cases, place=st.integers(0, 4), bound=st.sampled_from([None, 10, 13]), seed=st.integers(0, 99))
def test_a_filled_union_holds_all_elements_among_random_ones_and_has_a_public_size(sets, place, bound, seed):
    run = filled(sets, tuple(sets)[place % len(sets)], bound=bound, seed=seed)
    pooled = set().union(*sets.values())
    (union,) = {tuple(found) for found in run.unions.values()}
    assert list(union) == sorted(set(union))
    assert len(union) == len(sets) * capacity_of(sets, bound)
    assert pooled <= set(union)
    assert all(len(element) == PSEUDONYM for element in union)
    assert all(len(set(element)) > 4 for element in set(union) - pooled)  # random bytes, unlike the real ones here


@quick
@given(sets=cases, place=st.integers(0, 4), bound=st.sampled_from([None, 10, 13]), seed=st.integers(0, 99))
def test_with_a_filled_merged_list_the_union_is_the_pooled_one(sets, place, bound, seed):
    run = run_union(sets, merger=tuple(sets)[place % len(sets)], bound=bound, seed=seed, fill="merged")
    assert run.unions == dict.fromkeys(sets, sorted(set().union(*sets.values())))


def test_elements_of_several_blocks_among_strangers():
    sets = {name: {b"%d " % i * 20 for i in range(first, first + 5)} for first, name in enumerate(NAMES[:3])}
    run = run_union(sets, merger="south", fill="merged", bound=6)
    assert run.unions == dict.fromkeys(sets, sorted(set().union(*sets.values())))


def told(frames: list[Frame], kind: Any) -> set[Any]:
    return {message_of(f).SerializeToString() for f in frames if f.type == kind.DESCRIPTOR.full_name}


WORLDS = [
    random_looking("abcdefgh", "abcdefgh", "abcdefgh"),
    random_looking("abcdefgh", "ijklmnop", "qrstuvwx"),
    random_looking("abcdefgh", "", "a"),
]


def structure(frames: list[Frame], party: str) -> Counter[tuple[object, ...]]:
    received = [f for f in frames if f.receiver == party and in_union(f)]
    repeats = Counter(Counter(points_of([f for f in received if f.type.rpartition(".")[2] != "Opening"])).values())
    kinds = Counter((f.sender, f.lane, f.seq, f.type, f.last, f.round, len(f.body)) for f in received)
    return kinds + Counter({("repeats", times): number for times, number in repeats.items()})


@pytest.mark.parametrize("n", [2, 3])
def test_who_does_not_merge_sees_nothing_of_sizes_or_of_who_shares_what(n):
    views = []
    for world in WORLDS:
        sets = dict(list(world.items())[:n])
        run = filled(sets, "north", bound=8)
        views.append([structure(run.frames, party) for party in tuple(sets)[1:]])
        assert told(run.frames, UnionSize) == {UnionSize(elements=64 * n).SerializeToString()}
        total = n * (64 + spare_for_common_fakes(n, common_fakes(FEW)))
        assert told(run.frames, MergedSize) == {MergedSize(tuples=total).SerializeToString()}
    assert views[0] == views[1] == views[2]


def test_with_a_filled_merged_list_nothing_but_the_union_differs_for_the_others():
    """The same union, held by all or by one: only the merger may tell these apart."""
    worlds = [random_looking("abcd", "abcd", "abcd"), random_looking("abcd", "", "")]
    runs = [run_union(sets, merger="north", bound=4, fill="merged") for sets in worlds]
    assert runs[0].unions == runs[1].unions
    for party in ("south", "east"):
        assert structure(runs[0].frames, party) == structure(runs[1].frames, party)


def test_a_stranger_is_seen_by_nobody_but_the_merger_at_the_end():
    """All values of the merged list differ at every hop, strangers among them."""
    run = filled(WORLDS[0], "north", bound=8)
    for sender in WORLDS[0]:
        points = points_of([f for f in run.frames if f.sender == sender and f.type.endswith("MergedPiece")])
        assert len(set(points)) == len(points) == 3 * (64 + spare_for_common_fakes(3, common_fakes(FEW)))


@pytest.mark.parametrize(
    ("own", "most"), [({b"short"}, PSEUDONYM), ({b"x" * 17, b"y" * 16}, 17), ({b"x" * 15}, 15), (set(), 8)]
)
def test_a_filled_union_asks_for_elements_of_one_length_that_random_ones_can_have(own, most):
    with pytest.raises(ValueError, match="one length of at least 16 bytes"):
        run_union({"north": own, "south": set()}, merger="north", fill="union", max_element_bytes=most)


def changed(kind: Any, sender: str, change: Any):
    done = []

    def rewrite(frame: Frame) -> Frame:
        if done or frame.type != kind.DESCRIPTOR.full_name or frame.sender != sender:
            return frame
        done.append(frame)
        message = message_of(frame)
        change(message)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


def set_to(name: str, value: int):
    return lambda message: setattr(message, name, value)


TWO = random_looking("abcd", "abef")


@pytest.mark.parametrize("fill", ["merged", "union"])
def test_more_tuples_that_decode_to_nothing_than_the_merger_put_in_are_refused(fill):
    """Points that a peer made up look like strangers, but there are too many."""

    def made_up(message):
        points = from_uniform_bytes(np.frombuffer(bytes(range(256)), np.uint8).reshape(4, 64))
        message.data = points.tobytes() + message.data[128:]

    outcome, _ = run_faulty(
        TWO, merger="north", fill=fill, bound=4, max_element_bytes=16, rewrite=changed(MergedPiece, "south", made_up)
    )
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"
    assert isinstance(outcome["south"], ComineError)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (MergedSize, set_to("tuples", 131)),
        (MergedSize, set_to("tuples", 133)),
        (UnionSize, set_to("elements", 127)),
        (UnionSize, set_to("elements", 129)),
    ],
)
def test_sizes_other_than_the_public_ones_are_refused(kind, change):
    outcome, _ = run_faulty(
        TWO, merger="north", fill="union", bound=4, max_element_bytes=16, rewrite=changed(kind, "north", change)
    )
    assert type(outcome["south"]) is MalformedMessage
    assert outcome["south"].party == "north"


@pytest.mark.parametrize("fill", ["lists", "merged", "union"])
def test_more_elements_than_all_sets_may_hold_are_laid_at_the_peers_door(fill, monkeypatch):
    """South ignores the bound and hides elements in the places of fakes."""
    monkeypatch.setattr(protocol, "classes", lambda *arguments: (0, 0))
    monkeypatch.setattr(protocol, "filled", lambda own, size, length, random: own)
    monkeypatch.setattr(size_classes, "LEAST", 2)
    sets = random_looking("abc", "defghijk")
    with fails("E400") as caught:
        run_union(sets, merger="north", bound=3, fill=fill, max_element_bytes=16, epsilon_dup=1.0)
    assert caught.value.party == "south"


# -- who learns what -------------------------------------------------------------------------------------------------
def test_leakage_of_a_union_with_a_filled_merged_list():
    lines = leakage(("a", "b", "c"), "a", bound=9, fill="merged")
    (line,) = [line for line in lines if "sum of the sizes" in line.exact]
    assert line.who == ("a",)
    assert not any("different tuples" in line.exact for line in leakage(("a", "b", "c"), "a", to=["b"], fill="merged"))
    lines = leakage(("a", "b"), "a", fill="merged", reveals_sizes=False)
    (line,) = [line for line in lines if "exact set size" in line.exact]
    assert line.who == ("a",)
    assert not any("power of two" in line.exact or "is below the size" in line.exact for line in lines)


def test_leakage_of_a_filled_union():
    lines = leakage(("a", "b", "c"), "a", bound=9, fill="union")
    assert {line.who for line in lines if line.kind == "count"} == {("a",)}
    assert [line.exact for line in lines if line.kind == "size"] == [
        "whether 64 is below the size of the largest set of the other parties, not whose it is"
    ]
    lines = leakage(("a", "b"), "a", bound=9, fill="union")
    assert [line.who for line in lines if "number of common elements" in line.exact] == [("a",)]
    assert not any("set size" in line.exact for line in lines)

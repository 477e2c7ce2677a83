from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.union import layers
from crypto.protocols.union import set_union as module
from crypto.protocols.union.disclosure import declared, leakage
from crypto.protocols.union.lists import OwnList, common_fakes, spare_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from link.disclosure import opens
from link.errors import ConfigurationError
from protos.v1 import set_union_pb2
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.set_union_pb2 import EncryptedList
from tests.crypto.protocols.set_union_world import (
    FEW,
    NAMES,
    Run,
    Sets,
    in_union,
    message_of,
    points_of,
    pooled,
    pseudonyms_of,
    run_union,
)
from tests.errors import fails
from tests.examples import crossed, examples, slowly

pytestmark = pytest.mark.turn(6)

letters = st.text("abcdefghij", max_size=10)
cases = st.lists(letters, min_size=2, max_size=7).map(lambda drawn: pseudonyms_of(*drawn))


def check(run: Run, sets: Sets, bound: int | None = None) -> None:
    """Every party has all elements, and as many random ones as make up all capacities."""
    (union,) = {tuple(found) for found in run.unions.values()}
    assert set(run.unions) == set(sets)
    assert list(union) == sorted(set(union))
    assert len(union) == len(sets) * SETS.rounded(bound or max(map(len, sets.values())))
    assert pooled(sets) <= set(union)
    assert all(len(element) == 16 for element in union)
    assert all(len(set(element)) > 4 for element in set(union) - pooled(sets))  # random, unlike the real ones here


@given(sets=cases, place=st.integers(0, 6), bound=st.sampled_from([None, 10, 13]), seed=st.integers(0, 99))
@examples(1, 10, suppress_health_check=[HealthCheck.too_slow])
def test_every_party_gets_the_pooled_union_among_random_elements(sets, place, bound, seed):
    check(run_union(sets, merger=tuple(sets)[place % len(sets)], bound=bound, seed=seed), sets, bound)


@pytest.mark.parametrize(
    "sets",
    [
        pseudonyms_of((), (), ()),
        pseudonyms_of("abc", "abc", "abc"),
        pseudonyms_of("abc", "def", "ghi"),
        pseudonyms_of((), "a", ()),
        pseudonyms_of("ab", ()),
        pseudonyms_of((), "ab"),
        pseudonyms_of("a", "a"),
    ],
)
def test_edges(sets):
    for merger in sets:
        check(run_union(sets, merger=merger, bound=4), sets, 4)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_lists_of_several_kernels_and_pieces(monkeypatch, n):
    monkeypatch.setattr(layers, "KERNEL_POINTS", 7)
    monkeypatch.setattr(layers, "PIECE_POINTS", 20)
    names = [f"number {number}" for number in range(60)]
    sets = pseudonyms_of(*(names[10 * i : 10 * i + 25] for i in range(n)))
    run = run_union(sets, merger="north", bound=30)
    check(run, sets, 30)
    assert sum(frame.type.endswith("MergedPiece") for frame in run.frames) > 3 * n


def test_over_streams_under_mutual_tls():
    sets = pseudonyms_of("abc", "bcd", "cde")
    check(run_union(sets, merger="south", bound=4, transport="grpc"), sets, 4)


def lengths(run: Run) -> set[int]:
    """Points of each list on its first hop."""
    whole = Counter[str]()
    for frame in run.frames:
        if frame.type == EncryptedList.DESCRIPTOR.full_name and frame.lane.endswith(f"/{frame.sender}"):
            whole[frame.sender] += len(message_of(frame).data) // 32
    return set(whole.values())


def test_default_noise_and_the_least_size_class():
    sets = pseudonyms_of("abcde", "ab", "")
    run = run_union(sets, merger="east", epsilon_dup=1.0)
    check(run, sets)
    assert lengths(run) == {64 + spare_for_common_fakes(3, common_fakes(1.0))}


@pytest.mark.parametrize(
    ("largest", "size_class", "holder"), crossed([(0, 64), (64, 64), (65, 128), (129, 256)], NAMES[:3])
)
def test_all_lists_have_the_size_class_of_the_largest_set(largest, size_class, holder):
    sets = {name: [b"a" * 16] for name in NAMES[:3]} | {holder: [b"%016d" % i for i in range(largest)]}
    assert lengths(run_union(sets, merger="north")) == {size_class + 4}


def test_the_union_is_opened_once_under_its_label():
    run = run_union(pseudonyms_of("ab", "bc", "cd"), merger="south", label="items")
    opened = {name: [line for line in lines if line[0] != SIZES] for name, lines in run.opened.items()}
    assert opened == {"north": [], "south": [("items", ("north", "east"), 3 * 64)], "east": []}
    assert all(sum(line[0] == SIZES for line in lines) == 1 for lines in run.opened.values())
    for frame in filter(in_union, run.frames):
        assert opens(type(message_of(frame))) == (frame.type == Opening.DESCRIPTOR.full_name)


def test_no_message_of_the_protocol_has_an_opened_field():
    for name in set_union_pb2.DESCRIPTOR.message_types_by_name:
        assert not opens(getattr(set_union_pb2, name))


@pytest.mark.parametrize(
    ("own", "options", "code"),
    [
        ([str(number) for number in range(65)], {"bound": 3}, "E104"),
        ("a", {"bound": 0}, "E100"),
        ("a", {"epsilon_dup": 0}, "E100"),
        ("a", {"epsilon_dup": float("nan")}, "E100"),
        ("a", {"epsilon_dup": 1e-9}, "E100"),
        ("a", {"merger": "nowhere"}, "E100"),
    ],
)
def test_what_makes_no_union_is_refused(own, options, code):
    with fails(code):
        run_union(pseudonyms_of(own, "a"), **({"merger": "south"} | options))


@pytest.mark.parametrize("own", [{b"short"}, {b"x" * 17, b"y" * 16}])
def test_what_is_no_pseudonym_is_refused(own):
    with pytest.raises(ValueError, match="a pseudonym has 16 bytes"):
        run_union({"north": own, "south": set()}, merger="north")


def test_a_bound_that_no_list_can_have_is_told_to_all():
    with fails("E100") as caught:
        run_union(pseudonyms_of("a", "b"), merger="south", bound=(1 << 24) + 1)
    assert caught.value.shareable


def test_a_set_over_its_bound_says_no_number_but_the_bound_and_its_class():
    with pytest.raises(ConfigurationError) as caught:
        run_union(pseudonyms_of([str(i) for i in range(77)], "a"), merger="south", bound=10)
    assert re.findall(r"\d+", caught.value.message) == ["64", "10"]
    with pytest.raises(ConfigurationError) as other:
        run_union(pseudonyms_of([str(i) for i in range(65)], "a"), merger="south", bound=10)
    assert other.value.message == caught.value.message


@pytest.mark.parametrize("n", [2, 3, 7])
def test_rounds(n):
    run = run_union({name: [b"a" * 16] for name in NAMES[:n]}, merger=NAMES[n - 1], bound=2)
    # One round of key agreement comes before.
    rounds = {name: costs.rounds - 1 for name, costs in run.costs.items()}
    assert rounds == {name: 2 * n + 1 if name == NAMES[n - 1] else 2 * n + 2 for name in NAMES[:n]}


def test_bytes_are_exact():
    # ε so large that each pair has one common fake: 64 + (n − 1)·2 tuples in a list.
    run = run_union(pseudonyms_of("abcde", "cdefg", "xyz"), merger="north", bound=10, epsilon_dup=FEW)
    length = 68

    def ciphertext(kind: str) -> int:
        return sum(len(message_of(f).data) for f in run.frames if f.type.endswith("." + kind))

    assert ciphertext("FullyEncryptedList") == 3 * length * 32
    assert ciphertext("EncryptedList") == (2 * 1 + 2) * length * 32
    assert ciphertext("MergedPiece") == 3 * 3 * length * 32


@pytest.mark.slow
def test_five_thousand_elements():
    names = [f"number {i}" for i in range(3000)]
    sets = pseudonyms_of(names[:2000], names[1000:], names[500:1500])
    check(run_union(sets, merger="east", bound=2000, epsilon_dup=1.0), sets, 2000)


# -- what is seen ----------------------------------------------------------------------------------------------------
WORLDS = [
    pseudonyms_of("abcdefgh", "abcdefgh", "abcdefgh"),
    pseudonyms_of("abcdefgh", "ijklmnop", "qrstuvwx"),
    pseudonyms_of("abcdefgh", "", "a"),
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
        run = run_union(sets, merger="north", bound=8)
        views.append([structure(run.frames, party) for party in tuple(sets)[1:]])
    assert views[0] == views[1] == views[2]


def test_a_stranger_is_seen_by_nobody_but_the_merger_at_the_end():
    """All values of the merged list differ at every hop, strangers among them."""
    run = run_union(WORLDS[0], merger="north", bound=8)
    for sender in WORLDS[0]:
        points = points_of([f for f in run.frames if f.sender == sender and f.type.endswith("MergedPiece")])
        assert len(set(points)) == len(points) == 3 * (64 + spare_for_common_fakes(3, common_fakes(FEW)))


# -- the statement ---------------------------------------------------------------------------------------------------
def test_the_statement_names_label_receivers_and_maximum():
    sizes, line = declared(("a", "b", "c"), "b", 30, "items")
    assert (sizes.label, sizes.recipients, sizes.maximum) == (SIZES, {"a", "b", "c"}, SETS.beyond)
    assert (line.label, line.recipients, line.maximum) == ("items", {"a", "c"}, 30)


def test_leakage_as_data():
    lines = leakage(("a", "b", "c"), "a", bound=9)
    of_merger = [x.exact for x in lines if x.who == ("a",)]
    assert any("exactly these two hold, plus the pair's number of common fakes" in what for what in of_merger)
    assert any("every group of parties with a in it, or of three or more" in what for what in of_merger)
    assert {line.who for line in lines if line.kind == "count"} == {("a",)}
    assert [line.exact for line in lines if line.kind == "size"] == [
        "whether 64 is below the size of the largest set of the other parties, not whose it is"
    ]
    assert not any("only which" in x.exact for x in lines)
    assert not any(line.kind == "size" for line in leakage(("a", "b", "c"), "a", reveals_sizes=False))


def test_leakage_between_two_parties():
    lines = leakage(("a", "b"), "a")
    assert any("hides only which of a party's own elements the other holds" in x.exact for x in lines)
    assert [line.who for line in lines if "number of common elements" in line.exact] == [("a",)]
    assert not any("fakes" in x.exact for x in lines)
    assert any("power of two, at least 64, that is not below the size of the other's set" in x.exact for x in lines)


@pytest.mark.parametrize("late", slowly(NAMES[:4], now=[0, 2]))
def test_a_party_that_is_late_sends_its_list_in_the_same_round(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, sets = module.padded, pseudonyms_of("ab", "bc", "xy", "d")

    def slowly_made(elements: Sequence[bytes], *rest: Any) -> OwnList:
        if set(elements) >= sets[late]:
            time.sleep(0.2)
        return made(elements, *rest)

    monkeypatch.setattr(module, "padded", slowly_made)
    run = run_union(sets, merger="east")
    firsts = {frame.lane: frame.round for frame in reversed(run.frames) if frame.lane.endswith(f"/{frame.sender}")}
    rounds = {number for lane, number in firsts.items() if "/list/" in lane}
    assert len(rounds) == 1
    assert max(costs.rounds for costs in run.costs.values()) == 1 + 2 * 4 + 2  # the first is that of the secrets

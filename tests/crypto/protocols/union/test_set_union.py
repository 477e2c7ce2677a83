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
from crypto.protocols.union import set_union as set_union_module
from crypto.protocols.union.disclosure import declared, leakage
from crypto.protocols.union.lists import MOST_CLASSES, OwnList, common_fakes, spare_for_common_fakes
from link.disclosure import opens
from link.errors import ConfigurationError
from protos.v1 import set_union_pb2
from protos.v1.link_pb2 import Opening
from protos.v1.set_union_pb2 import EncryptedList, MergedSize
from tests.crypto.protocols.set_union_world import FEW, NAMES, Run, in_union, message_of, run_union, sets_of
from tests.errors import fails
from tests.examples import examples, slowly

pooled_settings = examples(5, 10, suppress_health_check=[HealthCheck.too_slow])
elements = st.one_of(
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=120),
    st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"x" * 16, b"x" * 17, b"x" * 126, b"x" * 127, b"x" * 300]),
)


@st.composite
def parties_and_sets(draw: st.DrawFn) -> dict[str, list[bytes]]:
    universe = draw(st.lists(elements, max_size=12, unique=True))
    names = NAMES[: draw(st.integers(2, 7))]
    some = st.lists(st.sampled_from(universe), max_size=15) if universe else st.just([])
    return {name: draw(some) for name in names}


def pooled(sets) -> list[bytes]:
    return sorted(set().union(*sets.values()))


@pooled_settings
@given(sets=parties_and_sets(), place=st.integers(0, 6), bound=st.sampled_from([None, 15, 40]), seed=st.integers(0, 99))
def test_every_party_gets_the_pooled_union(sets, place, bound, seed):
    run = run_union(sets, merger=tuple(sets)[place % len(sets)], bound=bound, seed=seed)
    assert run.unions == dict.fromkeys(sets, pooled(sets))


@pytest.mark.parametrize(
    "sets",
    [
        sets_of((), (), ()),
        sets_of("abc", "abc", "abc"),
        sets_of("abc", "def", "ghi"),
        sets_of((), "a", ()),
        sets_of("ab", ()),
        sets_of((), "ab"),
        sets_of("a", "a"),
        sets_of(["naïve", "日本", "😀\n", " "], ["日本", "\u0000", ""], ["é", "é"]),
    ],
)
def test_edges(sets):
    for merger in sets:
        assert run_union(sets, merger=merger, bound=4).unions == dict.fromkeys(sets, pooled(sets))


def test_elements_of_many_blocks_share_prefixes_and_repeat_blocks():
    long = [b"A" * 500, b"A" * 499 + b"B", b"A" * 17, b"A" * 34, b"A" * 68, b"\0" * 400]
    sets = {"north": long[:4], "south": long[2:], "east": [long[0], b"A"]}
    run = run_union(sets, merger="south", max_element_bytes=500)
    assert run.unions == dict.fromkeys(sets, pooled(sets))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_lists_of_several_kernels_and_pieces(monkeypatch, n):
    monkeypatch.setattr(layers, "KERNEL_POINTS", 7)
    monkeypatch.setattr(layers, "PIECE_POINTS", 20)
    universe = [b"a longer element %d" % i for i in range(60)]
    sets = {name: universe[10 * i : 10 * i + 25] for i, name in enumerate(NAMES[:n])}
    run = run_union(sets, merger="north", bound=30)
    assert run.unions == dict.fromkeys(sets, pooled(sets))
    assert sum(frame.type.endswith("MergedPiece") for frame in run.frames) > 3 * n


def test_over_streams_under_mutual_tls():
    sets = sets_of("abc", "bcd", "cde")
    run = run_union(sets, merger="south", bound=4, transport="grpc")
    assert run.unions == dict.fromkeys(sets, pooled(sets))


def lengths(run: Run) -> set[int]:
    """Points of each list on its first hop."""
    whole = Counter[str]()
    for frame in run.frames:
        if frame.type == EncryptedList.DESCRIPTOR.full_name and frame.lane.endswith(f"/{frame.sender}"):
            whole[frame.sender] += len(message_of(frame).data) // 32
    return set(whole.values())


def test_default_noise_and_the_least_size_class():
    sets = sets_of("abcde", "ab", "")
    run = run_union(sets, merger="east", epsilon_dup=1.0)
    assert run.unions == dict.fromkeys(sets, pooled(sets))
    assert lengths(run) == {64 + spare_for_common_fakes(3, common_fakes(1.0))}


@pytest.mark.parametrize(("largest", "size_class"), [(0, 64), (64, 64), (65, 128), (129, 256)])
@pytest.mark.parametrize("holder", NAMES[:3])
def test_all_lists_have_the_size_class_of_the_largest_set(largest, size_class, holder):
    sets = {name: [b"a"] for name in NAMES[:3]} | {holder: [b"%d" % i for i in range(largest)]}
    assert lengths(run_union(sets, merger="north")) == {size_class + 4}


@pytest.mark.parametrize(
    ("longest", "blocks"), slowly([(1, 1), (17, 2), (40, 3), (70, 6), (110, 8), (300, 24)], now=[0, 1, 2, 3])
)
@pytest.mark.parametrize("holder", NAMES[:3])
def test_all_lists_have_the_length_class_of_the_longest_element(longest, blocks, holder):
    sets = {name: [b"a"] for name in NAMES[:3]} | {holder: [b"b" * longest]}
    assert lengths(run_union(sets, merger="north", bound=5)) == {blocks * 68}


def test_only_the_receivers_learn_the_union():
    sets = sets_of("ab", "bc", "cd")
    run = run_union(sets, merger="south", to=["east"])
    assert run.unions == {"north": [], "south": pooled(sets), "east": pooled(sets)}
    ends = (f for f in run.frames if f.type.endswith(("UnionSize", "Opening")) and not f.lane.endswith("/sizes"))
    assert {f.receiver for f in ends} == {"east"}


def test_the_union_is_opened_once_under_its_label():
    sets = sets_of("ab", "bc", "cd")
    run = run_union(sets, merger="south", label="items")
    opened = {name: [line for line in lines if line[0] != SIZES] for name, lines in run.opened.items()}
    assert opened == {"north": [], "south": [("items", ("north", "east"), 4)], "east": []}
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
        (["a" * 51], {"max_element_bytes": 39}, "E104"),
        ("a", {"bound": 0}, "E100"),
        ("a", {"epsilon_dup": 0}, "E100"),
        ("a", {"epsilon_dup": float("nan")}, "E100"),
        ("a", {"epsilon_dup": 1e-9}, "E100"),
        ("a", {"max_element_bytes": 1 << 16}, "E100"),
        ("a", {"bound": 1 << 24, "max_element_bytes": 3}, "E104"),
        ("a", {"merger": "nowhere"}, "E100"),
    ],
)
def test_what_makes_no_union_is_refused(own, options, code):
    with fails(code):
        run_union(sets_of(own, "a"), **({"merger": "south"} | options))


def test_a_bound_that_no_list_can_have_is_told_to_all():
    with fails("E100") as caught:
        run_union(sets_of("a", "b"), merger="south", bound=(1 << 24) + 1)
    assert caught.value.shareable


def test_a_set_over_its_bound_says_no_number_but_the_bound_and_its_class():
    with pytest.raises(ConfigurationError) as caught:
        run_union(sets_of([str(i) for i in range(77)], "a"), merger="south", bound=10)
    assert re.findall(r"\d+", caught.value.message) == ["64", "10"]
    with pytest.raises(ConfigurationError) as other:
        run_union(sets_of([str(i) for i in range(65)], "a"), merger="south", bound=10)
    assert other.value.message == caught.value.message


@pytest.mark.parametrize("n", range(2, 8))
def test_rounds(n):
    run = run_union({name: [b"a"] for name in NAMES[:n]}, merger=NAMES[n - 1], bound=2)
    # One round of key agreement comes before.
    rounds = {name: costs.rounds - 1 for name, costs in run.costs.items()}
    assert rounds == {name: 2 * n + 1 if name == NAMES[n - 1] else 2 * n + 2 for name in NAMES[:n]}


def test_bytes_are_exact():
    # ε so large that each pair has one common fake: 64 + (n − 1)·2 tuples in a list.
    sets = sets_of("abcde", "cdefg", "xyz")
    run = run_union(sets, merger="north", bound=10, epsilon_dup=FEW)
    length, real, fakes = 68, len(pooled(sets)), 3 * 68 - 13 - 3
    (merged,) = {message_of(f).tuples for f in run.frames if f.type == MergedSize.DESCRIPTOR.full_name}
    assert merged == real + fakes

    def ciphertext(kind: str) -> int:
        return sum(len(message_of(f).data) for f in run.frames if f.type.endswith("." + kind))

    assert ciphertext("FullyEncryptedList") == 3 * length * 32
    assert ciphertext("EncryptedList") == (2 * 1 + 2) * length * 32
    assert ciphertext("MergedPiece") == 3 * merged * 32
    # All frames with their headers, greetings aside.
    assert {n: c.bytes_sent for n, c in run.costs.items()} == {"north": 11708, "south": 15026, "east": 15027}


@pytest.mark.slow
def test_twenty_thousand_elements():
    universe = [b"element %d" % i for i in range(12_000)]
    sets = {"north": universe[:8000], "south": universe[4000:], "east": universe[2000:6000]}
    run = run_union(sets, merger="east", bound=8000, epsilon_dup=1.0)
    assert run.unions == dict.fromkeys(sets, sorted(universe))


def test_the_statement_names_label_receivers_and_maximum():
    sizes, line = declared(("a", "b", "c"), "b", 30, "items")
    assert (sizes.label, sizes.recipients, sizes.maximum) == (SIZES, {"a", "b", "c"}, sum(MOST_CLASSES))
    assert (line.label, line.recipients, line.maximum) == ("items", {"a", "c"}, 30)
    _, line = declared(("a", "b", "c"), "b", 30, to=["c", "b"])
    assert line.recipients == {"c"}


def test_leakage_as_data():
    lines = leakage(("a", "b", "c"), "a", bound=8)
    of_merger = [x.exact for x in lines if x.who == ("a",)]
    assert any("exactly these two hold, plus the pair's number of common fakes" in what for what in of_merger)
    assert any("every group of parties with a in it, or of three or more" in what for what in of_merger)
    assert any("whether 64 is below the size of the largest set of the other parties" in x.exact for x in lines)
    assert not any("power of two" in x.exact for x in lines)
    (sizes,) = [x for x in lines if "sum of the sizes" in x.exact]
    assert sizes.who == ("a", "b", "c")
    assert "common fakes of the pairs without the learner" in sizes.exact
    assert not any("only which" in x.exact for x in lines)


def test_leakage_to_parties_that_do_not_learn_the_union():
    lines = leakage(("a", "b", "c"), "a", to=["b"])
    assert [x.who for x in lines if "number of different tuples" in x.exact] == [("c",)]


def test_leakage_between_two_parties():
    lines = leakage(("a", "b"), "a")
    assert any("hides only which of a party's own elements the other holds" in x.exact for x in lines)
    assert not any("fakes" in x.exact for x in lines)
    assert any("power of two, at least 64, that is not below the size of the other's set" in x.exact for x in lines)


@pytest.mark.parametrize("late", NAMES[:4])
def test_a_party_that_is_late_sends_its_list_in_the_same_round(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, sets = set_union_module.padded, sets_of("ab", "bc", "", "d")

    def slowly(elements: Sequence[bytes], *rest: Any) -> OwnList:
        if elements == sorted(sets[late]):
            time.sleep(0.2)
        return made(elements, *rest)

    monkeypatch.setattr(set_union_module, "padded", slowly)
    run = run_union(sets, merger="east")
    firsts = {frame.lane: frame.round for frame in reversed(run.frames) if frame.lane.endswith(f"/{frame.sender}")}
    rounds = {number for lane, number in firsts.items() if "/list/" in lane}
    assert len(rounds) == 1
    assert max(costs.rounds for costs in run.costs.values()) == 1 + 2 * 4 + 2  # the first is that of the secrets

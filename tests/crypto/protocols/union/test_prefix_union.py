"""Unions by prefixes against the pooled sets; what is opened; who may notice what; faults."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.unordered_code import words_of
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union import prefix_union as module
from crypto.protocols.union.prefix_disclosure import declared, leakage, most_opened
from crypto.protocols.union.prefix_union import prefix_union
from crypto.protocols.union.prefixes import Prefixes
from link.disclosure import Declared
from link.errors import ComineError, MalformedMessage, PeerError
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.errors import fails
from tests.examples import ALL, examples, slowly
from tests.faulty_world import run_faulty_parties
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(3)

LONGEST = 300
elements = st.one_of(
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=120),
    st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"x" * 16, b"x" * 17, b"x" * 127, b"x" * 300]),
)
Sets = dict[str, list[bytes]]


def sets_of(*sets):
    return {name: {item.encode() for item in items} for name, items in zip(NAMES, sets, strict=False)}


@st.composite
def parties_and_sets(draw: st.DrawFn) -> Sets:
    universe = draw(st.lists(elements, max_size=12, unique=True))
    some = st.lists(st.sampled_from(universe), max_size=15) if universe else st.just([])
    return {name: draw(some) for name in NAMES[: draw(st.sampled_from([2, 3, 4, 7]))]}


def pooled(sets) -> list[bytes]:
    return sorted(set().union(*sets.values()))


def role_of(sets, **options):
    async def role(session):
        secrets, pairs = await agree(session), pairs_of(session.lane("pairs"))
        options_here = {"max_element_bytes": LONGEST} | options
        return await prefix_union(session, secrets, pairs, sets[session.me], **options_here)

    return role


def statement(sets, longest: int = LONGEST) -> list[Declared]:
    return declared(tuple(sets), sum(map(len, sets.values())), longest)


def run(sets, *, seed: int = 0, frames: list[Frame] | None = None, **options):
    observe = None if frames is None else frames.append
    lines = statement(sets, options.get("max_element_bytes", LONGEST))
    return run_parties(tuple(sets), role_of(sets, **options), declared=lines, seed=seed, observe=observe)


@examples(1, 8, suppress_health_check=[HealthCheck.too_slow])
@given(sets=parties_and_sets(), bound=st.sampled_from([None, 15, 40]), seed=st.integers(0, 99))
def test_every_party_gets_the_pooled_union_within_the_statement(sets, bound, seed):
    assert run(sets, bound=bound, seed=seed) == dict.fromkeys(sets, pooled(sets))


@pytest.mark.parametrize(
    "sets",
    [
        sets_of((), (), ()),
        sets_of("abc", "abc", "abc"),
        sets_of("abc", "def", "ghi"),
        sets_of("ab", ()),
        sets_of("a", "a"),
        sets_of(["naïve", "日本", "😀\n", " "], ["日本", "\u0000", ""], ["é", "é"]),
    ],
)
def test_edges(sets):
    assert run(sets) == dict.fromkeys(sets, pooled(sets))


def test_many_elements_of_which_several_share_prefixes():
    names = [b"item %d" % number for number in range(1500)]
    sets = {"north": names[:700], "south": names[500:1300], "east": [*names[::3], b"a much longer name than these"]}
    assert run(sets, max_element_bytes=40) == dict.fromkeys(sets, pooled(sets))


def test_elements_that_share_long_prefixes(monkeypatch):
    """Points that differ in their last bits alone; and two elements of one point end the union with an error."""

    def alike(own, key):
        return np.array([(0, number_of(name) << 60) for name in own], np.uint64).reshape(-1, 2)

    def number_of(name: bytes) -> int:
        return name[0] & 15

    monkeypatch.setattr(module, "points_of", alike)
    sets = {"north": [b"1", b"2"], "south": [b"2", b"3"]}
    wide = [Declared(label, frozenset(sets), "", 1 << 30, "") for label in ("union", "size classes")]
    assert run_parties(tuple(sets), role_of(sets), declared=wide) == dict.fromkeys(sets, pooled(sets))
    same = {"north": [b"1"], "south": [b"q"]}  # 0x31 and 0x71
    with fails("E400"):
        run_parties(tuple(same), role_of(same), declared=wide)


def test_over_streams_under_mutual_tls():
    sets = sets_of("abc", "bcd", "cde")
    ends = run_parties(tuple(sets), role_of(sets), declared=statement(sets), transport="grpc")
    assert ends == dict.fromkeys(sets, pooled(sets))


@pytest.mark.parametrize("holder", NAMES[:3])
def test_a_set_over_its_bound_and_a_long_name_end_it_for_all_before_anything_is_asked(holder):
    for held, options in (([b"%d" % i for i in range(65)], {"bound": 3}), ([b"x" * 60], {"max_element_bytes": 20})):
        sets = {name: [b"a"] for name in NAMES[:3] if name != holder} | {holder: held}
        frames: list[Frame] = []
        with fails("E104"):
            run(sets, frames=frames, **options)
        assert not [frame for frame in frames if "/question" in frame.lane]


# -- what is seen ------------------------------------------------------------------------------------------------------
def questions(frames: list[Frame]) -> dict[str, dict[str, bytes]]:
    """By question, what each party opened to others."""
    found: dict[str, dict[str, bytes]] = {}
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and "/question" in frame.lane:
            message = Opening()
            message.ParseFromString(frame.body)
            found.setdefault(frame.lane, {})[frame.sender] = message.values
    return found


def answers(frames: list[Frame]) -> dict[str, bytes]:
    """By question, the ORs."""
    return {
        lane: bytes(np.bitwise_xor.reduce([np.frombuffer(part, np.uint8) for part in parts.values()]))
        for lane, parts in questions(frames).items()
    }


def structure(frames: list[Frame]) -> Counter:
    return Counter((f.sender, f.receiver, f.lane, f.seq, f.type, f.last, f.round, len(f.body)) for f in frames)


SAME_UNION = [
    sets_of("abcdefgh", "cdefgh1234", "efghxyz"),
    sets_of("abcdefgh1234xyz", "abcdefgh1234xyz", "abcdefgh1234xyz"),
    sets_of("", "abcdefgh1234xyz", ""),
    sets_of("xyz", "1234", "abcdefgh"),
    sets_of("abcdefgh1234xy", "", "z"),
]


def test_all_that_is_opened_and_all_that_is_sent_depends_on_the_union_alone():
    """Same session and key of the points; sets of other sizes with other holders and other numbers of them."""
    views = []
    for sets in SAME_UNION:
        frames: list[Frame] = []
        assert run(sets, frames=frames, bound=20) == dict.fromkeys(sets, pooled(SAME_UNION[0]))
        views.append((answers(frames), structure(frames)))
    assert all(view == views[0] for view in views)
    assert len(views[0][0]) >= 3


@pytest.mark.parametrize("honest", NAMES[:3])
def test_colluders_get_nothing_but_shares_of_what_is_opened(honest):
    """Sets of an honest party that differ as far as they can under one union: what is opened is the same, what is sent
    has the same form, and rows and corrections are half ones (6 standard deviations)."""
    others = [b"%d" % number for number in range(1200)]
    sets = dict.fromkeys(NAMES[:3], others)
    seen = []
    for own in ([], others):
        frames: list[Frame] = []
        run(sets | {honest: own}, frames=frames, max_element_bytes=8)
        kinds = (EncryptedMessages.DESCRIPTOR.full_name, ExtensionRows.DESCRIPTOR.full_name)
        sent = Counter[str]()
        ones = Counter[str]()
        for frame in frames:
            if frame.sender == honest and "/question" in frame.lane and frame.type in kinds:
                data = (EncryptedMessages if frame.type == kinds[0] else ExtensionRows).FromString(frame.body).data
                bits = np.unpackbits(np.frombuffer(data, np.uint8))
                sent[frame.type] += bits.size
                ones[frame.type] += int(bits.sum())
        for kind, number in sent.items():
            assert abs(ones[kind] - number / 2) < 6 * np.sqrt(number) / 2
        seen.append((sent, answers(frames), structure(frames)))
    assert seen[0] == seen[1]


def test_another_union_of_the_same_sets_asks_under_another_key():
    sets = sets_of("abcd", "cdef")
    first, second = [], []
    run(sets, seed=1, frames=first)
    run(sets, seed=2, frames=second)
    assert answers(first) != answers(second)


def test_the_statement():
    two, three = leakage(NAMES[:2], bound=100), leakage(NAMES[:3])
    assert two[0].what == "whether the other has more than 128 elements, and whether one that is too long"
    assert two[1].kind == "membership"
    assert len(three) == 1
    assert "more than 16,777,216 elements" in leakage(NAMES[:3])[0].what
    assert most_opened(3000, 20) < 3000 * 1000


# -- faults ------------------------------------------------------------------------------------------------------------
def faulty(sets, **options):
    ends, _ = run_faulty_parties(tuple(sets), role_of(sets), statement(sets), **options)
    return ends


@pytest.mark.parametrize("kind", [ExtensionRows, EncryptedMessages, Opening])
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0"])
def test_messages_of_another_size_name_their_sender(kind, change):
    field = "values" if kind is Opening else "data"

    def rewrite(frame: Frame) -> Frame:
        wanted = "/question" in frame.lane and frame.type == kind.DESCRIPTOR.full_name
        if not wanted or frame.sender != ("east" if kind is ExtensionRows else "south"):
            return frame
        message = kind.FromString(frame.body)
        setattr(message, field, change(getattr(message, field)))
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    ends = faulty(sets_of("abc", "bcd", "cde"), rewrite=rewrite)
    assert all(isinstance(end, ComineError) for end in ends.values())
    assert any(("east" if kind is ExtensionRows else "south") in str(end) for end in ends.values())


def test_wrong_bits_end_in_an_error_or_in_a_union_that_holds_all_own_elements():
    sets = sets_of("abc", "bcd", "cde")

    def rewrite(frame: Frame) -> Frame:
        if "/question 0" not in frame.lane or frame.type != Opening.DESCRIPTOR.full_name or frame.sender != "south":
            return frame
        message = Opening.FromString(frame.body)
        message.values = bytes(255 ^ byte for byte in message.values)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    assert all(isinstance(end, ComineError) for name, end in faulty(sets, rewrite=rewrite).items() if name != "south")


def opening_other_bits(question: int, receiver: str, turned: bytes):
    """South opens other bits of a question to one party than to the rest."""

    def rewrite(frame: Frame) -> Frame:
        kind = frame.type == Opening.DESCRIPTOR.full_name
        if (
            not kind
            or f"/question {question}" not in frame.lane
            or (frame.sender, frame.receiver) != ("south", receiver)
        ):
            return frame
        message = Opening.FromString(frame.body)
        message.values = bytes(a ^ b for a, b in zip(message.values, turned, strict=True))
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


def test_who_opens_different_bits_to_two_others_is_not_the_one_that_is_named():
    """A limit of semi-honest parties, which the page names: a verified union has none of it."""
    sets, rewrite = sets_of("abc", "bcd", "cde"), opening_other_bits(0, "north", b"\xff" * 512)
    ends = faulty(sets, rewrite=rewrite, executor=InlineExecutor())
    assert {name: type(end) for name, end in ends.items() if name != "south"} == dict.fromkeys(
        ("north", "east"), MalformedMessage
    )
    assert ends["north"].party == "east"


def test_who_opens_different_names_to_two_others_gives_them_different_unions():
    names = np.unpackbits(np.frombuffer(b"ab", np.uint8)).reshape(2, 8)
    one, other = (np.packbits(word, bitorder="little") for word in words_of(names))
    turned = (one ^ other).tobytes()
    ends = faulty(sets_of("", "a", ""), rewrite=opening_other_bits(2, "north", turned))
    assert ends == {"north": [b"b"], "south": [b"a"], "east": [b"a"]}


@pytest.mark.costly
@pytest.mark.parametrize("lost", slowly(NAMES[:2], now=[1]))
def test_a_party_that_is_lost_at_any_frame_ends_the_union_for_both(lost):
    sets = sets_of("abc", "bcd")
    role, lines = role_of(sets), statement(sets)
    _, hub = run_faulty_parties(tuple(sets), role, lines)
    for frame in range(0, hub.sent[lost], 1 if ALL else 5):
        ends, _ = run_faulty_parties(tuple(sets), role, lines, crash=(lost, frame))
        for name, end in ends.items():
            if name != lost and end != pooled(sets):  # who needs nothing more of the lost party may have finished
                assert type(end) is PeerError
                assert end.party == lost


def test_prefixes_of_closed_ones_stay_closed():
    prefixes = Prefixes.of(np.array([[0b0110, 0], [0b0111, 0], [0b1000, 0]], np.uint64)).extended(1)
    assert prefixes.in_use().tolist() == [1, 1]
    only = prefixes.only(np.array([True, False])).extended(3)
    assert (only.number, only.bits, only.held().tolist()) == (8, 4, [0, 2])

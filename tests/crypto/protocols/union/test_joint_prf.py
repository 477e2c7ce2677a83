from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.params import STANDARD_128
from crypto.primitives.groups import commutative
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import hash_to_group, is_valid_points
from crypto.primitives.hashing import encode_fields
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union import joint_prf, layers
from crypto.protocols.union.disclosure import size_classes
from crypto.protocols.union.joint_prf import leakage, pseudonyms, routes_of
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic, prf_work
from crypto.protocols.union.size_classes import LISTS
from link.costs import Costs
from link.disclosure import opens
from link.errors import ComineError, ConfigurationError, MalformedMessage, PeerError, ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1 import joint_prf_pb2
from protos.v1.joint_prf_pb2 import BlindedPoints
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.set_union_world import NAMES, recorded_keys
from tests.errors import fails
from tests.examples import crossed, examples, slowly, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import run_parties

pytestmark = pytest.mark.turn(8)

Held = Mapping[str, Sequence[bytes]]
SUITE_NAME = STANDARD_128.suite.encode()


def run(held: Held, *, seed: int = 0, frames: list[Frame] | None = None, transport="memory", **options):
    """By party, the pseudonym of each of its elements."""

    async def role(session: Session) -> dict[bytes, bytes]:
        found = await pseudonyms(session, await agree(session), held[session.me], **options)
        assert found.shape == (len(held[session.me]), 16)
        return dict(zip(held[session.me], map(bytes, found), strict=True))

    observe = frames.append if frames is not None else None
    return run_parties(
        tuple(held),
        role,
        declared=[size_classes(tuple(held), unions=0, lists=1)],
        seed=seed,
        observe=observe,
        deadline_s=240,
        transport=transport,
    )


def together(found: Mapping[str, Mapping[bytes, bytes]]) -> dict[bytes, bytes]:
    """One pseudonym for each element; the same at all who hold it."""
    joint: dict[bytes, bytes] = {}
    for own in found.values():
        for element, pseudonym in own.items():
            assert joint.setdefault(element, pseudonym) == pseudonym
    assert len(set(joint.values())) == len(joint)
    return joint


def points_in(frames: Sequence[Frame]) -> list[bytes]:
    data = b"".join(BlindedPoints.FromString(f.body).data for f in frames if f.type.endswith("BlindedPoints"))
    return [data[start : start + 32] for start in range(0, len(data), 32)]


def sample(name: str, size: int, first: int = 0) -> list[bytes]:
    return [b"%s %d" % (name.encode(), number) for number in range(first, first + size)]


# -- what comes out --------------------------------------------------------------------------------------------------
elements = st.text(max_size=12).map(str.encode) | st.binary(max_size=40) | st.sampled_from([b"", b"\0", b"\0\0"])


@st.composite
def parties_and_elements(draw: st.DrawFn) -> dict[str, list[bytes]]:
    universe = draw(st.lists(elements, max_size=14, unique=True))
    some = st.lists(st.sampled_from(universe), max_size=14, unique=True) if universe else st.just([])
    return {name: draw(some) for name in NAMES[: draw(st.integers(2, 5))]}


@examples(4, 24, suppress_health_check=[HealthCheck.too_slow])
@given(
    held=parties_and_elements(), bound=st.sampled_from([None, 14, 25]), fewer=st.integers(1, 2), seed=st.integers(0, 99)
)
def test_equal_elements_and_no_others_have_equal_pseudonyms(held, bound, fewer, seed):
    together(run(held, bound=bound, seed=seed, colluders=max(1, len(held) - fewer)))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_lists_of_several_kernels_and_pieces(monkeypatch, n):
    for module in (layers, joint_prf):
        monkeypatch.setattr(module, "KERNEL_POINTS", 7)
    monkeypatch.setattr(layers, "PIECE_POINTS", 20)
    held = {name: sample("item", 40 + place, 10 * place) for place, name in enumerate(NAMES[:n])}
    frames: list[Frame] = []
    together(run(held, frames=frames))
    pieces = [-(-LISTS.rounded(len(own)) // 20) for own in held.values()]
    assert sum(frame.type.endswith("BlindedPoints") for frame in frames) == n * sum(pieces)
    assert sum(pieces) > n


def test_over_streams_under_mutual_tls():
    together(run({"north": sample("x", 9), "south": sample("x", 5), "east": []}, transport="grpc"))


@pytest.fixture
def keys(monkeypatch):
    return recorded_keys(monkeypatch)


HELD = {"north": sample("item", 9), "south": sample("item", 12, 4), "east": sample("item", 3, 7)}


def key_of_all(keys, parties, colluders) -> CommutativeKey:
    """The product over all groups, which nobody holds."""
    if colluders == len(parties) - 1:
        return reduce(CommutativeKey.blinded, (keys[party, "key"] for party in parties))
    pairs = {frozenset(pair) for pair in combinations(parties, 2)}
    held = {frozenset(name): key for name, key in keys.items() if name[1] in parties}
    assert set(held) == pairs
    return reduce(CommutativeKey.blinded, held.values())


@pytest.mark.parametrize(("n", "colluders"), [(2, 1), (3, 2), (3, 1), (4, 3), (4, 2), (5, 3)])
def test_the_function_is_a_power_by_the_product_of_all_keys(keys, n, colluders):
    held = {name: sample("item", 6, place) for place, name in enumerate(NAMES[:n])}
    found = together(run(held, colluders=colluders))
    key = key_of_all(keys, tuple(held), colluders)
    points = key.encrypt(hash_to_group(list(found), encode_fields(SUITE_NAME, b"joint prf")))
    for point, pseudonym in zip(points, found.values(), strict=True):
        output = hashlib.sha256(encode_fields(SUITE_NAME, b"joint prf output") + point.tobytes())
        assert output.digest()[:16] == pseudonym


@pytest.mark.parametrize(("n", "colluders"), [(2, 1), (3, 2), (3, 1), (4, 2), (5, 4), (5, 3), (7, 5)])
def test_no_group_is_without_a_helper_and_every_coalition_lacks_a_key(n, colluders):
    parties = NAMES[:n]
    groups = [set(group) for group in combinations(parties, n - colluders)]
    for owner, helpers in routes_of(parties, colluders).items():
        assert owner not in helpers
        assert len(set(helpers)) == colluders
        assert all(group & set(helpers) for group in groups if owner not in group)
    for coalition in combinations(parties, colluders):
        assert any(group.isdisjoint(coalition) for group in groups)


@pytest.mark.parametrize(("n", "colluders"), [(2, 0), (3, 3), (3, 0), (4, 1), (2, 2)])
def test_other_numbers_of_colluders_are_refused(n, colluders):
    with pytest.raises(ValueError, match="colluders, not"):
        routes_of(NAMES[:n], colluders)


@pytest.mark.parametrize(
    ("colluders", "pseudonym"),
    [(2, "10ecb880e1304b5e93d10af5c76cc81f"), (1, "081748719889c36be0d807a39f41e57f")],
)
def test_seeded_pseudonyms_are_as_they_were(colluders, pseudonym):
    found = together(run(HELD, seed=7, colluders=colluders))
    assert found[b"item 7"].hex() == pseudonym


@pytest.mark.parametrize("options", [{}, {"colluders": 1}])
def test_two_calls_share_nothing(options):
    frames: list[Frame] = []

    async def role(session):
        secrets = await agree(session)
        calls = [await pseudonyms(session.lane(name), secrets, HELD[session.me], **options) for name in ("one", "two")]
        return [bytes(row) for found in calls for row in found]

    declared = [size_classes(tuple(HELD), unions=0, lists=2)]
    found = run_parties(tuple(HELD), role, declared=declared, observe=frames.append)
    assert all(len(set(rows)) == len(rows) for rows in found.values())
    first, second = (points_in([f for f in frames if f.lane.startswith(f"/{name}/")]) for name in ("one", "two"))
    assert first
    assert not set(first) & set(second)


# -- what a party sees -----------------------------------------------------------------------------------------------
def received(frames: Sequence[Frame], party: str) -> list[Frame]:
    return [f for f in frames if f.receiver == party and "/joint-prf" in f.lane]


def structure(frames: Sequence[Frame], party: str) -> Counter[tuple[object, ...]]:
    """Kinds, order and sizes of all that a party receives."""
    shown = received(frames, party)
    return Counter((f.sender, f.lane, f.seq, f.type, f.last, f.round, len(f.body)) for f in shown)


@pytest.mark.parametrize(("n", "colluders"), [(2, 1), (3, 2), (3, 1), (4, 3), (4, 2)])
def test_a_view_tells_nothing_of_what_the_others_hold(n, colluders):
    """All shared, nothing shared, nearly nothing held: the same kinds, sizes and order, and no value ever repeats."""
    names, north = NAMES[:n], sample("item", 11)
    worlds = [
        dict.fromkeys(names, north),
        {name: north if name == "north" else sample(name, 12) for name in names},
        {name: north if name == "north" else sample("item", 11) for name in names},
    ]
    views = []
    for held in worlds:
        frames: list[Frame] = []
        run(held, frames=frames, colluders=colluders)
        views.append(structure(frames, "north"))
        seen = points_in([f for f in frames if f.receiver == "north"])
        sent = points_in([f for f in frames if f.sender == "north"])
        assert len(set(seen)) == len(seen)
        assert len(set(sent)) == len(sent)
        assert not set(seen) & set(sent)
    assert views[0] == views[1] == views[2]
    assert sum(views[0].values()) == n - 1 + 1 + colluders  # masked maximum and lists


def test_a_view_of_points_is_distributed_alike_whatever_the_others_hold():
    """Each bit of the points that north sees is set equally often in two worlds, beyond a doubt of 2^-30.

    In both worlds the points are uniform, so the difference of two frequencies over 2·640 points has a standard
    deviation of at most √(2 · 0.25 / 1280). It is beyond 7 of them in one of 256 bits with probability below
    256 · 2.6e-12 < 2^-30.
    """
    north = sample("item", 600)
    frequencies, count = [], 0
    for others in (north, []):
        frames: list[Frame] = []
        run({"north": north, "south": others, "east": others}, bound=640, frames=frames)
        lists = [f for f in received(frames, "north") if not f.lane.endswith("list/north")]
        points = np.frombuffer(b"".join(points_in(lists)), np.uint8).reshape(-1, 32)
        assert is_valid_points(points).all()
        count = len(points)
        frequencies.append(np.unpackbits(points, axis=1).mean(axis=0))
    assert count == 2 * 640
    assert np.abs(frequencies[0] - frequencies[1]).max() < 7 * np.sqrt(2 * 0.25 / count)


@pytest.mark.parametrize(("n", "colluders"), slowly([(2, 1), (3, 2), (3, 1), (4, 3), (4, 2)], now=[0, 1, 2, 3]))
def test_ones_own_elements_are_not_recognised_in_the_others_lists(keys, n, colluders):
    """All hold the same; nothing that a party can compute of its elements occurs in any list of another's.

    For n = 2 this is the intersection that a ring without the one-time blind would show.
    """
    held = {name: sample("item", 12) for name in NAMES[:n]}
    frames: list[Frame] = []
    run(held, frames=frames, colluders=colluders)
    hashed = hash_to_group(held["north"], encode_fields(SUITE_NAME, b"joint prf"))
    known_keys = [key for name, key in keys.items() if "north" in name]
    assert len(known_keys) == (2 if colluders == n - 1 else 1 + 2 * (n - 1))  # each of a pair draws their key
    returned = [f for f in received(frames, "north") if f.lane.endswith("list/north")]
    back = np.frombuffer(b"".join(points_in(returned)), np.uint8).reshape(-1, 32)
    mine = [hashed, back]
    for _ in range(2):  # with its keys or blind on or off, once and twice
        mine += [step(points) for points in mine for key in known_keys for step in (key.encrypt, key.decrypt)]
    known = {row.tobytes() for points in mine for row in points}
    lists = [f for f in frames if "north" in (f.sender, f.receiver) and not f.lane.endswith("list/north")]
    assert len(points_in(lists)) == 2 * 64 * colluders
    assert not known & set(points_in(lists))


def test_a_list_leaves_in_a_secret_order_with_its_random_points_anywhere(keys):
    held = {"north": sample("item", 20), "south": []}
    places = set()
    for seed in range(3):
        frames: list[Frame] = []
        run(held, bound=30, seed=seed, frames=frames)
        sent = points_in([f for f in frames if f.sender == "north" and f.lane.endswith("list/north")])
        hashed = hash_to_group(held["north"], encode_fields(SUITE_NAME, b"joint prf"))
        blinded = [row.tobytes() for row in keys["north", "blind"].decrypt(hashed)]
        order = tuple(sent.index(row) for row in blinded)
        assert order != tuple(sorted(order))
        assert set(order) != set(range(20))
        places.add(order)
    assert len(places) == 3


def test_no_message_opens_anything():
    for name in joint_prf_pb2.DESCRIPTOR.message_types_by_name:
        assert not opens(getattr(joint_prf_pb2, name))


# -- lengths ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("largest", "bound", "length", "holder"),
    crossed(
        [(0, None, 64), (64, None, 64), (65, None, 80), (81, None, 96), (12, 12, 64), (65, 70, 80)],
        list(HELD),
    ),
)
def test_all_lists_have_the_size_class_of_the_longest(largest, bound, length, holder):
    frames: list[Frame] = []
    run({name: sample("x", largest if name == holder else 3) for name in HELD}, bound=bound, frames=frames)
    assert {len(points_in([f])) for f in frames if f.type.endswith("BlindedPoints")} == {length}


@pytest.mark.parametrize(
    ("own", "bound", "code"), [(sample("x", 65), 4, "E104"), ([], 0, "E100"), ([], LISTS.most + 1, "E100")]
)
def test_a_bound_that_cannot_be_met_is_refused(own, bound, code):
    with fails(code):
        run({"north": own, "south": []}, bound=bound)


def test_it_is_not_told_by_how_much_a_bound_is_exceeded():
    messages = set()
    for number in (65, 77):
        with pytest.raises(ConfigurationError) as caught:
            run({"north": sample("x", number), "south": []}, bound=10)
        messages.add(caught.value.message)
    assert len(messages) == 1


def test_an_element_is_not_given_twice():
    with pytest.raises(ValueError, match="must be different"):
        run({"north": [b"a", b"a"], "south": []})


def test_leakage_as_data():
    (line,) = leakage(("a", "b"), 12)
    assert line.exact == "whether the other has more than 64 elements"
    (line,) = leakage(("a", "b"))
    assert line.who == ("a", "b")
    assert line.exact.endswith("that holds the elements of the other")
    assert line.exact.startswith("the least of 64, 80, 96, 112, 128, 160, …")
    (line,) = leakage(("a", "b", "c"), 12)
    assert line.exact == "whether some other party, not which one, has more than 64 elements"


# -- costs -----------------------------------------------------------------------------------------------------------
def test_rounds_do_not_depend_on_the_number_of_pieces(monkeypatch):
    monkeypatch.setattr(layers, "PIECE_POINTS", 5)

    async def role(session: Session) -> int:
        await pseudonyms(session, await agree(session), sample("x", 30), colluders=colluders)
        return session.costs.rounds

    for n, colluders in ((2, 1), (3, 1), (4, 3)):
        declared = [size_classes(NAMES[:n], unions=0, lists=1)]
        assert set(run_parties(NAMES[:n], role, declared=declared).values()) == {1 + 1 + colluders + 1}


@pytest.mark.parametrize(
    ("numbers", "bound", "colluders"), [((40, 90), None, 1), ((0, 7, 300), 400, 1), ((99,) * 5, None, 3)]
)
def test_pseudonyms_send_what_is_planned(numbers, bound, colluders):
    held = {name: sample("x", number) for name, number in zip(NAMES, numbers, strict=False)}

    async def role(session: Session) -> Costs:
        await pseudonyms(session, await agree(session), held[session.me], bound=bound, colluders=colluders)
        return session.costs

    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    prf_traffic(traffic, PrfSizes.of({name: len(own) for name, own in held.items()}, bound, colluders))
    declared = [size_classes(tuple(held), unions=0, lists=1)]
    assert_planned(traffic, run_parties(tuple(held), role, declared=declared))


@pytest.mark.parametrize("colluders", [1, 2])
def test_the_group_operations_are_those_of_the_protocol(monkeypatch, colluders):
    counted: Counter[str] = Counter()

    def counting(name, function):
        def count(rows, *rest):
            counted[name] += len(rows)
            return function(rows, *rest)

        return count

    monkeypatch.setattr(commutative, "multiply", counting("multiply", commutative.multiply))
    for name in ("hash_to_group", "from_uniform_bytes"):
        monkeypatch.setattr(joint_prf, name, counting(name, getattr(joint_prf, name)))
    run(HELD, colluders=colluders)
    numbers = {name: len(own) for name, own in HELD.items()}
    work = prf_work(PrfSizes.of(numbers, None, colluders), numbers).values()
    assert counted["multiply"] == sum(part.multiplications for part in work)
    assert counted["hash_to_group"] == sum(part.hashed for part in work) == 24
    assert counted["from_uniform_bytes"] == sum(part.drawn for part in work) == 3 * 64 - 24


# -- parties that send wrong messages, and parties that are lost ------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    """How it ends at each party."""

    async def role(session: Session) -> list[bytes]:
        return list(map(bytes, await pseudonyms(session, await agree(session), held[session.me])))

    return run_faulty_parties(tuple(held), role, [size_classes(tuple(held), unions=0, lists=1)], rewrite, crash)


def failures(outcome) -> list[ComineError]:
    """Who needs nothing more of the others may have finished."""
    return [end for end in outcome.values() if isinstance(end, ComineError)]


def changed(sender: str, lane: str, change) -> Rewrite:
    """A rewriting of one sender's frame with points on a lane."""

    def rewrite(frame: Frame) -> Frame:
        if frame.sender != sender or not frame.lane.endswith(lane) or not frame.type.endswith("BlindedPoints"):
            return frame
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = BlindedPoints(data=change(BlindedPoints.FromString(frame.body).data)).SerializeToString()
        return copy

    return rewrite


def put(place: int, point: bytes):
    return lambda data: data[: 32 * place] + point + data[32 * (place + 1) :]


NO_POINT, IDENTITY = b"\xff" * 32, bytes(32)
SECOND_NAME = bytes([2]) + bytes(30) + b"\x80"


@pytest.mark.parametrize(
    "change",
    [
        put(0, NO_POINT),
        put(3, IDENTITY),
        put(9, SECOND_NAME),
        lambda data: data[:-32],
        lambda data: data[:-1],
        lambda data: data + data[:32],
        lambda data: b"",
    ],
)
@pytest.mark.parametrize(
    ("sender", "lane"),
    [("north", "list/north"), ("south", "list/north"), ("east", "list/north"), ("north", "list/east")],
)
def test_what_is_no_list_of_points_is_laid_at_its_senders_door(sender, lane, change):
    held = {"north": sample("item", 9), "south": sample("item", 12), "east": sample("item", 9)}
    outcome, _ = run_faulty(held, changed(sender, lane, change))
    errors = failures(outcome)
    assert {type(error) for error in errors} == {MalformedMessage}
    assert all(error.message.startswith(f"{sender} sent") for error in errors)
    assert sender in {error.party for error in errors}


@pytest.mark.parametrize("place", range(6))
def test_a_wrong_point_is_refused_whether_it_stands_for_an_element_or_not(place):
    held = {"north": sample("item", 2), "south": sample("item", 6)}
    for owner, sender in (("north", "south"), ("south", "north")):
        places = LISTS.rounded(len(held[owner]))
        outcome, _ = run_faulty(held, changed(sender, f"list/{owner}", put(place % places, IDENTITY)))
        assert type(outcome[owner]) is MalformedMessage
        assert outcome[owner].party == sender


def test_points_that_come_back_alike_are_no_pseudonyms():
    held = {"north": sample("item", 4), "south": sample("item", 4)}
    outcome, _ = run_faulty(held, changed("south", "list/north", lambda data: data[:32] * (len(data) // 32)))
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"
    outcome, _ = run_faulty(HELD, changed("east", "list/north", lambda data: data[:32] * (len(data) // 32)))
    assert type(outcome["north"]) is ProtocolViolation
    assert "south or east sent" in outcome["north"].message
    assert "item" not in outcome["north"].message


@pytest.mark.costly
def test_a_party_that_is_lost_at_any_frame_ends_it_for_all():
    whole, hub = run_faulty(HELD)
    by_frames = defaultdict(set)
    for lost in HELD:
        for frame in spread(hub.sent[lost], 4, hub.sent[lost]):
            outcome, _ = run_faulty(HELD, crash=(lost, frame))
            for name, end in outcome.items():
                if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                    assert type(end) is PeerError
                    assert end.party == lost
                    by_frames[lost].add(frame)
    assert all(by_frames[lost] for lost in HELD)

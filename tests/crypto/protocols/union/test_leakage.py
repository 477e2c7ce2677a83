"""What the parties see during a union, against what its statement says that they learn."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union.disclosure import declared, size_classes
from crypto.protocols.union.lists import common_fakes
from crypto.protocols.union.set_union import set_union
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.set_union_world import (
    data_of,
    in_union,
    point_array,
    points_of,
    pseudonyms_of,
    recorded_keys,
    run_union,
)
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

RING_SETS = pseudonyms_of("abcdefgh", "cdefgh1234", "efghxyz", "abxyz")


@pytest.fixture
def keys(monkeypatch):
    return recorded_keys(monkeypatch)


def hops(frames: list[Frame], step: str) -> dict[str, list[Frame]]:
    """Frames with ciphertexts by lane."""
    lanes = defaultdict(list)
    for frame in frames:
        if data_of(frame) and f"/{step}" in frame.lane:
            lanes[frame.lane].append(frame)
    return lanes


def rows(points: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in points]


def test_no_value_of_the_decryption_occurs_in_the_encryption():
    for merger in RING_SETS:
        run = run_union(RING_SETS, merger=merger)
        encryption = points_of([f for f in run.frames if "/list/" in f.lane])
        decryption = points_of([f for f in run.frames if "/merged" in f.lane])
        assert encryption
        assert decryption
        assert not set(encryption) & set(decryption)
        assert len(set(decryption)) == len(decryption)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_party_meets_a_value_again_that_it_has_sent(n):
    sets = {name: RING_SETS[name] for name in tuple(RING_SETS)[:n]}
    run = run_union(sets, merger="south")
    for party in sets:
        sent = points_of([f for f in run.frames if f.sender == party])
        received = points_of([f for f in run.frames if f.receiver == party])
        assert not set(sent) & set(received)


def test_only_the_merger_meets_equal_values():
    run = run_union(RING_SETS, merger="east")
    for party in RING_SETS:
        received = points_of([f for f in run.frames if f.receiver == party])
        assert (len(set(received)) < len(received)) == (party == "east")


def test_every_hop_permutes(keys):
    names = tuple(RING_SETS)
    sets = {name: [b"%016d" % i for i in range(j, j + 15)] for j, name in enumerate(names)}
    run = run_union(sets, merger="west")
    orders = set()
    for step, function in (("list/", "encrypt"), ("merged", "decrypt")):
        for frames in hops(run.frames, step).values():
            for party in names[:3]:
                received = point_array([f for f in frames if f.receiver == party])
                sent = point_array([f for f in frames if f.sender == party])
                if not len(received):
                    continue  # its own list
                expected = rows(getattr(keys[party, "list"], function)(received))
                places = {row: place for place, row in enumerate(expected)}
                order = tuple(places[row] for row in rows(sent))
                assert sorted(order) == list(range(len(expected)))
                assert order != tuple(range(len(expected)))
                orders.add(order)
    # three parties with three lists of others' each, and the merged list, each in an order of its own
    assert len(orders) == 3 * 3 + 3


def patterns_at(merger: str, frames: list[Frame], keys) -> Counter[frozenset[str]]:
    """By set of holders, how many equal points a merger can count, which knows its wrapping."""
    holders = defaultdict(set)
    for lane, sent in hops([f for f in frames if f.receiver == merger], "list/").items():
        owner = lane.rpartition("/")[2]
        points = point_array(sent)
        if owner == merger:
            points = keys[merger, "list"].decrypt(points)
        for row in rows(points):
            holders[row].add(owner)
    return Counter(map(frozenset, holders.values()))


def true_patterns(sets) -> Counter[frozenset[str]]:
    return Counter(frozenset(name for name in sets if element in sets[name]) for element in set().union(*sets.values()))


def test_the_merger_learns_patterns_of_pairs_of_others_with_noise_and_all_else_exactly(keys):
    most = 2 * common_fakes(1.0).shift
    true, noises = true_patterns(RING_SETS), defaultdict(set)
    for seed in range(4):
        run = run_union(RING_SETS, merger="north", epsilon_dup=1.0, seed=seed)
        seen = patterns_at("north", run.frames, keys)
        assert all(len(group) == 2 for group in seen - true if len(group) > 1)
        for group in seen:
            if len(group) == 2:
                noises[group].add(seen[group] - true[group])
            elif len(group) > 2:
                assert seen[group] == true[group]
    assert len(noises) == 6
    assert max(map(len, noises.values())) > 1
    drawn = set().union(*noises.values())
    assert len(drawn) > 2
    assert all(0 <= k <= most for k in drawn)


def structure(frames: list[Frame], party: str) -> tuple[Counter, Counter]:
    """Kinds, counts and sizes of all frames that a party receives, and how often values repeat."""
    received = [f for f in frames if f.receiver == party]
    kinds = Counter((f.sender, f.lane, f.seq, f.type, f.last, f.round, len(f.body)) for f in received)
    return kinds, Counter(Counter(points_of([f for f in received if in_union(f)])).values())


@pytest.mark.parametrize("merger", list(RING_SETS))
def test_views_depend_on_nothing_but_the_declared_output(merger):
    universe = sorted(set().union(*RING_SETS.values()))
    renamed = dict(zip(universe, [*universe[7:], *universe[:7]], strict=True))
    other = {name: {renamed[e] for e in elements} for name, elements in RING_SETS.items()}
    assert true_patterns(other) == true_patterns(RING_SETS)
    one, two = (run_union(sets, merger=merger, bound=12, epsilon_dup=1.0) for sets in (RING_SETS, other))
    assert one.unions == two.unions
    for party in RING_SETS:
        assert structure(one.frames, party) == structure(two.frames, party)


@pytest.mark.parametrize("merger", ["north", "south", "east"])
def test_who_does_not_merge_sees_nothing_of_who_shares_what(merger):
    """Equal union, sizes and number of shared elements, but other pairs share: the same view for all but the merger."""
    one = pseudonyms_of("abcd", "abef", "ghij")  # the first two share
    two = pseudonyms_of("abcd", "ijef", "ghij")  # the last two share
    runs = [run_union(sets, merger=merger, bound=4) for sets in (one, two)]
    assert runs[0].unions == runs[1].unions
    for party in one:
        if party != merger:
            assert structure(runs[0].frames, party) == structure(runs[1].frames, party)


def test_two_unions_share_no_value():
    sets, frames = pseudonyms_of("abc", "bcd"), []

    async def role(session):
        secrets = await agree(session)
        for label in ("one", "two"):
            await set_union(session, secrets, sets[session.me], merger="south", label=label)

    opened = [line for label in ("one", "two") for line in declared(tuple(sets), "south", 2 * 64, label)[1:]]
    lines = [size_classes(tuple(sets), unions=2), *opened]
    run_parties(tuple(sets), role, declared=lines, observe=frames.append)
    first = points_of([f for f in frames if "union/one" in f.lane])
    second = points_of([f for f in frames if "union/two" in f.lane])
    assert len(first) > 100
    assert len(second) > 100
    assert not set(first) & set(second)


def test_the_merger_cannot_tell_its_own_elements_in_the_shuffled_lists(keys):
    """Two parties: the merger's own list comes back in an order that only the other knows."""
    sets = pseudonyms_of("abcdefghij", "abcde")
    run = run_union(sets, merger="north")
    (frames,) = [f for lane, f in hops(run.frames, "list/").items() if lane.endswith("north")]
    sent = point_array([f for f in frames if f.sender == "north"])
    back = point_array([f for f in frames if f.receiver == "north"])
    places = {row: place for place, row in enumerate(rows(keys["south", "list"].encrypt(sent)))}
    order = [places[row] for row in rows(back)]
    assert sorted(order) == list(range(len(sent)))
    assert order != sorted(order)

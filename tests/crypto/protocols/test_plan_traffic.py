"""What the cost functions say of each protocol, against real runs: byte for byte."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import DIRECT_BYTES, declared, secure_sum
from crypto.protocols.union.costs import UnionSizes, union_traffic, union_work
from crypto.protocols.union.lists import ListSizes, common_fakes, length_class, room_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from link.costs import Costs
from link.session import Session
from link.traffic import Traffic, greeting
from protos.v1.link_pb2 import Frame
from protos.v1.set_union_pb2 import MergedSize
from tests.crypto.protocols.set_union_world import FEW, NAMES, run_union
from tests.examples import examples
from tests.world import SUITE, run_parties

WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def compare(traffic: Traffic, costs: dict[str, Costs]) -> None:
    for party, actual in costs.items():
        assert (traffic.bytes_sent(party), traffic.bytes_received(party)) == (actual.bytes_sent, actual.bytes_received)
    assert traffic.rounds == max(actual.rounds for actual in costs.values())


@settings(max_examples=40)
@example(parties=3, values=DIRECT_BYTES // 4 + 1, word=4, receivers=2)
@example(parties=3, values=DIRECT_BYTES // 4, word=4, receivers=3)
@example(parties=3, values=(5 << 20) // 8 + 3, word=8, receivers=3)
@given(st.integers(2, 5), st.integers(0, 40_000), st.sampled_from(sorted(WORDS)), st.integers(1, 5))
def test_sums(parties: int, values: int, word: int, receivers: int) -> None:
    names = NAMES[:parties]
    to = names[:receivers]

    async def role(session: Session) -> Costs:
        secrets = await agree(session)
        await secure_sum(session.lane("here"), secrets, np.zeros(values, WORDS[word]), label="counts", to=to)
        return session.costs

    lines = [declared("counts", to, values, what="counts", when="once")]
    traffic = Traffic(names)
    greeting(traffic, SUITE, {})
    agreement_traffic(traffic, "")
    sum_traffic(traffic, "/here", values=values, word_bytes=word, label="counts", to=to)
    compare(traffic, run_parties(names, role, declared=lines))


def union_sizes(sets: dict[str, set[bytes]], bound: int | None, merged: int) -> UnionSizes:
    capacity = SETS.rounded(bound or max(map(len, sets.values())))
    room = room_for_common_fakes(len(sets), common_fakes(FEW))
    width = max(map(length_class, sets.values()))
    return UnionSizes(ListSizes(len(sets), width, capacity, room), merged, len(set().union(*sets.values())))


@examples(10, 25)
@given(st.data())
def test_unions(data: st.DataObject) -> None:
    names = NAMES[: data.draw(st.integers(2, 4))]
    merger = data.draw(st.sampled_from(names))
    bound = data.draw(st.sampled_from([None, 12]))
    element = st.binary(max_size=40)
    sets = {name: data.draw(st.sets(element, max_size=12)) for name in names}
    to = data.draw(st.sampled_from([None, names[:1]]))
    run = run_union(sets, merger=merger, bound=bound, to=to)
    traffic = Traffic(names)
    greeting(traffic, SUITE, {})
    agreement_traffic(traffic, "")
    union_traffic(traffic, "", union_sizes(sets, bound, _merged(run.frames)), merger=merger, to=to)
    compare(traffic, run.costs)


def test_long_lists_go_in_pieces_and_chunks() -> None:
    elements = {f"{number:08}" * 3 for number in range(17_000)}
    sets = {"north": {element.encode() for element in elements}, "south": set[bytes]()}
    traffic, sizes = Traffic(tuple(sets)), union_sizes(sets, 17_000, 17_100)
    union_traffic(traffic, "", sizes, merger="north")
    points = (sizes.lists.total + sizes.merged) * 2 * 32
    rows = 17_000 * 2 * 30
    assert traffic.bytes_sent("north") + traffic.bytes_sent("south") == pytest.approx(
        2 * points - sizes.lists.length * 64 + rows, rel=0.001
    )


@pytest.mark.parametrize("merger", ["north", "east"])
def test_the_group_operations_are_those_of_the_protocol(merger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where they are computed, all parties together."""
    import crypto.primitives.commutative as commutative

    counted: Counter[str] = Counter()
    multiply, embed_multiplied = commutative.multiply, commutative.embed_multiplied

    def count_multiply(points: np.ndarray, scalar: bytes) -> np.ndarray:
        counted["multiply"] += len(points)
        return multiply(points, scalar)

    def count_embed_multiplied(rows: np.ndarray, scalar: bytes) -> np.ndarray:
        counted["multiply"] += len(rows)
        counted["embed"] += len(rows)
        return embed_multiplied(rows, scalar)

    monkeypatch.setattr(commutative, "multiply", count_multiply)
    monkeypatch.setattr(commutative, "embed_multiplied", count_embed_multiplied)
    held = {name: {hashlib.sha256(f"{name} {i}".encode()).digest()[:9] for i in range(30)} for name in NAMES[:3]}
    run = run_union(held, merger=merger, bound=30)
    work = union_work(union_sizes(held, 30, _merged(run.frames)), tuple(held), merger)
    assert counted["embed"] == sum(part.embedded for part in work.values())
    told = sum(part.encryptions + part.strips for part in work.values())
    assert counted["multiply"] == pytest.approx(told, rel=0.02)


def _merged(frames: list[Frame]) -> int:
    body = next(frame.body for frame in frames if frame.type == MergedSize.DESCRIPTOR.full_name)
    return MergedSize.FromString(body).tuples


@given(st.lists(st.integers(0, 500), min_size=2, max_size=6), st.integers(0, 3000), st.sampled_from([None, 600]))
def test_expected_unions_are_possible_ones(held: list[int], elements: int, bound: int | None) -> None:
    names = dict(zip(NAMES, held, strict=False))
    elements = min(max(elements, *held), sum(held))
    sizes = UnionSizes.expected(names, elements, 1, bound)
    assert sizes.lists.length <= sizes.merged <= sizes.lists.total
    assert sizes.lists.capacity >= max(held)

"""What the cost functions of unions say, against runs."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.union.costs import UnionSizes, union_traffic, union_work
from crypto.protocols.union.lists import Fill, ListSizes, common_fakes, length_class, spare_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame
from protos.v1.set_union_pb2 import MergedSize
from tests.crypto.protocols.set_union_world import FEW, NAMES, run_union
from tests.traffic import assert_planned


def sets_of(parties: int, length: int) -> dict[str, set[bytes]]:
    """Of 15, 30, … elements, some of them in common."""
    held = enumerate(NAMES[:parties], 1)
    return {name: {hashlib.sha512(b"%d" % i).digest()[:length] for i in range(15 * n)} for n, name in held}


def sizes_of(sets: dict[str, set[bytes]], bound: int | None, fill: Fill, merged: int | None) -> UnionSizes:
    room = spare_for_common_fakes(len(sets), common_fakes(FEW))
    lists = ListSizes(
        len(sets), max(map(length_class, sets.values())), SETS.rounded(bound or max(map(len, sets.values()))), room
    )
    elements = lists.most_elements if fill == "union" else len(set().union(*sets.values()))
    return UnionSizes(lists, lists.total if merged is None else merged, elements)


@pytest.mark.parametrize(
    ("parties", "length", "bound", "fill", "to"),
    [
        (2, 16, None, "lists", None),
        (3, 60, 100, "lists", None),
        (4, 16, None, "lists", ("south",)),
        (3, 16, None, "lists", ("north",)),
        (2, 60, None, "merged", None),
        (3, 16, 100, "union", None),
    ],
)
def test_a_union_sends_what_is_planned(
    parties: int, length: int, bound: int | None, fill: Fill, to: tuple[str, ...] | None
) -> None:
    sets = sets_of(parties, length)
    run = run_union(sets, merger="north", bound=bound, fill=fill, to=to, max_element_bytes=length)
    traffic = Traffic(tuple(sets))
    agreement_traffic(traffic)
    union_traffic(traffic, sizes_of(sets, bound, fill, _merged(run.frames)), "north", to)
    assert_planned(traffic, run.costs)


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
    work = union_work(sizes_of(held, 30, "lists", _merged(run.frames)), tuple(held), merger)
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

"""What the cost functions of unions say, against runs."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.union.costs import union_traffic, union_work
from crypto.protocols.union.lists import ListSizes, common_fakes, spare_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from link.traffic import Traffic
from tests.crypto.protocols.set_union_world import FEW, NAMES, run_union
from tests.traffic import assert_planned


def sets_of(parties: int) -> dict[str, set[bytes]]:
    """Of 15, 30, … elements, some of them in common."""
    held = enumerate(NAMES[:parties], 1)
    return {name: {hashlib.sha512(b"%d" % i).digest()[:16] for i in range(15 * n)} for n, name in held}


def sizes_of(sets: dict[str, set[bytes]], bound: int | None) -> ListSizes:
    room = spare_for_common_fakes(len(sets), common_fakes(FEW))
    return ListSizes(len(sets), SETS.rounded(bound or max(map(len, sets.values()))), room)


@pytest.mark.parametrize(("parties", "bound"), [(2, None), (3, 100), (4, None)])
def test_a_union_sends_what_is_planned(parties: int, bound: int | None) -> None:
    sets = sets_of(parties)
    run = run_union(sets, merger="north", bound=bound)
    traffic = Traffic(tuple(sets))
    agreement_traffic(traffic)
    union_traffic(traffic, sizes_of(sets, bound), "north")
    assert_planned(traffic, run.costs)


@pytest.mark.parametrize("merger", ["north", "east"])
def test_the_group_operations_are_those_of_the_protocol(merger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where they are computed, all parties together."""
    import crypto.primitives.groups.commutative as commutative

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
    held = {name: {hashlib.sha256(f"{name} {i}".encode()).digest()[:16] for i in range(30)} for name in NAMES[:3]}
    run_union(held, merger=merger, bound=30)
    work = union_work(sizes_of(held, 30), tuple(held), merger)
    assert counted["embed"] == sum(part.embedded for part in work.values())
    told = sum(part.encryptions + part.strips for part in work.values())
    assert counted["multiply"] == pytest.approx(told, rel=0.02)


@given(st.lists(st.integers(0, 500), min_size=2, max_size=6), st.sampled_from([None, 600]))
def test_expected_lists_have_room_for_all(held: list[int], bound: int | None) -> None:
    names = dict(zip(NAMES, held, strict=False))
    sizes = ListSizes.expected(names, bound)
    assert sizes.capacity >= max(held)
    assert sum(held) <= sizes.elements <= sizes.total

"""Joint vertical mining equals mining the joined table, for every split, alignment and threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.sums.pairwise import agree
from mining.data.items.item_columns import ItemColumns
from mining.joint.parameters import JointItemsets
from mining.joint.vertical.aligned import Aligned, pack_bits
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.mine import mine_aligned
from mining.joint.vertical.parameters import Mode, VerticalMining
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.vertical.vertical_world import assert_mined
from tests.world import run_parties

Bits = Mapping[str, Sequence[bool]]
"""By item."""


def columns_of(bits: Bits, presence: Sequence[bool], *, everywhere: bool) -> Aligned:
    """Every item is a column of its own."""
    items = tuple(sorted(bits))
    codes = np.full((len(items), len(presence)), -1, np.int32)
    for number, item in enumerate(items):
        codes[number, np.array(bits[item], bool) & np.array(presence, bool)] = number
    columns = ItemColumns.of(items, tuple(item.split("=")[0] for item in items), codes)
    return Aligned(columns, None if everywhere else pack_bits(np.array(presence, bool)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Bits], dict[str, list[bool]], int]:
    parties = [f"p{number}" for number in range(draw(st.integers(2, 5)))]
    n = draw(st.integers(1, 40))
    bits = st.lists(st.booleans(), min_size=n, max_size=n) | st.sampled_from([[True] * n, [False] * n])
    found, presence = {}, {}
    for party in parties:
        found[party] = {f"{party}c{k}=v": draw(bits) for k in range(draw(st.integers(0, 3)))}
        presence[party] = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return found, presence, n


def run(data: dict[str, Aligned], task: VerticalMining, observe: list[Frame] | None = None) -> dict[str, JointItemsets]:
    async def role(session):
        lane = session.lane("task")
        return await mine_aligned(lane, await agree(lane.lane("keys")), data[session.me], task)

    declared = openings(task, tuple(data))
    keep = (lambda frame: None) if observe is None else observe.append
    return run_parties(list(data), role, declared=declared, observe=keep)


@pytest.mark.parametrize("disclose", ["candidates", "supports", "frequent"])
@pytest.mark.parametrize("everywhere", [True, False])
@given(tables(), st.integers(1, 6), st.data())  # each of them a whole job
@examples(1, 4)
def test_equals_mining_the_joined_table(disclose: str, everywhere: bool, case, least: int, data: st.DataObject) -> None:
    found, presence, n = case
    if everywhere:
        presence = {party: [True] * n for party in presence}
    parties = tuple(found)
    common = [all(presence[party][row] for party in parties) for row in range(n)]
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    compute = tuple(sorted(data.draw(st.permutations(parties))[:2]))
    mode: Mode = "intersection" if everywhere else "union"
    task = VerticalMining(min(least, max(1, sum(common))), learners, compute, parties[0], mode, disclose=disclose)
    columns = {party: columns_of(found[party], presence[party], everywhere=everywhere) for party in parties}
    if not any(common):
        with fails("E101"):
            run(columns, task)
        return
    joined = [
        [item for party in parties for item, bits in found[party].items() if bits[row]]
        for row in range(n)
        if common[row]
    ]
    assert_mined(run(columns, task), joined, task)

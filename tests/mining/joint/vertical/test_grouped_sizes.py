"""The traffic of jobs with column groups follows from a few sizes, as that of other jobs over columns."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.alignment.costs import AlignmentSizes, ListedSizes
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.union import prefix_union
from crypto.protocols.union.prefix_costs import AskedBits
from crypto.protocols.union.shared_or import shared_or
from jobs.kinds.columns.parameters import vertical_mining
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.session import Session
from link.traffic import Traffic
from mining.candidates import join
from mining.data.formats.table_readers import table_from_arrow
from mining.data.items.item_columns import item_columns
from mining.data.tables import Table
from mining.joint.vertical.grouped.sizes import GroupSizes
from mining.joint.vertical.run_sizes import Level, RunSizes, mining_traffic
from mining.joint.vertical.split import Split
from mining.thresholds import minimum_count
from tests.mining.joint.vertical.test_vertical_run_sizes import cells_of, job, names_of
from tests.mining.joint.vertical.vertical_world import quick_keys
from tests.traffic import assert_planned

pytestmark = pytest.mark.turn(6)

__all__ = ["quick_keys"]

GROUPS = {"clinics": ["north", "south"], "labs": ["a", "b", "c"], "registry": ["r"]}


def parted(groups: Mapping[str, list[str]], n_rows: int) -> dict[str, Table]:
    """By party a part of its group's rows, each at one member."""
    whole, found = cells_of(tuple(groups), n_rows, 3), {}
    for group, members in groups.items():
        ends = np.linspace(0, len(whole[group]), len(members) + 1).astype(int).tolist()
        for member, (start, stop) in zip(members, pairwise(ends), strict=True):
            found[member] = table_from_arrow(whole[group].slice(start, stop - start), ["id"], "the test")
    return found


def sizes_of(spec: JobSpec, data: Mapping[str, Table], result: Result, asked: Mapping[str, list[int]]) -> RunSizes:
    """The numbers on which a run hangs, from its data and its result, all candidates in one batch.

    Args:
        spec: The job.
        data: By party its rows.
        result: Of the run.
        asked: By party, how many bits each question of its unions of names asked for.
    """
    task, parties = vertical_mining(spec), spec.job.parties
    rows = {party: data[party].n_rows for party in parties}
    assert result.n_rows is not None
    assert result.finding is not None
    least = minimum_count(task.min_support, result.n_rows)
    counts = {party: item_columns(data[party], task.itemisation).counts() for party in parties}
    found, holders = result.finding.itemsets, task.holders(parties)
    column_of = {name: group.name for group in task.groups for name in data[group.speaker].column_names}
    holder = np.array([holders.index(column_of[item.split("=")[0]]) for item in found.items])
    named = {
        name: names_of([item for item, place in zip(found.items, holder, strict=True) if place == number])
        for number, name in enumerate(holders)
    }
    groups = {
        group.name: GroupSizes(
            ListedSizes.of(
                {member: int((counts[member] >= -(-least // len(group.members))).sum()) for member in group.members},
                {member: int((counts[member] > 0).sum()) for member in group.members},
            ),
            AskedBits(tuple(asked[group.speaker]), named[group.name].number) if group.speaker in asked else None,
        )
        for group in task.groups
        if len(group.members) > 1
    }
    levels, sets = list[Level](), [level for level, _ in found.levels]
    while sets and len(levels) < len(sets):
        candidates = join(sets[len(levels)]).sets
        frequent = len(sets[len(levels) + 1]) if len(levels) + 1 < len(sets) else 0
        split = Split.of(candidates, holder, holders, everywhere=False)
        levels.append(Level(len(candidates), frequent, (split.itemsets(),), (split.names(),)))
    return RunSizes(
        rows=rows,
        common=result.n_rows,
        positions=AlignmentSizes.of(rows, 0, task.bound).positions,
        columns={party: names_of(data[party].column_names) for party in parties},
        numbered={
            group.name: groups[group.name].lists.positions
            if group.name in groups
            else int((counts[group.speaker] >= least).sum())
            for group in task.groups
        },
        items=named,
        levels=tuple(levels),
        groups=groups,
    )


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize(
    ("engine", "chosen", "disclose"),
    [
        pytest.param("ot", ("clinics", "labs", "registry"), "supports", marks=pytest.mark.slow),
        ("replicated", ("clinics", "registry"), "frequent"),
        ("paillier", ("clinics", "registry"), "candidates"),
    ],
)
def test_a_job_sends_what_is_planned(
    engine: str, chosen: tuple[str, ...], disclose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = {name: GROUPS[name] for name in chosen}
    parties = [party for members in groups.values() for party in members]
    itemsets = {"min_support": "0.4", "engine": engine, "disclose": disclose}
    spec = job(parties, ["all"], align={"mode": "union"}, groups=groups, itemsets=itemsets)
    data = parted(groups, 40)
    asked = defaultdict[str, list[int]](list)

    async def noted(lane: Session, pairs: Mapping[str, TwoParty], bits: NDArray[np.uint8]) -> XorShare:
        asked[lane.me].append(len(bits))
        return await shared_or(lane, pairs, bits)

    monkeypatch.setattr(prefix_union, "shared_or", noted)
    result = asyncio.run(simulate_job(spec, data, seed=1))
    sizes = sizes_of(spec, data, result, asked)
    traffic = Traffic(parties)
    mining_traffic(traffic, vertical_mining(spec), sizes)
    traffic.session({name: len(result.receipts[name].certificate) for name in parties})
    assert_planned(traffic, result.parties, rounds=range(-999, 1))
    assert len(sizes.levels) >= 2

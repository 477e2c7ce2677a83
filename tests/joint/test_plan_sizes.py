"""The traffic of whole jobs follows from a few sizes: those of a real run give its bytes and rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.params import STANDARD_128
from crypto.protocols.union_costs import UnionSizes
from crypto.protocols.union_lists import ListSizes, common_fakes, room_for_common_fakes
from jobs.parameters import horizontal_mining
from jobs.run import PartyRun
from link.executor import ThreadExecutor
from link.traffic import Traffic, greeting, receipts
from mining.joint.sizes import MiningSizes, mining_traffic
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.set_union_pb2 import MergedSize, UnionAnnouncement, UnionSize
from tests.joint.oracle import Rows
from tests.simulation.whole_job import DATA, STRATEGIES, identities, job, run_job


@dataclass
class Seen:
    """What the frames of a run tell of its sizes."""

    rungs: dict[str, dict[str, int]] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)

    def observe(self, frame: Frame) -> None:
        lane = frame.lane.removeprefix("/task/")
        union = lane.split("/union/")[0]
        if frame.type == UnionAnnouncement.DESCRIPTOR.full_name:
            announced = UnionAnnouncement.FromString(frame.body)
            self.rungs.setdefault(union, {})[frame.sender] = announced.rung
            self.blocks[union] = max(announced.blocks, self.blocks.get(union, 1))
        elif frame.type == MergedSize.DESCRIPTOR.full_name:
            self.merged[union] = MergedSize.FromString(frame.body).tuples
        elif frame.type == UnionSize.DESCRIPTOR.full_name:
            self.elements[union] = UnionSize.FromString(frame.body).elements
        elif (
            frame.type == Opening.DESCRIPTOR.full_name
            and (opening := Opening.FromString(frame.body)).label == "supports"
        ):
            self.sums[lane] = opening.number

    def union(self, name: str, bound: int | None) -> UnionSizes | None:
        if name not in self.merged:
            return None
        capacity = {party: bound or 1 << rung for party, rung in self.rungs[name].items()}
        room = room_for_common_fakes(len(capacity), common_fakes(1.0))
        lists = ListSizes(self.blocks[name], capacity, room)
        return UnionSizes(lists, bound is None, self.merged[name], self.elements[name])


def compare(data: Mapping[str, Rows], bound: int | None, **options: Any) -> None:
    spec, seen, executor = job(data, bound=bound, **options), Seen(), ThreadExecutor(2)
    try:
        runs = asyncio.run(run_job(spec, data, executor, observe=seen.observe))
    finally:
        executor.close()
    levels = [f"level-{length}" for length in range(2, 30)]
    levels = [level for level in levels if level in seen.sums or f"{level}/thin" in seen.merged]
    sizes = MiningSizes(
        n_rows=sum(map(len, data.values())),
        universe=seen.sums.get("level-1", 0),
        items=seen.union("items", bound),
        one_shot=seen.union("itemsets", bound),
        closure=seen.sums.get("one-shot", 0),
        candidates=tuple(seen.sums.get(level, 0) for level in levels),
        thinned=tuple(union for level in levels if (union := seen.union(f"{level}/thin", bound)) is not None),
        tried="itemsets" in seen.merged,
    )
    certificates = {name: len(identity.certificate_pem) for name, identity in identities(spec.job.parties).items()}
    traffic = Traffic(spec.job.parties)
    greeting(traffic, STANDARD_128.suite, certificates)
    mining_traffic(traffic, "/task", horizontal_mining(spec), sizes)
    receipts(traffic, STANDARD_128.suite, certificates)
    rounds = 0
    for name, run in runs.items():
        assert isinstance(run, PartyRun)
        signatures = 4 * (len(data) - 1)  # of which each may have a byte more or less than reckoned
        assert traffic.bytes_sent(name) == pytest.approx(run.costs.bytes_sent, abs=signatures)
        assert traffic.bytes_received(name) == pytest.approx(run.costs.bytes_received, abs=signatures)
        rounds = max(rounds, run.costs.rounds)
    # A chain is one shorter where a union is begun by who was the last to hear something.
    assert rounds <= traffic.rounds <= rounds + len(seen.merged)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("bound", [8, None])
@pytest.mark.parametrize("recipients", [("all",), ("north",), ("coordinator",)])
def test_every_strategy(strategy: str, bound: int | None, recipients: tuple[str, ...]) -> None:
    compare(DATA, bound, recipients=recipients, **STRATEGIES[strategy])


@settings(max_examples=6)
@given(
    st.lists(
        st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), min_size=1, max_size=12), min_size=2, max_size=4
    ),
    st.sampled_from(sorted(set(STRATEGIES) - {"catalogue"})),
    st.sampled_from(["0.1", "0.3", "0.6"]),
)
def test_any_data(rows: list[list[set[str]]], strategy: str, min_support: str) -> None:
    names = ("north", "south", "east", "west")
    data = {name: [sorted(row) for row in own] for name, own in zip(names, rows, strict=False)}
    compare(data, None, min_support=min_support, **STRATEGIES[strategy])

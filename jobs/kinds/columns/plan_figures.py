"""The figures of one way to do a job over columns: what is sent, how long it takes, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crypto.params import STANDARD_128
from crypto.protocols.alignment.costs import (
    AlignmentSizes,
    cardinality_bytes,
    cardinality_traffic,
    cardinality_work,
    compared,
    function_bytes,
    intersection_traffic,
    intersection_work,
    row_union_bytes,
    row_union_traffic,
)
from crypto.protocols.sums.costs import agreement_traffic
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.columns.parameters import mines, vertical_mining
from jobs.kinds.columns.plan_sizes import ExpectedColumns
from jobs.plan.answer import Answer
from jobs.plan.figures import SessionFigures
from jobs.plan.prices import (
    AGREEMENT,
    BLOCK_BYTES,
    CELL_BYTES,
    ID_BYTES,
    NODE_BYTES,
    PLACE_BYTES,
    POINT_COPIES,
    Speeds,
    checked_s,
    comparison_s,
    listed_s,
    matches_s,
    prefix_union_machine_s,
    row_union_s,
    session_s,
)
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.engines.engine import EngineSpeed
from mining.joint.vertical.parameters import VerticalMining
from mining.joint.vertical.run_sizes import RunSizes, comparisons, decided, mining_traffic, products_seconds
from mining.joint.vertical.verified_costs import verified_and_bytes, working_bytes


class Following(NamedTuple):
    """What a job that does not mine takes once rows are aligned.

    Attributes:
        seconds: Of all parties' machines together.
        memory_bytes: By party, beside what the alignment takes.
    """

    seconds: float
    memory_bytes: Mapping[str, int]


After = Callable[[JobSpec, Traffic, RunSizes, Speeds], Following]
"""Enters what a job does once rows are aligned."""


@dataclass(frozen=True)
class VerticalFigures(SessionFigures):
    """The figures of one way to do a vertical job.

    Attributes:
        found: What is expected of it.
        memory_bytes: By party, with its table where it lies.
        block_bytes: By party, those of the node where its table lies in blocks.
    """

    found: ExpectedColumns
    memory_bytes: Mapping[str, int]
    block_bytes: Mapping[str, int]

    @classmethod
    def of(
        cls, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, after: After | None = None
    ) -> VerticalFigures:
        """From what the parties publish; arguments as for `estimate`, the answers in the order of the job."""
        found = ExpectedColumns.of(spec, answers)
        speeds = {name: answer.speed for name, answer in answers.items()}
        traffic = Traffic(tuple(answers))
        seconds, following = _alignment_s(spec, found.sizes, speeds), Following(0.0, dict.fromkeys(answers, 0))
        if mines(spec):
            task = vertical_mining(spec)
            mining_traffic(traffic, task, found.sizes)
            seconds += _mining_s(task, found.sizes, speeds)
        else:
            agreement_traffic(traffic)
            _alignment_traffic(traffic, spec, found.sizes)
            if after is not None:
                following = after(spec, traffic, found.sizes, speeds)
            seconds += following.seconds
        traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
        seconds += session_s(traffic, speeds, latency_s, spec.plan.bytes_per_s)
        beside = {name: _memory(spec, found.sizes, traffic, name) + following.memory_bytes[name] for name in answers}
        blocks = {name: number + BLOCK_BYTES + PLACE_BYTES * found.sizes.rows[name] for name, number in beside.items()}
        memory = {}
        for name, answer in answers.items():
            if answer.block_bytes is None:
                memory[name] = beside[name] + _table_bytes(found.sizes, name)
            else:  # processes encode the table before its rows are aligned
                memory[name] = max(blocks[name], NODE_BYTES + answer.block_bytes)
        return cls(traffic, seconds, found, memory, blocks)


def _alignment_traffic(traffic: Traffic, spec: JobSpec, sizes: RunSizes) -> None:
    """Enters the alignment of a job that does not mine."""
    task = row_alignment(spec)
    enter = {"intersection": intersection_traffic, "cardinality": cardinality_traffic, "union": row_union_traffic}
    enter[task.mode](traffic, AlignmentSizes.of(sizes.rows, sizes.common, task.bound), task.merger)


def _alignment_s(spec: JobSpec, sizes: RunSizes, speeds: Speeds) -> float:
    """Every party works all the time; in a union parties take turns, and two at a time compare."""
    lists = AlignmentSizes.of(sizes.rows, sizes.common, spec.alignment.bound)
    match spec.alignment.mode:
        case "intersection":
            return matches_s(*intersection_work(lists), 0, (), (0, 0), speeds)
        case "cardinality":
            first, *others = speeds
            pairs = [(first, other) for other in others]
            return matches_s(*cardinality_work(lists), pairs, compared(lists), speeds)
        case _:
            return row_union_s(lists, speeds)


def _mining_s(task: VerticalMining, sizes: RunSizes, speeds: Speeds) -> float:
    """Agreements that a union has not made, products and comparisons; the parties share the work of products."""
    if task.is_verified:
        checked = [
            verified_and_bytes(candidates, sizes.common, products=length > 1)
            for length, (candidates, _) in enumerate(decided(sizes), 1)
        ]
        return checked_s(sum(checked), task.three, speeds)
    speed = EngineSpeed.by_transfer(max(each.transfer_s for each in speeds.values()))
    parties, density = tuple(speeds), task.expectation.density
    products_s = products_seconds(sizes, task, speed, density)
    compared_s = sum(comparison_s(number, width, task.compute, speeds) for number, width in comparisons(sizes, task))
    agreements = chosen_engine(task).agreements(task, parties) if task.mode == "intersection" else []
    peers = max(sum(party in pair for pair in agreements) for party in parties)
    agreed_s = peers * AGREEMENT * max(each.multiply_s for each in speeds.values())
    return agreed_s + products_s / len(parties) + compared_s + _groups_s(task, sizes, speeds)


def _groups_s(task: VerticalMining, sizes: RunSizes, speeds: Speeds) -> float:
    """Alignments and unions of the items of column groups, all groups at once."""
    longest = 0.0
    for group in task.groups:
        if group.name not in sizes.groups:
            continue
        found, theirs = sizes.groups[group.name], {name: speeds[name] for name in group.members}
        seconds = listed_s(found.lists, theirs)
        if found.names is not None:
            seconds += max(prefix_union_machine_s(found.names, theirs).values())
        longest = max(longest, seconds)
    return longest


def _table_bytes(sizes: RunSizes, party: str) -> int:
    return sizes.rows[party] * (ID_BYTES + CELL_BYTES * sizes.columns[party].number)


def _memory(spec: JobSpec, sizes: RunSizes, traffic: Traffic, party: str) -> int:
    """Lists of points or of values, bitmaps of items and of one level's conjunctions, and the engine's; no table."""
    lists = AlignmentSizes.of(sizes.rows, sizes.common, spec.alignment.bound)
    if spec.alignment.mode == "cardinality":
        found = NODE_BYTES + cardinality_bytes(lists)
    elif spec.alignment.mode == "union":
        found = NODE_BYTES + row_union_bytes(lists)
    elif lists.takes_functions:
        found = NODE_BYTES + function_bytes(lists)
    else:
        found = NODE_BYTES + POINT_COPIES * sum(sizes.rows.values()) * STANDARD_128.point_bytes
    if not mines(spec):
        return found
    task, batches = vertical_mining(spec), [itemsets for level in sizes.levels for itemsets in level.batches]
    holder = task.holder_of(party)
    conjunctions = max((len({each[holder] for each in one if holder in each}) for one in batches), default=0)
    bitmaps = (sizes.items[holder].number + conjunctions) * sizes.positions // 8
    if task.is_verified:
        needed = max(working_bytes(*each, sizes.common) for each in decided(sizes)) if party in task.three else 0
        return found + sizes.items[holder].number * sizes.common // 8 + needed
    moved = traffic.bytes_sent(party) + traffic.bytes_received(party)
    return found + bitmaps + chosen_engine(task).working_bytes(moved)

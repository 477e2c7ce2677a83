"""Jobs of parties whose lists are long, by their bound: what pooled tables give, and nothing else is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.protocols.alignment.alignment import LONG_LISTS
from crypto.protocols.alignment.disclosure import Mode
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.steps import LABEL as AGAIN
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.joint.align import RowAlignment, collusion, learned, openings, worst
from protos.v1.link_pb2 import Frame, Opening
from tests.examples import examples
from tests.mining.joint.vertical.test_align import MODES, places, run

pytestmark = pytest.mark.turn(3)

few = examples(1, 10, suppress_health_check=[HealthCheck.too_slow])
LONG = RowAlignment("a", bound=LONG_LISTS)
held = st.lists(st.integers(0, 300), max_size=300, unique=True) | st.just([]) | st.just(list(range(300)))


def ids_of(people: Sequence[int]) -> list[str]:
    return [f"person {number}" for number in people]


@few
@given(a=held, b=held, seed=st.integers(0, 99))
def test_an_alignment_finds_what_pooled_tables_have_in_common(a: list[int], b: list[int], seed: int) -> None:
    ids = {"a": ids_of(a), "b": ids_of(b)}
    found = run(ids, LONG, seed=seed)
    at = {}
    for party, each in found.items():
        assert each.rows is not None
        assert each.n_common == len(set(a) & set(b))
        at[party] = places(ids[party], each.rows)
    assert at["a"] == at["b"]
    assert set(at["a"]) == set(ids["a"]) & set(ids["b"])


@few
@given(a=held, b=held, c=held, seed=st.integers(0, 99))
def test_an_alignment_of_three_finds_what_pooled_tables_have_in_common(
    a: list[int], b: list[int], c: list[int], seed: int
) -> None:
    ids = {"a": ids_of(a), "b": ids_of(b), "c": ids_of(c)}
    found = run(ids, LONG, seed=seed)
    common = set(ids["a"]) & set(ids["b"]) & set(ids["c"])
    at = {party: places(ids[party], each.rows) for party, each in found.items() if each.rows is not None}
    assert at["a"] == at["b"] == at["c"]
    assert set(at["a"]) == common
    assert {each.n_common for each in found.values()} == {len(common)}


def job(bound: int | None, parties: str = "ab", mode: Mode = "intersection", **tables: Any) -> JobSpec:
    named = {"name": "j", "task": "itemsets", "parties": [*parties], "dataset": "people", "partition": "vertical"}
    align = {"mode": mode, **({} if bound is None else {"bound": bound})}
    contents = {"job": {**named, "recipients": ["all"]}, "align": align, **tables}
    return job_of(contents, "the test", Path())


def tables_of(rows: Mapping[str, Mapping[int, str]]) -> dict[str, Table]:
    return {
        party: table_from_arrow(pa.table({"id": ids_of(list(own)), party: list(own.values())}), ["id"], "the test")
        for party, own in rows.items()
    }


columns = st.dictionaries(st.integers(0, 40), st.sampled_from(["x", "y"]), min_size=1, max_size=40)


@few
@given(a=columns, b=columns, seed=st.integers(0, 99))
def test_itemsets_over_columns_are_those_of_the_joined_table(a: dict[int, str], b: dict[int, str], seed: int) -> None:
    a, b = {**a, 41: "x"}, {**b, 41: "x"}  # jobs over columns need rows in common
    common = a.keys() & b.keys()
    spec = job(LONG_LISTS, itemsets={"min_support": "1"})
    result = asyncio.run(simulate_job(spec, tables_of({"a": a, "b": b}), seed=seed))
    assert result.n_rows == len(common)
    found = result.finding.itemsets
    sets = {
        frozenset(found.items[member] for member in members if member >= 0): int(count)
        for members, counts in found.levels
        for members, count in zip(members.tolist(), counts.tolist(), strict=True)
    }
    everywhere = {frozenset({f"{name}={own[person]}" for name, own in (("a", a), ("b", b))}) for person in common}
    whole = everywhere.pop() if len(everywhere) == 1 else frozenset()
    assert all(count == len(common) for count in sets.values())
    if whole and common:
        assert whole in sets


def test_itemsets_over_three_parties_columns_are_those_of_the_joined_table() -> None:
    tables = {
        party: {person: "xy"[person % place == 0] for person in range(first, 40)}
        for place, (party, first) in enumerate({"a": 0, "b": 5, "c": 9}.items(), 2)
    }
    found = []
    for bound in (LONG_LISTS, LONG_LISTS // 2):
        spec = job(bound, "abc", itemsets={"min_support": "0.2"})
        result = asyncio.run(simulate_job(spec, tables_of(tables), seed=1))
        assert result.n_rows == 31
        itemsets = result.finding.itemsets
        found.append((itemsets.items, [(each.tolist(), counts.tolist()) for each, counts in itemsets.levels]))
    assert found[0] == found[1]
    assert len(found[0][1]) == 3


# -- what is seen ------------------------------------------------------------------------------------------------------
def test_frames_tell_the_bound_and_how_many_are_common() -> None:
    shapes = []
    for a, b in ((range(9), range(5, 600)), (range(700), [3, 4, 5, 6])):
        frames: list[Frame] = []
        run({"a": ids_of(list(a)), "b": ids_of(list(b))}, LONG, frames)
        assert not any(b"person" in frame.body for frame in frames)
        shapes.append(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames))
    assert shapes[0] == shapes[1]


def test_what_is_opened_and_learnt_is_what_the_group_would_open() -> None:
    frames: list[Frame] = []
    run({"a": ids_of(range(30)), "b": ids_of(range(20, 50))}, LONG, frames)
    stated = {line.label: line for line in openings(LONG, ("a", "b"))}
    opened = [Opening.FromString(frame.body) for frame in frames if frame.type == Opening.DESCRIPTOR.full_name]
    assert {message.label for message in opened} == set(stated) - {AGAIN}
    assert all(message.number <= stated[message.label].maximum for message in opened)
    short = RowAlignment("a", bound=LONG_LISTS // 2)
    sides = [[line.what for line in learned(task, ("a", "b"))] for task in (LONG, short)]
    assert len(sides[0]) == len(sides[1])


@pytest.mark.parametrize("bound", [None, LONG_LISTS // 2, LONG_LISTS])
def test_no_merger_of_an_alignment_counts(bound: int | None) -> None:
    """Of others nobody learns how much some of three parties have in common."""

    def counts(mode: Mode) -> int:
        lines = learned(RowAlignment("a", mode, bound=bound), "abc")
        return sum(line.kind == "count" for line in lines)

    assert {mode: counts(mode) for mode in MODES} == dict.fromkeys(MODES, 0)


def test_who_may_collude() -> None:
    assert collusion("abc") == "no 2 parties together learn more of rows than each of them alone"
    assert worst("abc") == collusion("abc")


def test_two_jobs_on_the_same_rows_repeat_nothing() -> None:
    """Keys are fresh: no row of a message of 16 bytes or more comes twice, from whatever is not public."""
    seen: list[set[bytes]] = []
    for seed in range(2):
        frames: list[Frame] = []
        run({"a": ids_of(range(30)), "b": ids_of(range(20, 50))}, LONG, frames, seed=seed)
        bulk = [f.body for f in frames if f.type.endswith((".CodeColumns", ".EvaluatedIdentifiers", ".CheckedColumns"))]
        seen.append({body[start : start + 16] for body in bulk for start in range(64, len(body) - 16)})
    assert not seen[0] & seen[1]

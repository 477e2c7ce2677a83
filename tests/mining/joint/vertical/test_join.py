"""Ids found in common carry columns into the engine: nothing between alignment and products joins anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from crypto.protocols.comparison.two_party import pairs_of
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.joint import align
from mining.joint.vertical import aligned
from mining.joint.vertical.choice import is_dealt
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import Mode, VerticalMining
from protos.v1.link_pb2 import Frame
from tests.examples import slowly
from tests.mining.joint.vertical.vertical_world import ENGINES, Name, dealings_of, helper_of, quick_keys
from tests.world import run_parties

__all__ = ["quick_keys"]

pytestmark = [pytest.mark.usefixtures("quick_keys"), pytest.mark.turn(3)]

LANES: Mapping[Mode, str] = {"intersection": "intersection", "union": "row-union"}
NAMED: Mapping[Mode, set[tuple[str, str]]] = {
    "intersection": {("/task/items", "Opening"), ("/task/level-1/supports", "Opening")},
    "union": set(),
}


def tables(parties: Sequence[str], rows: int) -> dict[str, Table]:
    """Columns of their own about nearly the same people, in orders of their own."""
    found = {}
    for place, party in enumerate(parties):
        people = range(place, place + rows)[:: -1 if place else 1]
        columns = {
            "id": pa.array([f"person {number}" for number in people]),
            f"{party} parity": pa.array([("even", "odd")[number % 2] for number in people]),
            f"{party} third": pa.array([str(number % 3) for number in people]),
        }
        found[party] = table_from_arrow(pa.table(columns), ["id"], "the test")
    return found


def job(engine: Name, mode: Mode, parties: Sequence[str], rows: int) -> list[Frame]:
    """The frames of a job, in the order in which they were sent."""
    task = VerticalMining(
        5, tuple(parties), ("a", "b"), "a", mode, engine=engine, helper=helper_of(engine, parties), max_length=2
    )
    data, frames = tables(parties, rows), list[Frame]()
    dealt = dealings_of(parties) if is_dealt(task, parties) else {}
    found = run_parties(
        parties,
        lambda session: mine(session.lane("task"), data[session.me], task, dealings=dealt.get(session.me)),
        declared=openings(task, parties),
        observe=frames.append,
    )
    assert {each.n_rows for each in found.values()} == {rows + 1 - len(parties)}
    return [frame for frame in frames if frame.lane.startswith("/task/")]


def alignment(mode: Mode, parties: Sequence[str], rows: int) -> list[Frame]:
    """The frames of the task that aligns the same rows and does nothing else."""
    task, data, frames = align.RowAlignment("a", mode), tables(parties, rows), list[Frame]()
    run_parties(
        parties,
        lambda session: align.align(session.lane("task"), pairs_of(session), data[session.me], task),
        declared=align.openings(task, parties),
        observe=frames.append,
    )
    return frames


def shapes(frames: Sequence[Frame], lane: str) -> list[Any]:
    chosen = (frame for frame in frames if frame.lane.startswith(lane))
    return sorted((f.lane, f.sender, f.receiver, f.seq, f.type, f.last) for f in chosen)


def between(frames: Sequence[Frame], mode: Mode, prepared: Collection[str]) -> list[tuple[str, str, str, int]]:
    """What each party sends between its parts of the alignment and of the first product, and how long it is.

    Args:
        frames: Of a job.
        mode: Of its alignment.
        prepared: Lanes on which the engine prepares itself at the same time.
    """
    product = "/task/presence" if mode == "union" else "/task/level-2"  # of columns that mark rows, or of items
    found = []
    for party in {frame.sender for frame in frames}:
        own = [frame for frame in frames if frame.sender == party and top(frame) not in prepared]
        last = max(place for place, frame in enumerate(own) if top(frame) == "rows")
        first = min(place for place, frame in enumerate(own) if frame.lane.startswith(product))
        found += [(f.lane, f.type.rpartition(".")[2], f.sender, len(f.body)) for f in own[last + 1 : first]]
        assert {top(frame) for frame in own[:last]} == {"keys", "rows"}
    return sorted(found)


def top(frame: Frame) -> str:
    return frame.lane.split("/")[2]


@pytest.mark.parametrize("engine", slowly(ENGINES, now=[ENGINES.index("ot")]))
@pytest.mark.parametrize("mode", LANES)
@pytest.mark.parametrize("parties", ["ab", "abc"])
def test_between_alignment_and_products_nothing_joins_rows(engine: Name, mode: Mode, parties: str) -> None:
    """After a union products follow at once; after an intersection names of frequent items, and their counts, do.

    These do not grow with the rows. Before, there are keys, names of columns, and the messages of an alignment alone.
    """
    names = tuple(parties)
    prepared = {"engine", *(f"{one} and {other}" for one in names for other in names if one < other)}
    frames = job(engine, mode, names, 40)
    assert len({frame.session for frame in frames}) == 1
    sent = between(frames, mode, prepared)
    assert {(lane, kind) for lane, kind, *_ in sent} == NAMED[mode]
    if sent:
        assert sent == between(job(engine, mode, names, 60), mode, prepared)
    rows = {frame.lane.split("/")[3] for frame in frames if top(frame) == "rows"}
    assert rows == {"columns", LANES[mode]}
    lane = f"/task/rows/{LANES[mode]}"
    assert shapes(frames, lane) == shapes(alignment(mode, names, 40), lane)


@pytest.mark.parametrize("mode", LANES)
def test_ids_and_columns_of_a_table_are_asked_for_once(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(name: str, function: Any) -> Any:
        def wrapped(*args: Any) -> Any:
            read.append(name)
            return function(*args)

        return wrapped

    monkeypatch.setattr(Table, "row_ids", noted("ids", Table.row_ids))
    monkeypatch.setattr(aligned, "item_columns", noted("columns", aligned.item_columns))
    job("ot", mode, "ab", 40)
    assert sorted(read) == ["columns", "columns", "ids", "ids"]

"""Columns in blocks: alignments, itemsets and models are those in memory, by the same frames, under any cut."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.comparison.two_party import pairs_of
from jobs.kinds.models.document import pack_model
from link.errors import ComineError
from mining.data.formats.table_readers import table_from_arrow
from mining.data.items.item_blocks import item_blocks
from mining.data.items.item_columns import Itemisation, item_columns
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint import align
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.grouped.groups import ColumnGroup
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import VerticalMining
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples, in_turn
from tests.mining.joint import model_jobs_world as models
from tests.mining.partitioned.tables_world import CELL, partitioned
from tests.mining.partitioned.world import PARTITIONS, evenly, ragged
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

PEOPLE = 40


def table_of(ids: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Table:
    cells = {"id": ids, **columns}
    texts = {name: pa.array(list(each), pa.string()) for name, each in cells.items()}
    return table_from_arrow(pa.table(texts), ["id"], "the test")


def people(party: str, seed: int, columns: Sequence[str], share: float = 0.8) -> Table:
    """Some people in an order of the party's own; the first column has numbers."""
    chance = np.random.default_rng(seed)
    held = chance.permutation(PEOPLE)[: int(share * PEOPLE)]
    cells = {name: [f"{'xyz'[each]}" for each in chance.integers(0, 3, len(held))] for name in columns[1:]}
    numbers = [str(each) if each % 7 else "" for each in chance.integers(0, 50, len(held)).tolist()]
    return table_of([f"person {each}" for each in held], {columns[0]: numbers, **cells})


def shape(frames: Sequence[Frame]) -> list[tuple[str, str, str, int, bytes]]:
    return sorted((each.sender, each.receiver, each.lane, each.seq, each.body) for each in frames)


def in_blocks(data: Mapping[str, Table], parts: int, folder: Path) -> dict[str, TableRows]:
    found: dict[str, TableRows] = {}
    for party, own in data.items():
        place = folder / f"{parts}-{party}"
        place.mkdir()
        found[party] = partitioned(own, evenly(own.n_rows, parts), place)
    return found


def mined(data: Mapping[str, TableRows], task: VerticalMining) -> tuple[Any, list[Frame]]:
    frames: list[Frame] = []
    found = run_parties(
        list(data),
        lambda session: mine(session.lane("task"), data[session.me], task),
        declared=openings(task, tuple(data)),
        observe=frames.append,
        seed=3,
    )
    rows = {party: (each.n_rows, each.itemsets and list(each.itemsets.rows())) for party, each in found.items()}
    return rows, frames


HOW = Itemisation({"a0": (Decimal(10), Decimal(30))}, {"b0": 3}, ("*=x", "a1=y"))
ALONE = {"a": ("a0", "a1"), "b": ("b0", "b1", "b2")}


@pytest.mark.costly
@pytest.mark.parametrize(
    ("parties", "more"),
    [
        (2, {"min_support": Decimal("0.1")}),
        (2, {"mode": "union", "disclose": "frequent"}),
        (3, {}),
    ],
)
def test_itemsets_of_columns_in_blocks_are_those_in_memory_by_the_same_frames(
    tmp_path: Path, parties: int, more: Mapping[str, Any]
) -> None:
    held = dict(list({**ALONE, "c": ("c0",)}.items())[:parties])
    data = {party: people(party, seed, names) for seed, (party, names) in enumerate(held.items())}
    names = tuple(data)
    settings = {"min_support": 3, "learners": names, "compute": names[:2], "merger": "a", "engine": "ot"}
    task = VerticalMining(**{**settings, "itemisation": HOW, "max_length": 2, **more})
    expected, frames = mined(data, task)
    assert any(len(itemset) > 1 for itemset, _ in expected["a"][1])
    few, some, many = (in_blocks(data, parts, tmp_path) for parts in PARTITIONS)
    for tables in in_turn((few, {**some, "a": data["a"]}, {**data, "a": some["a"]}, many), 2):
        found, seen = mined(tables, task)
        assert found == expected
        assert shape(seen) == shape(frames)


def grouped() -> tuple[dict[str, Table], VerticalMining]:
    """A job over data that are split by rows and by columns: two slices of one group, and another group whole."""
    whole = {"g": people("g", 1, ("a0", "a1"), 1.0), "h": people("h", 2, ("b0", "b1"), 1.0)}

    def some(table: Table, start: int, stop: int) -> Table:
        ids = table.ids[0].to_pylist()[start:stop]
        cells = {
            each.name: [([*each.values.to_pylist(), ""])[code] for code in each.codes[start:stop]]
            for each in table.columns
        }
        return table_of(ids, cells)

    data = {"a": some(whole["g"], 0, 25), "b": some(whole["g"], 25, 38), "c": whole["h"]}
    groups = (ColumnGroup("g", ("a", "b")), ColumnGroup("h", ("c",)))
    how = Itemisation({"a0": (Decimal(25),)}, {}, ("*=x",))
    names = tuple(data)
    task = VerticalMining(8, names, names[:2], "a", "union", groups=groups, itemisation=how, engine="ot", max_length=2)
    return data, task


@pytest.mark.costly
def test_itemsets_of_column_groups_in_blocks_are_those_in_memory_by_the_same_frames(tmp_path: Path) -> None:
    data, task = grouped()
    expected, frames = mined(data, task)
    assert any(len(itemset) > 1 for itemset, _ in expected["a"][1])
    for parts in in_turn(PARTITIONS[1:], 2):
        found, seen = mined(in_blocks(data, parts, tmp_path), task)
        assert found == expected
        assert shape(seen) == shape(frames)


@pytest.mark.costly
@pytest.mark.turn(6)
@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("mode", ["intersection", "cardinality", "union"])
@pytest.mark.parametrize("long", [False, True])
def test_rows_in_blocks_are_aligned_as_in_memory_by_the_same_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parties: int, mode: Mode, *, long: bool
) -> None:
    if long:  # of two parties, by a pseudorandom function
        monkeypatch.setattr(alignment, "LONG_LISTS", 8)
    monkeypatch.setattr(align, "AT_ONCE", 7)
    data = {party: people(party, seed, (f"{party}0",)) for seed, party in enumerate("abc"[:parties])}
    task = align.RowAlignment("a", mode, IdNormalisation(trim=True, case="fold"))

    def aligned(tables: Mapping[str, TableRows]) -> tuple[Any, list[Frame]]:
        frames: list[Frame] = []
        found = run_parties(
            list(tables),
            lambda session: align.align(session.lane("task"), pairs_of(session), tables[session.me], task),
            declared=align.openings(task, tuple(tables)),
            observe=frames.append,
            seed=5,
        )
        own = {
            party: None if each.rows is None else align.positions_of(tables[party], each.rows).to_pydict()
            for party, each in found.items()
        }
        return ({party: each.n_common for party, each in found.items()}, own), frames

    expected, frames = aligned(data)
    for parts in in_turn(PARTITIONS, len(PARTITIONS)):
        found, seen = aligned(in_blocks(data, parts, tmp_path))
        assert found == expected
        assert shape(seen) == shape(frames)


def _refused(table: TableRows, how: IdNormalisation) -> tuple[str, str] | None:
    try:
        table.row_ids(how)
    except ComineError as error:
        return error.code, error.message
    return None


IDS = st.lists(st.tuples(st.sampled_from(["p1", " P1", "p2", "é", "e\u0301", ""]), CELL, CELL), max_size=14)


@given(IDS, st.data())
@examples(4, 60)
def test_ids_in_blocks_are_those_in_memory_and_are_refused_alike(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str, str]], draw: st.DataObject
) -> None:
    distinct = draw.draw(st.booleans())
    ids = [f"{text}{place}" if distinct else text for place, (text, _, _) in enumerate(records)]
    columns = {"id": ids, "b": [b for _, b, _ in records], "c": [c for _, _, c in records]}
    named = draw.draw(st.sampled_from([["id"], ["id", "b"], []]))
    texts = {name: pa.array(each, pa.string()) for name, each in columns.items()}
    whole = table_from_arrow(pa.table(texts), named, "the test")
    cuts = draw.draw(ragged(len(records)) | st.sampled_from([evenly(len(records), parts) for parts in PARTITIONS]))
    blocks = partitioned(whole, cuts, tmp_path_factory.mktemp("blocks"))
    how = draw.draw(st.sampled_from([AS_THEY_ARE, IdNormalisation(True, "fold", "NFC")]))
    said = [_refused(table, how) for table in (whole, blocks)]
    assert said[0] == said[1]
    if said[0] is not None:
        return
    found, expected = blocks.row_ids(how), list(whole.row_ids(how))
    assert len(found) == len(expected)
    assert list(found) == expected
    some = draw.draw(st.slices(len(expected)))
    assert found[some] == expected[some]
    for place in range(len(expected)):
        assert found[place] == expected[place]


RECORDS = st.lists(st.tuples(CELL, st.sampled_from(["1", "2.5", "-7", "x", ""])), max_size=20)


@given(RECORDS, st.data())
@examples(4, 60)
def test_items_in_blocks_are_those_in_memory(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str]], draw: st.DataObject
) -> None:
    number = len(records)
    cells = {"a": [a for a, _ in records], "b": [b for _, b in records]}
    whole = table_of([str(place) for place in range(number)], cells)
    cuts = draw.draw(ragged(number) | st.sampled_from([evenly(number, parts) for parts in PARTITIONS]))
    blocks = partitioned(whole, cuts, tmp_path_factory.mktemp("blocks"))
    rows = np.array(draw.draw(st.permutations([*range(number), -1, -1])), np.int64)
    rows = rows[: draw.draw(st.integers(0, len(rows)))]
    hows = [Itemisation(exclude=("a=a*",)), Itemisation({"b": (Decimal(2),)}), Itemisation(quantiles={"b": 2})]
    how, least = draw.draw(st.sampled_from(hows)), draw.draw(st.integers(1, 4))
    expected, found = item_columns(whole, how, rows), item_blocks(blocks, how, rows, least)
    enough = np.flatnonzero(expected.counts() >= least)
    own = np.flatnonzero(found.counts() >= least)
    assert [found.items[place] for place in own] == [expected.items[place] for place in enough]
    assert [found.columns[place] for place in own] == [expected.columns[place] for place in enough]
    assert found.counts()[own].tolist() == expected.counts()[enough].tolist()
    assert found.n_rows == expected.n_rows
    assert np.array_equal(found.select(own).bitmaps(), expected.select(enough).bitmaps())


@pytest.mark.costly
@pytest.mark.turn(6)
@pytest.mark.parametrize("task", models.TASKS)
@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_models_of_columns_in_blocks_are_those_in_memory(tmp_path: Path, task: models.Task, mode: str) -> None:
    rows, parties = models.people(PEOPLE, 1), models.PARTIES[:2]
    spec = models.job(task, parties, partition="vertical", align={"mode": mode})
    holders = {"class": "north", "smoker": "south", "town": "north", "age": "south", "weight": "north"}
    taken = {name: rows[name] for name in models.MODELS[task][2]} | (
        {} if task == "k-means" else {"class": rows["class"]}
    )
    own = {name: holders.get(name, "south") for name in taken}
    data = models.columns({**rows, **taken}, own, {"north": {1, 7}, "south": {3, 30}})

    def learnt(tables: Mapping[str, Any]) -> tuple[bytes, list[int]]:
        result = asyncio.run(simulate_job(spec, tables, seed=1))
        return pack_model(result.model()), [each.rounds for each in result.parties.values()]

    expected = learnt(data)
    for parts in in_turn(PARTITIONS, len(PARTITIONS)):
        assert learnt(in_blocks(data, parts, tmp_path)) == expected


def test_a_model_of_columns_refuses_cells_in_blocks_as_in_memory(tmp_path: Path) -> None:
    rows = {**models.people(12, 0), "town": ["A"] * 9 + ["B", "", "there"]}
    spec = models.job("naive-bayes", models.PARTIES[:2], partition="vertical")
    own = {"class": "north", "smoker": "south", "weight": "south", "age": "south", "town": "north"}
    data = models.columns(rows, own, {"north": set(), "south": set()})
    said = set()
    for tables in (data, *(in_blocks(data, parts, tmp_path) for parts in PARTITIONS)):
        with pytest.raises(ComineError) as caught:
            asyncio.run(simulate_job(spec, tables, seed=1))  # type: ignore[arg-type]
        said.add((caught.value.code, caught.value.party, caught.value.message))
    assert len(said) == 1


def test_a_damaged_block_of_ids_ends_a_job(tmp_path: Path) -> None:
    blocks = partitioned(table_of(["1", "2", "3"], {"a": "xyz"}), [0, 2, 3], tmp_path)
    ids = blocks.row_ids()
    path = tmp_path / "1.block"
    path.write_bytes(path.read_bytes()[:-1])
    with fails("E101"):
        list(ids)
    assert not path.exists()

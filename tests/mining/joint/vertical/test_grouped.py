"""Mining over column groups equals mining the joined table, however rows are split within the groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.buckets import Room
from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.list_limits import IN_MEMORY
from link.randomness import RandomStream
from link.session import Session
from mining.data.items.item_columns import ItemColumns
from mining.data.tables import Table
from mining.joint.parameters import JointItemsets
from mining.joint.vertical.aligned import Aligned, pack_bits
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.grouped.groups import ColumnGroup, check_group_columns
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import VerticalMining
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.products_world import assert_views_alike
from tests.crypto.protocols.two_party_world import shapes_of
from tests.errors import fails
from tests.examples import examples, in_turn, slowly
from tests.mining.joint.vertical.test_vertical_resume import attempt, found
from tests.mining.joint.vertical.vertical_world import ENGINES, Name, assert_mined, mine_all, quick_keys
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

__all__ = ["quick_keys"]


@dataclass(frozen=True)
class Grid:
    """Rows of column groups, each at one member of the group or at none.

    Attributes:
        members: By group, how many there are.
        cells: By group and row, the row's value in each column; "" for none.
        at: By group and row, the member that has the row; −1 for none.
    """

    members: Sequence[int]
    cells: Sequence[Sequence[Sequence[str]]]
    at: Sequence[Sequence[int]]

    @property
    def n_rows(self) -> int:
        return len(self.at[0])

    @property
    def groups(self) -> tuple[ColumnGroup, ...]:
        return tuple(
            ColumnGroup(f"g{number}", tuple(f"p{number}{member}" for member in range(members)))
            for number, members in enumerate(self.members)
        )

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(party for group in self.groups for party in group.members)

    def items(self, group: int, row: int) -> list[str]:
        return [f"g{group}c{column}={value}" for column, value in enumerate(self.cells[group][row]) if value]

    @property
    def joined(self) -> list[list[str]]:
        return [
            [item for group in range(len(self.members)) for item in self.items(group, row)]
            for row in range(self.n_rows)
            if all(at[row] >= 0 for at in self.at)
        ]

    @property
    def data(self) -> dict[str, Aligned]:
        found = {}
        for number, group in enumerate(self.groups):
            for member, party in enumerate(group.members):
                here = [at == member for at in self.at[number]]
                held = [self.items(number, row) if here[row] else [] for row in range(self.n_rows)]
                items = tuple(sorted({item for row in held for item in row}))
                codes = np.full((len(self.cells[number][0]), self.n_rows), -1, np.int32)
                for row, each in enumerate(held):
                    for item in each:
                        codes[int(item.split("=")[0].split("c")[1]), row] = items.index(item)
                columns = ItemColumns.of(items, tuple(item.split("=")[0] for item in items), codes)
                found[party] = Aligned(columns, pack_bits(np.array(here, bool)))
        return found


@st.composite
def grids(draw: st.DrawFn, rows: int = 20, parties: int = 5) -> Grid:
    members = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda m: 3 <= sum(m) <= parties))
    n = draw(st.integers(1, rows))
    cells, at = [], []
    for number in members:
        width = draw(st.integers(1, 2))
        cell = st.tuples(*[st.sampled_from(["a", "a", "b", ""])] * width)
        cells.append(draw(st.lists(cell, min_size=n, max_size=n)))
        lacks = draw(st.sampled_from([-1, 0]))  # the least member that a row may be at
        at.append(draw(st.lists(st.integers(lacks, number - 1), min_size=n, max_size=n)))
    return Grid(members, cells, at)


def run(grid: Grid, task: VerticalMining, observe: list[Frame] | None = None) -> dict[str, JointItemsets]:
    return mine_all(grid.data, task, observe=(lambda frame: None) if observe is None else observe.append)


def task_of(grid: Grid, least: int, **more) -> VerticalMining:
    parties = grid.parties
    given = {"learners": parties, "compute": (parties[0], parties[-1]), "merger": parties[0], "mode": "union"}
    return VerticalMining(least, groups=grid.groups, **(given | more))


@pytest.mark.parametrize("disclose", ["candidates", "supports", "frequent"])
@given(grids(), st.integers(1, 6), st.data())  # each of them a whole job
@examples(1, 2)
def test_equals_mining_the_joined_table(disclose: str, grid: Grid, least: int, data: st.DataObject) -> None:
    parties, joined = grid.parties, grid.joined
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    compute = tuple(sorted(data.draw(st.permutations(parties))[:2]))
    task = task_of(
        grid, min(least, max(1, len(joined))), learners=learners, compute=compute, disclose=disclose, engine="ot"
    )
    if not joined:
        with fails("E101"):
            run(grid, task)
        return
    assert_mined(run(grid, task), joined, task)


@pytest.mark.parametrize("engine", ENGINES)
@given(grids(10, 4), st.integers(1, 4))  # of more parties by one engine, above
@examples(1, 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("quick_keys")
def test_every_engine_equals_mining_the_joined_table(engine: Name, grid: Grid, least: int) -> None:
    joined = grid.joined
    if not joined:
        return
    task = task_of(grid, min(least, len(joined)), engine=engine)
    results = run(grid, task)
    assert {result.strategy for result in results.values()} == {f"level-wise, {engine}"}
    assert_mined(results, joined, task)


# -- from tables, with the alignment -----------------------------------------------------------------------------------
def tables_of(grid: Grid) -> dict[str, Table]:
    found = {}
    for number, group in enumerate(grid.groups):
        for member, party in enumerate(group.members):
            held = [row for row, at in enumerate(grid.at[number]) if at == member]
            names = [f"g{number}c{column}" for column in range(len(grid.cells[number][0]))]
            cells = [[f"p{row}" for row in held]]
            cells += [[grid.cells[number][row][column] for row in held] for column in range(len(names))]
            order = [0, *(range(1, len(cells)) if member else range(len(cells) - 1, 0, -1))]  # members' files differ
            chunks = [pa.chunked_array([pa.array(cells[column], pa.string())]) for column in order]
            found[party] = Table.of([["id", *names][column] for column in order], chunks, ["id"], "the test")
    return found


def mine_tables(
    data: Mapping[str, Table],
    task: VerticalMining,
    observe: Callable[[Frame], None] = lambda frame: None,
    limits: ScratchLimits = IN_MEMORY,
) -> dict[str, JointItemsets]:
    async def role(session: Session) -> JointItemsets:
        return await mine(session.lane("task"), data[session.me], task, limits=limits)

    declared = openings(task, tuple(data))
    return run_parties(tuple(data), role, declared=declared, observe=observe, deadline_s=240)


@given(grids(), st.integers(1, 4))
@examples(1, 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tables_are_aligned_and_mined(grid: Grid, least: int) -> None:
    joined = grid.joined
    task = task_of(grid, min(least, max(1, len(joined))), engine="ot")
    if not joined:
        with fails("E101"):
            mine_tables(tables_of(grid), task)
        return
    assert_mined(mine_tables(tables_of(grid), task), joined, task)


def test_lists_of_rows_and_of_items_take_what_the_node_allows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given, limits = list[ScratchLimits](), ScratchLimits(16 << 10, tmp_path)

    class Noted(Room):
        def __init__(self, limits: ScratchLimits, random: RandomStream) -> None:
            given.append(limits)
            super().__init__(limits, random)

    monkeypatch.setattr(alignment, "Room", Noted)
    grid = small([[0, 0, 1], [0, 0, 0]])
    task = task_of(grid, 2, engine="ot")
    assert_mined(mine_tables(tables_of(grid), task, limits=limits), grid.joined, task)
    assert given == [limits] * 5  # rows at three parties, items at the two of a group


# -- what ends a job ---------------------------------------------------------------------------------------------------
def small(at: Sequence[Sequence[int]]) -> Grid:
    return Grid([2, 1], [[("a",)] * len(at[0])] * 2, at)


def test_an_id_at_two_parties_of_a_group_ends_the_job_and_is_not_named() -> None:
    grid = small([[0, 0, 1, 1], [0, 0, 0, 0]])
    data = grid.data
    presence = np.array([False, True, True, True])  # the second row is at both
    data["p01"] = Aligned(data["p01"].columns, pack_bits(presence))
    with fails("E101") as raised:
        mine_all(data, task_of(grid, 1, engine="ot"))
    assert "p0" not in raised.value.message
    assert raised.value.party is None


@pytest.mark.parametrize(
    "columns",
    [
        {"p00": ["age", "sex"], "p01": ["age"], "p10": ["nodes"]},
        {"p00": ["age"], "p01": ["age", "sex"], "p10": ["nodes"]},
        {"p00": ["age"], "p01": ["age"], "p10": ["nodes", "age"]},
        {"p00": ["sex"], "p01": ["sex"], "p10": ["nodes"]},
    ],
)
def test_columns_that_do_not_fit_the_groups(columns: dict[str, list[str]]) -> None:
    check_group_columns(columns | {"p01": columns["p00"], "p10": ["nodes"]}, small([[0], [0]]).groups, [])
    with fails("E100"):
        check_group_columns(columns, small([[0], [0]]).groups, ["age"])


# -- another attempt ---------------------------------------------------------------------------------------------------
@pytest.mark.costly
def test_another_attempt_goes_on_from_every_level() -> None:
    draw = np.random.default_rng(2)
    cells = [[tuple("ab"[int(bit)] for bit in row) for row in draw.random((24, 2)) < 0.2] for _ in range(2)]
    grid = Grid([2, 2], cells, [draw.integers(0, 2, 24).tolist(), draw.integers(0, 2, 24).tolist()])
    task = task_of(grid, 6, engine="ot", learners=grid.parties[:2])
    first, kept = attempt(grid.data, task)
    assert len(kept["p00"]) >= 1 + 3
    for steps in in_turn(range(4), 4):
        again, _ = attempt(grid.data, task, {party: each[:steps] for party, each in kept.items()}, seed=steps)
        assert {party: found(each) for party, each in again.items()} == {p: found(each) for p, each in first.items()}


# -- leakage -----------------------------------------------------------------------------------------------------------
ROWS = 160
OF_THIS_RUN = ("size classes", "rows", "frequent", "supports", "repeated")  # masked, or shares
PREFIXES = ("item_positions/", "item_names/")  # positions of this run


@pytest.mark.parametrize(("watching", "engine"), slowly([("p00", "ot"), ("p10", "replicated")], now=[1]))
def test_a_view_does_not_tell_which_party_of_a_group_has_a_row(watching: str, engine: Name) -> None:
    """Rows change places between parties of one group, the watching one's own aside: frames of the same shapes, shares
    uniform and alike, and the same opened to it. Two splits; every statistical test errs with probability 1e-6.
    """
    draw = np.random.default_rng(0)
    cells = [[tuple("ab"[int(bit)] for bit in row) for row in draw.random((ROWS, 2)) < 0.4] for _ in range(2)]
    own = draw.random(ROWS) < 0.3  # of p00
    labs = draw.integers(0, 2, ROWS)
    views, outputs = list[list[Frame]](), []
    for split in range(2):
        others = 1 + (np.random.default_rng(split).random(ROWS) < 0.2 + 0.3 * split)
        grid = Grid([3, 2], cells, [np.where(own, 0, others).tolist(), labs.tolist()])
        task = task_of(grid, Decimal("0.2"), engine=engine, learners=(watching,), compute=("p00", "p10"))
        frames = list[Frame]()
        result = mine_all(grid.data, task, observe=frames.append, seed=split)[watching]
        assert result.itemsets is not None
        outputs.append(sorted((sorted(itemset), count) for itemset, count in result.itemsets.rows()))
        views.append([frame for frame in frames if frame.receiver == watching])
    assert outputs[0] == outputs[1]
    assert max(len(itemset) for itemset, _ in outputs[0]) >= 2
    assert shapes_of(views[0]) == shapes_of(views[1])
    assert plainly_opened(views[0]) == plainly_opened(views[1])
    assert_views_alike(views)


def plainly_opened(frames: Sequence[Frame]) -> list[tuple[str, str, list[int]]]:
    """What was opened neither masked nor at a position: numbers of items, and names, which positions order."""
    openings = [(frame.sender, Opening.FromString(frame.body)) for frame in frames if frame.type.endswith(".Opening")]
    return sorted(
        (sender, opening.label, sorted(opening.values))
        for sender, opening in openings
        if opening.label not in OF_THIS_RUN and not opening.label.startswith(PREFIXES)
    )


def test_only_members_see_what_their_group_agrees_upon() -> None:
    grid = small([[0, 1, 0, 1], [0, 0, 0, 0]])
    frames = list[Frame]()
    run(grid, task_of(grid, 1, engine="ot"), frames)
    inside = [frame for frame in frames if "/members/" in frame.lane]
    assert inside
    assert {frame.sender for frame in inside} | {frame.receiver for frame in inside} == {"p00", "p01"}
    names = [frame for frame in frames if frame.receiver == "p10" and b"g0c0=a" in frame.body]
    assert {frame.sender for frame in names} == {"p00"}  # who speaks for all, whoever has the item

"""Naive Bayes and trees where parties of a group hold the same columns of different rows: as if all were joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import pairs_of
from link.disclosure import Declared
from mining.joint.models import decision_tree, naive_bayes
from mining.joint.models.aligned import AlignedAttributes
from mining.joint.models.costs import Learning
from mining.joint.vertical.grouped.disclosure import repeated_openings
from mining.joint.vertical.grouped.groups import ColumnGroup
from mining.models.attributes import Attribute, Categorical, Intervals, LabelledRows, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.naive_bayes import NaiveBayesParameters
from mining.reference.pooled_models import learn_bayes
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.models.models_world import assert_declared, opened, run, shapes, taken
from tests.mining.joint.models.test_decision_tree import check as assert_grown
from tests.mining.joint.models.test_model_costs import entered, sent
from tests.mining.joint.models.test_naive_bayes import assert_same
from tests.traffic import assert_planned

pytestmark = pytest.mark.turn(3)

TARGET = Categorical("class", ("yes", "no", "perhaps"))
COLOUR = Categorical("colour", ("red", "green"))
AGE = Intervals("age", (Decimal(20), Decimal(40)))
HEIGHT = Numeric("height", Decimal(0), Decimal(2), 20)
BAYES = NaiveBayesParameters(TARGET, (COLOUR, HEIGHT))
TREE = TreeParameters(TARGET, (COLOUR, AGE), max_depth=2)
Task = NaiveBayesParameters | TreeParameters


@dataclass(frozen=True)
class Grid:
    """Rows by position, and by group which of its parties has each; −1: none."""

    members: Sequence[int]
    rows: LabelledRows
    at: Sequence[NDArray[np.int64]]

    @property
    def groups(self) -> tuple[ColumnGroup, ...]:
        return tuple(
            ColumnGroup(f"g{group}", tuple(f"p{group}{member}" for member in range(members)))
            for group, members in enumerate(self.members)
        )

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(party for group in self.groups for party in group.members)

    def holders(self, task: Task) -> dict[str, str]:
        """By column its group, in turn."""
        columns = (task.target, *task.attributes)
        return {each.name: f"g{place % len(self.members)}" for place, each in enumerate(columns)}

    @property
    def joined(self) -> LabelledRows:
        return taken(self.rows, np.flatnonzero(np.logical_and.reduce([each >= 0 for each in self.at])))

    def data(self, task: Task) -> dict[str, AlignedAttributes]:
        """Of positions without a row a party has any codes."""
        found, holders = {}, self.holders(task)
        columns = dict(zip([task.target, *task.attributes], [self.rows.classes, *self.rows.cells], strict=True))
        for group, at in zip(self.groups, self.at, strict=True):
            for member, party in enumerate(group.members):
                here = at == member
                cells = {
                    each.name: np.where(here, codes, 0)
                    for each, codes in columns.items()
                    if holders[each.name] == group.name
                }
                found[party] = AlignedAttributes(cells, self.rows.n_rows, here)
        return found


def rows_of(task: Task, n: int, seed: int) -> LabelledRows:
    draw = np.random.default_rng(seed)
    return LabelledRows(draw.integers(0, 3, n), tuple(draw.integers(0, _most(each), n) for each in task.attributes))


def _most(attribute: Attribute) -> int:
    return attribute.steps + 1 if isinstance(attribute, Numeric) else attribute.size


def declared_of(task: Task, grid: Grid, learners: tuple[str, ...]) -> tuple[Declared, ...]:
    if isinstance(task, NaiveBayesParameters):
        own = naive_bayes.openings(task, grid.parties, learners, vertical=True, everywhere=False)
    else:
        own = decision_tree.openings(task, grid.parties, vertical=True, everywhere=False)
    return (*repeated_openings(grid.groups, grid.parties), *own)


def part_of(task: Task, grid: Grid, learners: tuple[str, ...]) -> Any:
    if isinstance(task, NaiveBayesParameters):
        return partial(naive_bayes.learn_vertical, task=task, learners=learners, groups=grid.groups)
    return partial(decision_tree.learn_vertical, task=task, groups=grid.groups)


def learn(
    task: Task,
    grid: Grid,
    learners: tuple[str, ...],
    data: Mapping[str, AlignedAttributes] | None = None,
    frames: list[Frame] | None = None,
) -> dict[str, Any]:
    part = part_of(task, grid, learners)
    return run(
        grid.data(task) if data is None else data,
        lambda session, own: part(session, pairs_of(session), own),
        declared_of(task, grid, learners),
        frames=frames,
    )


@st.composite
def grids(draw: st.DrawFn, task: Task) -> Grid:
    members = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda m: 3 <= sum(m) <= 5))
    n, seed = draw(st.integers(1, 40)), draw(st.integers(0, 2**32))
    generator, lacks = np.random.default_rng(seed), draw(st.sampled_from([0, -1]))
    return Grid(members, rows_of(task, n, seed), [generator.integers(lacks, each, n) for each in members])


@pytest.mark.parametrize("task", [BAYES, TREE], ids=["bayes", "tree"])
@given(st.data())
@examples(1, 8)
def test_equals_the_model_of_the_joined_table(task: Task, data: st.DataObject) -> None:
    grid = data.draw(grids(task))
    joined, learners, frames = grid.joined, (grid.parties[-1],), list[Frame]()
    if not joined.n_rows:
        with fails("E101"):
            learn(task, grid, learners)
        return
    found = learn(task, grid, learners, frames=frames)
    if isinstance(task, NaiveBayesParameters):
        assert {each.n_rows for each in found.values()} == {joined.n_rows}
        assert [party for party, each in found.items() if each.model is not None] == list(learners)
        assert_same(found[learners[0]].model, learn_bayes(joined, task))
    else:
        assert_grown(found, joined, task)
    of_growth = {"histograms"} if ("histograms", learners[0]) not in opened(frames) else set()
    assert_declared(frames, [line for line in declared_of(task, grid, learners) if line.label not in of_growth])


def test_an_id_at_two_parties_of_a_group_ends_the_job_and_is_not_named() -> None:
    rows = rows_of(BAYES, 8, 1)
    grid = Grid([2, 1], rows, [np.arange(8) % 2, np.zeros(8, np.int64)])
    data = grid.data(BAYES)
    twice = data["p01"].presence
    assert twice is not None
    data["p01"] = replace(data["p01"], presence=twice | (np.arange(8) == 2))
    with fails("E101") as raised:
        learn(BAYES, grid, ("p00",), data)
    assert "p0" not in raised.value.message
    assert raised.value.party is None


@pytest.mark.parametrize("task", [BAYES, TREE], ids=["bayes", "tree"])
def test_a_view_does_not_tell_which_party_of_a_group_has_a_row(task: Task) -> None:
    """Rows change places between the others of a group: frames of the same shapes, and the same opened."""
    rows, views, outputs = rows_of(task, 60, 3), [], []
    own = np.random.default_rng(4).random(60) < 0.3
    for split in range(2):
        others = 1 + (np.random.default_rng(split).random(60) < 0.3 + 0.3 * split)
        grid, frames = Grid([3, 1], rows, [np.where(own, 0, others), np.zeros(60, np.int64)]), list[Frame]()
        outputs.append(learn(task, grid, ("p00",), frames=frames)["p00"].n_rows)
        views.append([shapes(frames, party) for party in ("p00", "p10")])
    assert views[0] == views[1]
    assert outputs[0] == outputs[1] == 60


@pytest.mark.parametrize("task", [BAYES, replace(TREE, max_depth=1)], ids=["bayes", "tree"])
def test_it_sends_what_is_planned(task: Task) -> None:
    n = 4_000
    grid = Grid([2, 2], rows_of(task, n, 5), [np.arange(n) % 2, np.arange(n) // 2 % 2])
    learners, compute = (grid.parties[0],), (grid.parties[0], grid.parties[1])
    costs = sent(grid.data(task), part_of(task, grid, learners), declared_of(task, grid, learners), agreed=True)
    learning = Learning(task, grid.parties, grid.holders(task), n, n, False, learners, compute, grid.groups)
    assert_planned(entered(learning), costs, range(-20, 20))

"""k-means that hides clusters and common rows equals the pooled iteration over the joined table, groups or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from mining.joint.models.aligned import AlignedAttributes
from mining.joint.models.costs import Learning
from mining.joint.models.shared_kmeans import cluster, learned, openings
from mining.joint.vertical.grouped.disclosure import repeated_openings
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups, column_holders
from mining.models.attributes import Numeric
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.reference.pooled_models import lloyd
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.models.models_world import assert_declared, run, shapes
from tests.mining.joint.models.test_kmeans import points_of, tasks
from tests.mining.joint.models.test_model_costs import entered, sent
from tests.traffic import assert_planned

pytestmark = pytest.mark.turn(3)

ATTRIBUTES = (Numeric("x", Decimal(0), Decimal(100), 100), Numeric("y", Decimal(0), Decimal(100), 1000))
TASK = KMeansParameters(ATTRIBUTES, drawn_centroids(ATTRIBUTES, 3, 1), 3)


@dataclass(frozen=True)
class Split:
    """Points by position, and by holder which of its parties has each; −1: none."""

    members: Sequence[int]
    points: NDArray[np.int64]
    at: Sequence[NDArray[np.int64]]

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(f"p{group}{member}" for group, number in enumerate(self.members) for member in range(number))

    @property
    def groups(self) -> Groups:
        """None where each has a single party."""
        if max(self.members) == 1:
            return ()
        return tuple(
            ColumnGroup(f"g{group}", tuple(f"p{group}{member}" for member in range(number)))
            for group, number in enumerate(self.members)
        )

    @property
    def joined(self) -> NDArray[np.int64]:
        return self.points[np.logical_and.reduce([each >= 0 for each in self.at])]

    def holders(self, task: KMeansParameters) -> dict[str, str]:
        """By column its holder, in turn."""
        names = column_holders(self.groups, self.parties)
        return {each.name: names[place % len(names)] for place, each in enumerate(task.attributes)}

    def data(self, task: KMeansParameters) -> dict[str, AlignedAttributes]:
        """Of positions without a row a party has some codes."""
        found, holders, names = {}, self.holders(task), column_holders(self.groups, self.parties)
        for group, (name, at) in enumerate(zip(names, self.at, strict=True)):
            for member in range(self.members[group]):
                here = at == member
                cells = {
                    each.name: np.where(here, self.points[:, place], each.steps)
                    for place, each in enumerate(task.attributes)
                    if holders[each.name] == name
                }
                found[f"p{group}{member}"] = AlignedAttributes(cells, len(self.points), here)
        return found


def declared_of(task: KMeansParameters, split: Split) -> tuple[Declared, ...]:
    return (*repeated_openings(split.groups, split.parties), *openings(task, split.parties))


def part_of(task: KMeansParameters, split: Split, compute: tuple[str, str]) -> Any:
    return partial(cluster, task=task, compute=compute, groups=split.groups)


def clusters(
    task: KMeansParameters, split: Split, compute: tuple[str, str], frames: list[Frame] | None = None
) -> dict[str, Any]:
    part = part_of(task, split, compute)
    return run(
        split.data(task),
        lambda session, own: part(session, pairs_of(session), own),
        declared_of(task, split),
        frames=frames,
    )


@given(st.data())
@examples(3, 12)
def test_equals_the_clusters_of_the_joined_table(data: st.DataObject) -> None:
    task = data.draw(tasks())
    members = data.draw(st.lists(st.integers(1, 2), min_size=2, max_size=3).filter(lambda m: sum(m) <= 4))
    n, seed = data.draw(st.integers(task.k, 40)), data.draw(st.integers(0, 2**32))
    generator, lacks = np.random.default_rng(seed), data.draw(st.sampled_from([0, -1]))
    split = Split(members, points_of(task, n, seed), [generator.integers(lacks, each, n) for each in members])
    first, second, *_ = data.draw(st.permutations(split.parties))
    joined, frames = split.joined, list[Frame]()
    if len(joined) < task.k:
        with fails("E100" if len(joined) else "E101"):
            clusters(task, split, (first, second))
        return
    found = clusters(task, split, (first, second), frames)
    pooled, _ = lloyd(joined, task)
    for each in found.values():
        assert (each.n_rows, each.labels) == (len(joined), None)
        assert each.model.centroids.tolist() == pooled.centroids.tolist()
        assert each.model.counts.tolist() == pooled.counts.tolist()
        assert (each.model.iterations, each.model.converged) == (pooled.iterations, pooled.converged)
    assert_declared(frames, declared_of(task, split))


def test_a_view_tells_neither_whose_a_row_is_nor_which_are_common() -> None:
    """The same points at other parties of a group and at other positions: frames of the same shapes, and equal sums."""
    points, views, outputs = points_of(TASK, 60, 3), [], []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(60)
        common = order < 45
        at = [np.where(common, order % 2, -1), np.where(common, 0, order % 2 - 1)]
        frames, placed = list[Frame](), np.zeros_like(points)
        placed[np.argsort(order)] = points
        found = clusters(TASK, Split([2, 1], placed, at), ("p00", "p10"), frames)
        outputs.append(found["p01"].model.centroids.tolist())
        views.append([shapes(frames, party) for party in ("p00", "p01", "p10")])
    assert outputs[0] == outputs[1]
    assert views[0] == views[1]


def test_an_id_at_two_parties_of_a_group_ends_the_job_and_is_not_named() -> None:
    split = Split([2, 1], points_of(TASK, 8, 1), [np.arange(8) % 2, np.zeros(8, np.int64)])
    data = split.data(TASK)
    twice = data["p01"].presence
    assert twice is not None
    data["p01"] = AlignedAttributes(data["p01"].cells, 8, twice | (np.arange(8) == 2))
    part = part_of(TASK, split, ("p01", "p10"))
    with fails("E101") as raised:
        run(data, lambda session, own: part(session, pairs_of(session), own), declared_of(TASK, split))
    assert "p0" not in raised.value.message


def test_rows_that_are_everywhere_are_refused() -> None:
    split = Split([1, 1], points_of(TASK, 8, 1), [np.zeros(8, np.int64)] * 2)
    data = {party: AlignedAttributes(each.cells, 8) for party, each in split.data(TASK).items()}
    part = part_of(TASK, split, ("p00", "p10"))
    with fails("E100"):
        run(data, lambda session, own: part(session, pairs_of(session), own), declared_of(TASK, split))


@pytest.mark.parametrize(("members", "k"), [((2, 1), 3), ((1, 1), 1)])
def test_it_sends_what_is_planned(members: tuple[int, ...], k: int) -> None:
    n, task = 2_000, KMeansParameters(ATTRIBUTES, drawn_centroids(ATTRIBUTES, k, 1), min(k, 2))
    split = Split(members, points_of(task, n, 5), [np.arange(n) % each for each in members])
    parties, compute = split.parties, (split.parties[-1], split.parties[0])
    costs = sent(split.data(task), part_of(task, split, compute), declared_of(task, split), agreed=True)
    learning = Learning(task, parties, split.holders(task), n, n, False, parties, compute, split.groups)
    assert_planned(entered(learning), costs, range(-20, 20))


def test_the_statement_tells_of_single_rows_and_of_no_row_s_cluster() -> None:
    said = " ".join(line.exact for line in learned(("a", "b", "c"), "groups"))
    assert "this is the row itself" in said
    assert "rows that all groups have in common" in said
    assert "cluster of every" not in said

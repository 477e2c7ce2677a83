"""Joint Mondrian cuts the rows of all parties as Mondrian cuts the pooled ones, and opens spans and cuts alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import TCloseness
from anonymize.multidimensional.mondrian import mondrian
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.axes import PublicAxis, axes_of
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation, QuasiIdentifier
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_world import (
    ILLS,
    PARTIES,
    Cells,
    divided,
    hierarchies,
    joint,
    others_fit,
    people,
    task,
    whole,
)
from tests.mining.joint.anonymisation.test_anonymisation import bits, check_declared, opened
from tests.mining.joint.models.models_world import shapes

Split = tuple[Cells, NDArray[np.int64], tuple[str, ...]]
Box = tuple[tuple[int, ...], tuple[int, ...], int]


def cut_into_boxes(cells: Cells, owners: NDArray[np.int64], wanted: JointAnonymisation) -> list[Box]:
    """Tight boxes of the regions and their rows, by recursion over lists of rows; the rules on parties' parts too."""
    table = whole(cells)
    fitted = wanted.requirements.fitted(table)
    axes = axes_of(wanted.quasi_identifiers)
    trees = hierarchies()
    places = np.stack([a.places[trees[a.name].align(table.columns[a.name])[table.columns[a.name].codes]] for a in axes])
    found: list[Box] = []

    def good(rows: NDArray[np.int64]) -> bool:
        columns = [table.columns["ill"]]
        labels = np.ones(table.n_rows, np.int64)
        labels[rows] = 0
        if not len(rows) or not fitted.satisfied(Histograms.of(labels, 2, columns))[0]:
            return False
        parts = np.bincount(owners[rows], minlength=len(PARTIES))
        few = wanted.k_site is not None and bool(((parts > 0) & (parts < wanted.k_site)).any())
        return bool(others_fit(parts[None], wanted)[0]) and not few

    spans = [axis.span(int(p.min()), int(p.max())) for axis, p in zip(axes, places, strict=True)]

    def cut(rows: NDArray[np.int64]) -> None:
        own = places[:, rows]
        low, high = own.min(axis=1), own.max(axis=1)
        width = [(a.coordinates[h] - a.coordinates[w]) / s for a, w, h, s in zip(axes, low, high, spans, strict=True)]
        for axis in sorted(range(len(axes)), key=lambda each: (-width[each], each)):
            if width[axis] <= 0:
                break
            allowed = []
            for place in range(low[axis], high[axis]):
                left, right = rows[own[axis] <= place], rows[own[axis] > place]
                if good(left) and good(right):
                    allowed.append((abs(len(left) - len(right)), place, left, right))
            if allowed:
                _, _, left, right = min(allowed, key=lambda each: each[:2])
                cut(left)
                cut(right)
                return
        found.append((tuple(low.tolist()), tuple(high.tolist()), len(rows)))

    if not good(np.arange(table.n_rows)):
        return []
    cut(np.arange(table.n_rows))
    return sorted(found)


def boxes_of(release: JointRelease) -> list[Box]:
    assert release.boxes is not None
    assert release.rows is not None
    sizes = np.bincount(release.rows.cells, minlength=len(release.boxes.low)).tolist()
    ends = zip(release.boxes.low.tolist(), release.boxes.high.tolist(), sizes, strict=True)
    return sorted((tuple(low), tuple(high), size) for low, high, size in ends)


def check(split: Split, wanted: JointAnonymisation) -> JointRelease | None:
    """What the first party has found, if anything can be."""
    cells, owners, parties = split
    expected = cut_into_boxes(cells, owners, wanted)
    if not expected:
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return None
    releases = joint(cells, owners, parties, wanted)
    for found in releases.values():
        assert boxes_of(found) == expected
    return releases[parties[0]]


@given(divided(), st.integers(2, 5))
@examples(1, 3)
def test_the_regions_are_those_of_the_pooled_rows(split: Split, k: int) -> None:
    cells, _, parties = split
    wanted = task(parties, k=k, algorithm="mondrian")
    found = check(split, wanted)
    if found is None:
        return
    assert found.boxes is not None
    assert found.rows is not None
    trees = {name: tree for name, tree in hierarchies().items() if name != "age"}
    pooled = mondrian(whole(cells), wanted.requirements, hierarchies=trees).table
    shown = [
        np.array(axis.texts(found.boxes.low[:, j], found.boxes.high[:, j]))[found.rows.cells].tolist()
        for j, axis in enumerate(found.boxes.axes)
    ]
    expected = [pooled.column(name).to_pylist() for name in ("age", "town", "sex", "note")]
    assert sorted(zip(*shown, found.rows.carried["note"], strict=True)) == sorted(zip(*expected, strict=True))


@given(divided(8, 40), st.integers(2, 3), st.none() | st.integers(2, 3))
@examples(1, 3)
def test_rules_on_the_parties_parts_of_a_region(split: Split, insider_k: int, k_site: int | None) -> None:
    check(split, task(split[2], k=3, algorithm="mondrian", insider_k=insider_k, k_site=k_site))


@given(divided(12, 40))
@examples(1, 2)
def test_models_of_sensitive_values(split: Split) -> None:
    carried = (
        Carried("ill", "sensitive", "tree", tuple(sorted(ILLS)), 5),
        Carried("note", "insensitive", "tree", None, 6),
    )
    models = [TCloseness(Decimal("0.35"), "ill")]
    check(split, task(split[2], k=2, models=models, algorithm="mondrian", carried=carried))


def test_ages_of_eight_people_as_worked_by_hand() -> None:
    """Ages 21, 25, 26, 32, 35, 45, 48, 50 of three parties: four classes of 2; with insider_k = 2 two of 4."""
    years = Hierarchy.of("age", [(str(age), "*") for age in range(20, 51)])
    cells = {"age": [str(age) for age in (21, 26, 25, 48, 32, 45, 35, 50)], "ill": ["flu"] * 8, "note": [""] * 8}
    owners = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    for insider_k, expected in ((1, {2}), (2, {4})):
        wanted = task(
            PARTIES[:3],
            k=2,
            insider_k=insider_k,
            algorithm="mondrian",
            quasi_identifiers=(QuasiIdentifier("age", "numeric", years),),
        )
        found = joint(cells, owners, PARTIES[:3], wanted)["north"]
        assert {size for _, _, size in boxes_of(found)} == expected


# -- what is opened ---------------------------------------------------------------------------------------------------
def test_the_same_is_opened_whoever_has_the_rows() -> None:
    """Spans, splits and sizes of messages are functions of the regions: a party without shares sees the same."""
    cells, parties = people(32, 8), PARTIES[:4]
    wanted = task(parties, k=3, algorithm="mondrian")
    views: list[Any] = []
    for seed in (0, 1):
        frames: list[Frame] = []
        owners = np.random.default_rng(seed).permutation(np.arange(32) % 4)
        joint(cells, owners, parties, wanted, frames=frames, seed=seed)
        labels = check_declared(frames, openings(wanted, parties))
        assert labels == {"rows", "size classes", "verdicts", "spans", "splits", "cuts", "reports", "release"}
        found = opened(frames, "west")
        views.append([[bits(found, label) for label in ("spans", "splits")], shapes(frames, "west")])
    assert views[0] == views[1]


def test_axes_are_those_of_the_library() -> None:
    rows = [("b", "x", "*"), ("a", "y", "*"), ("c", "x", "*")]
    tree = PublicAxis.of(QuasiIdentifier("town", "tree", Hierarchy.of("town", rows)))
    assert [tree.hierarchy.leaves[leaf] for leaf in tree.leaves.tolist()] == ["b", "c", "a"]
    assert tree.texts(np.array([0, 0, 2]), np.array([1, 2, 2])) == ["x", "*", "a"]
    numbers = Hierarchy.of("age", [("10", "*"), ("9.5", "*"), ("-3", "*")])
    ages = PublicAxis.of(QuasiIdentifier("age", "numeric", numbers))
    assert ages.coordinates.tolist() == [-3.0, 9.5, 10.0]
    assert ages.texts(np.array([0, 1]), np.array([2, 1])) == ["[-3, 10]", "9.5"]
    with fails("E100"):
        PublicAxis.of(QuasiIdentifier("town", "numeric", Hierarchy.of("town", rows)))


@pytest.mark.slow
def test_many_rows() -> None:
    parties = PARTIES[:3]
    split = people(2_000, 4), np.arange(2_000) % 3, parties
    found = check(split, task(parties, k=5, insider_k=2, algorithm="mondrian"))
    assert found is not None
    assert found.statistics["regions"] > 20

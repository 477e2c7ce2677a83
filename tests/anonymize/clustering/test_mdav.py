"""MDAV against a plain version that looks at every point, worked numbers, and real data."""

from __future__ import annotations

import datetime
import gzip
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.clustering.mdav import information_loss, mdav, mdav_groups
from anonymize.clustering.remaining import Remaining
from anonymize.roles import Roles
from anonymize.tables import Table
from tests.errors import fails
from tests.examples import slowly

pytestmark = pytest.mark.turn(6)

Floats = NDArray[np.float64]


def plain(points: Floats, k: int) -> list[list[int]]:
    """MDAV as the paper states it."""
    left, groups = list(range(len(points))), []

    def squares(place: Floats) -> Floats:
        return np.square(points[left] - place).sum(axis=1)

    def farthest(place: Floats) -> Floats:
        return points[left[int(squares(place).argmax())]]

    def take(place: Floats) -> None:
        chosen = [left[i] for i in np.argsort(squares(place), kind="stable")[:k]]
        groups.append(chosen)
        left[:] = [row for row in left if row not in chosen]

    while len(left) >= 3 * k:
        first = farthest(points[left].mean(axis=0))
        take(first)
        take(farthest(first))
    if len(left) >= 2 * k:
        take(farthest(points[left].mean(axis=0)))
    groups.append(left)
    return [sorted(found) for found in groups]


def as_lists(labels: NDArray[np.int64]) -> list[list[int]]:
    return [np.flatnonzero(labels == label).tolist() for label in range(int(labels.max()) + 1)]


@pytest.mark.parametrize(
    ("k", "groups", "loss"),
    [(2, [{12, 20}, {1, 2}, {3, 10, 11}], 0.25025355), (3, [{11, 12, 20}, {1, 2, 3, 10}], 0.35023665)],
)
def test_worked_numbers(k: int, groups: list[set[int]], loss: float) -> None:
    numbers = np.array([1.0, 2, 3, 10, 11, 12, 20])
    labels = mdav_groups(numbers[:, None], k)
    assert [set(numbers[rows].astype(int).tolist()) for rows in as_lists(labels)] == groups
    assert information_loss(numbers[:, None], labels) == pytest.approx(loss, abs=5e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 80), st.integers(1, 3), st.integers(2, 6))
def test_groups_are_those_of_the_plain_version(seed: int, n: int, d: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(size=(n, d))
    k = min(k, n)
    found = mdav_groups(points, k)
    assert as_lists(found) == plain(points, k)
    sizes = np.bincount(found)
    assert k <= sizes.min() <= sizes.max() <= max(2 * k - 1, min(n, 2 * k - 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 80), st.integers(1, 6))
def test_sizes_hold_where_points_tie(seed: int, n: int, k: int) -> None:
    points = np.random.default_rng(seed).integers(0, 3, (n, 2)).astype(float)
    sizes = np.bincount(mdav_groups(points, min(k, n)))
    assert min(k, n) <= sizes.min() <= sizes.max() <= max(2 * k - 1, 1)


def test_many_points_are_grouped_as_by_the_plain_version() -> None:
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2_500, 3)) * rng.exponential(size=(2_500, 1))  # outliers, and several compactions
    for k in (3, 40):
        assert as_lists(mdav_groups(points, k)) == plain(points, k)


def test_the_nearest_and_the_farthest_are_those_of_all_that_remain() -> None:
    rng = np.random.default_rng(5)
    points = rng.integers(0, 12, (6_000, 2)).astype(float)  # 144 places only: ties everywhere
    remaining, left = Remaining(points), np.arange(len(points))
    for _ in range(150):
        place = points[rng.integers(len(points))]
        squares = np.square(points[left] - place).sum(axis=1)
        far = remaining.farthest(place)
        assert far.tolist() == points[left[int(squares.argmax())]].tolist()
        nearest = left[np.argsort(squares, kind="stable")[:25]]
        assert remaining.take_nearest(place, 25).tolist() == nearest.tolist()
        left = np.setdiff1d(left, nearest)
        assert remaining.rows().tolist() == left.tolist()


def people(n: int, seed: int = 0) -> dict[str, list[object]]:
    rng = np.random.default_rng(seed)
    return {
        "name": [f"p{i}" for i in range(n)],
        "age": rng.integers(18, 90, n).tolist(),
        "since": [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 4000, n)],
        "grade": rng.choice(["low", "middle", "high"], n).tolist(),
        "illness": rng.choice(["flu", "asthma"], n).tolist(),
    }


ROLES = Roles(("name",), ("age", "since", "grade"), ("illness",), ())
ORDER = {"grade": ("low", "middle", "high")}


def test_a_release_has_the_centres_of_its_groups() -> None:
    data = people(100)
    table = Table.of(data, ROLES, orders=ORDER)
    release = mdav(table, 7)
    assert release.table.column_names == ["age", "since", "grade", "illness"]
    assert release.table["illness"].to_pylist() == data["illness"]
    assert release.classes is not None
    assert release.cell_loss is not None
    assert release.class_sizes.min() >= 7
    assert release.n_classes == release.statistics["groups"]
    age, since = np.array(data["age"]), np.array(data["since"])
    for label in range(release.n_classes):
        rows = np.flatnonzero(release.classes == label)
        assert release.table["age"].to_numpy()[rows] == pytest.approx(age[rows].mean())
        days = np.mean([day.toordinal() for day in since[rows]])
        assert {day.toordinal() for day in release.table["since"].take(pa.array(rows)).to_pylist()} == {
            int(np.floor(days + 0.5))
        }
    moved = np.abs(age - release.table["age"].to_numpy()) / np.ptp(age)
    assert release.cell_loss[:, 0] == pytest.approx(moved)
    assert release.cell_loss.min() >= 0
    assert release.cell_loss.max() <= 1


@pytest.mark.parametrize("scaling", ["deviation", "range"])
def test_units_do_not_matter_once_scaled(scaling: str) -> None:
    data = people(120)
    wider = {**data, "age": [age * 1024 for age in data["age"]]}  # type: ignore[operator]
    tables = [Table.of(d, ROLES, orders=ORDER) for d in (data, wider)]
    classes = [mdav(table, 5, scaling=scaling).classes for table in tables]  # type: ignore[arg-type]
    assert classes[0] is not None
    assert classes[1] is not None
    assert classes[0].tolist() == classes[1].tolist()


def test_equal_centres_are_one_class() -> None:
    table = Table.of({"x": [5] * 9, "s": list("abcabcabc")}, Roles((), ("x",), ("s",), ()))
    release = mdav(table, 2)
    assert release.statistics["groups"] > 1
    assert release.class_sizes.tolist() == [9]
    assert release.statistics["il"] == 0


def test_what_it_refuses() -> None:
    table = Table.of({"x": [1, 2, 3], "s": list("abc")}, Roles((), ("x",), ("s",), ()))
    for k in (0, 4):
        with fails("E100"):
            mdav(table, k)
    with fails("E100"):
        mdav(Table.of({"s": list("abc")}, Roles((), ("s",), (), ())), 2)
    with fails("E100"):
        mdav(Table.of({"s": list("abc")}, Roles((), (), ("s",), ())), 2)


@pytest.mark.data
@pytest.mark.parametrize(("k", "groups", "loss"), slowly([(3, 10_054, 0.006552), (10, 3_016, 0.022584)], now=[1]))
def test_adult(shared_data: pathlib.Path, k: int, groups: int, loss: float) -> None:
    names = ("age", "education-num", "hours-per-week", "fnlwgt")
    with gzip.open(shared_data / "adult" / "adult_45222.csv.gz") as file:
        data = pyarrow.csv.read_csv(file).select(names).slice(0, 30_162)
    release = mdav(Table.of(data, Roles((), names, (), ())), k)
    assert release.statistics["groups"] == groups
    assert release.statistics["il"] == pytest.approx(loss, abs=1e-6)
    assert k <= release.class_sizes.min() <= release.class_sizes.max() <= 4 * k  # coinciding centres are one class

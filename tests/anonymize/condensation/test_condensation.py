"""Moments, splits, and the condensation of whole tables."""

from __future__ import annotations

import datetime
import gzip
import pathlib

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.condensation.moments import Moments, principal_axes, split
from anonymize.condensation.static import condense, random_groups
from anonymize.condensation.synthesis import synthesise
from anonymize.roles import Roles
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from tests.errors import fails

FOUR = np.array([(0.0, 0.0), (2, 1), (4, 3), (6, 4)])
ONE_GROUP = np.zeros(4, np.int64)


def test_worked_moments() -> None:
    moments = Moments.of(FOUR, ONE_GROUP, 1)
    assert moments.counts.tolist() == [4]
    assert moments.sums.tolist() == [[12, 8]]
    assert moments.products.tolist() == [[[56, 38], [38, 26]]]
    assert moments.covariances.tolist() == [[[5, 3.5], [3.5, 2.5]]]
    values, vectors = principal_axes(moments.covariances)
    assert values[0] == pytest.approx([0.033483, 7.466517], abs=5e-7)
    assert vectors[0, :, 1] == pytest.approx([0.817416, 0.576048], abs=5e-7)


def test_worked_split() -> None:
    halves = split(Moments.of(FOUR, ONE_GROUP, 1))
    assert halves.counts.tolist() == [2, 2]
    assert halves.means[0] == pytest.approx([4.934339, 3.363166], abs=5e-7)
    assert halves.means[1] == pytest.approx([1.065661, 0.636834], abs=5e-7)
    for covariance in halves.covariances:
        assert covariance == pytest.approx(np.array([[1.258333, 0.863175], [0.863175, 0.641779]]), abs=5e-7)
    expected = [[[51.212067, 34.916350], [34.916350, 23.905326]], [[4.787933, 3.083650], [3.083650, 2.094674]]]
    assert halves.products == pytest.approx(np.array(expected), abs=5e-7)
    assert halves.products.sum(axis=0) == pytest.approx(np.array([[56, 38], [38, 26]]))


@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 4))
def test_halves_sum_to_the_group(seed: int, half: int, d: int) -> None:
    points = np.random.default_rng(seed).normal(3, 2, (2 * half, d))
    whole = Moments.of(points, np.zeros(2 * half, np.int64), 1)
    halves = split(whole)
    assert halves.sums.sum(axis=0) == pytest.approx(whole.sums[0])
    assert halves.products.sum(axis=0) == pytest.approx(whole.products[0])
    before, after = (np.linalg.eigvalsh(m.covariances[0]) for m in (whole, halves))
    assert sorted([*before[:-1], before[-1] / 4]) == pytest.approx(sorted(after), abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 3), st.integers(1, 5))
def test_moments_add_exactly(seed: int, n: int, d: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    points, labels = rng.integers(-9, 9, (2 * n, d)).astype(float), rng.integers(0, groups, 2 * n)
    whole, first, second = (
        Moments.of(points[part], labels[part], groups) for part in (slice(None), slice(n), slice(n, None))
    )
    both = first + second
    assert both.counts.tolist() == whole.counts.tolist()
    assert both.sums.tolist() == whole.sums.tolist()
    assert both.products.tolist() == whole.products.tolist()
    for group in range(groups):
        own = points[labels == group]
        assert whole.products[group].tolist() == (own.T @ own).tolist()


def test_synthetic_records_have_the_groups_moments_and_stay_within_reach() -> None:
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(0, 1, (50, 3)) @ rng.normal(size=(3, 3)), rng.normal(20, 2, (30, 3))])
    labels = np.repeat([0, 1], [50, 30])
    moments = Moments.of(points, labels, 2)
    drawn, of = synthesise(moments, 2_000, Randomness.from_seed(3))
    assert np.bincount(of).tolist() == [100_000, 60_000]
    for group in (0, 1):
        own = drawn[of == group]
        # Five standard errors of a mean and of a covariance: chance fails a check less than once in a million runs.
        deviation = np.sqrt(np.diag(moments.covariances[group]))
        error = 5 / np.sqrt(len(own))
        assert np.abs(own.mean(axis=0) - moments.means[group]).max() <= error * deviation.max()
        difference = np.cov(own.T, bias=True) - moments.covariances[group]
        assert (np.abs(difference) <= 2 * error * np.outer(deviation, deviation)).all()
        away = own - moments.means[group]
        reach = np.einsum("ni,ij,nj->n", away, np.linalg.inv(moments.covariances[group]), away)
        assert reach.max() <= 3 * 3 * (1 + 1e-9)


def test_groups_without_variance_give_their_value_exactly() -> None:
    points = np.array([[40.0, 7.0]] * 5)
    drawn, _ = synthesise(Moments.of(points, np.zeros(5, np.int64), 1), 3, Randomness.from_seed(1))
    assert drawn.tolist() == [[40, 7]] * 15


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 100), st.integers(1, 8))
def test_random_groups_have_k_records_and_the_rest_joins_the_nearest_mean(seed: int, n: int, k: int) -> None:
    k = min(k, n)
    points = np.random.default_rng(seed).normal(size=(n, 2))
    labels = random_groups(points, k, Randomness.from_seed(seed))
    sizes = np.bincount(labels)
    assert len(sizes) == n // k
    assert sizes.min() >= k
    assert sizes.sum() == n
    assert (sizes - k).sum() == n % k


def test_a_group_is_a_record_and_its_nearest() -> None:
    points = np.random.default_rng(1).normal(size=(60, 2))
    labels = random_groups(points, 6, Randomness.from_seed(2))
    left = np.arange(60)
    for group in range(10):
        members = set(np.flatnonzero(labels == group).tolist())
        nearest = [
            set(left[np.argsort(np.square(points[left] - points[row]).sum(axis=1))[:6]].tolist()) for row in members
        ]
        assert members in nearest
        left = np.setdiff1d(left, list(members))


def people(n: int) -> Table:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    data = {
        "name": [f"p{i}" for i in range(n)],
        "age": age.tolist(),
        "since": [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 4000, n)],
        "grade": rng.choice(["low", "middle", "high"], n).tolist(),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "pressure": (90 + age / 2 + rng.normal(0, 5, n)).tolist(),
        "note": rng.choice(["x", "y"], n).tolist(),
    }
    roles = Roles(("name",), ("age", "since", "grade", "sex"), ("pressure",), ("note",))
    return Table.of(data, roles, orders={"grade": ("low", "middle", "high")})


@pytest.mark.parametrize("grouping", ["random", "mdav"])
def test_a_release_keeps_what_a_mining_asks_for(grouping: str) -> None:
    table = people(2_000)
    release = condense(table, 20, rng=Randomness.from_seed(1), by=("sex",), grouping=grouping)  # type: ignore[arg-type]
    assert release.table.column_names == ["age", "since", "grade", "sex", "pressure"]
    assert release.rows is None
    assert release.classes is None
    assert release.statistics["smallest"] >= 20
    assert release.details["left_out"] == ("note",)
    assert sorted(release.table["sex"].to_pylist()) == sorted(table.data["sex"].to_pylist())
    given = [table.data[name].to_numpy() for name in ("age", "pressure")]
    drawn = [release.table[name].to_numpy() for name in ("age", "pressure")]
    for before, after in zip(given, drawn, strict=True):
        assert after.mean() == pytest.approx(before.mean(), rel=0.01)
        assert after.std() == pytest.approx(before.std(), rel=0.03)
    assert np.corrcoef(drawn)[0, 1] == pytest.approx(np.corrcoef(given)[0, 1], abs=0.02)
    assert set(release.table["grade"].to_pylist()) == {"low", "middle", "high"}


def test_the_details_hold_the_moments_of_all_records() -> None:
    table = people(300)
    release = condense(table, 10, rng=Randomness.from_seed(1), by=("sex", "grade"), factor=3)
    names, sizes = release.details["columns"], np.asarray(release.details["sizes"])
    assert names == ("age", "since", "pressure")
    assert release.table.num_rows == 3 * sizes.sum() == 3 * (300 - len(release.suppressed))
    origins, units = (np.asarray(release.details[name]) for name in ("origins", "units"))
    points = (np.stack([table.columns[n].numbers[table.columns[n].codes] for n in names], axis=1) - origins) / units
    kept = np.setdiff1d(np.arange(300), release.suppressed)
    assert np.asarray(release.details["sums"]).sum(axis=0) == pytest.approx(points[kept].sum(axis=0), abs=1e-9)
    total = points[kept].T @ points[kept]
    assert np.asarray(release.details["products"]).sum(axis=0) == pytest.approx(total)


def test_rare_combinations_are_suppressed() -> None:
    table = Table.of({"x": range(12), "c": ["a"] * 9 + ["b"] * 3}, Roles((), ("x", "c"), (), ()))
    release = condense(table, 4, rng=Randomness.from_seed(1), by=("c",))
    assert release.suppressed.tolist() == [9, 10, 11]
    assert release.table["c"].to_pylist() == ["a"] * 9
    with fails("E100"):
        condense(table, 10, rng=Randomness.from_seed(1), by=("c",))


def test_what_it_refuses() -> None:
    table, rng = people(50), Randomness.from_seed(1)
    with fails("E100"):
        condense(table, 5, rng=rng)
    with fails("E100"):
        condense(table, 5, rng=rng, by=("sex", "name"))
    with fails("E100"):
        condense(table, 5, rng=rng, by=("s",))
    with fails("E100"):
        condense(table, 5, rng=rng, by=("sex",), factor=0)
    with fails("E100"):
        condense(table, 5, rng=rng, by=("sex",), grouping="pca")  # type: ignore[arg-type]
    with fails("E100"):
        condense(Table.of({"c": ["a"]}, Roles((), ("c",), (), ())), 1, rng=rng, by=("c",))


@pytest.mark.data
def test_adult(shared_data: pathlib.Path) -> None:
    names = ["age", "education-num", "hours-per-week", "sex", "occupation", "income"]
    with gzip.open(shared_data / "adult" / "adult_45222.csv.gz") as file:
        data = pyarrow.csv.read_csv(file).select(names)
    roles = Roles((), tuple(names[:4]), ("occupation",), ("income",))
    release = condense(Table.of(data, roles), 10, rng=Randomness.from_seed(1), by=("sex", "occupation"))
    for name in names[:3]:
        before, after = data[name].to_numpy(), release.table[name].to_numpy()
        assert after.mean() == pytest.approx(before.mean(), rel=0.005)
        assert after.std() == pytest.approx(before.std(), rel=0.01)

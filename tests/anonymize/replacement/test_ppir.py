"""Identity replacement: worked similarities, bounds of draws, distributions, and leak rates."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.release import Release
from anonymize.replacement.ppir import ppir
from anonymize.replacement.similarity import attribute_similarity, feature_similarity, identity_similarity
from anonymize.roles import Roles
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from tests.errors import fails

PERSON = (18.0, 172.0, 55.0)


@pytest.mark.parametrize(
    ("virtual", "alpha", "beta", "symmetric"),
    [
        ((19, 170, 56), 0.916490, 0.991771, 0.991771),
        ((20, 175, 60), 0.793986, 1.025112, 0.975018),
        ((19.8, 189.2, 60.5), 0.729, 1.1, 0.909091),
        ((16.2, 154.8, 49.5), 0.729, 0.9, 0.9),
    ],
)
def test_worked_similarities(virtual: tuple[float, ...], alpha: float, beta: float, symmetric: float) -> None:
    similar = attribute_similarity(PERSON, virtual, 1)
    if virtual[0] == 19:
        assert similar == pytest.approx([0.944444, 0.988372, 0.981818], abs=5e-7)
    assert identity_similarity(similar, np.ones(3)) == pytest.approx(alpha, abs=5e-7)
    assert feature_similarity(PERSON, virtual) == pytest.approx(beta, abs=1.5e-6)
    assert feature_similarity(PERSON, virtual, "symmetric") == pytest.approx(symmetric, abs=1.5e-6)


def test_similarities_at_the_edges() -> None:
    assert attribute_similarity([0, 0, 0], [0, 1, 9], 4).tolist() == [1, 0.75, 0]
    assert attribute_similarity([0, 0], [0, 1], 0).tolist() == [1, 0]
    assert attribute_similarity([-10, -10], [-9, 5], 1).tolist() == [0.9, 0]
    # Without the cut two differences of 150 % would give (−0.5)·(−0.5) = 0.25.
    assert identity_similarity(attribute_similarity([2, 2], [5, 5], 1), [1, 1]) == 0
    assert feature_similarity([[0, 0]] * 2, [[0, 0], [1, 0]]).tolist() == [1, 0]
    assert feature_similarity([[0, 0], [0, 0], [1, 0]], [[0, 0], [1, 0], [0, 0]], "symmetric").tolist() == [1, 0, 0]
    with fails("E100"):
        feature_similarity(PERSON, PERSON, "cosine")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=5))
def test_the_symmetric_similarity_lies_within_0_and_1(pairs: list[tuple[float, float]]) -> None:
    one, other = zip(*pairs, strict=True)
    there, back = feature_similarity(one, other, "symmetric"), feature_similarity(other, one, "symmetric")
    assert 0 <= float(there) <= 1 + 1e-12
    assert float(there) == pytest.approx(float(back))


def people(n: int, seed: int = 1) -> Table:
    rng = np.random.default_rng(seed)
    data = {
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 90, n),
        "height": rng.normal(170, 10, n),
        "weight": rng.normal(65, 12, n),
        "illness": rng.choice(["flu", "gout"], n),
    }
    return Table.of(data, Roles((), ("sex", "age", "height", "weight"), ("illness",), ()))


NARROW, WIDE = {"sex": 0, "age": 3, "height": 5, "weight": 5}, {"sex": 0, "age": 5, "height": 10, "weight": 10}


def moved(table: Table, release: Release, name: str) -> np.ndarray:  # type: ignore[type-arg]
    return release.table[name].to_numpy() - table.data[name].to_numpy()  # type: ignore[no-any-return]


def test_values_move_uniformly_within_their_ranges() -> None:
    table = people(20_000)
    release = ppir(table, NARROW, rng=Randomness.from_seed(1))
    assert release.table["sex"].equals(table.data["sex"])
    assert release.table["illness"].equals(table.data["illness"])
    age = moved(table, release, "age")
    assert release.table.schema.field("age").type == "int64"
    counts = np.bincount(age + 3)
    # A chi-square of 6 degrees exceeds 38.3 once in a million runs.
    assert len(counts) == 7
    assert np.square(counts - 20_000 / 7).sum() / (20_000 / 7) < 38.3
    height = moved(table, release, "height")
    assert np.abs(height).max() <= 5
    shares = np.histogram(height, 10, (-5, 5))[0]
    assert np.square(shares - 2_000).sum() / 2_000 < 47.6  # 9 degrees, once in three million
    assert release.statistics["mean_tries"] == 1
    assert release.rows is not None
    assert release.rows.tolist() == list(range(20_000))
    assert release.classes is None


def test_leak_rates_are_those_of_the_definition() -> None:
    """Not the 25 % that the paper counts in 100 points of the narrow ranges."""
    table = people(100_000)
    rng = np.random.default_rng(7)
    for ranges in (NARROW, WIDE):
        release = ppir(table, ranges, rng=Randomness.from_seed(1))
        alpha = np.ones(100_000)
        for name in ("age", "height", "weight"):
            x, t = table.data[name].to_numpy(), ranges[name]
            noise = rng.integers(-t, t + 1, 100_000) if name == "age" else rng.uniform(-t, t, 100_000)
            alpha *= np.clip(1 - np.abs(noise) / x, 0, 1)
        expected = float(np.mean(alpha >= 0.95))
        # Two independent rates: five standard deviations of their difference.
        assert abs(release.statistics["leak_rate"] - expected) <= 5 * np.sqrt(2 * expected / 100_000)
        assert (0.1 < expected < 0.2) if ranges is NARROW else (0.02 < expected < 0.05)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1_000), st.floats(0.5, 0.99), st.floats(0, 0.05), st.sampled_from(["projection", "symmetric"]))
def test_published_records_lie_within_the_bounds(seed: int, most: float, ch_max: float, beta: str) -> None:
    table = people(60, seed)
    least = most - 0.4
    release = ppir(
        table,
        WIDE,
        rng=Randomness.from_seed(seed),
        alpha=(least, most),
        ch_max=ch_max,
        beta=beta,  # type: ignore[arg-type]
        tries=20,
        exhausted="suppress",
    )
    assert release.rows is not None
    assert len(release.rows) + len(release.suppressed) == 60
    assert len(release.rows) == release.statistics["accepted"] == release.table.num_rows
    names = ("age", "height", "weight")
    x = np.stack([table.data[name].to_numpy() for name in names], axis=1)[release.rows]
    v = np.stack([release.table[name].to_numpy() for name in names], axis=1).reshape(-1, 3)
    alpha = np.prod(np.clip(1 - np.abs(v - x) / x, 0, 1), axis=1)
    assert ((alpha >= least - 1e-9) & (alpha <= most + 1e-9)).all()
    assert (np.abs(1 - feature_similarity(x, v, beta)) <= ch_max + 1e-9).all()  # type: ignore[arg-type]
    assert np.asarray(release.details["identity_similarity"])[release.rows] == pytest.approx(alpha)


def test_the_best_draw_is_kept_where_none_is_accepted() -> None:
    table = people(200)
    one, many = (ppir(table, NARROW, rng=Randomness.from_seed(3), alpha=(0, 0.1), tries=t) for t in (1, 30))
    assert one.statistics["exhausted"] == many.statistics["exhausted"] == 200
    assert (np.asarray(many.details["identity_similarity"]) <= np.asarray(one.details["identity_similarity"])).all()
    assert many.statistics["mean_tries"] == 30
    assert len(many.suppressed) == 0
    none = ppir(table, NARROW, rng=Randomness.from_seed(3), alpha=(0, 0.1), tries=2, exhausted="suppress")
    assert none.table.num_rows == 0
    assert none.statistics["leak_rate"] == 0


def test_values_of_all_kinds_are_replaced_by_near_ones() -> None:
    tree = Hierarchy.of("town", [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]])
    data = {
        "town": list("abc") * 200,
        "grade": ["low", "middle", "high"] * 200,
        "day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 31), datetime.date(2020, 1, 11)] * 200,
        "member": [True, False, True] * 200,
    }
    table = Table.of(
        data, Roles((), tuple(data), (), ()), orders={"grade": ("low", "middle", "high")}, kinds={"town": "tree"}
    )
    ranges = {"town": 0.5, "grade": 1, "day": 3, "member": 1}
    release = ppir(table, ranges, rng=Randomness.from_seed(1), hierarchies={"town": tree})
    town = {(x, v) for x, v in zip(data["town"], release.table["town"].to_pylist(), strict=True)}
    assert town == {("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"), ("c", "c")}
    grade = {(x, v) for x, v in zip(data["grade"], release.table["grade"].to_pylist(), strict=True)}
    assert len(grade) == 7
    assert ("low", "high") not in grade
    days = [(v - x).days for x, v in zip(data["day"], release.table["day"].to_pylist(), strict=True)]
    assert set(days) == set(range(-3, 4))
    assert set(release.table["member"].to_pylist()) == {True, False}
    similar = (
        (1 - 0.5 * (release.table["town"].to_pylist()[0] != "a"))
        * (1 - 0.5 * (release.table["grade"].to_pylist()[0] != "low"))
        * (1 - abs(days[0]) / 30)
        * (release.table["member"].to_pylist()[0] is True)
    )
    assert np.asarray(release.details["identity_similarity"])[0] == pytest.approx(similar)
    assert (np.asarray(release.details["feature_similarity"]) == 1).all()


def test_influences_and_weights_enter_alpha_and_beta() -> None:
    table = Table.of({"x": [10.0] * 50, "y": [1000.0] * 50}, Roles((), ("x", "y"), (), ()))
    ranges = {"x": 5, "y": 0}
    plain, weighted = (ppir(table, ranges, rng=Randomness.from_seed(1), weights=w) for w in ({}, {"y": 0.01}))
    change = [np.abs(1 - np.asarray(r.details["feature_similarity"])).max() for r in (plain, weighted)]
    assert change[0] < 0.001 < 0.1 < change[1]
    half = ppir(table, ranges, rng=Randomness.from_seed(1), influences={"x": 0.5})
    assert np.asarray(half.details["identity_similarity"]) == pytest.approx(
        np.asarray(plain.details["identity_similarity"]) / 2
    )


@pytest.mark.parametrize(
    "change",
    [
        {"ranges": {"age": 1}},
        {"ranges": {**NARROW, "name": 1}},
        {"ranges": {**NARROW, "age": -1}},
        {"ranges": {**NARROW, "age": 1.5}},
        {"ranges": {**NARROW, "sex": 2}},
        {"alpha": (0.9, 0.5)},
        {"ch_max": -1},
        {"tries": 0},
        {"exhausted": "drop"},
        {"weights": {"x": 1}},
    ],
)
def test_wrong_parameters_are_refused(change: dict[str, object]) -> None:
    with fails("E100"):
        ppir(people(10), **{"ranges": NARROW, "rng": Randomness.from_seed(1), **change})  # type: ignore[arg-type]

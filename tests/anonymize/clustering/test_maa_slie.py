"""MAA-SLIE: every step is one of the best that the definitions allow, and classes are (H, p, k)-anonymous."""

from __future__ import annotations

import math
import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.clustering.attributes import OrdinalAttribute
from anonymize.clustering.diverse import DiverseTable, centroid_loss
from anonymize.clustering.entropy import level_entropy
from anonymize.clustering.growing import Clustering, GrowingClass
from anonymize.clustering.leftovers import disperse
from anonymize.clustering.maa_slie import PrivacySecurityIndex, maa_slie
from anonymize.grouping import Histograms
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from tests.anonymize.clustering.cases import PLACES, adult, illness_levels, occupation_levels, patients
from tests.anonymize.clustering.test_records import centre_loss
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.turn(3)

NEAR = 1e-9
TREES = {"place": PLACES}


class Referee:
    """The definitions, record by record, without tables of losses."""

    def __init__(self, table: Table) -> None:
        ages = table.columns["age"].numbers
        self.places = (ages - ages[0]) / (ages[-1] - ages[0])
        self.codes = table.quasi_codes.tolist()
        self.illness = table.columns["illness"].codes.tolist()
        self.level = illness_levels(1).codes(table.columns["illness"])[self.illness].tolist()
        sizes = [column.size for column in table.quasi_identifiers]
        leaves = PLACES.align(table.columns["place"])
        self.trees = {
            2: PLACES.common_levels(leaves[:, None], leaves[None]) / PLACES.height,
            3: 1.0 - np.eye(sizes[3]),
        }

    def distance(self, a: list[int], b: list[int]) -> float:
        numeric = abs(self.places[a[0]] - self.places[b[0]]) + abs(a[1] - b[1]) / 2
        return float(numeric + self.trees[2][a[2], b[2]] + self.trees[3][a[3], b[3]])

    def loss(self, rows: list[int]) -> float:
        """Eq. 20."""
        of = [[self.codes[row][a] for row in rows] for a in range(4)]
        ages = self.places[of[0]]
        ordinal = centre_loss("ordinal", OrdinalAttribute(3), of[1]) * 4 / 2  # by definition of five ranks, here three
        nominal = sum(float(tree[of[a]][:, of[a]].sum(axis=0).min()) for a, tree in self.trees.items())
        return float(np.abs(ages - ages.mean()).sum()) + ordinal + nominal

    def index(self, rows: list[int]) -> float:
        """Eq. 21."""
        counts = np.bincount([self.level[row] for row in rows], minlength=3)
        loss = self.loss(rows)
        return 0.5 * float(level_entropy(counts, (0.2, 0.5, 0.9))) + (0.5 / loss if loss > NEAR else math.inf)

    def admissible(self, members: list[int], left: set[int], p: int, h: int) -> list[int]:
        levels, values = {self.level[row] for row in members}, {self.illness[row] for row in members}
        if len(levels) < h:
            return [row for row in left if self.level[row] not in levels]
        if len(values) < p:
            return [row for row in left if self.illness[row] not in values]
        return list(left)


def close(found: float, best: float) -> bool:
    return found == best or found >= best - NEAR * max(1, abs(best))


def grown(table: Table, k: int, p: int, h: int) -> tuple[Clustering, list[GrowingClass], list[int]]:
    diverse = DiverseTable.of(table, k, p, illness_levels(h), None, TREES)
    clustering = diverse.clustering(centroid_loss, PrivacySecurityIndex(diverse.weights, 0.5, 0.5))
    classes, rest = clustering.grow(clustering.distances_from_centroid())
    return clustering, classes, rest.tolist()


@examples(3, 20)
@given(st.integers(0, 10_000), st.integers(60, 110), st.integers(3, 7), st.integers(1, 3), st.integers(1, 3))
def test_every_step_is_best(seed: int, n: int, k: int, p: int, h: int) -> None:
    table = patients(n, seed)
    referee = Referee(table)
    clustering, classes, rest = grown(table, k, p, h)
    left, last = set(range(n)), None
    for found in classes:
        assert len(found.rows) == k
        start = found.rows[0]
        if last is not None:
            away = {row: referee.distance(referee.codes[row], referee.codes[last]) for row in left}
            assert close(away[start], max(away.values()))
        members = [start]
        left.discard(start)
        last = start
        for row in found.rows[1:]:
            allowed = referee.admissible(members, left, p, h)
            assert row in allowed
            best = max(referee.index([*members, other]) for other in allowed)
            assert close(referee.index([*members, row]), best)
            members.append(row)
            left.discard(row)
        assert len({referee.level[row] for row in members}) >= h
        assert len({referee.illness[row] for row in members}) >= p
        assert clustering.loss_of(found) == pytest.approx(referee.loss(members))
    assert sorted(left) == rest
    values, levels = {referee.illness[row] for row in left}, {referee.level[row] for row in left}
    assert len(left) < k or len(values) < p or len(levels) < h


@examples(3, 30)
@given(st.integers(0, 10_000), st.integers(40, 80), st.integers(3, 6))
def test_each_leftover_joins_the_class_of_greatest_index(seed: int, n: int, k: int) -> None:
    table = patients(n, seed)
    referee = Referee(table)
    clustering, classes, rest = grown(table, k, 3, 3)
    members = [list(found.rows) for found in classes]
    index = clustering.objective
    assert isinstance(index, PrivacySecurityIndex)
    disperse(clustering, classes, np.array(rest, np.int64), index.greatest)
    for row in rest:
        best = max(referee.index([*rows, row]) for rows in members)
        joined = next(i for i, found in enumerate(classes) if row in found.rows)
        assert close(referee.index([*members[joined], row]), best)
        members[joined].append(row)
    assert members == [found.rows for found in classes]


def test_the_first_class_starts_farthest_from_the_centroid() -> None:
    table = Table.of({"x": [0, 1, 2, 3, 40], "s": list("ababa")}, Roles((), ("x",), ("s",), ()))
    levels = SensitiveLevels(1, (("a",), ("b",)), "s", (0.5, 0.5))
    release = maa_slie(table, 2, 2, levels, rng=Randomness.from_seed(1))
    assert release.classes is not None
    mates = np.flatnonzero(release.classes == release.classes[4])
    assert len(mates) in (2, 3)
    assert 3 in mates  # the nearest of another value


def meets(release: Release, table: Table, k: int, p: int, levels: SensitiveLevels) -> bool:
    assert release.classes is not None
    column = table.columns[levels.column]
    found = Histograms.of(release.classes, release.n_classes, [column])
    enough = found.sizes.min() >= k and (found.sensitive[column.name] > 0).sum(axis=1).min() >= p
    return bool(enough and levels.fitted(table).satisfied(found).all())


@examples(3, 30)
@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from(["reciprocal", "bounded"]),
    st.sampled_from(["psi", "infoloss"]),
)
def test_releases_are_anonymous(seed: int, h: int, p: int, term: str, leftover: str) -> None:
    table = patients(70, seed)
    release = maa_slie(
        table,
        6,
        p,
        illness_levels(h),
        rng=Randomness.from_seed(seed),
        hierarchies=TREES,
        term=term,  # type: ignore[arg-type]
        leftover=leftover,  # type: ignore[arg-type]
    )
    assert meets(release, table, 6, p, illness_levels(h))
    assert release.table["illness"].to_pylist() == table.data["illness"].to_pylist()
    assert set(release.table["place"].to_pylist()) <= set("abcde")
    assert release.cell_loss is not None
    assert release.statistics["r_il"] == pytest.approx(release.cell_loss.sum() / 70)


def test_equal_records_cost_nothing_and_come_first() -> None:
    data = {"x": [1, 1, 1, 9, 9, 9], "s": list("abcabc")}
    table = Table.of(data, Roles((), ("x",), ("s",), ()))
    levels = SensitiveLevels(1, (("a",), ("b",), ("c",)), "s", (0.2, 0.4, 0.6))
    release = maa_slie(table, 3, 3, levels, rng=Randomness.from_seed(1))
    assert release.table["x"].to_pylist() == data["x"]
    assert release.statistics["r_il"] == 0


def test_a_seed_gives_the_same_release_again() -> None:
    table = patients(90, 4)
    first, again = (
        maa_slie(table, 5, 4, illness_levels(3), rng=Randomness.from_seed(8), hierarchies=TREES) for _ in range(2)
    )
    assert first.table.equals(again.table)


@pytest.mark.parametrize(
    ("k", "p", "h"),
    [
        (100, 1, 1),
        (8, 6, 1),
        (2, 3, 1),
        (2, 2, 3),
    ],
)
def test_impossible_models_are_refused(k: int, p: int, h: int) -> None:
    with fails("E100"):
        maa_slie(patients(60, 1), k, p, illness_levels(h), rng=Randomness.from_seed(1), hierarchies=TREES)


def test_wrong_parameters_are_refused() -> None:
    table, rng = patients(60, 1), Randomness.from_seed(1)
    with fails("E100"):
        maa_slie(table, 5, 2, illness_levels(2), rng=rng, psi_weights=(0.5, 0.6))
    with fails("E100"):
        maa_slie(table, 5, 2, illness_levels(2), rng=rng, term="inverse")  # type: ignore[arg-type]
    with fails("E100"):
        maa_slie(table, 5, 2, illness_levels(2), rng=rng, base=1)
    with fails("E100"):
        maa_slie(table, 5, 2, SensitiveLevels(2, illness_levels(2).levels, "illness"), rng=rng)
    with fails("E100"):
        maa_slie(table, 5, 2, illness_levels(2), rng=rng, hierarchies={"illness": PLACES})


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "p", "epp", "r_il"), [(3_000, 2, 0.5514, 0.2919), (3_000, 5, 0.6155, 0.3768), (None, 2, 0.4671, 0.1135)]
)
def test_adult(shared_data: pathlib.Path, rows: int | None, p: int, epp: float, r_il: float) -> None:
    """Figures depend on how ties are broken; within three per cent they do not."""
    table, trees = adult(shared_data, rows)
    release = maa_slie(table, 8, p, occupation_levels(2), rng=Randomness.from_seed(0), hierarchies=trees)
    assert meets(release, table, 8, p, occupation_levels(2))
    assert release.statistics["epp"] == pytest.approx(epp, rel=0.03)
    assert release.statistics["r_il"] == pytest.approx(r_il, rel=0.03)

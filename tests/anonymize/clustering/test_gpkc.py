"""GreedyPKClustering: each step costs least, its classes keep the model, and it compares with MAA-SLIE as expected."""

from __future__ import annotations

import math
import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.clustering.diverse import DiverseTable, centroid_loss, generalisation_loss
from anonymize.clustering.gpkc import LeastLoss, gpkc
from anonymize.clustering.maa_slie import maa_slie
from anonymize.roles import Roles
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from tests.anonymize.clustering.cases import PLACES, adult, illness_levels, occupation_levels, patients
from tests.anonymize.clustering.test_maa_slie import NEAR, TREES, Referee, meets
from tests.errors import fails
from tests.examples import examples


def width(referee: Referee, rows: list[int]) -> float:
    """The source's loss: records times the widths of the values that cover them."""
    of = [[referee.codes[row][a] for row in rows] for a in range(4)]
    spans = float(np.ptp(referee.places[of[0]])) + np.ptp(of[1]) / 2
    return len(rows) * float(spans + sum(tree[of[a]][:, of[a]].max() for a, tree in referee.trees.items()))


@examples(3, 40)
@given(st.integers(0, 10_000), st.integers(60, 100), st.integers(3, 7), st.integers(1, 3), st.booleans())
def test_every_step_costs_least(seed: int, n: int, k: int, p: int, generalising: bool) -> None:
    table = patients(n, seed)
    referee = Referee(table)
    diverse = DiverseTable.of(table, k, p, illness_levels(2), None, TREES)
    clustering = diverse.clustering(generalisation_loss if generalising else centroid_loss, LeastLoss())
    classes, rest = clustering.grow(clustering.distances_from(seed % n))
    left = set(range(n))
    for found in classes:
        members = found.rows[:1]
        left.discard(members[0])
        for row in found.rows[1:]:
            allowed = referee.admissible(members, left, p, 2)
            losses = {
                other: width(referee, [*members, other]) if generalising else referee.loss([*members, other])
                for other in allowed
            }
            assert losses.get(row, math.inf) <= min(losses.values()) + NEAR
            members.append(row)
            left.discard(row)
    assert sorted(left) == rest.tolist()


@examples(3, 30)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 5), st.sampled_from(["centroid", "generalisation"]))
def test_releases_are_anonymous(seed: int, h: int, p: int, loss: str) -> None:
    table = patients(70, seed)
    release = gpkc(
        table,
        6,
        p,
        rng=Randomness.from_seed(seed),
        levels=illness_levels(h),
        hierarchies=TREES,
        loss=loss,  # type: ignore[arg-type]
    )
    assert meets(release, table, 6, p, illness_levels(h))


def test_without_levels_it_is_p_sensitive_k_anonymity() -> None:
    table = patients(80, 2)
    release = gpkc(table, 5, 3, rng=Randomness.from_seed(1), hierarchies=TREES)
    assert meets(release, table, 5, 3, illness_levels(1))
    assert release.statistics["epp"] == 0
    assert "levels" not in release.details


def test_one_record_a_class_leaves_the_table_as_it_is() -> None:
    table = patients(30, 2)
    release = gpkc(table, 1, 1, rng=Randomness.from_seed(1), hierarchies=TREES)
    assert release.statistics["r_il"] == 0
    assert release.table["age"].to_pylist() == table.data["age"].to_pylist()


def test_columns_of_many_values_need_no_memory_of_tables() -> None:
    rng = np.random.default_rng(1)
    data = {"x": rng.normal(size=1_500).tolist(), "y": rng.normal(size=1_500).tolist(), "s": ["a", "b", "c"] * 500}
    table = Table.of(data, Roles((), ("x", "y"), ("s",), ()))
    release = gpkc(table, 4, 3, rng=Randomness.from_seed(1))
    assert release.class_sizes.min() >= 4
    assert release.statistics["r_il"] < 0.1


def test_the_sensitive_column_must_be_told() -> None:
    table = Table.of({"x": [1, 2], "s": list("ab"), "t": list("ab")}, Roles((), ("x",), ("s", "t"), ()))
    with fails("E100"):
        gpkc(table, 2, 2, rng=Randomness.from_seed(1))
    assert gpkc(table, 2, 2, rng=Randomness.from_seed(1), column="t").n_classes == 1
    with fails("E100"):
        gpkc(table, 2, 2, rng=Randomness.from_seed(1), column="t", loss="least")  # type: ignore[arg-type]
    with fails("E100"):
        gpkc(table, 2, 2, rng=Randomness.from_seed(1), column="t", hierarchies={"y": PLACES})


def test_ties_go_to_the_lowest_row() -> None:
    """Equal records cost nothing, whatever their values: they join as they stand in the table."""
    table = Table.of({"x": [1] * 9, "s": list("aababbbab")}, Roles((), ("x",), ("s",), ()))
    diverse = DiverseTable.of(table, 3, 1, None, None, {})
    clustering = diverse.clustering(centroid_loss, LeastLoss())
    classes, _ = clustering.grow(clustering.distances_from(0))
    assert [found.rows for found in classes] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.data
def test_adult_beside_maa_slie(shared_data: pathlib.Path) -> None:
    """The entropy of MAA-SLIE is higher, and so, unlike in its paper, is its loss; both rise with p."""
    table, trees = adult(shared_data, 3_000)
    levels = occupation_levels(2)
    found = {}
    for p in (2, 5):
        for name, release in (
            ("maa-slie", maa_slie(table, 8, p, levels, rng=Randomness.from_seed(0), hierarchies=trees)),
            ("gpkc", gpkc(table, 8, p, rng=Randomness.from_seed(0), levels=levels, hierarchies=trees)),
        ):
            found[name, p] = (release.statistics["epp"], release.statistics["r_il"])
    for measure in (0, 1):
        for p in (2, 5):
            assert found["maa-slie", p][measure] > found["gpkc", p][measure]
        for name in ("maa-slie", "gpkc"):
            assert found[name, 5][measure] > found[name, 2][measure]
    assert found["gpkc", 2][0] == pytest.approx(0.4891, rel=0.03)

"""Figures of whole releases: summaries, columns, levels of sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from anonymize.clustering.maa_slie import maa_slie
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements, SensitiveLevels
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.utility.columns import column_losses
from anonymize.utility.divergence import kl_bits
from anonymize.utility.sensitive_levels import epp, r_il
from anonymize.utility.summary import summary
from crypto.primitives.randomness import Randomness
from tests.errors import fails

TWO = Requirements((KAnonymity(2),))


def at(toy: Table, hierarchies: dict[str, Hierarchy], rows: list[int], node: tuple[int, int]) -> Release:
    """The toy table at a node, some rows left out."""
    kept = np.setdiff1d(np.arange(8), rows)
    columns, loss, codes = {}, np.ones((8, 2)), []
    for place, (column, level) in enumerate(zip(toy.quasi_identifiers, node, strict=True)):
        hierarchy = hierarchies[column.name]
        labels = hierarchy.codes(column, level)[column.codes[kept]]
        columns[column.name] = pa.array(hierarchy.labels[level]).take(pa.array(labels))
        loss[kept, place] = hierarchy.loss(level)[labels]
        codes.append(labels)
    classes = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    data = toy.data.take(pa.array(kept))
    table = pa.table({**columns, "disease": data.column("disease")})
    return Release("by hand", table, kept, classes, np.array(rows), {"age": node[0], "zip": node[1]}, loss)


def test_summary_of_the_toy_node(toy: Table, toy_hierarchies: dict[str, Hierarchy]) -> None:
    """Node (2, 2) with one suppressed row: classes of 2 and 5."""
    found = summary(at(toy, toy_hierarchies, [3], (2, 2)), toy, toy_hierarchies, 2)
    assert found["prec"] == pytest.approx(0.291667, abs=1e-6)
    assert (found["dm"], found["c_avg"], found["aecs"]) == (37, 1.75, 3.5)
    assert (found["smallest_class"], found["largest_class"]) == (2, 5)
    assert found["gcp"] == pytest.approx((7 * (19 / 39 + 6 / 7) + 2) / 16)


def test_summary_of_synthetic_records(toy: Table) -> None:
    release = Release("synthetic", pa.table({"age": [1.0]}), None, None, np.zeros(0, np.int64))
    assert summary(release, toy, {}, 2) == {}


def test_columns_of_the_toy_node(toy: Table, toy_hierarchies: dict[str, Hierarchy]) -> None:
    found = column_losses(at(toy, toy_hierarchies, [3], (2, 2)), toy, toy_hierarchies)
    assert found["age"].ncp == pytest.approx((7 * 19 / 39 + 1) / 8)
    # 20-39 has five rows of five values, 40-59 two of three (48 was left out): log2 5, log2 2, and log2 8 for nothing.
    assert found["age"].entropy == pytest.approx((5 * math.log2(5) + 2 * math.log2(2) + 3) / 8)
    assert found["age"].divergence == pytest.approx(kl_bits([1] * 8, [1] * 5 + [2 / 3] * 3))
    assert found["age"].distinct == 2
    # 124151 was the only one of 12****, so nothing covers it any more.
    assert found["zip"].divergence == pytest.approx(kl_bits([1] * 8, [1] * 7 + [0])) == math.inf


def test_unchanged_columns_lose_nothing(toy: Table, toy_hierarchies: dict[str, Hierarchy]) -> None:
    release = optimal(toy, toy_hierarchies, Requirements((KAnonymity(1),)))
    for loss in column_losses(release, toy, toy_hierarchies).values():
        assert (loss.ncp, loss.entropy, loss.divergence, loss.distinct) == (0, 0, 0, 8)


def test_centres_have_no_loss_by_column(toy: Table) -> None:
    with fails("E100"):
        column_losses(mondrian(toy, TWO, release="centres"), toy)


SORTED = (("Flu", "Fever"), ("Cancer", "Hepatitis"), ("HIV", "Diabetes"))
LEVELS = SensitiveLevels(2, SORTED, "disease", (0.1, 0.4, 0.8))


def test_levels_of_sensitivity_of_a_release_with_other_classes(
    toy: Table, toy_hierarchies: dict[str, Hierarchy]
) -> None:
    """20-39: HIV, HIV, Flu, Cancer, Hepatitis; 40-59: Fever, Flu."""
    release = at(toy, toy_hierarchies, [3], (2, 3))
    whole = -(0.4 * math.log2(0.4) * 0.8 + 0.2 * math.log2(0.2) * 0.1 + 0.4 * math.log2(0.4) * 0.4)
    assert epp(release, toy, LEVELS) == pytest.approx(whole / 2)
    assert r_il(release) == pytest.approx(release.cell_loss.sum() / 8)  # type: ignore[union-attr]


def test_levels_of_sensitivity_are_those_of_the_algorithm() -> None:
    rng = np.random.default_rng(4)
    roles = Roles((), ("x", "y"), ("disease",))
    diseases = rng.choice(["Flu", "Cancer", "HIV"], 60).tolist()
    table = Table.of({"x": rng.random(60).tolist(), "y": rng.random(60).tolist(), "disease": diseases}, roles)
    levels = SensitiveLevels(2, (("Flu",), ("Cancer",), ("HIV",)), "disease", (0.1, 0.4, 0.8))
    release = maa_slie(table, 5, 2, levels, rng=Randomness.from_seed(1))
    assert epp(release, table, levels) == pytest.approx(release.statistics["epp"])
    assert r_il(release) == pytest.approx(release.statistics["r_il"])


def test_levels_of_sensitivity_need_classes_and_weights(toy: Table) -> None:
    synthetic = Release("synthetic", pa.table({"age": [1.0]}), None, None, np.zeros(0, np.int64))
    with fails("E100"):
        epp(synthetic, toy, LEVELS)
    with fails("E100"):
        r_il(synthetic)
    with fails("E100"):
        epp(mondrian(toy, TWO), toy, SensitiveLevels(2, SORTED, "disease"))

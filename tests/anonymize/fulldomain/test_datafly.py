from __future__ import annotations

import pytest

from anonymize.fulldomain.datafly import datafly
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements
from anonymize.roles import Roles
from anonymize.tables import Table
from tests.anonymize.fulldomain.cases import adult, check_published, toy
from tests.errors import fails

TWO = Requirements((KAnonymity(2),))


def test_the_path_of_the_toy_table() -> None:
    table, hierarchies = toy()
    release = datafly(table, hierarchies, TWO)
    assert release.details["path"] == [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    release = datafly(table, hierarchies, TWO, max_suppression=0.125)
    assert release.details["path"][-1] == (2, 2)
    assert release.suppressed.tolist() == [3]
    check_published(release, table, hierarchies, TWO)


def test_a_lattice_too_large_to_search() -> None:
    table, hierarchies = toy()
    names = [f"q{j}" for j in range(12)]
    data = dict.fromkeys(names, table.data["age"])
    wide = Table.of({**data, "s": table.data["disease"]}, Roles((), tuple(names), ("s",), ()))
    many = dict.fromkeys(names, hierarchies["age"])
    with fails("E100"):
        optimal(wide, dict.fromkeys(names, _deeper(hierarchies["age"])), TWO)
    release = datafly(wide, dict.fromkeys(names, _deeper(hierarchies["age"])), TWO)
    assert release.class_sizes.min() >= 2
    assert release.cell_loss.mean() == pytest.approx(release.details["loss"])
    assert datafly(wide, many, TWO).n_classes == release.n_classes


def _deeper(hierarchy: Hierarchy) -> Hierarchy:
    """The same with its top twice."""
    return Hierarchy.of(
        "q", [[hierarchy.label(level, i) for level in (0, 1, 2, 3, 3)] for i in range(len(hierarchy.leaves))]
    )


@pytest.mark.data
def test_adult_is_near_the_optimum_but_no_better(shared_data) -> None:
    table, hierarchies = adult(shared_data)
    five = Requirements((KAnonymity(5),))
    for share in ("0", "0.02"):
        greedy = datafly(table, hierarchies, five, max_suppression=share)
        best = optimal(table, hierarchies, five, max_suppression=share)
        assert best.details["loss"] < greedy.details["loss"] < best.details["loss"] + 0.1

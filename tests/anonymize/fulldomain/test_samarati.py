from __future__ import annotations

import numpy as np
import pytest

from anonymize.fulldomain.samarati import samarati
from anonymize.fulldomain.search import Problem
from anonymize.models import DistinctDiversity, EntropyDiversity, KAnonymity, Requirements
from link.errors import ConfigurationError
from tests.anonymize.fulldomain.cases import adult, check_published, toy

TWO = Requirements((KAnonymity(2),))


def test_violators_at_every_node_of_the_toy_table() -> None:
    table, hierarchies = toy()
    search = Problem.of(table, hierarchies, TWO, 1).search("gcp")
    violators = [[search.verdict((age, code)).failing for code in range(4)] for age in range(4)]
    assert violators == [[8, 8, 8, 8], [8, 4, 3, 1], [8, 3, 1, 0], [8, 2, 1, 0]]
    sizes = {node: sorted(search.verdict(node).sizes.tolist()) for node in ((2, 2), (2, 3), (1, 3), (3, 1))}
    assert sizes == {(2, 2): [1, 2, 5], (2, 3): [3, 5], (1, 3): [1, 2, 2, 3], (3, 1): [1, 1, 2, 4]}


@pytest.mark.parametrize(
    ("allowed", "nodes"),
    [(0, [(2, 3)]), (1, [(1, 3), (2, 2)]), (2, [(1, 3), (2, 2), (3, 1)])],
)
def test_least_height_nodes_of_the_toy_table(allowed: int, nodes: list[tuple[int, int]]) -> None:
    table, hierarchies = toy()
    release = samarati(table, hierarchies, TWO, max_suppression=allowed / 8)
    assert release.details["minimal_nodes"] == nodes
    assert tuple(release.node.values()) in nodes
    assert release.statistics["checked"] < release.statistics["nodes"] == 16
    check_published(release, table, hierarchies, TWO)


def test_the_release_of_the_toy_table() -> None:
    table, hierarchies = toy()
    release = samarati(table, hierarchies, TWO)
    assert release.table.to_pydict() == {
        "age": ["20-39", "20-39", "20-39", "40-59", "20-39", "40-59", "20-39", "40-59"],
        "zip": ["*"] * 8,
        "disease": table.data["disease"].to_pylist(),
    }
    assert release.classes.tolist() == [0, 0, 0, 1, 0, 1, 0, 1]
    assert release.node == {"age": 2, "zip": 3}


def test_suppressed_rows_by_share() -> None:
    table, hierarchies = toy()
    release = samarati(table, hierarchies, TWO, max_suppression=0.125, loss="prec")
    # Seven rows at two thirds of the heights, and two suppressed cells: 1 − .291667 at (1, 3) as at (2, 2).
    assert release.details["loss"] == pytest.approx(1 - 0.291667, abs=1e-6)
    assert release.node == {"age": 1, "zip": 3}
    assert release.suppressed.tolist() == [7]


def test_models_that_are_not_monotone_with_suppression() -> None:
    table, hierarchies = toy()
    required = Requirements((KAnonymity(2), EntropyDiversity(2, "disease")))
    release = samarati(table, hierarchies, required, max_suppression=0.25)
    check_published(release, table, hierarchies, required)


def test_no_solution() -> None:
    table, hierarchies = toy()
    with pytest.raises(ConfigurationError):
        samarati(table, hierarchies, Requirements((KAnonymity(2), DistinctDiversity(7, "disease"))))


@pytest.mark.data
def test_adult(shared_data) -> None:
    table, hierarchies = adult(shared_data)
    five = Requirements((KAnonymity(5),))
    release = samarati(table, hierarchies, five)
    assert tuple(release.node.values()) == (0, 4, 1, 2, 3, 2, 0, 0)
    assert len(release.details["minimal_nodes"]) == 8
    release = samarati(table, hierarchies, five, max_suppression="0.02")
    assert release.details["minimal_nodes"] == [(0, 1, 1, 1, 1, 2, 1, 0)]
    assert len(release.suppressed) == 563
    assert release.class_sizes.min() >= 5
    assert np.isin(release.suppressed, release.rows).sum() == 0

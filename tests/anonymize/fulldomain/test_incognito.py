from __future__ import annotations

import numpy as np
import pytest

from anonymize.fulldomain.incognito import full_answer, incognito, minimal_nodes
from anonymize.fulldomain.lattice import Lattice
from anonymize.fulldomain.samarati import samarati
from anonymize.fulldomain.search import Problem
from anonymize.models import DistinctDiversity, KAnonymity, Requirements
from tests.anonymize.fulldomain.cases import adult, toy

TWO = Requirements((KAnonymity(2),))


def test_the_toy_table_without_suppression() -> None:
    table, hierarchies = toy()
    search = Problem.of(table, hierarchies, TWO, 0).search("gcp")
    satisfying = full_answer(search)
    assert np.argwhere(satisfying).tolist() == [[2, 3], [3, 3]]
    # Of age, levels 0 and 1 fail and 2 satisfies; of zip, 0 to 3 are looked at; of both, the root (2, 3) alone.
    assert search.statistics.checked == 3 + 4 + 1
    assert search.statistics.rolled_up == 2 + 3
    assert search.finished()["marked"] == 1


@pytest.mark.parametrize(
    ("allowed", "nodes"),
    [(0, [(2, 3)]), (1, [(1, 3), (2, 2)]), (2, [(1, 3), (2, 2), (3, 1)])],
)
def test_minimal_nodes_of_the_toy_table(allowed: int, nodes: list[tuple[int, int]]) -> None:
    table, hierarchies = toy()
    assert incognito(table, hierarchies, TWO, max_suppression=allowed / 8).details["minimal_nodes"] == nodes


def test_minimal_nodes_of_any_set() -> None:
    rng = np.random.default_rng(2)
    lattice = Lattice([2, 1, 3])
    for _ in range(50):
        satisfying = rng.random(lattice.shape) < 0.2
        nodes = [tuple(node) for node in np.argwhere(satisfying).tolist()]
        minimal = [
            n for n in nodes if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in nodes)
        ]
        assert minimal_nodes(lattice, satisfying) == minimal


@pytest.mark.data
def test_adult(shared_data) -> None:
    table, hierarchies = adult(shared_data)
    required = Requirements((KAnonymity(5), DistinctDiversity(3, "occupation")))
    release = incognito(table, hierarchies, required)
    least = min(map(sum, release.details["minimal_nodes"]))
    by_height = samarati(table, hierarchies, required).details["minimal_nodes"]
    assert [node for node in release.details["minimal_nodes"] if sum(node) == least] == by_height
    assert release.statistics["checked"] < release.statistics["nodes"] / 2

from __future__ import annotations

import itertools

import numpy as np

from anonymize.fulldomain.lattice import Lattice
from tests.errors import fails


def test_the_order_of_nodes() -> None:
    lattice = Lattice([2, 1, 3])
    nodes = list(lattice.nodes())
    assert len(nodes) == lattice.size == 24
    assert lattice.bottom == (0, 0, 0)
    assert lattice.top == (2, 1, 3)
    for node in nodes:
        assert lattice.heights[node] == sum(node)
        below = np.zeros(lattice.shape, bool)
        below[lattice.below(node)] = True
        above = np.zeros(lattice.shape, bool)
        above[lattice.above(node)] = True
        for other in nodes:
            assert below[other] == all(a <= b for a, b in zip(other, node, strict=True))
            assert above[other] == all(a >= b for a, b in zip(other, node, strict=True))
        assert all(node in set(lattice.generalisations(lower)) for lower in lattice.specialisations(node))
        assert {sum(upper) for upper in lattice.generalisations(node)} <= {sum(node) + 1}


def test_nodes_by_height_and_totals() -> None:
    lattice = Lattice([2, 1, 3])
    by_height = [list(lattice.of_height(height)) for height in range(7)]
    assert [len(nodes) for nodes in by_height] == [1, 3, 5, 6, 5, 3, 1]
    assert sorted(itertools.chain(*by_height)) == list(lattice.nodes())
    totals = lattice.total([np.array([0.0, 1, 5]), np.array([0.0, 10]), np.array([0.0, 100, 200, 300])])
    assert totals[1, 1, 3] == 311
    assert totals[2, 0, 1] == 105


def test_a_column_without_levels_and_a_lattice_too_large() -> None:
    assert list(Lattice([0, 1]).nodes()) == [(0, 0), (0, 1)]
    large = Lattice([4] * 15)
    assert large.size == 5**15
    with fails("E100"):
        large.zeros(bool)

"""The privacy-utility frontier."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements
from anonymize.release import Release
from anonymize.risk.frontier import Frontier, FrontierPoint, frontier, grid, highest_risk, mean_loss
from anonymize.tables import Table
from link.errors import ConfigurationError


def test_toy_frontier(toy: Table, toy_hierarchies: dict[str, Hierarchy]) -> None:
    def run(k: int, max_suppression: float) -> Release:
        return optimal(toy, toy_hierarchies, Requirements((KAnonymity(k),)), max_suppression=max_suppression)

    found = frontier(run, grid(k=[1, 2, 3, 5, 9], max_suppression=[0, 0.25]))
    assert [(chosen["k"], reason[:5]) for chosen, reason in found.refused] == [(9, "k = 9")] * 2
    assert len(found.points) == 8
    best = found.pareto
    assert best[-1].loss == 0
    assert best[-1].risk == 1
    assert all(a.risk < b.risk and a.loss > b.loss for a, b in pairwise(best))


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(points)
def test_pareto_set_equals_brute_force(pairs: list[tuple[int, int]]) -> None:
    runs = tuple(FrontierPoint({}, risk, loss) for risk, loss in pairs)
    found = {(point.risk, point.loss) for point in Frontier(runs, ()).pareto}
    beaten = {a for a in pairs for b in pairs if a != b and b[0] <= a[0] and b[1] <= a[1]}
    assert found == set(pairs) - beaten


def test_releases_without_classes_need_other_measures() -> None:
    release = Release("synthetic", pa.table({"a": [1]}), None, None, np.zeros(0, np.int64))
    measures: list[Any] = [highest_risk, mean_loss]
    for measure in measures:
        with pytest.raises(ConfigurationError):
            measure(release)

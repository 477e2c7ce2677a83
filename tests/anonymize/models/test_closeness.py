"""t-closeness, β-likeness and δ-disclosure against the literature, linear programming and exact fractions."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import BetaLikeness, DeltaDisclosure, TCloseness
from anonymize.models.reference_distribution import ReferenceDistribution, rank_gaps, value_gaps
from anonymize.roles import Roles
from anonymize.tables import Table
from tests.anonymize.models.contract import COUNTS, TREE, fitted, histograms, met, table_of
from tests.errors import fails

SALARIES = range(3_000, 12_000, 1_000)


def earth_movers_distance(p: NDArray[np.float64], q: NDArray[np.float64], ground: NDArray[np.float64]) -> float:
    """The least cost of moving p to q, by linear programming (HiGHS)."""
    m = len(p)
    rows = [np.kron(np.eye(m)[i], np.ones(m)) for i in range(m)] + [np.kron(np.ones(m), np.eye(m)[j]) for j in range(m)]
    found = linprog(ground.reshape(-1), A_eq=np.array(rows), b_eq=np.concatenate([p, q]), method="highs")
    return float(found.fun)


def distance(model: TCloseness, totals: list[int], counts: list[int]) -> float:
    return float(model.fitted(table_of(totals)).distances(histograms([counts]))[0])


def test_variational_and_kullback_leibler() -> None:
    assert distance(TCloseness(1, "s", "variational"), [1, 1, 2], [1, 1, 0]) == 0.5
    assert distance(TCloseness(1, "s", "equal"), [1, 1, 2], [1, 1, 0]) == 0.5
    assert distance(TCloseness(1, "s", "kl"), [1, 1, 2], [1, 1, 0]) == pytest.approx(math.log(2), abs=1e-12)
    assert distance(TCloseness(1, "s", "kl"), [3, 1, 2], [3, 1, 2]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("ground", ["rank", "value"])
def test_salaries_of_li_et_al(ground: str) -> None:
    roles = Roles(quasi_identifiers=("q",), sensitive=("salary",))
    table = Table.of({"q": [0] * 9, "salary": list(SALARIES)}, roles)
    model = TCloseness(0.375, "salary", "ordered", ground).fitted(table)  # type: ignore[arg-type]
    classes = [[s in c for s in SALARIES] for c in ({3000, 4000, 5000}, {6000, 8000, 11000})]
    union = np.logical_or(*classes)
    found = histograms([*classes, union])
    renamed = type(found)(found.sizes, {"salary": found.sensitive["s"]})
    distances = model.distances(renamed)
    assert distances == pytest.approx([0.375, 0.166667, 0.118056], abs=1e-6)
    assert distances[2] <= (3 * distances[0] + 3 * distances[1]) / 6 + 1e-12
    assert model.satisfied(renamed).tolist() == [True, True, True]


def test_hierarchical_distance_of_li_et_al() -> None:
    tree = Hierarchy.of("s", [(str(value), "A" if value < 3 else "B", "*") for value in range(6)])
    model = TCloseness(1, "s", "hierarchical", hierarchy=tree)
    assert distance(model, [2, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]) == pytest.approx(4 / 9, abs=1e-12)


@settings(max_examples=40)
@given(COUNTS, st.lists(st.integers(0, 10**6), min_size=6, max_size=6, unique=True))
def test_distances_are_those_of_linear_programming(rows: list[list[int]], places: list[int]) -> None:
    counts = np.array(rows)
    totals = counts.sum(axis=0)
    held = np.flatnonzero(totals)
    p, q = counts[0, held] / counts[0].sum(), totals[held] / totals.sum()
    m = len(held)
    ranks = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / max(m - 1, 1)
    leaves = TREE.align(Column("s", "tree", tuple(map(str, held)), np.arange(m, dtype=np.int32)))
    tree = TREE.common_levels(leaves[:, None], leaves[None, :]) / TREE.height
    for model, ground in (
        (TCloseness(1, "s", "equal"), 1 - np.eye(m)),
        (TCloseness(1, "s", "ordered"), ranks),
        (TCloseness(1, "s", "hierarchical", hierarchy=TREE), tree),
    ):
        ready, classes = fitted(model, rows)
        assert ready.distances(classes)[0] == pytest.approx(earth_movers_distance(p, q, ground), abs=1e-8)
    values = sorted(places)[:m]
    column = Column("s", "numeric", tuple(values), np.arange(m, dtype=np.int32))
    weighted = TCloseness(1, "s", "ordered", "value").with_reference(column, totals[held])
    gaps = np.abs(np.subtract.outer(values, values)) / max(max(values) - min(values), 1)
    found = weighted.distances(histograms(counts[:1, held]))[0]
    assert found == pytest.approx(earth_movers_distance(p, q, gaps), abs=1e-8)


@given(COUNTS, st.sampled_from(["equal", "kl", "ordered", "hierarchical"]))
def test_the_whole_table_is_at_distance_nought(rows: list[list[int]], name: str) -> None:
    model = TCloseness(0, "s", name, hierarchy=TREE if name == "hierarchical" else None)  # type: ignore[arg-type]
    whole = np.sum(rows, axis=0).tolist()
    ready, _ = fitted(model, rows)
    assert ready.satisfied(histograms([[count for count in whole if count]])).all()


@given(COUNTS)
def test_limits_are_exact(rows: list[list[int]]) -> None:
    """The distance as a fraction is met; a little less is not."""
    totals = [sum(column) for column in zip(*rows, strict=True)]
    distances = [
        sum(abs(Fraction(a, sum(row)) - Fraction(b, sum(totals))) for a, b in zip(row, totals, strict=True)) / 2
        for row in rows
    ]
    for place, limit in enumerate(distances):
        assert met(TCloseness(limit, "s"), rows)[place]
        if limit:
            assert not met(TCloseness(limit - Fraction(1, 10**12), "s"), rows)[place]


def test_a_value_outside_the_table_is_infinitely_far() -> None:
    reference = ReferenceDistribution(np.array([2, 0]))
    found = reference.kullback_leibler(np.array([[1, 1], [2, 0]]), np.array([2, 2]))
    assert found.tolist() == [math.inf, 0]


def test_numbers_beyond_64_bits_are_compared_as_floats() -> None:
    totals = np.array([3 * 10**10, 10**10])
    reference = ReferenceDistribution(totals)
    counts = np.array([[10**10, 0], [3 * 10**9, 10**9]])
    sizes = counts.sum(axis=1)
    assert reference.deviations(counts, sizes).dtype == np.float64
    found = reference.variational(counts, sizes)
    assert found.values == pytest.approx([0.25, 0])
    assert found.at_most(Fraction(1, 4)).tolist() == [True, True]
    assert found.at_most(Fraction(1, 5)).tolist() == [False, True]
    column = Column("s", "tree", ("a", "b"), np.array([0, 1], np.int32))
    beta = BetaLikeness(0.3, "s").with_reference(totals)
    assert beta.satisfied(histograms(counts)).tolist() == [False, True]
    assert TCloseness(0.3, "s").with_reference(column, totals).satisfied(histograms(counts)).all()


def test_gaps_are_whole_multiples_of_the_written_decimals() -> None:
    assert rank_gaps(1).tolist() == []
    assert value_gaps(np.array([1.0, 1.1, 1.3])).tolist() == [1, 2]
    assert value_gaps(np.array([5.0])).tolist() == []
    assert value_gaps(np.array([2.0, 4.0, 10.0])).tolist() == [1, 3]
    fine = value_gaps(np.array([0.0, math.pi, 10.0]))
    assert fine / (1 << 40) == pytest.approx([math.pi / 10, 1 - math.pi / 10], abs=1e-12)


def test_orders_and_trees_are_needed() -> None:
    roles = Roles(sensitive=("s",))
    texts = Table.of({"s": ["a", "b"]}, roles)
    with fails("E100"):
        TCloseness(0.1, "s", "ordered").fitted(texts)
    with fails("E101"):
        TCloseness(0.1, "s", "hierarchical", hierarchy=TREE).fitted(texts)
    ordinal = Table.of({"s": ["a", "b"]}, roles, orders={"s": ["b", "a"]})
    days = Table.of({"s": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)]}, roles)
    for table in (ordinal, days):
        model = TCloseness(0.5, "s", "ordered").fitted(table)
        assert model.distances(histograms([[2, 0]])) == pytest.approx([0.5])


def test_unfitted_models_say_so() -> None:
    for model in (TCloseness(0.1, "s"), BetaLikeness(1, "s"), DeltaDisclosure(1, "s")):
        with fails("E100"):
            model.satisfied(histograms([[1, 1]]))


def test_one_value_is_at_distance_nought() -> None:
    for name in ("equal", "kl", "ordered"):
        assert distance(TCloseness(0, "s", name), [5], [2]) == pytest.approx(0, abs=1e-12)  # type: ignore[arg-type]


def test_beta_and_delta() -> None:
    table = table_of([1, 1, 2])
    classes = histograms([[1, 1, 0], [1, 1, 2]])
    beta, delta = BetaLikeness(1, "s").fitted(table), DeltaDisclosure("0.6931", "s").fitted(table)
    assert beta.gains(classes).tolist() == [1, 0]
    assert beta.satisfied(classes).tolist() == [True, True]
    assert BetaLikeness("0.999", "s").fitted(table).satisfied(classes).tolist() == [False, True]
    assert delta.disclosures(classes) == pytest.approx([math.log(2), 0], abs=1e-12)
    assert delta.satisfied(classes).tolist() == [False, True]
    assert DeltaDisclosure(0.7, "s").fitted(table).satisfied(classes).tolist() == [True, True]


def test_enhanced_beta_bounds_frequent_values() -> None:
    # q = 0.5 may gain ln 2 at most, so 0.84 is within and 0.85 is not: (0.85 - 0.5) / 0.5 = 0.7 > 0.6931.
    table = table_of([50, 50])
    classes = histograms([[84, 16], [85, 15]])
    assert BetaLikeness(1, "s").fitted(table).satisfied(classes).tolist() == [True, True]
    assert BetaLikeness(1, "s", enhanced=True).fitted(table).satisfied(classes).tolist() == [True, False]
    assert BetaLikeness("0.5", "s", enhanced=True).fitted(table).satisfied(classes).tolist() == [False, False]

"""Distances, centres and losses of attributes, and the entropy of levels, against definitions and worked numbers."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.clustering.attributes import (
    Attribute,
    NominalAttribute,
    NumericAttribute,
    OrdinalAttribute,
    attribute_of,
    centre_rank,
)
from anonymize.clustering.entropy import level_entropy
from anonymize.clustering.maa_slie import PrivacySecurityIndex
from anonymize.clustering.space import Space
from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.roles import Roles
from anonymize.tables import Table
from tests.errors import fails

WEIGHTS = (0.1, 0.2, 0.4, 0.6, 0.8)
TREE = Hierarchy.of(
    "place",
    [["a", "x", "r", "*"], ["b", "x", "r", "*"], ["c", "y", "r", "*"], ["d", "z", "s", "*"], ["e", "z", "s", "*"]],
)


def column(values: list[object], kind: str, order: tuple[str, ...] = ()) -> Column:
    table = Table.of(
        {"q": values},
        Roles(quasi_identifiers=("q",)),
        {"q": kind},
        {"q": order} if order else {},  # type: ignore[dict-item]
    )
    return table.columns["q"]


def tree_attribute() -> NominalAttribute:
    found = attribute_of(column(list("abcde"), "tree"), TREE)
    assert isinstance(found, NominalAttribute)
    return found


@pytest.mark.parametrize(
    ("ranks", "centre"), [([1, 2, 2, 9], 3), ([1, 8, 9, 9], 7), ([3, 4], 4), ([2, 2, 3, 3], 3), ([5, 5, 5], 5)]
)
def test_centre_by_mean_and_frequency(ranks: list[int], centre: int) -> None:
    assert centre_rank(np.array(ranks)[:, None]).tolist() == [centre]


def test_tree_distance_is_the_height_of_the_common_ancestor() -> None:
    found = [tree_attribute().distances(code).tolist() for code in range(5)]
    assert found[0] == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    assert np.allclose(found, np.array(found).T)


def test_worked_class_of_the_paper() -> None:
    age = NumericAttribute(np.arange(21.0, 51.0))  # a range of 29
    sex = NominalAttribute(2)
    education = OrdinalAttribute(16)
    losses = [
        age.loss_with([0, 4], np.array([5]))[0],
        sex.loss_with([0, 0], np.array([1]))[0],
        education.loss_with([8, 12], np.array([12]))[0],
    ]
    assert losses == pytest.approx([0.206897, 1, 0.333333], abs=5e-7)
    assert sum(losses) == pytest.approx(1.540230, abs=5e-7)
    index = PrivacySecurityIndex(np.array(WEIGHTS), 0.5, 0.5)
    entropy = float(index.entropies(np.array([[1, 0, 0, 2, 0]]))[0])
    assert entropy == pytest.approx(0.286817, abs=5e-7)
    assert index.index(sum(losses), entropy) == pytest.approx(0.468035, abs=5e-7)


@pytest.mark.parametrize(
    ("counts", "entropy"),
    [((0, 4, 0, 4, 0), 0.4), ((4, 2, 1, 1, 0), 0.525), ((3, 3, 3, 3, 3), 0.975210), ((0, 0, 7, 0, 0), 0.0)],
)
def test_entropy_of_levels(counts: tuple[int, ...], entropy: float) -> None:
    assert level_entropy(counts, WEIGHTS) == pytest.approx(entropy, abs=5e-7)


def test_decimal_logarithms_scale_the_entropy() -> None:
    assert level_entropy((4, 2, 1, 1, 0), WEIGHTS, 10) == pytest.approx(0.158041, abs=5e-7)


def test_largest_entropies_are_below_the_logarithm_of_three() -> None:
    shares = np.random.default_rng(1).dirichlet(np.ones(5), 20_000)
    assert level_entropy(shares, WEIGHTS).max() <= 1.021897 < np.log2(3)
    top = np.linspace(0.001, 0.999, 999)
    pairs = np.stack([0 * top, 0 * top, 0 * top, top, 1 - top], axis=1)
    assert level_entropy(pairs, WEIGHTS).max() == pytest.approx(0.700968, abs=1e-5)


ATTRIBUTES = {
    "numeric": NumericAttribute(np.array([0.0, 1.0, 2.5, 7.0, 10.0])),
    "ordinal": OrdinalAttribute(5),
    "tree": tree_attribute(),
    "flat": NominalAttribute(5),
    "constant": NumericAttribute(np.array([3.0])),
}


def centre_loss(name: str, attribute: Attribute, codes: list[int]) -> float:
    """The loss of a class by the definitions alone."""
    if name == "numeric":
        places = np.array([0.0, 0.1, 0.25, 0.7, 1.0])[codes]
        return float(np.abs(places - places.mean()).sum())
    if name == "ordinal":
        mean = np.mean(codes)
        down, up = sum(c < mean for c in codes), sum(c > mean for c in codes)
        centre = np.ceil(mean) if down < up else np.floor(mean) if down > up else np.floor(mean + 0.5)
        return float(np.abs(np.array(codes) - centre).sum()) / 4
    if name == "constant":
        return 0.0
    return float(min(sum(attribute.distances(centre)[code] for code in codes) for centre in codes))


@given(st.sampled_from(sorted(ATTRIBUTES)), st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_losses_are_those_of_the_definitions(name: str, members: list[int]) -> None:
    attribute = ATTRIBUTES[name]
    members = sorted(min(code, attribute.size - 1) for code in members)
    every = np.arange(attribute.size, dtype=np.int32)
    expected = [centre_loss(name, attribute, [*members, code]) for code in every.tolist()]
    assert attribute.loss_with(members, every) == pytest.approx(expected)
    whole = centre_loss(name, attribute, members)
    away = attribute.distances_from_centre(members)
    assert sum(away[code] for code in members) == pytest.approx(whole)


@given(st.sampled_from(sorted(ATTRIBUTES)), st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_spread_is_the_greatest_distance_within(name: str, members: list[int]) -> None:
    attribute = ATTRIBUTES[name]
    members = sorted(min(code, attribute.size - 1) for code in members)
    every = np.arange(attribute.size, dtype=np.int32)
    found = attribute.spread_with(members, every)
    for code in every.tolist():
        pairs = itertools.product([*members, code], repeat=2)
        assert found[code] == pytest.approx(max(attribute.distances(a)[b] for a, b in pairs))


def test_a_tree_of_many_values_is_compared_without_a_matrix() -> None:
    size = 700
    parents = np.arange(size, dtype=np.int32) // 10
    attribute = NominalAttribute(size, [np.arange(size, dtype=np.int32), parents])
    assert attribute.distances(5)[[5, 9, 10]].tolist() == [0, 0.5, 1]
    assert attribute.medoid([3, 4, 600]) == 3


@pytest.mark.parametrize("reach", [0, 0.3, 0.34, 0.5, 2 / 3, 0.9, 1])
def test_neighbourhoods_are_the_values_within_reach(reach: float) -> None:
    attribute = tree_attribute()
    labels = attribute.neighbourhoods(reach)
    codes = np.repeat(np.arange(5, dtype=np.int32), 5), np.tile(np.arange(5, dtype=np.int32), 5)
    away = attribute.between(*codes)
    assert away.tolist() == [attribute.distances(a)[b] for a, b in zip(*codes, strict=True)]
    assert ((labels[codes[0]] == labels[codes[1]]) == (away <= reach + 1e-12)).all()


def test_kinds_of_columns() -> None:
    assert isinstance(attribute_of(column([1, 2], "numeric")), NumericAttribute)
    assert isinstance(attribute_of(column([datetime.date(2020, 1, 1)], "date")), NumericAttribute)
    assert isinstance(attribute_of(column(["x"], "ordinal", ("x", "y"))), OrdinalAttribute)
    assert attribute_of(column([True, False], "boolean")).distances(0).tolist() == [0, 1]
    assert attribute_of(column(["11", "12"], "code")).distances(0).tolist() == [0, 1]


@settings(max_examples=30)
@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=20),
    st.sampled_from(["deviation", "range", "none"]),
)
def test_points_of_a_space_give_the_numbers_back(numbers: list[int], scaling: str) -> None:
    space = Space.of([column(list(numbers), "numeric")], scaling)  # type: ignore[arg-type]
    assert space.numbers(space.points)[:, 0] == pytest.approx(numbers)
    if len(set(numbers)) > 1 and scaling == "deviation":
        assert space.points.std() == pytest.approx(1)


def test_cells_of_a_space_are_of_the_columns_kind() -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 4)]
    space = Space.of([column(list(days), "date"), column(["low", "high"], "ordinal", ("low", "high"))], "none")
    cells = space.cells(np.array([[0.0, 9.0], [0.4, -9.0]]))
    assert cells["q"].to_pylist() == ["high", "low"]
    dates = Space.of([column(list(days), "date")], "none").cells(np.array([[0.0], [-1.0]]))
    assert dates["q"].to_pylist() == [datetime.date(2020, 1, 3), datetime.date(2020, 1, 2)]


def test_a_space_refuses_trees_and_unknown_scalings() -> None:
    with fails("E100"):
        Space.of([column(["x"], "tree")])
    with fails("E100"):
        Space.of([column([1], "numeric")], "size")  # type: ignore[arg-type]

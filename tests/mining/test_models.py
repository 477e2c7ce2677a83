"""Attributes code cells, splits are weighed exactly, and trees and clusters speak in their columns' terms."""

from __future__ import annotations

from decimal import Decimal
from math import log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mining.data.tables import Column, Table
from mining.models.attributes import Attribute, Categorical, Intervals, LabelledRows, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.models.naive_bayes import NaiveBayesParameters
from mining.models.splits import weigh
from mining.reference.pooled_models import learn_tree, lloyd
from tests.errors import fails


def column(*cells: str) -> Column:
    return Column.of("c", pa.chunked_array([pa.array(cells, pa.string())]))


COLOURS = Categorical("c", ("red", "", "green"))
AGES = Intervals("c", (Decimal(18), Decimal(65)))
TENTHS = Numeric("c", Decimal(-1), Decimal(1), 20)


@pytest.mark.parametrize(
    ("attribute", "cells", "codes"),
    [
        (COLOURS, ["green", "", "red", ""], [2, 1, 0, 1]),
        (AGES, ["17.9", "18", " 64 ", "65", "1e3"], [0, 1, 1, 2, 2]),
        (TENTHS, ["-1", "0", "0.04", "0.06", "1.0"], [0, 10, 10, 11, 20]),
        (TENTHS, ["0.05", "0.15"], [10, 12]),  # halves go to the even step
        (TENTHS, ["1.1", "-7", "1e300", "-1e300", "0"], [20, 0, 20, 0, 10]),  # beyond the bounds
    ],
)
def test_codes(attribute: Attribute, cells: list[str], codes: list[int]) -> None:
    assert attribute.codes(column(*cells)).tolist() == codes


@pytest.mark.parametrize(
    ("attribute", "cells"),
    [
        (COLOURS, ["red", "blue"]),
        (Categorical("c", ("red",)), ["", ""]),
        (AGES, ["eleven"]),
        (AGES, [""]),
        (TENTHS, ["tenth", "0"]),
    ],
)
def test_cells_that_an_attribute_does_not_allow(attribute: Attribute, cells: list[str]) -> None:
    with fails("E101") as caught:
        attribute.codes(column(*cells))
    assert "blue" not in caught.value.message  # it may cross the wire
    assert "eleven" not in caught.value.message


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=1), st.integers(-99, 99), st.integers(1, 99)
)
def test_no_bounds_ask_how_far_numbers_reach(numbers: list[Decimal], low: int, wide: int) -> None:
    """Whatever a job names as bounds, numbers end no job, and are at the bound that they are beyond."""
    attribute = Numeric("c", Decimal(low), Decimal(low + wide), 10)
    for number, code in zip(numbers, attribute.codes(column(*map(str, numbers))).tolist(), strict=True):
        assert 0 <= code <= 10
        assert number > low or code == 0
        assert number < low + wide or code == 10


def test_a_missing_column() -> None:
    table = Table.of(["c"], [pa.chunked_array([pa.array(["red"])])], (), "a test")
    assert LabelledRows.of(table, COLOURS, ()).classes.tolist() == [0]
    with fails("E101"):
        LabelledRows.of(table, COLOURS, (Categorical("d", ("x",)),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Categorical("c", ()),
        lambda: Categorical("c", ("a", "a")),
        lambda: Intervals("c", ()),
        lambda: Intervals("c", (Decimal(2), Decimal(2))),
        lambda: Numeric("c", Decimal(1), Decimal(1), 5),
        lambda: Numeric("c", Decimal(0), Decimal("NaN"), 5),
        lambda: Numeric("c", Decimal(0), Decimal(1), 0),
        lambda: NaiveBayesParameters(COLOURS, (TENTHS,)),
        lambda: NaiveBayesParameters(COLOURS, ()),
        lambda: NaiveBayesParameters(COLOURS, (Categorical("d", ("x",)),), Decimal(-1)),
        lambda: TreeParameters(COLOURS, ()),
        lambda: TreeParameters(COLOURS, (Categorical("d", ("x",)),), min_rows=0),
        lambda: KMeansParameters((), ()),
    ],
)
def test_parameters_are_checked(make: Any) -> None:
    with fails("E100"):
        make()


# -- splits ------------------------------------------------------------------------------------------------------------
def entropy(counts: list[int]) -> float:
    return -sum(n / sum(counts) * log2(n / sum(counts)) for n in counts if n)


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), min_size=2, max_size=5))
def test_gain_and_information(branches: list[list[int]]) -> None:
    rows = sum(map(sum, branches))
    if not rows:
        return
    gain, information = weigh(branches)
    classes = [sum(each) for each in zip(*branches, strict=True)]
    after = sum(sum(branch) / rows * entropy(branch) for branch in branches if sum(branch))
    assert gain / 1e12 == pytest.approx(entropy(classes) - after, abs=1e-9)
    assert information / 1e12 == pytest.approx(entropy([sum(branch) for branch in branches]), abs=1e-9)


@pytest.mark.parametrize("times", [1, 3, 1000, 10**9 + 7])
def test_gains_that_are_equal_are_equal_in_every_digit(times: int) -> None:
    """Whatever the numbers of rows are, of which the logarithms are added up; a split that tells nothing has gain 0."""
    assert weigh([[4 * times, 0], [0, 4 * times]])[0] == 10**12
    assert weigh([[times, 3 * times], [2 * times, 6 * times]])[0] == 0
    assert weigh([[3 * times, times], [times, 3 * times]]) == weigh([[times, 3 * times], [3 * times, times]])


# -- trees and clusters ------------------------------------------------------------------------------------------------
def test_a_tree_as_text() -> None:
    target, colours = Categorical("y", ("no", "yes")), Categorical("colour", ("red", "green", "blue"))
    ages = Intervals("age", (Decimal(18), Decimal("65.5")))
    rows = LabelledRows(np.array([0, 0, 1, 1, 1, 0]), (np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 2, 2, 2, 0])))
    tree = learn_tree(rows, TreeParameters(target, (colours, ages), "gain", min_rows=1))
    assert tree.lines() == ["no [3, 3]", "age < 65.5: no [3, 0]", "age >= 65.5: yes [0, 3]"]
    coarse = learn_tree(rows, TreeParameters(target, (colours,), "gain", min_rows=1))
    assert coarse.lines() == [
        "no [3, 3]",
        "colour = red: no [2, 0]",
        "colour = green: yes [1, 3]",
        "colour = blue: no [0, 0]",
    ]


def test_weather_and_play_as_in_the_paper() -> None:
    """Quinlan 1986, table 1 and figure 2: outlook, then humidity under sunny and windy under rain."""
    table = (
        "sunny hot high false N|sunny hot high true N|overcast hot high false P|rain mild high false P|"
        "rain cool normal false P|rain cool normal true N|overcast cool normal true P|sunny mild high false N|"
        "sunny cool normal false P|rain mild normal false P|sunny mild normal true P|overcast mild high true P|"
        "overcast hot normal false P|rain mild high true N"
    )
    cells = list(zip(*(line.split() for line in table.split("|")), strict=True))
    names = ("outlook", "temperature", "humidity", "windy", "class")
    every = [Categorical(name, tuple(dict.fromkeys(texts))) for name, texts in zip(names, cells, strict=True)]
    codes = [np.array([each.values.index(text) for text in texts]) for each, texts in zip(every, cells, strict=True)]
    tree = learn_tree(
        LabelledRows(codes[-1], tuple(codes[:-1])), TreeParameters(every[-1], tuple(every[:-1]), "gain", 1)
    )
    assert tree.lines() == [
        "P [5, 9]",
        "outlook = sunny: N [3, 2]",
        "  humidity = high: N [3, 0]",
        "  humidity = normal: P [0, 2]",
        "outlook = overcast: P [0, 4]",
        "outlook = rain: P [2, 3]",
        "  windy = false: P [0, 3]",
        "  windy = true: N [2, 0]",
    ]


def test_centroids_as_numbers_and_clusters_without_points() -> None:
    attributes = (Numeric("x", Decimal(10), Decimal(20), 10), Numeric("y", Decimal(0), Decimal(1), 100))
    initial = ((Decimal(10), Decimal(0)), (Decimal(20), Decimal(1)), (Decimal(20), Decimal(0)))
    task = KMeansParameters(attributes, initial, fraction_bits=4)
    points = np.array([[0, 0], [1, 10], [10, 90], [9, 100]])
    clusters, labels = lloyd(points, task)
    assert labels.tolist() == [0, 0, 1, 1]
    assert clusters.converged
    assert clusters.counts.tolist() == [2, 2, 0]
    expected = [[10.5, 0.05], [19.5, 0.95], [20.0, 0.0]]  # the last one stays
    np.testing.assert_allclose(clusters.numbers(task), expected, rtol=1e-14)


def test_drawn_centroids_are_repeatable_and_within_bounds() -> None:
    attributes = (Numeric("x", Decimal(-3), Decimal(7), 7), TENTHS)
    drawn = drawn_centroids(attributes, 50, 5)
    assert drawn == drawn_centroids(attributes, 50, 5)
    assert drawn != drawn_centroids(attributes, 50, 6)
    KMeansParameters(attributes, drawn)  # checks the bounds
    assert {drawn[row][0] for row in range(50)} >= {Decimal(-3), Decimal(7)}

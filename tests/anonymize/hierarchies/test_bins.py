"""Continuous numbers told by bins: which bin holds a number, and releases that never tell more than it."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.columns import Column
from anonymize.covering import covered
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.bins import Bins
from anonymize.hierarchies.builders import bins
from anonymize.hierarchies.files import rows_of
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements
from anonymize.risk.coverage import coverage
from anonymize.roles import Roles
from anonymize.tables import Table
from jobs.anonymization.hierarchy_spec import BinsEntry
from tests.errors import fails

ENDS = st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True).map(sorted)


def test_bins_and_runs_of_them() -> None:
    assert list(rows_of(bins([0, 0.5, 1, 4], (2,), name="weight"))) == [
        ("[0, 0.5)", "[0, 1)", "*"),
        ("[0.5, 1)", "[0, 1)", "*"),
        ("[1, 4]", "[1, 4]", "*"),
    ]


@given(ENDS, st.lists(st.integers(-110, 110), max_size=20))
def test_a_number_lies_in_the_bin_that_holds_it(ends: list[int], halves: list[int]) -> None:
    numbers = np.array(halves) / 2
    expected = np.histogram([], ends)[1]
    found = bins(ends, name="x").bins
    assert found is not None
    for number, place in zip(numbers.tolist(), found.find(numbers).tolist(), strict=True):
        holding = [at for at, (a, b) in enumerate(itertools.pairwise(expected)) if a <= number < b]
        if number == ends[-1]:
            holding = [len(ends) - 2]  # as numpy has it: the last bin is closed
        assert [place] == (holding or [-1])


@given(ENDS, st.lists(st.integers(2, 4), max_size=3))
def test_bins_are_hierarchies(ends: list[int], groups: list[int]) -> None:
    hierarchy = bins(ends, groups)
    assert hierarchy.height == len(groups) + 1
    assert len(hierarchy.leaves) == len(ends) - 1


def test_leaves_may_be_numbers_and_intervals_in_any_order() -> None:
    found = Bins.of(["[5, 9]", "[10, 20)", "4", "[-3, 0]"], "age")
    assert found is not None
    assert found.find([4, 4.5, 5, 9, 9.5, 10, 20, -3, 0]).tolist() == [2, -1, 0, 0, -1, 1, -1, 3, 3]
    assert found.text(3, 0) == "[-3, 9]"
    assert Bins.of(["1", "2"], "age") is None


@pytest.mark.parametrize(
    "leaves",
    [
        ["[0, 5)", "[4, 9)"],
        ["[0, 5]", "5"],
        ["[0, 5)", "young"],
        ["[0, x)", "7"],
        ["[5, 0)"],
        ["[5, 5)"],
    ],
)
def test_leaves_that_are_no_bins(leaves: list[str]) -> None:
    hierarchy = Hierarchy.of("age", [(leaf, "*") for leaf in leaves])
    with fails("E100"):
        hierarchy.find(Column.of("age", pa.chunked_array([[1.5]]), "numeric"))


def test_intervals_as_text_are_labels() -> None:
    column = Column.of("age", pa.chunked_array([["[0, 5)", "[3, 8)"]]), "tree")
    assert Hierarchy.of("age", [("[3, 8)", "*"), ("[0, 5)", "*")]).align(column).tolist() == [1, 0]


def test_numbers_outside_all_bins_are_named() -> None:
    column = Column.of("x", pa.chunked_array([[0.25, 7.5]]), "numeric")
    with fails("E101"):
        bins([0, 1, 2], name="x").align(column)


def test_a_release_tells_bins_at_its_lowest_level() -> None:
    table = Table.of({"x": [0.1, 0.2, 0.6, 0.9, 1.0], "town": ["A"] * 5}, Roles(quasi_identifiers=("x", "town")))
    trees = {"x": bins([0, 0.5, 1], name="x"), "town": Hierarchy.of("town", [("A", "*")])}
    release = optimal(table, trees, Requirements((KAnonymity(2),)))
    assert release.node == {"x": 0, "town": 0}
    assert release.table.column("x").to_pylist() == ["[0, 0.5)"] * 2 + ["[0.5, 1]"] * 3
    assert release.cell_loss is not None
    assert not release.cell_loss.any()


def test_what_a_bin_may_stand_for() -> None:
    column = Column.of("x", pa.chunked_array([[0.1, 0.5, 1.0, 3.0]]), "numeric")
    hierarchy = bins([0, 0.5, 1, 2], (2,), name="x")
    cells = ["[0, 0.5)", "[0.5, 1)", "[0, 1)", "[1, 2]", "*", "0.5"]
    found = coverage(cells, column, hierarchy)
    assert found.tolist() == [
        [True, False, False, False],
        [False, True, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [True, True, True, True],
        [False, True, False, False],
    ]
    held = Column.of("x", pa.chunked_array([[0.1, 0.5, 1.0]]), "numeric")
    assert [covered(cell, held, hierarchy).tolist() for cell in cells] == found[:, :3].tolist()


def test_entries_of_a_configuration() -> None:
    entry = BinsEntry.model_validate({"builder": "bins", "range": ["0", "0.9"], "count": 3})
    assert entry.bounds() == [0, 0.3, 0.6, 0.9]  # decimals, so that nobody reads 0.6000000000000001
    assert BinsEntry.model_validate({"builder": "bins", "ends": [0, "0.5", 10]}).bounds() == [0, 0.5, 10]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"range": [0, 1]},
        {"count": 4},
        {"range": [0, 1], "count": 4, "ends": [0, 1]},
        {"range": [1, 1], "count": 4},
        {"range": [0, 1], "count": 0},
        {"ends": [0]},
        {"ends": [0, 2, 1]},
        {"range": [0, 1], "count": 4, "groups": [1]},
    ],
)
def test_entries_that_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"bins need|must ascend|greater than or equal|at least 2"):
        BinsEntry.model_validate({"builder": "bins", **wrong})


@pytest.mark.parametrize("ends", [[1], [1, 1], [2, 1]])
def test_ends_that_are_refused(ends: list[int]) -> None:
    with fails("E100"):
        bins(ends)
    with fails("E100"):
        bins([0, 1], (0,))

"""Hierarchies: validation, losses, alignment, common ancestors and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.columns import Column
from anonymize.hierarchies.files import from_csv, from_json, rows_of, to_csv
from anonymize.hierarchies.hierarchy import Hierarchy
from tests.errors import fails

# 6 leaves in A and B, as in the example of Li et al.; "2" and "3" are told apart one level longer than "1".
ROWS = [
    ("1", "1", "A", "*"),
    ("2", "2-3", "A", "*"),
    ("3", "2-3", "A", "*"),
    ("4", "4", "B", "*"),
    ("5", "5", "B", "*"),
    ("6", "6", "B", "*"),
]


@st.composite
def nested_rows(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Rows of a random tree: each level is a random function of the one below."""
    labels = [f"v{leaf}" for leaf in range(draw(st.integers(1, 12)))]
    columns = [labels]
    for level in range(draw(st.integers(0, 3))):
        groups = {label: f"g{level}.{draw(st.integers(0, 3))}" for label in dict.fromkeys(columns[-1])}
        columns.append([groups[label] for label in columns[-1]])
    return [(*row, "*") for row in zip(*columns, strict=True)]


def test_levels_labels_and_losses() -> None:
    hierarchy = Hierarchy.of("x", ROWS)
    assert hierarchy.height == 3
    assert hierarchy.leaves == ("1", "2", "3", "4", "5", "6")
    assert hierarchy.labels[2] == ("A", "B")
    assert [codes.tolist() for codes in hierarchy.maps[:2]] == [[0, 1, 2, 3, 4, 5], [0, 1, 1, 2, 3, 4]]
    assert hierarchy.leaf_counts(1).tolist() == [1, 2, 1, 1, 1]
    assert hierarchy.loss(0).tolist() == [0] * 6
    assert hierarchy.loss(2).tolist() == [0.4, 0.4]
    assert hierarchy.loss(3).tolist() == [1]
    assert hierarchy.label(1, 2) == "2-3"
    assert hierarchy.parents(1).tolist() == [0, 0, 1, 1, 1]
    assert hierarchy.children(2, 0).tolist() == [0, 1]


def test_a_single_leaf_loses_nothing() -> None:
    hierarchy = Hierarchy.of("x", [("a", "*")])
    assert hierarchy.loss(1).tolist() == [0]
    assert Hierarchy.of("x", [("a",)]).height == 0


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [()],
        [("a", "*"), ("a", "*")],
        [("a", "*"), ("b",)],
        [("a", "g"), ("b", "h")],
        [("a", "g", "y", "*"), ("b", "g", "z", "*")],
        [("a", "f", "z", "*"), ("b", "g", "y", "*"), ("c", "f", "y", "*")],
    ],
)
def test_wrong_hierarchies_are_refused_with_the_values_named(rows: list[tuple[str, ...]]) -> None:
    with fails("E101"):
        Hierarchy.of("x", rows)


def test_a_top_is_added_on_demand() -> None:
    hierarchy = Hierarchy.of("x", [("a", "g"), ("b", "h")], add_top=True)
    assert hierarchy.labels[-1] == ("*",)
    assert hierarchy.height == 2
    assert Hierarchy.of("x", [("a", "*")], add_top=True).height == 1


def test_values_meet_their_leaves() -> None:
    column = Column.of("x", pa.chunked_array([["6", "2"]]))
    hierarchy = Hierarchy.of("x", ROWS)
    assert hierarchy.align(column).tolist() == [1, 5]
    assert hierarchy.codes(column, 2).tolist() == [0, 1]
    with fails("E100"):
        hierarchy.codes(column, 4)


def test_numbers_meet_leaves_however_written() -> None:
    hierarchy = Hierarchy.of("x", [("01", "*"), ("2.50", "*"), ("unknown", "*"), ("3", "*")])
    for values in ([1.0, 2.5, 3.0], ["1", "2.5", "3"]):
        assert hierarchy.align(Column.of("x", pa.chunked_array([values]), "numeric")).tolist() == [0, 1, 3]
    with fails("E101"):
        hierarchy.align(Column.of("x", pa.chunked_array([["1"]])))


def test_values_that_a_hierarchy_lacks_are_named() -> None:
    column = Column.of("age", pa.chunked_array([[str(value) for value in range(9)]]))
    with fails("E101"):
        Hierarchy.of("age", ROWS).align(column)
    with fails("E101"):
        Hierarchy.of("x", ROWS).align(Column.of("x", pa.chunked_array([[f"a{value}" for value in range(9)]])))


@given(nested_rows(), st.data())
def test_common_ancestors_are_the_lowest(rows: list[tuple[str, ...]], data: st.DataObject) -> None:
    hierarchy = Hierarchy.of("x", rows)
    leaves = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    level, label = hierarchy.lowest_common(leaves)
    assert {hierarchy.maps[level][leaf] for leaf in leaves} == {label}
    assert level == 0 or len({hierarchy.maps[level - 1][leaf] for leaf in leaves}) > 1
    a, b = np.array(leaves)[:, None], np.array(leaves)[None, :]
    pairs = [[hierarchy.lowest_common([x, y])[0] for y in leaves] for x in leaves]
    assert hierarchy.common_levels(a, b).tolist() == pairs
    assert max(map(max, pairs)) == level


@given(nested_rows())
def test_levels_are_coarser_and_coarser(rows: list[tuple[str, ...]]) -> None:
    hierarchy = Hierarchy.of("x", rows)
    for level in range(hierarchy.height):
        parents = hierarchy.parents(level)
        assert (parents[hierarchy.maps[level]] == hierarchy.maps[level + 1]).all()
        assert (hierarchy.loss(level) <= hierarchy.loss(level + 1)[parents]).all()
        for label in range(len(hierarchy.labels[level + 1])):
            assert (parents[hierarchy.children(level + 1, label)] == label).all()
        assert hierarchy.leaf_counts(level).sum() == len(rows)
    assert hierarchy.leaf_counts(hierarchy.height).tolist() == [len(rows)]


def test_files_keep_a_hierarchy(tmp_path: Path) -> None:
    rows = [("a;b", 'say "x"', "*"), ("c", "d\ne", "*"), ("", "d\ne", "*"), ("é", "é", "*")]
    path = tmp_path / "x.csv"
    for separator in (",", ";", "\t"):
        to_csv(Hierarchy.of("x", rows), path, separator)
        read = from_csv(path, separator)
        assert list(rows_of(read)) == rows
        assert read.name == "x"
    assert from_csv(path, "\t", name="y").name == "y"


def test_csv_that_is_wrong_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with fails("E101"):
        from_csv(path)
    path.write_bytes(b"\xff\xfe")
    with fails("E101"):
        from_csv(path)
    path.write_text("a;*\nb;*\n")
    with fails("E101"):
        from_csv(path)
    path.write_text("\ufeffa,g\n\nb,h\n", encoding="utf-8")
    assert from_csv(path, add_top=True).leaves == ("a", "b")


def test_json_trees_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "country.json"
    path.write_text('{"*": {"Europe": {"South": ["Spain", "Italy"], "North": ["Norway"]}, "Asia": ["Japan"]}}')
    hierarchy = from_json(path)
    assert list(rows_of(hierarchy)) == [
        ("Spain", "South", "Europe", "*"),
        ("Italy", "South", "Europe", "*"),
        ("Norway", "North", "Europe", "*"),
        ("Japan", "Japan", "Asia", "*"),
    ]
    assert hierarchy.name == "country"
    path.write_text('[["a", "g"], ["b", "h"]]')
    assert from_json(path, name="x", add_top=True).height == 2


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "3",
        '["a", "b"]',
        '[["a", 1]]',
        '{"*": "a"}',
        "{}",
        '{"a": ["1"], "b": ["2"]}',
    ],
)
def test_json_that_is_wrong_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with fails("E101"):
        from_json(path)


def test_reference_hierarchies_load(shared_data: Path) -> None:
    shapes = {}
    for path in sorted((shared_data / "adult").glob("adult_hierarchy_*.csv")):
        hierarchy = from_csv(path, ";")
        shapes[path.stem.rpartition("_")[2]] = (len(hierarchy.leaves), hierarchy.height)
    assert shapes["age"] == (100, 4)
    assert shapes["native-country"] == (41, 2)
    assert shapes["education"] == (16, 3)
    assert len(shapes) == 9

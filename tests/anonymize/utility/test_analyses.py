"""What analyses lose: count queries and classifiers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.utility.classification import classification_accuracy
from anonymize.utility.queries import cell_shares, query_errors, random_queries
from anonymize.verification.rows import read_csv
from crypto.primitives.randomness import Randomness
from tests.errors import fails

TWO = Requirements((KAnonymity(2),))


def test_shares_of_cells() -> None:
    whole = Table.of({"a": list(range(10))}, Roles((), ("a",))).columns["a"]
    chosen = np.zeros((2, 10), bool)
    chosen[0, 2:5], chosen[1, 9] = True, True
    cells = ["[0, 3]", "[4, 9]", "3", "*", "{2, 9}", "[2, 5)", "2.5"]
    assert cell_shares(cells, whole, chosen).tolist() == [
        pytest.approx([2 / 4, 1 / 6, 1, 0.3, 0.5, 1, 1]),
        pytest.approx([0, 1 / 6, 0, 0.1, 0.5, 0, 0]),
    ]
    line = Table.of({"a": [0.0, 0.5, 2.0, 4.0]}, Roles((), ("a",))).columns["a"]
    assert cell_shares(["[0, 4]", "[0, 0.5]"], line, np.array([[False, True, True, False]])).tolist() == [
        pytest.approx([1.5 / 4, 0])
    ]


def test_shares_of_labels(toy: Table, toy_hierarchies: dict[str, Hierarchy]) -> None:
    age = toy.columns["age"]
    chosen = (age.numbers < 30)[None]
    assert cell_shares(["20-29", "20-39", "40-59", "*"], age, chosen, toy_hierarchies["age"]).tolist() == [
        pytest.approx([1, 3 / 5, 0, 3 / 8])
    ]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), min_size=1, max_size=30), st.integers(1, 2))
def test_an_unchanged_table_answers_rightly(rows: list[tuple[int, str]], dimensions: int) -> None:
    x, y = map(list, zip(*rows, strict=True))
    table = Table.of({"x": x, "y": y}, Roles((), ("x", "y")))
    queries = random_queries(table, Randomness.from_seed(1), count=20, dimensions=dimensions, selectivity=0.2)
    found = query_errors(table, table.data, queries)
    assert found.mean == pytest.approx(0, abs=1e-9)
    for query in range(queries.count):
        inside = [queries.chosen[0][query][i] and queries.chosen[1][query][j] for i, j in table.quasi_codes]
        assert found.actual[query] == sum(inside)


def test_wholly_generalised_tables_answer_by_the_domain(toy: Table) -> None:
    stars = pa.table({"age": ["*"] * 8, "zip": ["*"] * 8})
    queries = random_queries(toy, Randomness.from_seed(2), count=50, dimensions=1, selectivity=0.25)
    found = query_errors(toy, stars, queries)
    assert found.estimated == pytest.approx(np.full(50, 2.0))  # a quarter of each domain, of eight rows
    assert found.actual.tolist() == [2] * 50  # each value of the toy table is of one row
    assert found.relative == pytest.approx(np.zeros(50))


def test_queries_refuse(toy: Table) -> None:
    with fails("E100"):
        random_queries(toy, Randomness.from_seed(1), dimensions=3)


def learnable(n: int = 600) -> Table:
    """The class follows from x > 50, but for one row in ten."""
    rng = np.random.default_rng(1)
    x, noise = rng.integers(0, 100, n), rng.random(n)
    label = np.where((x > 50) ^ (noise < 0.1), "high", "low")
    return Table.of(
        {"x": x.tolist(), "g": rng.choice(["a", "b"], n).tolist(), "class": label.tolist()},
        Roles((), ("x", "g"), (), ("class",)),
    )


def test_classifiers_learn_from_a_release() -> None:
    table = learnable()
    fine = mondrian(table, Requirements((KAnonymity(5),)))
    found = classification_accuracy(table, fine, "class", Randomness.from_seed(1))
    # Nine rows in ten are learnable: 540 ± 5 standard deviations of 7.3, probability of failure below 1e-6.
    assert 0.83 < found.original < 0.97
    assert 0.8 < found.release < 0.97
    assert found.baseline < 0.6
    assert found.kept == pytest.approx(1, abs=0.25)


def test_nothing_is_learnt_from_stars() -> None:
    table = learnable()
    data = table.data.set_column(0, "x", pa.array(["*"] * 600)).set_column(1, "g", pa.array(["*"] * 600))
    release = Release("stars", data, np.arange(600), np.zeros(600, np.int64), np.zeros(0, np.int64))
    found = classification_accuracy(table, release, "class", Randomness.from_seed(1))
    assert found.release <= found.baseline + 1e-9
    assert found.kept <= 0.01


def test_synthetic_records_are_tested_on_the_original() -> None:
    table = learnable()
    copies = pa.concat_tables([table.data, table.data])
    release = Release("copies", copies, None, None, np.zeros(0, np.int64))
    found = classification_accuracy(table, release, "class", Randomness.from_seed(1))
    assert found.release > found.original - 0.02


def test_classification_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    table = learnable(60)
    release = mondrian(table, TWO)
    with fails("E100"):
        classification_accuracy(table, release, "nothing", Randomness.from_seed(1))
    with fails("E100"):
        classification_accuracy(table, release, "class", Randomness.from_seed(1), folds=1)
    monkeypatch.setitem(sys.modules, "sklearn.compose", None)
    with fails("E100"):
        classification_accuracy(table, release, "class", Randomness.from_seed(1))


@pytest.mark.data
def test_adult_keeps_counts_and_classes(shared_data: Path) -> None:
    from anonymize.hierarchies.files import from_csv

    adult = shared_data / "adult"
    data = read_csv(adult / "adult.csv", ";").drop(["occupation"])
    quasi = [name for name in data.column_names if name != "salary-class"]
    roles = Roles((), tuple(quasi), (), ("salary-class",))
    table = Table.of(data, roles, {"age": "numeric"})
    levels = {name: from_csv(adult / f"adult_hierarchy_{name}.csv", ";", name=name) for name in quasi}
    queries = random_queries(table, Randomness.from_seed(1), count=300, dimensions=2, selectivity=0.1)
    errors = {}
    for k in (5, 50):
        fine = mondrian(table, Requirements((KAnonymity(k),)), hierarchies=levels)
        errors[k] = query_errors(table, fine.table, queries, hierarchies=levels).mean
    coarse = optimal(table, levels, Requirements((KAnonymity(5),)), max_suppression=0.02)
    errors[0] = query_errors(table, coarse.table, queries, hierarchies=levels).mean
    assert errors[5] < errors[50] < errors[0], "local recoding of small classes answers best"
    found = classification_accuracy(table, coarse, "salary-class", Randomness.from_seed(1), folds=3)
    assert found.baseline < found.release <= found.original + 0.01

"""Linkage attacks: the chapter's voter list, brute force, suppressed rows, populations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.cells import format_interval, format_set
from anonymize.covering import covered
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.risk.coverage import coverage
from anonymize.risk.linkage import linkage_attack, population_sizes, suppressed_rows
from anonymize.risk.reidentification import journalist, marketer, prosecutor
from anonymize.roles import Roles
from anonymize.tables import Table
from tests.errors import fails

# Patients, and a voter list that names everybody's age and postal code, in the manner of the chapter's tables 20.1-2.
PATIENTS = {
    "age": [24, 37, 26, 38, 36, 25],
    "zip": ["10598", "90210", "10547", "90345", "89119", "02139"],
    "disease": ["HIV", "Hepatitis C", "HIV", "Hepatitis C", "Diabetes", "HIV"],
}
VOTERS = {
    "name": ["Mary", "John", "Ann", "Jack", "Joy", "Victor", "Peter", "Diana", "William", "Sue"],
    "age": [38, 36, 31, 57, 26, 46, 25, 24, 37, 26],
    "zip": ["90345", "89119", "02139", "10562", "10547", "90345", "02139", "10598", "90210", "10547"],
}
REGIONS = [
    ("10598", "New York", "Northeastern US", "*"),
    ("10547", "New York", "Northeastern US", "*"),
    ("10562", "New York", "Northeastern US", "*"),
    ("02139", "Massachusetts", "Northeastern US", "*"),
    ("90210", "California", "Western US", "*"),
    ("90345", "California", "Western US", "*"),
    ("89119", "Nevada", "Western US", "*"),
]
HIERARCHIES = {"zip": Hierarchy.of("zip", REGIONS)}
VOTER_ROLES = Roles(identifiers=("name",), quasi_identifiers=("age", "zip"))


def voters() -> Table:
    return Table.of(VOTERS, VOTER_ROLES)


def test_a_voter_list_names_patients_of_a_table_without_names() -> None:
    found = linkage_attack(pa.table(PATIENTS), voters(), sensitive="disease")
    by_name = dict(zip(VOTERS["name"], found.matches.tolist(), strict=True))
    assert {name for name, matched in by_name.items() if matched == 1} == {
        *("Mary", "John", "Joy", "Peter", "Diana", "William", "Sue")
    }
    assert found.unique == found.disclosed == 7  # one row each: the disease is known
    william = VOTERS["name"].index("William")
    assert dict(zip(found.values, found.posterior[william], strict=True))["Hepatitis C"] == 1
    # Two voters match the patient of 26 in 10547, so of her identity only half is known: the journalist's risk.
    f, population = population_sizes(pa.table(PATIENTS), voters())
    assert sorted(zip(f.tolist(), population.tolist(), strict=True)) == [(1, 1)] * 5 + [(1, 2)]
    assert marketer(f, population) == pytest.approx(5.5 / 6)


def generalised() -> pa.Table:
    """Two classes of three: 3-anonymous, and all of the first have HIV."""
    east = [age < 30 for age in PATIENTS["age"]]
    return pa.table(
        {
            "age": [format_interval(20, 29) if young else format_interval(30, 39) for young in east],
            "zip": ["Northeastern US" if young else "Western US" for young in east],
            "disease": PATIENTS["disease"],
        }
    )


def test_generalisation_hides_identities_but_a_homogeneous_class_gives_the_disease_away() -> None:
    found = linkage_attack(generalised(), voters(), sensitive="disease", hierarchies=HIERARCHIES)
    by_name = dict(zip(VOTERS["name"], found.matches.tolist(), strict=True))
    assert by_name == dict.fromkeys(VOTERS["name"], 3) | {"Ann": 0, "Jack": 0, "Victor": 0}
    risk = dict(zip(VOTERS["name"], found.attribute_risk.tolist(), strict=True))
    assert risk["Joy"] == risk["Sue"] == 1.0
    assert risk["William"] == pytest.approx(2 / 3)
    assert found.identity_risk.max() == pytest.approx(1 / 3)
    assert (found.unique, found.disclosed) == (0, 4)
    f, population = population_sizes(generalised(), voters(), hierarchies=HIERARCHIES)
    assert (f.tolist(), sorted(population.tolist())) == ([3, 3], [3, 4])
    assert journalist(f, population).highest == prosecutor(f).highest == pytest.approx(1 / 3)


def test_an_attacker_who_knows_less_matches_more() -> None:
    known = Table.of({"age": VOTERS["age"]}, Roles(quasi_identifiers=("age",)))
    found = linkage_attack(pa.table(PATIENTS), known)
    assert found.matches.tolist() == [1, 1, 0, 0, 1, 0, 1, 1, 1, 1]
    assert found.posterior.shape == (10, 0)
    assert found.disclosed == 0


def test_suppressed_rows_are_matched_only_where_no_class_is() -> None:
    """Kept with its disease, the one suppressed row is a class of its own to an attacker."""
    table = pa.table(
        {"age": ["20-39"] * 2 + ["40-59"] * 2 + ["*"], "disease": ["HIV", "Flu", "Flu", "Fever", "Diabetes"]}
    )
    ages = Hierarchy.of("age", [(str(a), f"{a // 20 * 20}-{a // 20 * 20 + 19}", "*") for a in range(20, 100)])
    people = Table.of({"age": [25, 45, 70]}, Roles(quasi_identifiers=("age",)))
    hidden = [False] * 4 + [True]
    found = linkage_attack(table, people, sensitive="disease", hierarchies={"age": ages}, suppressed=hidden)
    assert found.matches.tolist() == [2, 2, 1]
    assert found.attribute_risk.tolist() == [0.5, 0.5, 1.0]
    blanked = table.set_column(1, "disease", pa.array(["HIV", "Flu", "Flu", "Fever", None]))
    found = linkage_attack(blanked, people, sensitive="disease", hierarchies={"age": ages}, suppressed=hidden)
    assert found.attribute_risk.tolist() == [0.5, 0.5, 0.0]
    dropped = linkage_attack(table.slice(0, 4), people, sensitive="disease", hierarchies={"age": ages})
    assert dropped.matches.tolist() == [2, 2, 0]


def test_suppressed_rows_of_a_release() -> None:
    hidden = suppressed_rows(np.array([0, 2, 3]), np.array([2, 5]))
    assert hidden is not None
    assert hidden.tolist() == [False, True, False]
    assert suppressed_rows(np.array([0, 1]), np.array([2])) is None
    assert suppressed_rows(None, np.array([2])) is None


def test_values_that_a_hierarchy_lacks_are_matched_by_stars_only() -> None:
    people = Table.of({"zip": ["10598", "77777"]}, Roles(quasi_identifiers=("zip",)))
    table = pa.table({"zip": ["New York", "*"]})
    assert linkage_attack(table, people, hierarchies=HIERARCHIES).matches.tolist() == [2, 1]


def test_labels_need_their_hierarchy() -> None:
    with fails("E101"):
        linkage_attack(generalised(), voters())


def test_columns_must_be_published() -> None:
    with fails("E100"):
        linkage_attack(generalised().drop(["zip"]), voters())
    with fails("E100"):
        linkage_attack(generalised(), voters(), sensitive="salary", hierarchies=HIERARCHIES)


cells = st.one_of(
    st.integers(0, 9).map(str),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: format_interval(min(ends), max(ends))),
    st.sets(st.integers(0, 9), min_size=1).map(lambda values: format_set(sorted(values))),
    st.just("*"),
)


def stands_for(cell: str, value: int) -> bool:
    if cell == "*":
        return True
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return int(low) <= value <= int(high)
    return str(value) in cell.strip("{}").split(", ")


@given(
    st.lists(st.tuples(cells, cells, st.sampled_from("xyz")), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
)
def test_matches_equal_brute_force(rows: list[tuple[str, str, str]], people: list[tuple[int, int]]) -> None:
    first, second, secret = map(list, zip(*rows, strict=True))
    table = pa.table({"a": first, "b": second, "s": secret})
    a, b = map(list, zip(*people, strict=True))
    targets = Table.of({"a": a, "b": b}, Roles(quasi_identifiers=("a", "b")))
    found = linkage_attack(table, targets, sensitive="s")
    for person, (x, y) in enumerate(people):
        behind = [s for one, two, s in rows if stands_for(one, x) and stands_for(two, y)]
        assert found.matches[person] == len(behind)
        for value, share in zip(found.values, found.posterior[person], strict=True):
            assert share == pytest.approx(behind.count(value) / len(behind) if behind else 0)
    f, population = population_sizes(table, targets)
    assert f.sum() == len(rows)
    assert (f * 0 <= population).all()


def test_coverage_equals_cell_by_cell() -> None:
    """The quick way for numbers and hierarchies against the plain reading of one cell."""
    ages = Hierarchy.of(
        "a", [(f"{a}.0", f"{a // 5 * 5}-{a // 5 * 5 + 4}", "7" if a < 10 else "old", "*") for a in range(20)]
    )
    column = Table.of({"a": [0, 3, 7, 7, 12, 19]}, Roles(quasi_identifiers=("a",))).columns["a"]
    cells = ["*", "7", "5-9", "old", "12", "4", "[3, 12]", "[3, 12)", "{0, 19}", "18.0", "99"]
    assert (coverage(cells, column, ages) == np.stack([covered(cell, column, ages) for cell in cells])).all()
    plain = [cell for cell in cells if cell not in ("5-9", "old")]
    assert (coverage(plain, column) == np.stack([covered(cell, column) for cell in plain])).all()


def test_half_open_intervals_and_dates() -> None:
    numbers = Table.of({"a": [10, 20, 25]}, Roles(quasi_identifiers=("a",))).columns["a"]
    assert coverage(["[10, 20)", "[10, 20]"], numbers).tolist() == [[True, False, False], [True, True, False]]
    days = Table.of({"d": ["2020-01-31", "2021-05-01"]}, Roles(quasi_identifiers=("d",)), {"d": "date"}).columns["d"]
    assert coverage(["[2020-01-01, 2020-12-31]", "*"], days).tolist() == [[True, False], [True, True]]

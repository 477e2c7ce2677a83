"""Fixtures of the anonymisation tests."""

from __future__ import annotations

import pytest

from anonymize.hierarchies.builders import grouping, prefix
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.roles import Roles
from anonymize.tables import Table

AGES = (21, 26, 25, 48, 32, 45, 35, 50)
ZIPS = ("114235", "114751", "115032", "124151", "115012", "115451", "115313", "113726")
DISEASES = ("HIV", "HIV", "Flu", "Diabetes", "Cancer", "Fever", "Hepatitis", "Flu")


@pytest.fixture(scope="session")
def toy() -> Table:
    """The eight patients on which the literature's examples are worked out by hand."""
    roles = Roles(quasi_identifiers=("age", "zip"), sensitive=("disease",))
    return Table.of({"age": AGES, "zip": ZIPS, "disease": DISEASES}, roles, {"zip": "code"})


@pytest.fixture(scope="session")
def toy_hierarchies() -> dict[str, Hierarchy]:
    """Age: decade, two decades, all; zip: three digits, two digits, all."""
    decades = {str(age): f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in range(20, 60)}
    pairs = {"20-29": "20-39", "30-39": "20-39", "40-49": "40-59", "50-59": "40-59"}
    age = grouping(range(20, 60), decades, pairs, name="age")
    return {"age": age, "zip": prefix(ZIPS, (3, 4), name="zip")}

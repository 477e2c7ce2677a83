"""Roles: every column exactly one; and what is proposed."""

from __future__ import annotations

from anonymize.roles import Roles, suggest_roles
from tests.errors import fails


def test_every_column_has_exactly_one_role() -> None:
    roles = Roles(["name"], ["age", "zip"], ["disease"], [])  # type: ignore[arg-type]
    assert roles.quasi_identifiers == ("age", "zip")
    roles.check(["name", "age", "zip", "disease"])
    assert roles.of("zip") == "quasi_identifiers"
    with fails("E100"):
        Roles(quasi_identifiers=("age",), sensitive=("age",))
    with fails("E100"):
        roles.check(["name", "age", "weight", "zip", "disease", "height"])
    with fails("E100"):
        roles.check(["name", "age", "disease"])
    with fails("E100"):
        roles.of("weight")


def test_a_role_is_a_list() -> None:
    with fails("E100"):
        Roles(quasi_identifiers="age")  # type: ignore[arg-type]


def test_proposals_have_roles_kinds_and_reasons() -> None:
    data = {
        "PatientName": ["Ann", "Bob", "Cid", "Dan"],
        "note": ["a1", "b2", "c3", "d4"],
        "customer_id": [1, 2, 3, 4],
        "postal-code": ["01234", "02345", "99999", "99999"],
        "birthDate": ["2020-01-01", "2020-01-01", "2020-02-01", ""],
        "income": [10.5, 20.5, 30.5, 40.5],
        "smoker": ["yes", "no", "yes", "no"],
        "flag": ["1", "0", "1", "1"],
        "steps": ["10", "20", "10", "20"],
        "house": ["007", "12", "12", "12"],
        "colour": ["red", "red", "blue", "blue"],
        "version": [1, 1, 1, 1],
        "seen": [1.5, 2.5, 3.5, 4.5],
        "empty": [None, None, None, None],
    }
    found = {suggestion.column: (suggestion.role, suggestion.kind) for suggestion in suggest_roles(data)}
    assert found == {
        "PatientName": ("identifiers", "tree"),
        "note": ("identifiers", "tree"),
        "customer_id": ("identifiers", "numeric"),
        "postal-code": ("quasi_identifiers", "code"),
        "birthDate": ("quasi_identifiers", "date"),
        "income": ("sensitive", "numeric"),
        "smoker": ("quasi_identifiers", "boolean"),
        "flag": ("quasi_identifiers", "numeric"),
        "steps": ("quasi_identifiers", "numeric"),
        "house": ("quasi_identifiers", "code"),
        "colour": ("quasi_identifiers", "tree"),
        "version": ("insensitive", "numeric"),
        "seen": ("quasi_identifiers", "numeric"),
        "empty": ("insensitive", "tree"),
    }
    assert all(suggestion.reason.endswith(".") for suggestion in suggest_roles(data))
    assert "4 values in 4 rows" in next(s.reason for s in suggest_roles(data) if s.column == "note")

"""Which columns of a table may leave in a release, and in which roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, get_args

from pydantic import AfterValidator

from jobs.spec.values import ColumnName
from party.policy.policy_input import listed

Role = Literal["quasi_identifiers", "sensitive", "insensitive"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)


def some_once(values: tuple[str, ...]) -> tuple[str, ...]:
    """Values that are some, each once.

    Raises:
        ValueError: They are not.
    """
    if not values:
        raise ValueError("names nothing")
    if len(set(values)) < len(values):
        raise ValueError("names something twice")
    return values


Roles = Annotated[tuple[Role, ...], AfterValidator(some_once)]


class Asked(Protocol):
    """A release that is asked for, by the roles of its columns."""

    @property
    def quasi_identifiers(self) -> tuple[ColumnName, ...]:
        """Columns that are generalised."""

    @property
    def sensitive(self) -> tuple[ColumnName, ...]:
        """Columns that models look at, published as they are."""

    @property
    def insensitive(self) -> tuple[ColumnName, ...]:
        """Other columns that are published as they are."""


def asked_columns(asked: Asked) -> list[tuple[Role, ColumnName]]:
    """All columns of a release, each with its role."""
    return [(role, name) for role in ROLES for name in getattr(asked, role)]


def columns_refusal(columns: Mapping[ColumnName, Roles], asked: Asked) -> str | None:
    """Why a release may not have all its columns in their roles: the end of a sentence "the policy of NAME"; or None.

    Args:
        columns: Those that may leave, and in which roles.
        asked: The release.
    """
    for role, name in asked_columns(asked):
        if name not in columns:
            return f"lets only {listed(columns)} leave, not '{name[:100]}' (rule columns)"
        if role not in columns[name]:
            return f"lets '{name}' leave as {' or '.join(columns[name])} only, not as {role} (rule columns)"
    return None
